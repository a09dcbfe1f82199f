"""Tables of labels from data frames, CSV, TSV, JSON lines and Parquet."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from metarank.data.blocks import vector_of
from metarank.data.tables import as_table, check_among, listed, naming
from metarank.types.containers import as_list, is_missing, table_columns
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
        Another column for a role, ``read_labels(path, name="label_fi")``, or None for a column that is not
        read, ``note=None``. Any other column is an error.

    Returns
    -------
    LabelDescriptions
        Cells of "alternative_names", "parents" and "related" are lists; in files of text also JSON lists, or
        texts separated by "|". A vector is a list of numbers; in files of text also a JSON list, or numbers
        separated by blanks. An empty cell is none.

    Raises
    ------
    ValueError, TypeError
        If there is neither "id" nor "name", a column is unknown, a cell is malformed (the message has its
        column and row), or `LabelDescriptions` raises.

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
    names = source if table_columns(source) is not None else as_list(source)  # an array, a Series
    if isinstance(names, (list, tuple)) and names and all(isinstance(name, str) for name in names):
        return LabelDescriptions(names=list(names))
    with naming(source) if isinstance(source, (str, os.PathLike)) else nullcontext():
        return LabelDescriptions(**read_columns(source, **columns))


def read_columns(source: Any, **columns: str | None) -> dict[str, list[Any]]:
    """The columns of a source of labels, by the parameters of `LabelDescriptions`; see `read_labels`."""
    table = as_table(
        source,
        "labels",
        "labels must be a LabelDescriptions, the path of a file, a data frame, or a list of names or dicts",
    )
    named = {role: column for role, column in columns.items() if column is not None}
    unread = [column for column in columns if column not in named]
    if unknown := [role for role in named if role not in COLUMNS]:
        raise TypeError(f"columns must be given for {', '.join(COLUMNS)}, got {unknown[0]!r}")
    check_among(unread, table.columns, "columns that are None")
    for role, column in named.items():
        check_among([column], table.columns, role)
    present = [column for column in table.columns if column not in unread]
    usual = {role: next((c for c in spelled if c in present), None) for role, spelled in COLUMNS.items()}
    of = {role: column for role, column in (usual | named).items() if column is not None}
    if "id" not in of and "name" not in of:
        raise ValueError(f"labels must have a column 'id' or 'name', got {listed(present)}")
    more = [column for column in present if column not in of.values()]
    instead = {other for role in named for other in COLUMNS[role]}
    if unknown := [column for column in more if column not in instead]:
        raise ValueError(
            f"labels must have only the columns {', '.join(COLUMNS)}, got {unknown[0]!r}: read_labels drops "
            f"it with {unknown[0]}=None, or reads it as name={unknown[0]!r}"
        )
    table.left_out(more)
    out: dict[str, list[Any]] = {}
    for role, column in of.items():
        values = out[_PARAMETERS.get(role, role)] = list[Any]()
        for row, cell in enumerate(table.cells(column)):
            cell = cell.strip() or None if isinstance(cell, str) else cell
            try:
                if is_missing(cell) and role == "name":
                    cell = ""  # a label without a name
                values.append(None if is_missing(cell) else _READERS.get(role, _as_it_is)(cell))
            except (ValueError, TypeError) as error:
                raise ValueError(f"column {column!r}, {table.where(row)}: {error}") from None
    return out


def _as_it_is(cell: Any) -> Any:
    """The cell; numbers that a column with gaps has as floats are integers."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _list(cell: Any) -> list[Any]:
    """The entries of a cell: a list, a JSON list, texts with "|" between them, or one number."""
    if isinstance(cell, str):
        cell = json.loads(cell) if cell.startswith("[") else cell.split("|")
    entries = cell if isinstance(cell, (list, tuple, np.ndarray)) else [cell]
    out = [entry.strip() if isinstance(entry, str) else entry for entry in entries]
    for entry in out:
        if not isinstance(entry, (str, int, np.integer)):
            raise ValueError(f"expected a list of texts, got {entry!r:.80} in it")
    return [entry for entry in out if entry != ""]


def _vector(cell: Any) -> np.ndarray:
    try:
        return np.array(vector_of(cell), np.float64)
    except (ValueError, TypeError):
        raise ValueError(f"expected a list of numbers, got {cell!r:.80}") from None


_READERS: dict[str, Callable[[Any], Any]] = {
    "alternative_names": _list,
    "parents": _list,
    "related": _list,
    "vector": _vector,
}
