"""`LabelChange`: labels to be added, removed, renamed or merged, checked before anything changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from metarank.model.fitted import FittedModel
from metarank.model.table_updates import changed_table, records_of, rows_of_table
from metarank.types.checks import check_writable
from metarank.types.label_descriptions import LabelDescriptions


@dataclass(frozen=True, eq=False)
class LabelChange:
    """A checked change of the label set.

    Attributes
    ----------
    now : int32 array (L before,)
        Id of each label after the change; -1 if it was removed.
    names : list of str or None
        Names after the change, including those of removed labels.
    texts : dict of id to (name, text or None)
        The texts of labels that are new or renamed, to be indexed.
    n_labels : int
        L after the change.
    removed : int32 array
        Ids of removed labels, ascending.
    merged : int32 array (m, 2) or None
        Removed labels and those that they were merged into, in this change or an earlier one.
    table : LabelDescriptions or None
        What is known of the labels after the change.
    """

    now: np.ndarray
    names: list[str] | None
    texts: dict[int, tuple[str, str | None]]
    n_labels: int
    removed: np.ndarray
    merged: np.ndarray | None
    table: LabelDescriptions | None

    @classmethod
    def checked(cls, model: FittedModel, add: Any, remove: Any, rename: Any, merge: Any) -> LabelChange:
        """Check the arguments of `MetaRanker.update_labels`; ValueError or TypeError names what is wrong."""
        n, add = model.n_labels, rows_of_table(add)
        names = None if model.label_names is None else list(model.label_names)
        id_of = model.label_table.id_of
        now = np.arange(n, dtype=np.int32)
        now[model.removed] = -1
        renamed = {id_of(old, "rename"): new for old, new in _mapping(rename, "rename").items()}
        merged = {id_of(a, "merge"): id_of(b, "merge") for a, b in _mapping(merge, "merge").items()}
        gone = {id_of(label, "remove") for label in _sequence(remove, "remove")}
        for label in gone & (merged.keys() | renamed.keys()):
            raise ValueError(f"remove must not hold a label that is merged or renamed too, got {label}")
        for old, new in merged.items():
            if old in renamed or new in merged or new in gone:
                raise ValueError(
                    "merge must take labels that are neither renamed nor merged twice into labels that stay, "
                    f"got {old} into {new}"
                )
            now[old] = new
        now[list(gone)] = -1
        removed = set(model.removed.tolist()) | gone | merged.keys()
        texts: dict[int, tuple[str, str | None]] = {}
        for label, new in renamed.items():
            if names is None:
                raise ValueError("rename must be left out, since the labels of this model have no names")
            names[label], text = _named(new, "rename")
            texts[label] = names[label], text
        uses = Counter(name.strip() for name in names or ())
        for label in renamed:
            if names is not None and uses[names[label].strip()] > 1:
                raise ValueError(
                    f"rename must give names that no other label has, blanks aside, got {names[label]!r}"
                )
        n_labels = n
        taken = {} if names is None else {name: i for i, name in enumerate(names)}
        bare = {name.strip(): name for name in taken}
        for name, text in _added(model, add):
            if names is not None and bare.setdefault(name.strip(), name) != name:
                raise ValueError(f"add must hold new names, got {name!r}, which is taken but for blanks")
            label = taken.get(name, n_labels)
            if label in texts or (label < n_labels and label not in removed):
                raise ValueError(f"add must hold new names, got {name!r}, which is taken")
            removed.discard(label)
            if names is not None:
                taken[name] = label
                names += [name] if label == n_labels else []
            n_labels += label == n_labels
            texts[label] = name, text
        left = np.array(sorted(removed), np.int32)
        if len(left) == n_labels:
            raise ValueError("remove must leave a label, it removes all of them")
        table = None if model.labels is None else changed_table(model.labels, texts, merged, records_of(add))
        earlier = [] if model.merged is None else [(old, int(now[new])) for old, new in model.merged.tolist()]
        into = [(old, new) for old, new in sorted([*earlier, *merged.items()]) if old in removed and new >= 0]
        return cls(now, names, texts, n_labels, left, np.array(into, np.int32) if into else None, table)


def _added(model: FittedModel, add: Any) -> list[tuple[str, str | None]]:
    """(name, text or None) of each new label."""
    if model.label_names is None:
        keeps_texts = any(source.scorer.label_texts() for source in model.sources)
        if isinstance(add, Integral) and not isinstance(add, bool):
            if add < 0:
                raise ValueError(f"add must be at least 0, got {add}")
            return [("", None)] * int(add)
        if add is None or (keeps_texts and not isinstance(add, Mapping)):
            return [("", text) for text in map(_text_of("add"), _sequence(add, "add"))]
        raise ValueError(
            f"add must be a number of labels, since the labels of this model have no names, got {add!r:.80}"
        )
    if isinstance(add, Mapping):
        return [_named(pair, "add") for pair in add.items()]
    if records_of(add) and model.labels is None:
        raise ValueError("add must hold names or (name, text) pairs, since this model has no table of labels")
    return [_named(_pair_in(entry), "add") for entry in _sequence(add, "add")]


def _pair_in(entry: Any) -> Any:
    """The name and the text of a new label that is given as a dict; all else as it is."""
    if not isinstance(entry, Mapping):
        return entry
    text = entry.get("description")
    return entry["name"] if text is None else (entry["name"], text)


def _named(value: Any, parameter: str) -> tuple[str, str | None]:
    """A name, or a pair of a name and a text."""
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(part, str) for part in value):
        name, text = value
    else:
        name, text = _text_of(parameter)(value), None
    if not name.strip():
        raise ValueError(f"{parameter} must hold names, got an empty one")
    check_writable(name, parameter)
    return name, text


def _text_of(parameter: str) -> Any:
    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"{parameter} must hold names or (name, text) pairs, got {value!r:.80}")
        return value

    return check


def _mapping(value: Any, parameter: str) -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{parameter} must be a dict from labels, got {value!r:.80}")
    return value


def _sequence(value: Any, parameter: str) -> Sequence[Any]:
    if value is None:
        return []
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, (Sequence, set, np.ndarray)):
        raise TypeError(f"{parameter} must be a list of labels, got {value!r:.80}")
    return list(value)
