"""Tables of files and data frames: columns by name, and where their rows stand.

CSV, TSV and JSON lines are read by the standard library, since their messages name lines; everything else by
pyarrow, which is imported where it is needed only.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metarank._util.extra import require_extra
from metarank._util.json import first_repeated
from metarank._util.modules import outside
from metarank._util.printable import first_few
from metarank.data.blocks import number_of
from metarank.data.compressed import PARQUET_MAGIC, decode, ending_of, read_bytes
from metarank.data.spreadsheets import read_xlsx
from metarank.types.containers import is_number_type

if TYPE_CHECKING:
    import pyarrow as pa

logger: logging.Logger = logging.getLogger("metarank.data")
_elsewhere: ContextVar[frozenset[str]] = ContextVar("metarank_read_elsewhere", default=frozenset())

# A column name, several, or several in one text with commas between them; None where they are not named.
Names = str | Sequence[str] | None


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name.

    Parameters
    ----------
    name : str
        How messages call the table: the path of a file.
    columns : dict of name to a list of cells, or to an Arrow column
    lines : sequence of int, optional
        The line on which each row of a file of text begins.
    is_written : bool
        Whether numbers stand in texts, as in a CSV.
    """

    name: str
    columns: dict[str, Any]
    lines: Sequence[int] | None = None
    is_written: bool = False

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def where(self, row: int) -> str:
        """What messages call a row."""
        return f"row {row}" if self.lines is None else f"line {self.lines[row]}"

    def cells(self, column: str) -> list[Any]:
        """The cells of a column, None where there is nothing."""
        cells = self.columns[column]
        return cells if isinstance(cells, list) else list(cells.to_pylist())

    def is_typed_number(self, column: str) -> bool:
        """Whether the type of a column, where it has one, is that of numbers or booleans."""
        return is_number_type(self.columns[column])

    def holds_text(self, column: str) -> bool:
        """Whether a column may hold texts, by its type."""
        type_ = getattr(self.columns[column], "type", None)
        return type_ is None or ("string" in str(type_) and "list" not in str(type_))

    def holds_numbers(self, column: str) -> bool:
        """Whether the cells that are not empty hold numbers, and there are some."""
        if hasattr(self.columns[column], "type"):
            return self.is_typed_number(column)
        known = [cell for cell in self.columns[column] if cell not in (None, "")]
        if not known or (not self.is_written and any(isinstance(cell, str) for cell in known)):
            return False
        try:
            return not np.isnan([number_of(cell) for cell in known]).all()
        except (TypeError, ValueError, OverflowError):
            return False

    def array(self, column: str) -> Any:
        """An Arrow column of numbers as float64 (n,), NaN where there is none, one of vectors of a width as a
        matrix; other columns as they are."""
        cells = self.columns[column]
        if is_number_type(cells):
            return cells.cast("float64", safe=False).to_numpy()
        if "list" in str(getattr(cells, "type", "")):
            import pyarrow.compute as pc

            values, widths = pc.list_flatten(cells), pc.unique(pc.list_value_length(cells))
            if len(widths) == 1 and widths[0].as_py() and is_number_type(values) and not values.null_count:
                numbers = values.cast("float64", safe=False).to_numpy()
                return numbers.reshape(-1, widths[0].as_py())
        return self.cells(column)

    def left_out(self, columns: Iterable[str]) -> None:
        """Warn of columns that are not read, in one line."""
        columns = [column for column in columns if column not in _elsewhere.get()]
        if columns:
            plural = "s"[: len(columns) > 1]
            said = f"{self.name}: left out {len(columns)} column{plural}: {shown(columns)}"
            warnings.warn(said, stacklevel=outside())


def check_among(columns: Iterable[str], present: Iterable[str], parameter: str) -> None:
    """ValueError where one of the columns that a parameter names is not there."""
    for column in columns:
        if column not in present:
            raise ValueError(f"{parameter} must be among {listed(present)}, got {column!r}")


def columns_of(path: str, encoding: str | None) -> dict[str, list[Any]]:
    """The cells of a file by column; see `read_file`."""
    table = read_file(path, encoding=encoding or "utf-8")
    return {column: table.cells(column) for column in table.columns}


@contextmanager
def read_elsewhere(columns: Iterable[str]) -> Iterator[None]:
    """Inside the block, no warning tells that these columns are left out."""
    token = _elsewhere.set(frozenset(columns))
    try:
        yield
    finally:
        _elsewhere.reset(token)


def shown(columns: Sequence[str]) -> str:
    """Names of columns, a few at most."""
    return first_few(columns, 6)


def listed(columns: Iterable[str]) -> str:
    """Names of columns as a list, a dozen at most."""
    names = [f"{column:.60}" for column in columns]
    return f"{names[:12]}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def columns_named(wanted: Names, present: Iterable[str]) -> list[str] | None:
    """Names of columns as a list: "a,b" are two, unless a column has that name.

    Examples
    --------
    >>> columns_named("title, body", ["title", "body"]), columns_named("a,b", ["a,b"])
    (['title', 'body'], ['a,b'])
    """
    if wanted is None or not isinstance(wanted, str):
        return None if wanted is None else list(wanted)
    return [wanted] if wanted in present else [name for part in wanted.split(",") if (name := part.strip())]


@contextmanager
def naming(path: object) -> Iterator[None]:
    """What is wrong with the content of a file becomes a ValueError of one line that names the file."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the file system
            raise
        message = " ".join(str(error).split())
        if not message.startswith(str(path)):
            message = f"{path}: {message}"
        raise ValueError(message) from None


def as_table(
    source: Any, name: str = "the table", rule: str = "frame must be a pandas, polars or Arrow table"
) -> Table:
    """A file, data frame or list of dicts as a table.

    Raises
    ------
    TypeError
        If it is none; `rule` says what is expected.
    ValueError
        See `read_file`.
    """
    if isinstance(source, (str, os.PathLike)):
        return read_file(source)
    if isinstance(source, (list, tuple)) and all(isinstance(record, Mapping) for record in source):
        return of_records(name, source)
    require_extra("data", "pyarrow")
    import pyarrow as pa

    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        source = source.set_axis([str(c) for c in source.columns], axis=1)
        source = pa.Table.from_pandas(source, preserve_index=False)
    elif not hasattr(source, "__arrow_c_stream__"):
        raise TypeError(f"{rule}, got {type(source).__name__}")
    return of_arrow(pa.table(source), name)


def of_arrow(table: pa.Table, name: str) -> Table:
    """An Arrow table."""
    return Table(name, dict(zip(table.column_names, table.columns)))


def read_file(path: str | os.PathLike[str], content: bytes | None = None, encoding: str = "utf-8") -> Table:
    """The table in a CSV, TSV, JSON lines or Parquet file, plain or compressed.

    The content decides what is Parquet, then the endings `.csv`, `.tsv` and `.jsonl`. Without them, lines
    that begin with `{` are JSON, and other files are TSV if the header has a tab, else CSV.

    Raises
    ------
    ValueError
        If a line has a wrong number of fields, unbalanced quotes or no JSON object, if a name of a column
        occurs twice, or if there is no row; the message names file and line.
    """
    path = Path(path)
    content = read_bytes(path) if content is None else content
    with naming(path):
        if content.startswith(PARQUET_MAGIC):
            import pyarrow.parquet as pq

            return of_arrow(pq.ParquetFile(io.BytesIO(content)).read(), str(path))
        ending = ending_of(path)
        if ending == ".xlsx":
            return Table(str(path), *read_xlsx(content))
        text = decode(content, path, encoding)
        if ending not in (".csv", ".tsv", ".jsonl"):
            header = text.lstrip().partition("\n")[0]
            ending = ".jsonl" if header[:1] in ("{", "[") else ".tsv" if "\t" in header else ".csv"
        if ending == ".jsonl":
            return _json_lines(text, str(path))
        return read_csv(text, "\t" if ending == ".tsv" else delimiter_of(text), str(path))


def delimiter_of(text: str) -> str:
    """What separates the fields of a CSV: ";", as spreadsheets with a decimal comma write it, or ",".

    Examples
    --------
    >>> delimiter_of("text;tags\\nred, round;a"), delimiter_of("text,a;b\\n")
    (';', ',')
    """
    header = re.sub(r'"[^"]*"', "", text.lstrip().partition("\n")[0])
    return ";" if ";" in header and "," not in header else ","


def read_csv(text: str, delimiter: str, name: str) -> Table:
    """The table of a CSV; lines without a field are not rows.

    Examples
    --------
    >>> table = read_csv('a;b\\n"1\\n2";3\\n\\n4;5\\n', ";", "it")
    >>> table.columns, table.lines
    ({'a': ['1\\n2', '4'], 'b': ['3', '5']}, [2, 5])
    """
    # Documents are longer than the module's default limit of 128 KiB a field.
    csv.field_size_limit(max(csv.field_size_limit(), 1 << 30))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows, lines, line = list[list[str]](), [], 1
    try:
        for fields in reader:
            if fields:
                if rows and len(fields) != len(rows[0]):
                    raise ValueError(f"line {line} has {len(fields)} fields, the header has {len(rows[0])}")
                rows.append(fields)
                lines.append(line)
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"the record at line {line}: {error}; do its quotes balance?") from None
    header = [field.strip() for field in rows[0]] if rows else []
    if (twice := first_repeated(filter(None, header))) is not None:
        raise ValueError(f"columns must have distinct names, got {twice!r} twice in the header")
    cells = map(list, zip(*rows[1:])) if rows[1:] else ([] for _ in header)
    return Table(name, dict(zip(header, cells)), lines[1:], is_written=True)


def _json_lines(text: str, name: str) -> Table:
    if text.lstrip().startswith("["):
        raise ValueError("JSON files hold one object a line (JSON lines), this one begins with a list")
    records, lines = [], []
    for line, written in enumerate(text.split("\n"), 1):
        if written.strip():
            records.append(json_object(written, f"line {line}"))
            lines.append(line)
    return of_records(name, records, lines)


def json_object(text: str, where: str) -> dict[str, Any]:
    """The JSON object in a text; ValueError names where it stands."""
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} is not JSON: {error.msg} at {error.pos + 1}") from None
    if not isinstance(record, dict):
        raise ValueError(f"{where} must be a JSON object, got {type(record).__name__}")
    return record


def of_records(name: str, records: Sequence[Mapping[str, Any]], lines: list[int] | None = None) -> Table:
    """A column is there if any record has it, since objects of JSON may leave one out."""
    present = dict.fromkeys(column for record in records for column in record)
    return Table(name, {column: [record.get(column) for record in records] for column in present}, lines)


def joined_texts(columns: Mapping[str, Sequence[Any]], where: Callable[[int], str]) -> list[str]:
    """The texts of a row in several columns as one, by line breaks; nulls count as empty.

    Raises
    ------
    ValueError
        If one is not a text; the message names the column and, by `where`, the row.

    Examples
    --------
    >>> joined_texts({"title": ["Tea", None], "body": ["Hot.", "Red."]}, "row {}".format)
    ['Tea\\nHot.', 'Red.']
    """
    for column, values in columns.items():
        wrong = next((i for i, v in enumerate(values) if v is not None and not isinstance(v, str)), None)
        if wrong is not None:
            raise ValueError(
                f"text_column must hold text, got {type(values[wrong]).__name__} in {column!r} at "
                f"{where(wrong)}"
            )
    return ["\n".join(value for value in row if value) for row in zip(*columns.values())]
