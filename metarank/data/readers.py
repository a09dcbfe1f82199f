"""`load`: a file and the files beside it, as one `Dataset`."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import scipy.sparse as sp

from metarank.data.arff import read_arff
from metarank.data.compressed import (
    COMPRESSED,
    PARQUET_MAGIC,
    STANDARD_INPUT,
    PathLike,
    decode,
    decompressed,
    ending_of,
    plain_or_compressed,
    raw_bytes,
    read_bytes,
)
from metarank.data.corpus import corpus_of, is_corpus
from metarank.data.dataset import Dataset, under_names
from metarank.data.frames import TEXT_COLUMNS, Roles, dataset_of
from metarank.data.parquet import dataset_of_arrow
from metarank.data.separators import AUTO
from metarank.data.tables import Names, naming, read_file
from metarank.data.xc import parse_pairs, parse_xc

logger: logging.Logger = logging.getLogger("metarank.data")

TABLES = (".csv", ".tsv", ".jsonl")
_FASTTEXT_LABEL = "__label__"


class NoTable(ValueError):
    """What is in a file is no table of texts, and no rows of numbers either."""


def load(
    path: PathLike,
    *,
    grades: bool | Literal["auto"] = "auto",
    sidecars: bool = True,
    zero_based: bool | Literal["auto"] = True,
    n_features: int | None = None,
    n_labels: int | None = None,
    text_column: str | Sequence[str] | None = None,
    labels_column: str | None = None,
    label_separator: str | None = AUTO,
    name: str | None = None,
    n_jobs: int | None = None,
    text_columns: Names = None,
    vector_columns: Names = None,
    number_columns: Names = None,
    category_columns: Names = None,
) -> Dataset:
    """Read a data file: repository text, svmlight, ARFF, Parquet, or a table of raw text.

    The content decides, not the name: the first bytes tell gzip, xz, bzip2, Zstandard (with pyarrow),
    Parquet, ARFF, JSON lines, fastText (`__label__`) and the header line `N D L`. CSV and TSV are
    recognised by the ending `.csv` or `.tsv`, by `text_column`, or in a pipe by a column title, text or
    body in the header. A pipe is read once, without files beside it. A corpus in the forms of Annif, also a
    folder of documents, is read by `read_corpus` where it has URIs in their place; its labels are the URIs.

    Parameters
    ----------
    path : path of a file or a pipe, or "-" for standard input
    grades : bool or "auto"
        Whether `STEM_grades.txt` replaces the binary relevances; "auto": if the file exists.
    sidecars : bool
        Whether to read the files beside repository or svmlight text `STEM.*` (any of them may be compressed):
        `labels.txt`, `features.txt`, `label_text.txt` with a line a label or feature; `titles.STEM.txt` (for
        display) and `STEM_grades.txt` with a line a row. Beside a table, `labels.txt` gives the label set,
        which may hold labels without a row, and `label_text.txt` their texts.
    zero_based, n_features, n_labels, n_jobs
        See `parse_xc`; for repository and svmlight text.
    text_column : str, sequence of str or None
        Column of the text in a table; several, also as "a,b", are joined by a line break. None takes those of
        "title", "text" and "body" that exist and do not hold the labels; [] takes none. The numbers of
        Parquet are left out where it is given.
    labels_column : str or None
        Column of the labels: a list, or names in one text. None takes the first of "labels", "label", "tags"
        and "topics" that exists and does not hold the text; without one no labels are read.
    label_separator : str or None
        Separator of the names in one text: any text, "whitespace", "json", None for one name a cell, or
        "auto", decided once from the whole column: see `metarank.data.separators`.
    text_columns, vector_columns, number_columns, category_columns : str, sequence of str or None
        Columns of a table that are blocks, see `from_frame`.
    name : str or None
        Name of the data set; None takes the file's stem, or its folder's name if that is `train` or `test`;
        of a table the latter only with a `labels.txt` beside it.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or `grades=True` and no grades.
    ValueError
        If the content is malformed or a column is missing (the message names the file, and the line or the
        columns present), or if a file beside it has a wrong number of lines.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.txt").write_text("2 3 2\\n1 0:0.5 2:1\\n0,1 1:2\\n")
    >>> _ = (folder / "labels.txt").write_text("sea\\nsun\\n")
    >>> load(folder / "train.txt", name="toy").label_names
    ['sea', 'sun']
    """
    path = Path(path)
    if grades not in (True, False, "auto") or (grades is True and not sidecars):
        raise ValueError(f"grades must be True beside sidecars, False or 'auto', got {grades!r}")
    roles = Roles(None, labels_column, text_column, [] if text_column else None, label_separator,
                  text_columns, vector_columns, number_columns, category_columns)  # fmt: skip
    asked = text_column is not None or roles.of_blocks
    if path.is_dir():
        if asked or labels_column is not None or not is_corpus(path):
            raise ValueError(f"{path} is a folder; name a file in it")
        return corpus_of(None, path, name=name)
    from_stdin = str(path) == STANDARD_INPUT
    streamed = from_stdin or (path.exists() and not path.is_file())
    sidecars = sidecars and not streamed
    stem, ending = ("stdin" if from_stdin else path.name, "") if streamed else (_stem(path), ending_of(path))
    if name is None:
        name = path.resolve().parent.name if _is_part(path, stem, ending) else stem
    raw = raw_bytes(path)
    if raw.startswith(PARQUET_MAGIC):
        import pyarrow.parquet as pq

        with naming(path):
            return dataset_of_arrow(pq.ParquetFile(io.BytesIO(raw)).read(), roles, name, str(path))
    content = decompressed(raw, path)
    if not content or content.isspace():
        raise ValueError("standard input is empty" if from_stdin else f"{path}: the file is empty")
    if not asked and labels_column is None and is_corpus(path, content):
        return corpus_of(content, path, name=name)
    has_columns = asked or ending in TABLES or (streamed and _has_text_column(content))
    table = _table(content, path, roles, name, has_columns)
    if table is not None:
        return _in_label_set(table, path.parent) if sidecars else table
    if _looks_like_arff(content):
        return read_arff(content, path, name)
    try:
        X, Y = parse_xc(
            content, zero_based=zero_based, n_features=n_features, n_labels=n_labels, n_jobs=n_jobs
        )
    except ValueError as error:
        raise NoTable(f"{path}: {error}") from None
    if sidecars:
        return _with_files_beside(X, _grades(path, stem, Y, grades, n_jobs), path, stem, name)
    return Dataset(X if X.shape[1] else None, Y, name=name)


def _table(content: bytes, path: Path, roles: Roles, name: str, has_columns: bool) -> Dataset | None:
    """The data set of a table of texts; None where the content is none."""
    start = content[:64].lstrip()
    if start.startswith(_FASTTEXT_LABEL.encode()) and ending_of(path) not in TABLES:
        if roles.of_blocks:
            raise ValueError(f"{path}: a fastText file has no columns, so that none can be a block")
        return _fasttext(decode(content, path), roles.label_separator, name)
    if not has_columns and not start.startswith((b"{", b"[")):  # a list is refused as a table
        return None
    with naming(path):
        columns = read_file(path, content)
        if columns.n_rows == 0:
            raise ValueError("the table has no rows")
        return dataset_of(columns, roles, name, usual=True)


def _fasttext(content: str, label_separator: str | None, name: str) -> Dataset:
    """The data set of lines that begin with `__label__NAME` of each label."""
    texts, labels = [], []
    for line in content.splitlines():
        words = line.split()
        n_labels = next((i for i, w in enumerate(words) if not w.startswith(_FASTTEXT_LABEL)), len(words))
        if words:
            labels.append([word.removeprefix(_FASTTEXT_LABEL) for word in words[:n_labels]])
            texts.append(" ".join(words[n_labels:]))
    return Dataset(texts=texts, Y=labels, name=name, label_separator=label_separator)


def _with_files_beside(X: sp.csr_matrix, Y: sp.csr_matrix, path: Path, stem: str, name: str) -> Dataset:
    """The data set with the names and texts of the files beside it, where there are any."""

    def beside(file: str, expected: int, what: str) -> list[str] | None:
        found = plain_or_compressed(path.parent / file)
        return None if found is None else _read_lines(found, expected, what)

    titles = beside(f"titles.{stem}.txt", Y.shape[0], "rows")
    if titles is not None:
        logger.info("%s: titles.%s.txt names the rows for display, nothing is learned from it", path, stem)
    return Dataset(
        X if X.shape[1] else None,
        Y,
        label_names=beside("labels.txt", Y.shape[1], "labels"),
        feature_names=beside("features.txt", X.shape[1], "features"),
        label_texts=beside("label_text.txt", Y.shape[1], "labels"),
        titles=titles,
        name=name,
    )


def _in_label_set(table: Dataset, folder: Path) -> Dataset:
    """The data set of a table with the labels of `labels.txt`, where there is one."""
    found = plain_or_compressed(folder / "labels.txt")
    if found is None:
        return table
    names = _read_lines(found)
    try:
        Y = under_names(table, names)
    except KeyError as error:
        raise ValueError(
            f"{found}: lacks the label {error} of the table {table.name!r}, whose label set it gives; if it "
            "belongs to other data, move it away, or pass sidecars=False"
        ) from None
    texts = plain_or_compressed(folder / "label_text.txt")
    return Dataset(
        table.X,
        texts=table.texts,
        Y=Y,
        label_names=names,
        label_texts=None if texts is None else _read_lines(texts, len(names), "labels"),
        name=table.name,
        label_separator=table.label_separator,
        label_names_are_ids=table.label_names_are_ids,
        text_columns=table.text_columns,
    )


def _stem(path: Path) -> str:
    """ "train" of `train.svm.gz`."""
    return (path.with_suffix("") if path.suffix in COMPRESSED else path).stem


def _is_part(path: Path, stem: str, suffix: str) -> bool:
    """Whether a file is a part of the data set that its folder holds, and not one of any folder of tables."""
    if stem not in ("train", "test"):
        return False
    return suffix not in (*TABLES, ".parquet") or plain_or_compressed(path.parent / "labels.txt") is not None


def _has_text_column(content: bytes) -> bool:
    """Whether the first line is the header of a CSV or TSV with a usual column of text."""
    header = content[: 1 << 16].partition(b"\n")[0]
    return any(field.strip(b' "\r').decode("latin-1") in TEXT_COLUMNS for field in re.split(b"[,\t]", header))


def _looks_like_arff(content: bytes) -> bool:
    for line in content[: 1 << 20].splitlines():
        line = line.strip()
        if line and not line.startswith(b"%"):
            return line[:9].lower() == b"@relation"
    return False


def _read_lines(path: Path, expected: int | None = None, what: str = "") -> list[str]:
    lines = [line.removesuffix("\r") for line in decode(read_bytes(path), path).split("\n")]
    if lines[-1] == "":
        lines.pop()
    if expected is not None:
        _check_count(path, len(lines), expected, what)
    return lines


def _check_count(path: Path, found: int, expected: int, what: str) -> None:
    if found != expected:
        raise ValueError(f"{path}: expected {expected} lines, one for each of the {what}, found {found}")


def _grades(
    path: Path, stem: str, Y: sp.csr_matrix, wanted: bool | Literal["auto"], n_jobs: int | None
) -> sp.csr_matrix:
    """Graded relevances from the file beside, where there is one and it is wanted."""
    file = path.parent / f"{stem}_grades.txt"
    found = plain_or_compressed(file) if wanted else None
    if found is None:
        if wanted is True:
            raise FileNotFoundError(f"{file}[{'|'.join(COMPRESSED)}]: no grades beside {path.name}")
        return Y
    try:
        graded = parse_pairs(read_bytes(found), Y.shape[1], n_jobs=n_jobs)
    except ValueError as error:
        raise ValueError(f"{found}: {error}") from None
    _check_count(found, graded.shape[0], Y.shape[0], "rows")
    if np.any(graded.data < 0):
        row = int(np.searchsorted(graded.indptr, int(np.argmax(graded.data < 0)), side="right")) - 1
        raise ValueError(f"{found}: line {row + 1}: grades must not be negative")
    return graded
