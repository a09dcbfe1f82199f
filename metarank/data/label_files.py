"""Tables of labels from data frames, CSV, TSV, JSON lines and Parquet."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import numpy as np

from metarank._util.json import parse_json
from metarank.data.blocks import vector_of
from metarank.data.tables import as_table, check_among, listed, naming
from metarank.types.containers import is_missing
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
_PARAMETERS = {"id": "ids", "name": "names", "description": "descriptions", "vector": "vectors"}


def read_labels(source: Any, **columns: str | None) -> LabelDescriptions:
    """A table of labels: names, alternative names, descriptions, parents, related labels, vectors.

    Parameters
    ----------
    source : path of a file; pandas, polars or Arrow table; or list of names or of dicts
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
    >>> import tempfile; from pathlib import Path
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
    if isinstance(source, (list, tuple)) and source and all(isinstance(name, str) for name in source):
        return LabelDescriptions(names=list(source))
    with naming(source) if isinstance(source, (str, os.PathLike)) else nullcontext():
        return LabelDescriptions(**read_columns(source, **columns))


def read_columns(source: Any, **columns: str | None) -> dict[str, list[Any]]:
    """The columns of a source of labels, by the parameters of `LabelDescriptions`; see `read_labels`."""
    table = as_table(
        source,
        "labels",
        "labels must be a LabelDescriptions, the path of a file, a data frame, or a list of names or dicts",
    )
    unread = [column for column, wanted in columns.items() if wanted is None]
    check_among(unread, table.columns, "columns that are None")
    present = [column for column in table.columns if column not in unread]
    named = {role: wanted for role, wanted in columns.items() if wanted is not None}
    if unknown := [role for role in named if role not in COLUMNS]:
        raise TypeError(f"columns must be given for {', '.join(COLUMNS)}, got {unknown[0]!r}")
    for role, wanted in named.items():
        check_among([wanted], table.columns, role)
    of = {role: named.get(role) or _first(present, spelled) for role, spelled in COLUMNS.items()}
    if of["id"] is None and of["name"] is None:
        raise ValueError(f"labels must have a column 'id' or 'name', got {listed(present)}")
    instead = {other for role in named for other in COLUMNS[role]}
    more = [column for column in present if column not in of.values()]
    if unknown := [column for column in more if column not in instead]:
        raise ValueError(
            f"labels must have no column but {', '.join(COLUMNS)}, got {unknown[0]!r} (read_labels leaves it "
            f"out with {unknown[0]}=None, or reads it as another: name={unknown[0]!r})"
        )
    table.left_out(column for column in more if column in instead)
    out: dict[str, Any] = {}
    for role, column in of.items():
        values: list[Any] = []
        for row, cell in enumerate([] if column is None else table.cells(column)):
            cell = None if is_missing(cell) or (isinstance(cell, str) and not cell.strip()) else cell
            if role == "name" and cell is None:
                label = "" if of["id"] is None else f" of label {table.cells(of['id'])[row]!r:.80}"
                raise ValueError(f"column {column!r}, {table.where(row)}: the name{label} is empty")
            try:
                values.append(_READERS[role](cell))
            except (ValueError, TypeError) as error:
                raise ValueError(f"column {column!r}, {table.where(row)}: {error}") from None
        if column is not None:
            out[_PARAMETERS.get(role, role)] = values
    return out


def _first(present: Iterable[str], spelled: Iterable[str]) -> str | None:
    return next((column for column in spelled if column in present), None)


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


def _json(cell: str) -> Any:
    try:
        return parse_json(cell)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON list: {error.msg}") from None


def _vector(cell: Any) -> np.ndarray | None:
    try:
        return None if cell is None else np.array(vector_of(cell), np.float64)
    except (ValueError, TypeError):
        raise ValueError(f"expected a list of numbers, got {cell!r:.80}") from None


_READERS: dict[str, Callable[[Any], Any]] = {
    "id": _key,
    "name": _written,
    "alternative_names": _list,
    "description": _written,
    "parents": _list,
    "related": _list,
    "vector": _vector,
}
