"""Tables of labels from data frames, CSV, TSV, JSON lines and Parquet."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from metarank._util.json import parse_json
from metarank.data.column_names import check_among, left_out, listed
from metarank.data.frames import damage_named, to_arrow
from metarank.data.parquet import MAGIC, read_table
from metarank.data.text import header_of, table_records
from metarank.data.xc import read_bytes
from metarank.types.label_descriptions import LabelDescriptions

# Other spellings of the columns, as other programs write them; SKOS and Annif among them.
COLUMNS: dict[str, tuple[str, ...]] = {
    "id": ("id", "uri", "label_id"),
    "name": ("name", "label", "preferred_name", "prefLabel"),
    "alternative_names": ("alternative_names", "alternative_name", "synonyms", "altLabel"),
    "description": ("description", "definition", "scopeNote"),
    "parents": ("parents", "parent", "broader"),
    "related": ("related",),
    "vector": ("vector", "embedding"),
}
# What else columns are called, for hints.
_NEAR = {"alias": "alternative_names", "desc": "description", "broader_labels": "parents"}
_PARAMETERS = {"id": "ids", "name": "names", "description": "descriptions", "vector": "vectors"}


def read_labels(source: Any, **columns: str | None) -> LabelDescriptions:
    """A table of labels: names, alternative names, descriptions, parents, related labels, vectors.

    Parameters
    ----------
    source : path of a file; pandas, polars or Arrow table; or sequence of dicts
        A file is CSV, TSV, JSON lines or Parquet, plain or compressed. Each row is a label. The columns are
        "id", "name", "alternative_names", "description", "parents", "related" and "vector", or the other
        spellings of `metarank.data.label_files.COLUMNS`, such as those of SKOS. "id" or "name" is required.
    **columns : str or None
        The column of a role under another name, ``read_labels(path, name="label_fi")``; or None for a column
        that is not read, ``note=None``. Any other column is an error.

    Returns
    -------
    LabelDescriptions
        Cells of "alternative_names", "parents" and "related" are lists; in files of text also JSON lists, or
        texts separated by "|". A vector is a list of numbers; in files of text also a JSON list, or numbers
        separated by blanks. An empty cell is none; where there are names, each label has one.

    Raises
    ------
    ValueError, TypeError
        If neither "id" nor "name" is there, there is a column of another name, a cell has another form or no
        name (its column and row are named), or `LabelDescriptions` refuses the table.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("id,name,synonyms,broader\\np1,vessels,,\\np2,boats,small craft|dinghies,p1\\n")
    >>> labels = read_labels(path)
    >>> labels.alternative_names
    [[], ['small craft', 'dinghies']]
    >>> read_labels([{"name": "sea"}, {"name": "port", "related": ["sea"]}])
    LabelDescriptions(2 labels: related labels of 2)
    """
    if isinstance(source, LabelDescriptions):
        return source
    name = str(source) if isinstance(source, (str, os.PathLike)) else "labels"
    try:
        return LabelDescriptions(**read_columns(source, **columns))
    except ValueError as error:
        text = str(error)
        if name == "labels" or text.startswith(name):
            raise
        raise ValueError(f"{name}: {text}") from None


def read_columns(source: Any, **columns: str | None) -> dict[str, list[Any]]:
    """The columns of a source of labels, by the parameters of `LabelDescriptions`; see `read_labels`."""
    table, where = table_of(source)
    name = str(source) if isinstance(source, (str, os.PathLike)) else "labels"
    unread = [column for column, wanted in columns.items() if wanted is None]
    check_among(unread, table, "columns that are None")
    table = {column: cells for column, cells in table.items() if column not in unread}
    named = {role: wanted for role, wanted in columns.items() if wanted is not None}
    if unknown := [role for role in named if role not in COLUMNS]:
        raise TypeError(f"columns must be given for {', '.join(COLUMNS)}, got {unknown[0]!r}")
    for role, wanted in named.items():
        check_among([wanted], table, role)
    found = {role: named.get(role) or _first(table, spelled) for role, spelled in COLUMNS.items()}
    if found["id"] is None and found["name"] is None:
        raise ValueError(f"labels must have a column 'id' or 'name', got {listed(table)}")
    instead = {other for role in named for other in COLUMNS[role]}
    more = [column for column in table if column not in found.values()]
    _check_no_more([column for column in more if column not in instead], found)
    left_out(name, [column for column in more if column in instead])
    read: dict[str, Callable[[Any], Any]] = {"id": _key, "name": _written, "description": _written}
    read |= {"alternative_names": _list, "parents": _list, "related": _list, "vector": _vector}
    out: dict[str, Any] = {}
    for role, column in found.items():
        if column is None:
            continue
        values = []
        for row, cell in enumerate(table[column]):
            if role == "name" and _is_nothing(cell):
                of = "" if found["id"] is None else f" of label {table[found['id']][row]!r:.80}"
                raise ValueError(f"column {column!r}, {where(row)}: the name{of} is empty")
            try:
                values.append(read[role](None if _is_nothing(cell) else cell))
            except (ValueError, TypeError) as error:
                raise ValueError(f"column {column!r}, {where(row)}: {error}") from None
        out[_PARAMETERS.get(role, role)] = values
    return out


def columns_of(source: Any) -> dict[str, list[Any]]:
    """The columns of a source by name, None where a record lacks one."""
    return table_of(source)[0]


def table_of(source: Any) -> tuple[dict[str, list[Any]], Callable[[int], str]]:
    """The columns of a source, and what messages call a row: by its line in a file of text."""
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        content = read_bytes(path)
        if content.startswith(MAGIC):
            with damage_named(path):
                return dict(read_table(io.BytesIO(content)).to_pydict()), "row {}".format
        records = list(table_records(content, path))
        if not records:
            return {column: [] for column in header_of(content, path)}, "line {}".format
        return _of_records(record for _, record in records), lambda i: f"line {records[i][0]}"
    if isinstance(source, (list, tuple)) and all(isinstance(record, Mapping) for record in source):
        return _of_records(source), "row {}".format
    if hasattr(source, "columns") or hasattr(source, "__arrow_c_stream__"):
        return dict(to_arrow(source).to_pydict()), "row {}".format
    raise TypeError(
        "labels must be a LabelDescriptions, the path of a file, a data frame or a list of dicts, got "
        f"{type(source).__name__}"
    )


def _of_records(records: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    rows = list(records)
    present = dict.fromkeys(column for record in rows for column in record)
    return {column: [record.get(column) for record in rows] for column in present}


def _check_no_more(columns: list[str], found: Mapping[str, str | None]) -> None:
    """ValueError for columns that a table of labels has not, with the one that may be meant."""
    if not columns:
        return
    spelled = {other.casefold(): role for role, own in COLUMNS.items() for other in own} | _NEAR
    column = columns[0]
    near = get_close_matches(column.casefold(), spelled, 1)
    role = spelled[near[0]] if near else None
    meant = f"; did you mean {role!r}?" if role is not None and found[role] is None else ""
    raise ValueError(
        f"labels must have no column but {', '.join(COLUMNS)}, got {column!r}{meant} (read_labels leaves it "
        f"out with {column}=None)"
    )


def _first(table: Mapping[str, Any], spelled: Iterable[str]) -> str | None:
    return next((column for column in spelled if column in table), None)


def _is_nothing(cell: Any) -> bool:
    return (
        cell is None
        or (isinstance(cell, str) and not cell.strip())
        or (isinstance(cell, float) and cell != cell)
    )


def _key(cell: Any) -> Any:
    """An identifier: text or integer. Numbers that a column with gaps has as floats are integers."""
    if cell is None:
        raise ValueError("an id is missing")
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return cell.strip() if isinstance(cell, str) else cell


def _written(cell: Any) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        raise ValueError(f"expected text, got {cell!r:.80}")
    return cell.strip()


def _list(cell: Any) -> list[Any]:
    """The entries of a cell: a list, a JSON list, or texts with "|" between them."""
    if isinstance(cell, str):
        cell = _json(cell) if cell.strip().startswith("[") else cell.split("|")
    entries = [cell] if isinstance(cell, (int, np.integer)) else [] if cell is None else cell
    if not isinstance(entries, (list, tuple, np.ndarray)):
        raise ValueError(f"expected a list, got {cell!r:.80}")
    out = [entry.strip() if isinstance(entry, str) else entry for entry in entries]
    for entry in out:
        if not isinstance(entry, (str, int, np.integer)) or isinstance(entry, bool):
            raise ValueError(f"expected a list of texts, got {entry!r:.80} in it")
    return [entry for entry in out if entry != ""]


def _vector(cell: Any) -> np.ndarray | None:
    """The numbers of a cell: a list, a JSON list, or numbers with blanks between them."""
    if cell is None:
        return None
    if isinstance(cell, str):
        cell = _json(cell) if cell.strip().startswith("[") else cell.split()
    try:
        return np.array([float("nan") if x is None else float(x) for x in cell], np.float64)
    except (ValueError, TypeError):
        raise ValueError(f"expected a list of numbers, got {cell!r:.80}") from None


def _json(cell: str) -> Any:
    try:
        return parse_json(cell)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON list: {error.msg}") from None
