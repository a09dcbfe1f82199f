"""`load`: a file and the files next to it, as one `Dataset`."""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import scipy.sparse as sp

from metarank.data.arff import read_arff
from metarank.data.compressed import (
    PARQUET_MAGIC,
    STANDARD_INPUT,
    PathLike,
    bare,
    check_encoding,
    decode,
    decompressed,
    ending_of,
    plain_or_compressed,
    raw_bytes,
    read_bytes,
)
from metarank.data.corpus import corpus_of, is_corpus, is_corpus_folder, is_tsv, read_corpus, table_of_tsv
from metarank.data.dataset import Dataset, under_names
from metarank.data.frames import TEXT_COLUMNS, Roles, dataset_of
from metarank.data.parquet import dataset_of_arrow
from metarank.data.separators import AUTO
from metarank.data.tables import Names, Table, logger, naming, read_file
from metarank.data.xc import HEADER, parse_pairs, parse_xc

TABLES = (".csv", ".tsv", ".jsonl")
_FASTTEXT_LABEL = "__label__"
_WORD = re.compile(r"[^ \t\r\v\f\0]+")
_BESIDE = {
    "label_names": "labels.txt",
    "feature_names": "features.txt",
    "label_texts": "label_text.txt",
    "titles": "titles.{}.txt",
}
_NO_TABLE = (
    "; without a line 'N D L' this is read as svmlight text. Files of texts are CSV or TSV with a column of "
    "text, which text_column names, JSON lines, Parquet, Excel; fastText has a __label__ in its first line"
)
_ARFF = re.compile(rb"(?:\s|%.*\n)*+@relation", re.IGNORECASE)


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
    label_columns: Names = None,
    encoding: str = "utf-8",
) -> Dataset:
    """Read a data file: repository text, svmlight, ARFF, Parquet, Excel (`.xlsx`), or a table of raw text.

    The content decides, not the name: the first bytes tell gzip, xz, bzip2, Zstandard (with pyarrow),
    Parquet, ARFF, JSON lines, fastText (`__label__`) and the header line `N D L`. CSV and TSV are recognised
    by the ending `.csv` or `.tsv`, by `text_column`, or in a pipe by a column title, text or body in the
    header. A pipe is read once, without other files. A corpus of Annif with URIs, also as a folder of
    documents, is read by `read_corpus`; its labels are the URIs.

    Parameters
    ----------
    path : path of a file or a pipe, or "-" for standard input
    grades : bool or "auto"
        Whether `STEM_grades.txt` replaces the binary relevances; "auto": if the file exists.
    sidecars : bool
        Whether to read the files next to repository or svmlight text `STEM.*` (any of them may be
        compressed): `labels.txt`, `features.txt`, `label_text.txt` with a line per label or feature;
        `titles.STEM.txt` (for display) and `STEM_grades.txt` with a line per row. Next to a table,
        `labels.txt` gives the label set, which may have labels without rows, and `label_text.txt` their
        texts.
    zero_based, n_features, n_labels, n_jobs
        See `parse_xc`; for repository and svmlight text.
    text_column : str, sequence of str or None
        Column of the text in a table; several, also as "a,b", are joined by a line break. None takes those of
        "title", "text" and "body" that exist and do not hold the labels; [] takes none. With it, the numbers
        of Parquet are left out.
    labels_column : str or None
        Column of the labels: a list, or names in one text. None takes the first of "labels", "label", "tags"
        and "topics" that exists and does not hold the text; otherwise no labels are read.
    label_separator : str or None
        Separator of the names in one text: any text, "whitespace", "list", "<>", None for one name per cell,
        or "auto", decided once from the whole column: see `metarank.data.separators`.
    text_columns, vector_columns, number_columns, category_columns : str, sequence of str or None
        Columns of a table that are blocks, see `from_frame`.
    label_columns : str, sequence of str or None
        Columns of a table that are labels, with 0 and 1 or grades; their names become the label names.
    encoding : str
        Encoding of a table's text, by its name in Python.
    name : str or None
        Name of the data set; None takes the file's stem, or its folder's name if that is `train` or `test`;
        of a table the latter only with a `labels.txt` next to it.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or no grades with `grades=True`.
    ValueError
        If the content is malformed or a column is missing (the message names the file, and the line or the
        columns present), or a file next to it has a wrong number of lines.

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
        raise ValueError(f"grades must be True with sidecars, False or 'auto', got {grades!r:.80}")
    roles = Roles(label_columns, labels_column, text_column, [] if text_column else None, label_separator,
                  text_columns, vector_columns, number_columns, category_columns)  # fmt: skip
    check_encoding(encoding)
    if path.is_dir():
        if not is_corpus_folder(path):
            raise ValueError(f"{path} is a folder; name a file in it")
        return read_corpus(path, name=name)
    raw = raw_bytes(path)
    sidecars = sidecars and path.is_file()
    name = _name_of(path) if name is None else name
    with naming(path):
        if raw.startswith(PARQUET_MAGIC):
            import pyarrow.parquet as pq

            return dataset_of_arrow(pq.ParquetFile(io.BytesIO(raw)).read(), roles, name, str(path))
        if ending_of(path) == ".xlsx":
            return dataset_of(read_file(path, raw), roles, name, usual=True)
        content = decompressed(raw, path)
        if not content or content.isspace():
            raise ValueError("the file is empty")
        has_columns = text_column is not None or roles.of_blocks
        has_labels = labels_column is not None or label_columns is not None
        table = _table(content, path, has_columns, has_columns or has_labels, encoding)
        if table is not None and not has_labels and not has_columns and is_corpus(table):
            return corpus_of(table, path, name=name)
        beside = _files_beside(path) if sidecars else {}
        if table is not None:
            return _in_label_set(dataset_of(table, roles, name, usual=True), beside)
        if has_labels:
            column = "labels_column" if label_columns is None else "label_columns"
            raise ValueError(f"{column} must be left out, since the file is not a table with columns")
        if _ARFF.match(content):
            return read_arff(content, path, name)
        sizes: dict[str, Any] = {"n_features": n_features, "n_labels": n_labels}
        X, Y = _parsed(content, beside, zero_based=zero_based, n_jobs=n_jobs, **sizes)
        if sidecars:
            Y = _grades(path, Y, grades, n_jobs)
        return _told(Dataset(X if X.shape[1] else None, Y, name=name, **beside), path)


def _parsed(content: bytes, beside: dict[str, Any], **how: Any) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Repository or svmlight text; the files beside it tell the sizes that are not given."""
    for field, size in (("feature_names", "n_features"), ("label_names", "n_labels")):
        if how[size] is None and field in beside:
            how[size] = len(beside[field])
    try:
        return parse_xc(content, **how)
    except ValueError as error:
        hint = _NO_TABLE if str(error).startswith("line ") and not HEADER.match(content) else ""
        raise ValueError(f"{error}{hint}") from None


def _told(dataset: Dataset, path: Path) -> Dataset:
    """The data set, with a word in the log on titles."""
    if dataset.titles is not None:
        titles = _BESIDE["titles"].format(bare(path).stem)
        logger.info("%s: %s is only shown as names of rows", path, titles)
    return dataset


def _name_of(path: Path) -> str:
    """The stem of a file, or the name of its folder where that holds a data set of several parts."""
    if str(path) == STANDARD_INPUT:
        return "stdin"
    is_part = bare(path).stem in ("train", "test") and (
        ending_of(path) not in (*TABLES, ".parquet")
        or plain_or_compressed(path.parent / "labels.txt") is not None
    )
    return path.resolve().parent.name if is_part else bare(path).stem


def _table(content: bytes, path: Path, has_columns: bool, is_named: bool, encoding: str) -> Table | None:
    """The table of texts in a file, a column of which `is_named`; None where the content is none."""
    start, ending = content[:64].lstrip(), ending_of(path)
    if not is_named and ending not in (".csv", ".jsonl") and is_tsv(content):
        return table_of_tsv(decode(content, path, encoding), str(path))
    if start.startswith(_FASTTEXT_LABEL.encode()) and ending not in TABLES:
        return _fasttext(decode(content, path, encoding), str(path))
    has_columns = has_columns or ending in TABLES or start.startswith((b"{", b"["))
    if not has_columns and not path.is_file():  # in a pipe, a column of text in the header tells
        header = content[: 1 << 16].partition(b"\n")[0].decode("latin-1")
        has_columns = any(field.strip(' "\r') in TEXT_COLUMNS for field in re.split("[,\t]", header))
    if not has_columns:
        return None
    table = read_file(path, content, encoding)
    if table.n_rows == 0:
        raise ValueError("the table has no rows")
    return table


def _fasttext(content: str, name: str) -> Table:
    """The table of lines with `__label__NAME` for each label, wherever it stands; white space is ASCII's."""
    texts, labels = list[str](), list[list[str]]()
    for line in content.split("\n"):
        if words := _WORD.findall(line):
            named = [word.removeprefix(_FASTTEXT_LABEL) for word in words if word.startswith(_FASTTEXT_LABEL)]
            labels.append(named)
            texts.append(" ".join(word for word in words if not word.startswith(_FASTTEXT_LABEL)))
    return Table(name, {"text": texts, "labels": labels})


def _in_label_set(table: Dataset, beside: dict[str, Any]) -> Dataset:
    """The data set of a table with the labels of `labels.txt`, where there is one."""
    names = beside.get("label_names")
    if names is None:
        return table
    try:
        Y = under_names(table.Y, table.label_names, names)
    except KeyError as error:
        raise ValueError(
            f"labels.txt next to it lacks the label {error}: if it belongs to other data, move it or pass "
            "sidecars=False"
        ) from None
    return replace(table, Y=Y, label_names=names, label_texts=beside.get("label_texts"))


def _files_beside(path: Path) -> dict[str, Any]:
    """The names and texts in the files beside one, by the fields of a data set."""
    lines = {field: _lines(path.parent / file.format(bare(path).stem)) for field, file in _BESIDE.items()}
    return {field: names for field, names in lines.items() if names is not None}


def _lines(path: Path) -> list[str] | None:
    """The lines of a file, plain or compressed, where there is one."""
    file = plain_or_compressed(path)
    if file is None:
        return None
    lines = [line.removesuffix("\r") for line in decode(read_bytes(file), file).split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def _grades(
    path: Path, Y: sp.csr_matrix, wanted: bool | Literal["auto"], n_jobs: int | None
) -> sp.csr_matrix:
    """Graded relevances from the file beside, where there is one and it is wanted."""
    file = path.parent / f"{bare(path).stem}_grades.txt"
    found = plain_or_compressed(file) if wanted else None
    if found is None:
        if wanted is True:
            raise FileNotFoundError(errno.ENOENT, "no such file of grades, plain or compressed", str(file))
        return Y
    with naming(found):
        graded = parse_pairs(read_bytes(found), Y.shape[1], n_jobs=n_jobs)
        if graded.shape[0] != Y.shape[0]:
            raise ValueError(f"must have {Y.shape[0]} lines, one per row, got {graded.shape[0]}")
    return graded
