"""`LabelTable`: labels by name or by id, wherever a person gives them or reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

# A hint at misspelt names is looked for among so many labels at most, and so many names of the same initial.
_MOST_LABELS, _MOST_NAMES = 100_000, 2_000


def relabeled(Y: sp.csr_matrix, target: np.ndarray, n_labels: int) -> sp.csr_matrix:
    """Relevances (n, n_labels) in which each column of Y stands at its target, int (L,).

    Columns of one target are united by the greatest relevance; those of a negative target are left out.

    Examples
    --------
    >>> relabeled(sp.csr_matrix(np.float32([[1, 2, 3]])), np.array([1, 1, -1]), 3).toarray()
    array([[0., 2., 0.]], dtype=float32)
    """
    label = np.asarray(target, np.int64)[Y.indices]
    kept = np.flatnonzero(label >= 0)
    row = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    key = row[kept] * n_labels + label[kept]
    order = np.argsort(key, kind="stable")
    pairs, first = np.unique(key[order], return_index=True)
    values = np.maximum.reduceat(Y.data[kept[order]], first) if len(first) else Y.data[:0]
    return sp.csr_matrix((values, np.divmod(pairs, max(1, n_labels))), (Y.shape[0], n_labels))


@dataclass(eq=False, repr=False)
class LabelTable:
    """Ids and names of L labels, some of which may be removed, share a name, or have none.

    Integers are ids, positions in [0, L); texts are names, those of digits too. Names are indexed when the
    first of them is asked for; safe to be asked by several threads.

    Parameters
    ----------
    n_labels : int
    names : sequence of str (L), optional
        An empty or blank name is none.
    removed : sequence of int
        Ids of labels that are no more.
    ids : sequence of str (L), optional
        Texts that identify labels, such as URIs: another way to name one, before its name.
    old_names : dict of str to id
        Names that labels once had: another way to name one, where no label has the name now.
    advice : str
        The end of the message about an unknown label.

    Examples
    --------
    >>> table = LabelTable(4, ["sea", "tree", "tree", ""])
    >>> table.id_of("sea", "allowed"), table.id_of(2, "allowed")
    (0, 2)
    >>> [table.shown(label) for label in range(4)]
    ['sea', 'tree (id 1)', 'tree (id 2)', '3']
    >>> table.id_of("see", "allowed")
    Traceback (most recent call last):
        ...
    ValueError: allowed must name known labels, by ids in [0, 4) or names, got 'see'; near it: 'sea'
    """

    n_labels: int
    names: Sequence[str] | None = None
    removed: np.ndarray | Sequence[int] = ()
    ids: Sequence[str] | None = None
    old_names: Mapping[str, int] = field(default_factory=dict)
    advice: str = ""

    def __reduce__(self) -> Any:
        # The index is made anew.
        return type(self), (self.n_labels, self.names, self.removed, self.ids, self.old_names, self.advice)

    @cached_property
    def own_ids(self) -> Sequence[str] | None:
        """The ids, if they say more than the names."""
        return None if self.ids is None or list(self.ids) == list(self.names or ()) else self.ids

    @cached_property
    def _gone(self) -> frozenset[int]:
        return frozenset(int(label) for label in self.removed)

    @cached_property
    def _index(self) -> tuple[dict[str, int], dict[str, list[int]]]:
        """The id of each name, and all ids of those that labels share; removed labels come last."""
        ids: dict[str, int] = {}
        shared: dict[str, list[int]] = {}
        names = self.names or ()
        for label, name in enumerate(names):
            if label in self._gone:
                continue
            first = ids.setdefault(name, label)
            if first != label:
                shared.setdefault(name, [first]).append(label)
        for label in sorted(self._gone) if names else ():
            ids.setdefault(names[label], label)
        for name in [name for name in ids if not name.strip()]:
            del ids[name]
            shared.pop(name, None)
        for labels in shared.values():  # as they are shown
            ids |= {self._told_apart(label): label for label in labels}
        for label, text in enumerate(self.ids or ()):
            ids[text] = label
            shared.pop(text, None)
        for name, label in self.old_names.items():
            ids.setdefault(name, label)
        return ids, shared

    def __contains__(self, text: str) -> bool:
        return text in self._index[0]

    def id_of(self, label: Any, parameter: str, where: str = "") -> int:
        """The id of a label given by its id (int) or name (str).

        Raises
        ------
        ValueError
            If there is no such label, it is removed, or several have the name; their ids are listed.
        TypeError
            If it is neither an integer nor a text. Messages begin with `parameter` and end with `where`.
        """
        if isinstance(label, str):
            ids, shared = self._index
            if label not in ids:
                raise ValueError(f"{self._unknown(label, parameter)}{where}{self._hint(label)}{self.advice}")
            if label in shared:
                raise ValueError(
                    f"{parameter} must name a label by its id if several share the name, got "
                    f"{label!r:.80}{where}, the name of labels {_listed(shared[label])}"
                )
            found = ids[label]
        elif isinstance(label, (bool, np.bool_)) or not isinstance(label, Integral):
            raise TypeError(f"{parameter} must name labels by ids or names, got {label!r:.80}{where}")
        else:
            found = int(label)
            if not 0 <= found < self.n_labels:
                raise ValueError(f"{self._unknown(found, parameter)}{where}{self.advice}")
        if found in self._gone:
            raise ValueError(f"{parameter} must not name a removed label, got {label!r:.80}{where}")
        return found

    def knows(self, label: Any, *, written: bool = False) -> bool:
        """Whether a name is that of a label, also a removed one, or an id that is `written`; what is not a
        text is left to the checks of `id_of`."""
        return not isinstance(label, str) or label in self or (written and _is_id(label))

    def id_of_text(self, text: str, parameter: str, where: str = "") -> int:
        """The id of a label written in a file or on a command line: a name, or an id where no name is so."""
        is_id = text not in self and _is_id(text)
        return self.id_of(int(text) if is_id else text, parameter, where)

    def ids_of(
        self, labels: Iterable[Any], parameter: str, rows: np.ndarray | None = None, *, written: bool = False
    ) -> np.ndarray:
        """The ids of labels, int64 (m,), in their order; as `id_of`, or `id_of_text` if they are `written`.

        Each distinct name is looked up once. Messages tell the row of a label, where `rows` (m,) are given.
        """
        if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu":
            inside = (labels >= 0) & (labels < self.n_labels)
            if not len(self.removed) and inside.all():
                return labels.astype(np.int64)
            labels = labels.tolist()
        named: dict[str, int] = {}
        ids = []
        for place, label in enumerate(labels):
            found = named.get(label) if isinstance(label, str) else None
            if found is None:
                where = "" if rows is None else f" at row {rows[place]}"
                find = self.id_of_text if written and isinstance(label, str) else self.id_of
                found = find(label, parameter, where)
                if isinstance(label, str):
                    named[label] = found
            ids.append(found)
        return np.array(ids, np.int64)

    def places(
        self, names: Sequence[str], parameter: str, used: Iterable[int], *, are_columns: bool
    ) -> np.ndarray:
        """Ids of the columns that have these names, int64 (m,); -1 where there is no such label.

        With `are_columns`, names that begin or continue those of the table keep their places. A name that
        several labels share is refused where the column is among `used`; removed labels are found too.
        """
        out = np.full(len(names), -1, np.int64)
        known = list(self.names or ())
        common = min(len(known), len(names))
        if are_columns and list(names[:common]) == known[:common]:
            out[:common] = np.arange(common)
            return out
        ids, shared = self._index
        for column, name in enumerate(names):
            out[column] = ids.get(name, -1)
        for column in used if shared else ():
            if names[column] in shared:
                raise ValueError(
                    f"{parameter} must hold names of one label each, got {names[column]!r:.80}, the name of "
                    f"labels {_listed(shared[names[column]])}"
                )
        return out

    def name_of(self, label: int) -> str | None:
        """The name as a person reads it, with the label's own id, else its place, where several labels have
        it; None without a name."""
        name = "" if self.names is None else self.names[label]
        if not name.strip():
            return None
        return self._told_apart(label) if name in self._index[1] else name

    def _told_apart(self, label: int) -> str:
        own = f"id {label}" if self.own_ids is None else self.own_ids[label]
        return f"{(self.names or ())[label]} ({own})"

    def shown(self, label: int) -> str:
        """A label in a list: its name, as `name_of`, else its id."""
        return self.name_of(label) or str(label)

    def called(self, label: int) -> str:
        """A label in a sentence: its name, as `name_of`, else such as "label 7"."""
        return self.name_of(label) or f"label {label}"

    def _unknown(self, label: Any, parameter: str) -> str:
        rule = f"ids in [0, {self.n_labels})" + (" or names" if self.names is not None else "")
        rule = rule if self.ids is None else "ids or names"
        return f"{parameter} must name known labels, by {rule}, got {label!r:.80}"

    def _hint(self, name: str) -> str:
        """Known names that are near one that is not."""
        if self.names is None:
            return ", since its labels have no names" if name.strip() else ""
        if not name.strip() or len(name) > 80 or self.n_labels > _MOST_LABELS:
            return ""
        folded = name.strip().casefold()
        known = self._index[0]
        near = [other for other in known if other.strip().casefold() == folded]
        if not near:
            same = [other for other in known if other[:1].casefold() == folded[:1]][:_MOST_NAMES]
            near = get_close_matches(name, same)
        return f"; near it: {', '.join(f'{other!r:.80}' for other in near[:3])}" if near else ""


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12


def _listed(ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids[:10]))
    return shown + (f" and {len(ids) - 10} more" if len(ids) > 10 else "")
