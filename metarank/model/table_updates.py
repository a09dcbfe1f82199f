"""What is known of labels after labels were added, renamed or merged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metarank.data.label_files import read_columns
from metarank.types.containers import table_columns
from metarank.types.label_descriptions import LabelDescriptions

# What a new label may bring, by the column of the table.
KEYS = {
    "id": "ids",
    "name": "names",
    "description": "descriptions",
    "alternative_names": "alternative_names",
    "parents": "parents",
    "related": "related",
    "vector": "vectors",
}
Records = dict[str, Mapping[str, Any]]


def rows_of_table(add: Any) -> Any:
    """New labels that are given as a table, as the list of dicts that they may also be; all else as it is."""
    if isinstance(add, LabelDescriptions):
        columns = add.columns()
    elif table_columns(add) is not None:
        columns = read_columns(add)
    else:
        return add
    names = columns.get("names") or columns["ids"]
    columns["names"] = [name or str(label) for name, label in zip(names, columns.get("ids", names))]
    key_of = {column: key for key, column in KEYS.items()}
    return [dict(zip(map(key_of.get, columns), row)) for row in zip(*columns.values())]


def records_of(add: Any) -> Records:
    """The entries of `add` that are dicts, by name; ValueError or TypeError where one has another key."""
    if isinstance(add, (str, bytes, Mapping)) or not isinstance(add, (list, tuple)):
        return {}
    records: Records = {}
    for entry in add:
        if isinstance(entry, Mapping):
            name = entry.get("name")
            unknown = [key for key in entry if key not in KEYS]
            if unknown or not isinstance(name, str):
                got = f"{unknown[0]!r}" if unknown else f"the name {name!r:.80}"
                raise ValueError(f"add must hold dicts of a name and some of {', '.join(KEYS)}, got {got}")
            records[name] = entry
    return records


def changed_table(
    table: LabelDescriptions,
    texts: Mapping[int, tuple[str, str | None]],
    merged: Mapping[int, int],
    records: Records,
) -> LabelDescriptions:
    """The table after a change.

    Parameters
    ----------
    table : LabelDescriptions
    texts : dict of position to (name, text or None)
        Labels that are new, at the end or in a place that was removed, or renamed.
    merged : dict of position to position
        The key goes into the value, which takes over its names and the labels below it.
    records : dict of name to dict
        What new labels bring.

    Raises
    ------
    ValueError
        As `LabelDescriptions`.
    """
    columns = table.columns()
    n = max([len(table), *(label + 1 for label in texts)])
    for column in {KEYS[key] for record in records.values() for key in record} - set(columns):
        columns[column] = [None] * len(table)
    if any(text for _, text in texts.values()):
        columns.setdefault("descriptions", [None] * len(table))
    for values in columns.values():
        values += [None] * (n - len(values))
    for label, (name, text) in texts.items():
        columns["names"][label] = name
        columns["ids"][label] = columns["ids"][label] or name
        if "descriptions" in columns:
            columns["descriptions"][label] = text
        if columns.get("alternative_names", [None] * n)[label]:
            kept = [other for other in columns["alternative_names"][label] if other.strip() != name.strip()]
            columns["alternative_names"][label] = kept
        for key, value in records.get(name, {}).items():
            columns[KEYS[key]][label] = value
    if merged:
        _merge(columns, merged)
    return LabelDescriptions(**columns)


def _merge(columns: dict[str, list[Any]], merged: Mapping[int, int]) -> None:
    names, ids = columns["names"], columns["ids"]
    others = columns.setdefault("alternative_names", [None] * len(names))
    for old, new in merged.items():
        found = [*(others[new] or []), names[old], *(others[old] or [])]
        own = names[new].strip()
        others[new] = [name for name in dict.fromkeys(map(str.strip, found)) if name and name != own]
    instead = {ids[old]: ids[new] for old, new in merged.items()}
    for column in ("parents", "related"):
        for label, own in enumerate(columns.get(column, ())):
            if own:
                kept = dict.fromkeys(instead.get(other, other) for other in own)
                columns[column][label] = [other for other in kept if other != ids[label]]
    for old in merged:
        for column in ("parents", "related"):
            if column in columns:
                columns[column][old] = []
