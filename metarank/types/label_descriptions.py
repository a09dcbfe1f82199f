"""`LabelDescriptions`: what is known of labels beside their rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank._util.printable import first_few
from metarank.persist.fields import Array, Csr, List, Strings
from metarank.persist.spec import Saved, Spec
from metarank.types.checks import check_names_as_ids, check_writable
from metarank.types.label_relations import LabelRelations, depths, relation


class LabelDescriptions(Saved):
    """A table of L labels: names, alternative names, descriptions, broader and related labels, vectors.

    All labels of the table can be ranked, those without a training row too. Everything is checked once, here.

    Parameters
    ----------
    ids : sequence of str or int (L), optional
        Identifiers such as URIs, all distinct. The default is the names, which are then distinct.
    names : sequence of str or None (L), optional
        Several labels may have one name; an empty name is none. One of `ids` and `names` is required.
    alternative_names : sequence (L) of sequences of str, optional
        Other names of each label, all distinct and different from its name. Two labels may share one.
    descriptions : sequence of str or None (L), optional
        A longer text of each label.
    parents : sequence (L) of sequences of labels, or CSR (L, L), optional
        The broader labels of each label, by id or by a name that one label has. No label is its own ancestor.
    related : sequence (L) of sequences of labels, or CSR (L, L), optional
        Labels on neighbouring subjects; a relation holds in both directions.
    vectors : array (L, dv) or sequence (L) of arrays or None, optional
        A vector of each label in the space of dense X. None and a vector of zeros mean that there is none.

    Attributes
    ----------
    ids, names : list of str (L)
    alternative_names : list of lists of str (L), or None
    descriptions : list of str (L), or None
    parents, related : float32 CSR (L, L) of ones, or None
        Row l holds the parents of label l, or the labels related to it.
    vectors : float32 array (L, dv) or None

    Raises
    ------
    ValueError, TypeError
        If lengths differ, an id occurs twice, a label has an alternative name twice, a parent or related
        label is not in the table, parents form a cycle, or a vector has another width, NaN or infinity. The
        message names the column and the label.

    Examples
    --------
    >>> labels = LabelDescriptions(
    ...     ids=["p1", "p2"],
    ...     names=["vessels", "boats"],
    ...     alternative_names=[[], ["small craft"]],
    ...     parents=[[], ["p1"]],
    ... )
    >>> labels
    LabelDescriptions(2 labels: alternative names of 1, parents of 1)
    >>> labels.position_of("boats"), labels.depth
    (1, array([0, 1]))
    """

    saved: ClassVar[Spec] = Spec(
        Strings("ids", "L"),
        Strings("names", "L"),
        List("alternative_names", Strings(""), n="L", optional=True),
        Strings("descriptions", "L", optional=True),
        Csr("parents", ("L", "L"), optional=True),
        Csr("related", ("L", "L"), optional=True),
        Array("vectors", np.float32, ("L", None), optional=True),
    )

    def __init__(
        self,
        ids: Sequence[Any] | None = None,
        names: Sequence[str | None] | None = None,
        alternative_names: Sequence[Sequence[str] | None] | None = None,
        descriptions: Sequence[str | None] | None = None,
        parents: Any = None,
        related: Any = None,
        vectors: Any = None,
    ) -> None:
        if ids is None and names is None:
            raise ValueError("a table of labels needs ids or names, got neither")
        given = {"ids": ids, "names": names, "alternative_names": alternative_names}
        given |= {"descriptions": descriptions, "parents": parents, "related": related, "vectors": vectors}
        n = _common_length(given)
        self.names: list[str] = _texts(names, "names") if names is not None else [""] * n
        if ids is None:
            check_names_as_ids(self.names, "names of labels without ids")
        self.ids: list[str] = list(self.names) if ids is None else [_id(label) for label in ids]
        check_names_as_ids(self.ids, "ids")
        self.alternative_names: list[list[str]] | None = self._alternatives(alternative_names)
        self.descriptions: list[str] | None = (
            None if descriptions is None else _texts(descriptions, "descriptions")
        )
        self.parents: sp.csr_matrix | None = self._relation(parents, "parents")
        self.related: sp.csr_matrix | None = self._relation(related, "related")
        if self.parents is not None:
            self.depth: NDArray[np.int64] = depths(self.parents, lambda label: repr(self.shown_names[label]))
        else:
            self.depth = np.zeros(n, np.int64)
        if self.related is not None:
            first, second = self.related.nonzero()
            self.related = relation(np.append(first, second), np.append(second, first), n)
        self.vectors: NDArray[np.float32] | None = None if vectors is None else self._vectors(vectors)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        said = []
        if self.alternative_names is not None:
            said.append(f"alternative names of {sum(map(bool, self.alternative_names)):,}")
        if self.descriptions is not None:
            said.append(f"descriptions of {sum(map(bool, self.descriptions)):,}")
        for column, matrix in (("parents", self.parents), ("related labels", self.related)):
            if matrix is not None:
                said.append(f"{column} of {np.count_nonzero(np.diff(matrix.indptr)):,}")
        if self.vectors is not None:
            said.append(f"vectors of {self.vectors.shape[1]} numbers")
        return f"LabelDescriptions({len(self):,} labels{': ' if said else ''}{', '.join(said)})"

    # --- labels by id and name -------------------------------------------------------

    @cached_property
    def shown_names(self) -> list[str]:
        """What a label is called: its name, or its id where it has none."""
        return [name if name.strip() else label for name, label in zip(self.names, self.ids)]

    @cached_property
    def relations(self) -> LabelRelations:
        """Parents and related labels, and what follows from them."""
        return LabelRelations(self.parents, self.related)

    @property
    def has_relations(self) -> bool:
        """Whether some label has a parent or a related label."""
        return any(of is not None and of.nnz > 0 for of in (self.parents, self.related))

    @property
    def has_names(self) -> bool:
        """Whether some label has a name."""
        return any(name.strip() for name in self.names)

    @cached_property
    def _by_id(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.ids)}

    @cached_property
    def _by_name(self) -> dict[str, int]:
        """The label of each name; -1 where several labels have it."""
        out: dict[str, int] = {}
        for i, name in enumerate(self.names):
            if name.strip():
                out[name] = i if name not in out else -1
        return out

    def position_of(self, label: Any, where: str = "labels") -> int:
        """The row of a label in the table, by its id, or else by its name.

        Raises
        ------
        ValueError
            If there is no such label, or several have the name; the message begins with `where`.
        """
        found = self._by_id.get(str(label))
        if found is None:
            found = self._by_name.get(str(label))
        if found is None:
            raise ValueError(f"{where} must be in the table of labels, got {label!r:.80}")
        if found < 0:
            raise ValueError(f"{where} must be ids where several labels share a name, got {label!r:.80}")
        return found

    def covering(
        self, Y: sp.csr_matrix, names: Sequence[str] | None, where: str = "Y"
    ) -> tuple[sp.csr_matrix, LabelDescriptions]:
        """Relevances with a column for each label of the table, and the table, extended by labels of Y.

        Parameters
        ----------
        Y : CSR (n, m)
        names : sequence of str (m) or None
            Ids or names of the columns. Columns of one label are united, by the greatest relevance. Columns
            that are not in the table become labels at its end, with a warning that names three of them.
            Without names the columns are the rows of the table, in order.

        Raises
        ------
        ValueError
            If no column is in the table, a column has the name of several labels, or there are no names and
            m is not L.
        """
        if names is None:
            if Y.shape[1] != len(self):
                raise ValueError(
                    f"{where} must have a column for each of the {len(self)} labels of the table, or names, "
                    f"got {Y.shape[1]} columns"
                )
            return Y, self
        if list(names) == self.shown_names:
            return Y, self
        unknown = [name for name in names if name not in self._by_id and name not in self._by_name]
        if len(unknown) == len(names):
            raise ValueError(f"labels must be those of {where}, got none of them, such as {names[0]!r:.80}")
        if unknown:
            warnings.warn(
                f"labels of {where} that the table of labels lacks: {first_few(unknown)}; they are labels "
                "without a description",
                stacklevel=2,
            )
        table = self.extended(unknown) if unknown else self
        columns = np.array([table.position_of(name, where) for name in names], np.int64)
        coo = sp.coo_matrix(Y)
        key = coo.row.astype(np.int64) * len(table) + columns[coo.col]
        order = np.argsort(key, kind="stable")
        pairs, first = np.unique(key[order], return_index=True)
        values = np.maximum.reduceat(coo.data[order], first) if len(first) else coo.data
        out = sp.csr_matrix((values, np.divmod(pairs, len(table))), (Y.shape[0], len(table)), np.float32)
        out.sort_indices()
        return out, table

    # --- other tables ----------------------------------------------------------------

    def columns(self) -> dict[str, list[Any]]:
        """The columns that the table has, as lists (L) by the parameters of the class; labels by their ids.

        Examples
        --------
        >>> LabelDescriptions(names=["sea", "port"], related=[["port"], []]).columns()
        {'ids': ['sea', 'port'], 'names': ['sea', 'port'], 'related': [['port'], ['sea']]}
        """
        out: dict[str, list[Any]] = {"ids": list(self.ids), "names": list(self.names)}
        if self.alternative_names is not None:
            out["alternative_names"] = [list(own) for own in self.alternative_names]
        if self.descriptions is not None:
            out["descriptions"] = list(self.descriptions)
        for column, matrix in (("parents", self.parents), ("related", self.related)):
            if matrix is not None:
                ends = matrix.indptr.tolist()
                others = [self.ids[label] for label in matrix.indices.tolist()]
                out[column] = [others[start:end] for start, end in pairwise(ends)]
        if self.vectors is not None:
            out["vectors"] = list(self.vectors)
        return out

    def extended(self, labels: Iterable[Any]) -> LabelDescriptions:
        """A table with more labels at its end, by their ids; those that it has already are passed over.

        Nothing but the id is known of a new label, which is its name too, unless it is a URI.

        Examples
        --------
        >>> LabelDescriptions(names=["sea"]).extended(["sea", "sun"]).names
        ['sea', 'sun']
        """
        new = [str(label) for label in dict.fromkeys(labels)]
        new = [label for label in new if label not in self._by_id and label not in self._by_name]
        named: dict[str, list[Any]] = {
            "ids": new,
            "names": [None if "://" in label else label for label in new],
        }
        columns = {
            column: [*values, *named.get(column, [None] * len(new))]
            for column, values in self.columns().items()
        }
        return LabelDescriptions(**columns) if new else self

    # --- checks ----------------------------------------------------------------------

    def _alternatives(self, values: Sequence[Sequence[str] | None] | None) -> list[list[str]] | None:
        if values is None:
            return None
        out = []
        for label, own in enumerate(values):
            given = _listed(own, "alternative_names")
            names = [_text(name, "alternative_names", self.ids[label]) for name in given]
            seen = {self.names[label].strip()} - {""}
            for name in names:
                where = f"got {name!r:.80} of label {self.shown_names[label]!r:.80}"
                if not name.strip():
                    raise ValueError(f"alternative_names must hold names, {where}")
                if name.strip() in seen:
                    raise ValueError(f"alternative_names must hold each name of a label once, {where} twice")
                seen.add(name.strip())
            out.append(names)
        return out

    def _relation(self, values: Any, column: str) -> sp.csr_matrix | None:
        if values is None:
            return None
        n = len(self.ids)
        if sp.issparse(values):
            if values.shape != (n, n):
                raise ValueError(f"{column} must have shape {(n, n)}, got {values.shape}")
            first, second = values.nonzero()
            return relation(first, second, n)
        lists = [_listed(own, column) for own in values]
        second = [
            self.position_of(other, f"{column} of label {self.shown_names[label]!r:.80}")
            for label, own in enumerate(lists)
            for other in own
        ]
        return relation(np.repeat(np.arange(n), [len(own) for own in lists]), second, n)

    def _vectors(self, values: Any) -> np.ndarray:
        if not isinstance(values, np.ndarray):
            values = _stacked(values, lambda label: f"label {self.shown_names[label]!r:.80}")
        if values.ndim != 2 or values.dtype.kind not in "biuf":
            raise ValueError(f"vectors must be numbers (L, dv), got shape {values.shape} of {values.dtype}")
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(values, np.float32)
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            value = values[bad[0]][~np.isfinite(values[bad[0]])][0]
            raise ValueError(
                f"vectors must hold finite numbers, got {value} of label {self.shown_names[bad[0]]!r:.80}"
            )
        return values


def _common_length(columns: dict[str, Any]) -> int:
    """The number of rows of the columns that are given; ValueError if they differ."""
    sizes = {}
    for column, values in columns.items():
        if values is None:
            continue
        if isinstance(values, (str, bytes)) or not (hasattr(values, "__len__") or sp.issparse(values)):
            raise TypeError(f"{column} must be a sequence with an entry a label, got {values!r:.80}")
        sizes[column] = values.shape[0] if hasattr(values, "shape") else len(values)
    first, n = next(iter(sizes.items()))
    for column, size in sizes.items():
        if size != n:
            raise ValueError(f"{column} must have an entry for each of the {n} {first}, got {size}")
    if n == 0:
        raise ValueError("a table of labels must have a label, got none")
    return n


def _id(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (str, int, np.integer)):
        raise TypeError(f"ids must be texts or integers, got {value!r:.80}")
    return str(value)


def _text(value: Any, column: str, label: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{column} must hold texts, got {value!r:.80} at label {label!r:.80}")
    check_writable(value, column)
    return value


def _texts(values: Sequence[str | None], column: str) -> list[str]:
    return ["" if value is None else _text(value, column, row) for row, value in enumerate(values)]


def _listed(value: Any, column: str) -> list[Any]:
    """The entries of one label; None is none."""
    if value is None:
        return []
    if isinstance(value, (str, bytes)) or not isinstance(value, (list, tuple, set, np.ndarray)):
        raise TypeError(f"{column} must hold a list a label, got {value!r:.80}")
    return list(value)


def _stacked(values: Sequence[Any], name_of: Callable[[int], str]) -> np.ndarray:
    """Vectors of one width as rows; None becomes zeros."""
    rows = {label: np.asarray(row) for label, row in enumerate(values) if row is not None}
    if not rows:
        raise ValueError("vectors must hold a vector, got none")
    first = next(iter(rows))
    out = np.zeros((len(values), rows[first].size))
    for label, row in rows.items():
        if row.ndim != 1 or row.dtype.kind not in "biuf":
            raise TypeError(f"vectors must hold rows of numbers, got {row!r:.80} of {name_of(label)}")
        if len(row) != out.shape[1]:
            raise ValueError(
                f"vectors must have one width, got {len(row)} numbers of {name_of(label)} and "
                f"{out.shape[1]} of {name_of(first)}"
            )
        out[label] = row
    return out
