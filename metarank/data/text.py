"""Raw text: CSV, TSV, JSON lines and fastText files as a `Dataset` of texts and label names."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from metarank._util.json import first_repeated, parse_json
from metarank.data.block_roles import BlockRoles, Names, columns_named, number_of, read_blocks
from metarank.data.column_names import (
    check_among,
    check_other_columns,
    joined_texts,
    left_out,
    listed,
    of_file,
)
from metarank.data.dataset import Dataset
from metarank.data.separators import AUTO, check_separator, cut_column
from metarank.data.vectorizer import checked_texts
from metarank.data.xc import COMPRESSED, PathLike, read_bytes
from metarank.types.blocks import Blocks

TEXT_COLUMNS = ("title", "text", "body")
LABELS_COLUMNS = ("labels", "label", "tags", "topics")
FASTTEXT_LABEL = "__label__"

# A record: the line it starts on, and its fields by column.
Record = tuple[int, dict[str, Any]]


def from_texts(
    texts: Sequence[str], labels: Any = None, *, label_separator: str | None = AUTO, name: str = ""
) -> Dataset:
    """A `Dataset` of texts in memory; the model vectorises them.

    Parameters
    ----------
    texts : sequence of str (n)
    labels, label_separator : as `Y` and `label_separator` of `Dataset`
    name : str

    Raises
    ------
    TypeError
        If `texts` is one string, or an entry is not a string (its position is named).

    Examples
    --------
    >>> from_texts(["red wine", "green tea"], [["drink", "grape"], ["drink"]]).label_names
    ['drink', 'grape']
    """
    texts = list(checked_texts(texts))
    return Dataset(texts=texts, Y=labels, label_separator=label_separator, name=name)


def read_table(
    path: PathLike,
    *,
    text_column: str | Sequence[str] | None = None,
    labels_column: str | None = None,
    label_separator: str | None = AUTO,
    name: str | None = None,
    text_columns: Names = None,
    vector_columns: Names = None,
    number_columns: Names = None,
    category_columns: Names = None,
) -> Dataset:
    """Read a table of raw text, plain or compressed (gz, xz, bz2, zst).

    The endings `.csv`, `.tsv` and `.jsonl` decide. Without them, lines that begin with `{` are JSON, lines
    that begin with `__label__` are fastText (labels first, then the text), and other files are TSV if the
    header has a tab, else CSV.

    Parameters
    ----------
    path : path of a UTF-8 file, or one of UTF-16 with its byte order mark
    text_column : str, sequence of str or None
        Column of the text; several, also as "a,b", are joined by a line break. None takes those of "title",
        "text" and "body" that exist and do not hold the labels.
    labels_column : str or None
        Column of the labels: a list, or names in one text. None takes the first of "labels", "label", "tags"
        and "topics" that exists and does not hold the text; without one no labels are read.
    label_separator : str or None
        Separator of the names in one text: any text, "whitespace", "json", None for one name a cell, or
        "auto", decided once from the whole column: see `metarank.data.separators`.
    name : str or None
        None takes the file's stem.
    text_columns, vector_columns, number_columns, category_columns : str, sequence of str or None
        Columns that are blocks, see `metarank.data.block_roles.BlockRoles`. If any is given, `text_column` is
        not, and the columns of numbers are a block unless `number_columns` tells otherwise.

    Returns
    -------
    Dataset
        `texts`, Y and `label_names` (sorted); X is None, or `Blocks` if there are blocks. Blanks around a
        label and empty labels are dropped.
        Other columns are left out; the logger "metarank.data" names them in one line.

    Raises
    ------
    ValueError
        If a column is missing (the message lists those present), named twice, or asked for as text and as
        labels; if a line has a wrong number of fields, unbalanced quotes or no JSON object (the message names
        the line); or if there is no row.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "drinks.csv"
    >>> _ = path.write_text("text,labels\\nred wine,drink;grape\\ngreen tea,drink\\n")
    >>> read_table(path)
    Dataset('drinks': 2 rows, no features, 2 labels, 1.50 labels a row, with text)
    """
    check_separator(label_separator)
    path = Path(path)
    roles = BlockRoles(text_columns, vector_columns, number_columns, category_columns)
    return table_of(read_bytes(path), path, text_column, labels_column, label_separator, name, roles)


def table_of(
    content: bytes,
    path: Path,
    text_column: str | Sequence[str] | None,
    labels_column: str | None,
    label_separator: str | None,
    name: str | None,
    roles: BlockRoles,
) -> Dataset:
    """What `read_table` makes of the content of a file."""
    text = decode(content, path)
    suffix = _suffix(path, text)
    name = path.name.split(".")[0] if name is None else name
    try:
        check_one_kind(text_column, roles)
        if suffix == "fasttext":
            if roles:
                raise ValueError("a fastText file has no columns, so that none can be a block")
            texts, labels = _fasttext(text)
            return Dataset(texts=_some(texts), Y=labels, name=name, label_separator=label_separator)
        records = list(_json_records(text) if suffix == ".jsonl" else _csv_records(text, suffix))
        _some(records)
        table = _Table(path, records, suffix == ".jsonl")
        return _dataset(table, text_column, labels_column, label_separator, roles, name)
    except (ValueError, TypeError) as error:
        raise of_file(error, path) from None


def check_one_kind(text_column: object, roles: BlockRoles) -> None:
    """ValueError where columns are to be joined into one text, and to be blocks."""
    if text_column and roles:
        raise ValueError(
            "text_column joins its columns into the one text of a row: with blocks, text_columns names those "
            f"that are blocks, got text_column={text_column!r} too"
        )


def _some(rows: list[Any]) -> list[Any]:
    if not rows:
        raise ValueError("the table has no rows")
    return rows


def table_records(content: bytes, path: Path) -> Iterator[Record]:
    """The rows of a CSV, TSV or JSON lines file, each with its line; see `read_table`."""
    text = decode(content, path)
    suffix = _suffix(path, text)
    if suffix == "fasttext":
        raise ValueError("expected CSV, TSV or JSON lines, found fastText")
    return _json_records(text) if suffix == ".jsonl" else _csv_records(text, suffix)


def decode(content: bytes, path: Path) -> str:
    """UTF-8 text of a file; ValueError names the line that is none."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}: line {line} is not UTF-8 ({error.reason}): convert the file, if it is Latin-1 by "
            "iconv -f latin1 -t utf-8"
        ) from None


def _suffix(path: Path, content: str) -> str:
    bare = path.with_suffix("") if path.suffix in COMPRESSED else path
    if bare.suffix.lower() in (".csv", ".tsv", ".jsonl"):
        return bare.suffix.lower()
    head = content.lstrip()
    if head.startswith(("{", "[")):
        return ".jsonl"
    if head.startswith(FASTTEXT_LABEL):
        return "fasttext"
    return ".tsv" if "\t" in head.partition("\n")[0] else ".csv"


def _fasttext(content: str) -> tuple[list[str], list[list[str]]]:
    texts, labels = [], []
    for line in content.splitlines():
        words = line.split()
        n_labels = next((i for i, w in enumerate(words) if not w.startswith(FASTTEXT_LABEL)), len(words))
        if words:
            labels.append([word.removeprefix(FASTTEXT_LABEL) for word in words[:n_labels]])
            texts.append(" ".join(words[n_labels:]))
    return texts, labels


def csv_rows(content: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV that are not empty, each with the line it starts on; the first is the header.

    Raises
    ------
    ValueError
        If quotes do not balance, or a row has another number of fields than the header; the line is named.

    Examples
    --------
    >>> list(csv_rows('a;b\\n"1\\n2";3\\n\\n4;5\\n', ";"))
    [(1, ['a', 'b']), (2, ['1\\n2', '3']), (5, ['4', '5'])]
    """
    # Documents are longer than the module's default limit of 128 KiB a field.
    csv.field_size_limit(max(csv.field_size_limit(), 1 << 30))
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    width = None
    line = 1
    try:
        for fields in reader:
            if width is None and fields:
                width = len(fields)
            if fields and len(fields) != width:
                raise ValueError(f"line {line} has {len(fields)} fields, the header has {width}")
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"the record at line {line}: {error}; do its quotes balance?") from None


def header_of(content: bytes, path: Path) -> list[str]:
    """The columns that a CSV or TSV file names; none of JSON lines, which name them in each line."""
    text = decode(content, path)
    suffix = _suffix(path, text)
    return [] if suffix == ".jsonl" else _header(csv_rows(text, _delimiter(suffix)))


def _delimiter(suffix: str) -> str:
    return "\t" if suffix == ".tsv" else ","


def _header(rows: Iterator[tuple[int, list[str]]]) -> list[str]:
    return [field.strip() for field in next(rows, (0, []))[1]]


def _csv_records(content: str, suffix: str) -> Iterator[Record]:
    rows = csv_rows(content, _delimiter(suffix))
    header = _header(rows)
    # Not read so by itself: labels within a cell are most often separated by this sign too.
    sign = (
        next((s for s in ";\t|" if s in header[0]), None) if len(header) == 1 and suffix == ".csv" else None
    )
    if sign is not None:
        raise ValueError(
            f"the header {header[0]!r:.80} looks separated by {sign!r}: save the file with commas, or as "
            ".tsv with tabs"
        )
    twice = first_repeated(filter(None, header))
    if twice is not None:
        raise ValueError(f"columns must have names of their own, {twice!r} occurs twice in the header")
    return ((line, dict(zip(header, fields))) for line, fields in rows)


def _json_records(content: str) -> Iterator[Record]:
    if content.lstrip().startswith("["):
        raise ValueError("JSON files hold one object a line (JSON lines), this one begins with a list")
    for line, text in enumerate(content.split("\n"), 1):
        if text.strip():
            try:
                record = parse_json(text)
            except json.JSONDecodeError as error:
                raise ValueError(f"line {line} is not JSON: {error.msg} at {error.pos + 1}") from None
            if not isinstance(record, dict):
                raise ValueError(f"line {line} must be a JSON object, got {type(record).__name__}")
            yield line, record


class _Table:
    """Records by column; a column is there if any record has it, since objects of JSON may leave one out."""

    def __init__(self, path: Path, records: list[Record], is_json: bool) -> None:
        self.path = path
        self.records = records
        self.is_json = is_json
        self.present = list(dict.fromkeys(column for _, record in records for column in record))

    def column(self, name: str) -> list[Any]:
        return [record.get(name) for _, record in self.records]

    def where(self, i: int) -> str:
        return f"line {self.records[i][0]}"

    def holds_numbers(self, name: str) -> bool:
        """Whether the cells that are not empty hold numbers, at least one; those of JSON as numbers."""
        known = [cell for cell in self.column(name) if cell not in (None, "")]
        as_text = self.is_json and any(isinstance(cell, str) for cell in known)
        return bool(known) and not as_text and all(number_of(cell) is not None for cell in known)


def _dataset(
    table: _Table,
    text_column: str | Sequence[str] | None,
    labels_column: str | None,
    separator: str | None,
    roles: BlockRoles,
    name: str,
) -> Dataset:
    present = table.present
    text_columns: list[str] = []
    if roles:
        read = {column for columns in roles.among(present).values() for column in columns or ()}
    else:
        text_columns = _text_columns(present, text_column, labels_column)
        read = set(text_columns)
        if labels_column is not None:
            check_other_columns(text_columns, [labels_column])
    if labels_column is None:
        labels_column = next((c for c in LABELS_COLUMNS if c in present and c not in read), None)
    else:
        check_among([labels_column], present, "labels_column")
    used = [] if labels_column is None else [labels_column]
    X: Blocks | None = None
    texts: list[str] | None = None
    if roles:
        X = read_blocks(
            roles,
            present,
            lambda column, _: table.column(column),
            holds_numbers=table.holds_numbers,
            used=used,
            where=table.where,
            name=table.path,
        )
        read = {column for block in X for column in X.columns.get(block, [block])}
    else:
        texts = joined_texts({column: table.column(column) for column in text_columns}, table.where)
    left_out(table.path, [column for column in present if column not in {*read, *used}])
    labels: list[list[Any]] | None = None
    if labels_column is not None:
        labels, separator = cut_column(
            table.column(labels_column),
            separator,
            column=f"{table.path}, column {labels_column!r}",
            where=table.where,
        )
    named = text_columns if texts is not None and text_column is not None else None
    return Dataset(X, labels, texts=texts, name=name, label_separator=separator, text_columns=named)


def _text_columns(
    present: list[str], wanted: str | Sequence[str] | None, labels_column: str | None
) -> list[str]:
    if wanted is None:
        found = [column for column in TEXT_COLUMNS if column in present and column != labels_column]
        if not found and present:
            raise ValueError(
                f"none of the columns is a usual text column; name text_column of {listed(present)}"
            )
        return found
    named = columns_named(wanted, present) or []
    check_among(named, present, "text_column")
    return named
