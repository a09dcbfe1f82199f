"""Text of the extreme classification repository, and svmlight with several labels a row.

A file may open with a header line `N D L` (rows, features, labels): then it is
repository text, otherwise svmlight. The content decides, not the file's name.
Then one line a row:

    3,17,20 5:0.25 90:1        labels, then feature:value pairs
     5:1                       no label: the line starts with a blank
    3:2.5,17:4 5:0.25          graded labels (only below a header)

Ids count from 0. Pairs may come in any order and values of a repeated feature are
summed; a repeated label counts once (its largest grade). Zeros are dropped. Text
after `#` and svmlight's `qid:` tokens are skipped. An empty line is a row without
labels and features below a header and a gap in svmlight.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._files import whole_file
from metarank._threads import resolve_n_jobs
from metarank._validation import MOST_IMPLIED_LABELS
from metarank.data.dataset import Dataset

GZIP_MAGIC, XZ_MAGIC, BYTE_ORDER_MARK = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\xef\xbb\xbf"
BZIP2_MAGIC, ZSTANDARD_MAGIC = b"BZh", b"\x28\xb5\x2f\xfd"
COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
STANDARD_INPUT = "-"
HEADER = re.compile(rb"[ \t]*(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t\r]*(?:\n|$)")

# A compressed file that expands beyond both is refused: real text shrinks to a tenth, a bomb to a thousandth.
_MOST_TIMES, _LEAST_EXPANDED = 100, 1 << 26
# Beyond what `xz -9` asks for.
_XZ_MEMORY = 1 << 28

PathLike = str | os.PathLike[str]


def read_bytes(path: PathLike) -> bytes:
    """Content of a file, decompressed if it starts as gzip, xz, bzip2 or (with pyarrow) Zstandard does,
    without a byte order mark; "-" is standard input.

    Raises
    ------
    ValueError
        If the compressed data is damaged, or expands more than a hundredfold; the file is named.
    """
    return decompressed(raw_bytes(path), path)


def raw_bytes(path: PathLike) -> bytes:
    """Content of a file or a pipe as it is, read once; "-" is standard input."""
    if str(path) != STANDARD_INPUT:
        return Path(path).read_bytes()
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed: name a file")
    return sys.stdin.buffer.read()


def decompressed(raw: bytes, path: object) -> bytes:
    """What `read_bytes` makes of the content of a file; `path` is for messages."""
    try:
        if raw.startswith(GZIP_MAGIC):
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
                raw = _bounded(stream.read(_most(raw) + 1), raw)
        elif raw.startswith(XZ_MAGIC):
            raw = _unxz(raw)
        elif raw.startswith(BZIP2_MAGIC):
            raw = _unbzip2(raw)
        elif raw.startswith(ZSTANDARD_MAGIC):
            raw = _unzstandard(raw, path)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path}: damaged compressed file: {error}") from None
    except _ExpandsTooMuch as error:
        raise ValueError(f"{path}: {error}") from None
    return raw.removeprefix(BYTE_ORDER_MARK)


class _ExpandsTooMuch(Exception):
    """A compressed file of much less than its content."""


def _most(raw: bytes) -> int:
    return max(_LEAST_EXPANDED, _MOST_TIMES * len(raw))


def _bounded(content: bytes, raw: bytes) -> bytes:
    if len(content) > _most(raw):
        raise _ExpandsTooMuch(
            f"it holds more than {_MOST_TIMES} times its {len(raw)} bytes: decompress it first"
        )
    return content


def _unxz(raw: bytes) -> bytes:
    parts, rest = [], raw
    while rest.strip(b"\0"):
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)
        parts.append(_bounded(stream.decompress(rest, _most(raw) + 1), raw))
        if not stream.eof:
            raise EOFError("the stream has no end")
        rest = stream.unused_data
    return _bounded(b"".join(parts), raw)


def _unbzip2(raw: bytes) -> bytes:
    parts, rest = [], raw
    while rest:
        stream = bz2.BZ2Decompressor()
        parts.append(_bounded(stream.decompress(rest, _most(raw) + 1), raw))
        if not stream.eof:
            raise EOFError("the stream has no end")
        rest = stream.unused_data
    return _bounded(b"".join(parts), raw)


def _unzstandard(raw: bytes, path: object) -> bytes:
    try:
        import pyarrow as pa
    except ImportError:
        raise ValueError(
            f"{path}: Zstandard files are read with pyarrow (extra data): install it, or decompress the file"
        ) from None
    with pa.CompressedInputStream(pa.BufferReader(raw), "zstd") as stream:
        return _bounded(bytes(stream.read(_most(raw) + 1)), raw)


def has_header(path: PathLike) -> bool:
    """Whether a file, compressed or not, opens with the line `N D L` of repository text."""
    with open(path, "rb") as raw:
        magic = raw.read(len(XZ_MAGIC))
    opened: Callable[..., Any] = open
    for start_of, how in ((GZIP_MAGIC, gzip.open), (XZ_MAGIC, lzma.open), (BZIP2_MAGIC, bz2.open)):
        opened = how if magic.startswith(start_of) else opened
    try:
        with opened(path, "rb") as f:
            start = f.read(200)
    except (OSError, EOFError, lzma.LZMAError, zlib.error):
        return False  # whoever reads the whole file says what is wrong with it
    return HEADER.match(start.removeprefix(BYTE_ORDER_MARK)) is not None


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
        Sizes D and L of text without a header; None takes the largest id + 1, of labels at most 2^22.
    n_jobs : int or None
        Threads; the result does not depend on it.

    Raises
    ------
    ValueError
        With the line's number and the offending token: what is no number, NaN or infinite values,
        negative ids, ids not below D or L of the header; or if the header's N is not the number of rows.

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
        n_rows, D, L = (int(v) for v in header.groups())
        for size, asked, what in ((D, n_features, "features"), (L, n_labels, "labels")):
            if asked is not None and size != asked:
                raise ValueError(f"expected {asked} {what}, the header says {size}")
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
        indptr, label_indptr = _without_blank_tail(indptr, label_indptr, n_rows)
        if len(indptr) - 1 != n_rows:
            raise ValueError(f"the header says {n_rows} rows, found {len(indptr) - 1}")
    D = D if D >= 0 else int(ids.max(initial=-1)) + 1
    if L < 0 and label_ids.max(initial=-1) >= MOST_IMPLIED_LABELS:
        raise ValueError(
            f"label ids must be below {MOST_IMPLIED_LABELS} where neither a header nor n_labels tells their "
            f"number, got {label_ids.max()}"
        )
    L = L if L >= 0 else int(label_ids.max(initial=-1)) + 1
    return _csr(indptr, ids, values, D), _csr(label_indptr, label_ids, grades, L)


def parse_pairs(text: bytes, n_columns: int, *, n_jobs: int | None = None) -> sp.csr_matrix:
    """CSR (n, n_columns) of lines of `id:value` pairs, without labels or header: grades beside a data file.

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
    return _csr(indptr, ids, values, n_columns)


def _without_blank_tail(
    indptr: np.ndarray, label_indptr: np.ndarray, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Blank lines after the last row are no rows."""
    filled = np.flatnonzero(np.diff(indptr) + np.diff(label_indptr))
    n = max(min(n_rows, len(indptr) - 1), filled[-1] + 1 if len(filled) else 0)
    return indptr[: n + 1], label_indptr[: n + 1]


def _csr(indptr: np.ndarray, ids: np.ndarray, values: np.ndarray, n_columns: int) -> sp.csr_matrix:
    if len(ids) <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    out = sp.csr_matrix((values, ids, indptr), shape=(len(indptr) - 1, n_columns))
    out.has_sorted_indices = out.has_canonical_format = True
    return out


def write_xc(path: PathLike, dataset: Dataset) -> None:
    """Write X and Y as repository text; `.gz` and `.xz` names are compressed.

    Values are the shortest decimals that read back as the same float32; grades are written where a
    relevance is not 1. The file appears whole or not at all. Names and texts are not written.

    Raises
    ------
    ValueError
        If the data set has no X.
    """
    header = f"{dataset.n_rows} {dataset.n_features} {dataset.n_labels}\n".encode()
    _write_atomically(Path(path), [header, _format(dataset, dataset.is_graded)])


def write_svmlight(path: PathLike, dataset: Dataset) -> None:
    """Write X and Y as svmlight with comma-separated labels, ids from 0; otherwise as `write_xc`.

    Raises
    ------
    ValueError
        If the data set has no X, is graded (svmlight cannot say so), or has a row without labels and
        features (an empty line, which readers skip).
    """
    if dataset.is_graded:
        raise ValueError("svmlight has no graded labels; use write_xc")
    n_entries = np.diff(dataset.Y.indptr) + np.diff(sp.csr_matrix(_features(dataset)).indptr)
    if np.any(n_entries == 0):
        row = int(np.flatnonzero(n_entries == 0)[0])
        raise ValueError(f"svmlight cannot hold row {row}, without labels and features; use write_xc")
    _write_atomically(Path(path), [_format(dataset, False)])


def _features(dataset: Dataset) -> np.ndarray | sp.csr_matrix:
    if dataset.X is None:
        raise ValueError("the data set has no features (X is None) to write")
    return dataset.X


def _format(dataset: Dataset, graded: bool) -> bytes:
    parts: list[Any] = []
    for matrix in (sp.csr_matrix(_features(dataset)), dataset.Y):
        parts += [matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data]
    parts.append(graded)
    return _core.format_rows(*parts).tobytes()


def _write_atomically(path: Path, chunks: list[bytes]) -> None:
    with whole_file(path, "wb") as raw:
        if path.suffix == ".gz":
            # No name and no time in the header: the same data gives the same bytes.
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
                stream.writelines(chunks)
        elif path.suffix == ".xz":
            with lzma.LZMAFile(raw, "wb") as xz:
                xz.writelines(chunks)
        else:
            raw.writelines(chunks)
