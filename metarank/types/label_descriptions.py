"""`LabelDescriptions`: names, texts and vectors of labels; relations of labels as sparse matrices."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from metarank._util.elementary import log
from metarank._util.printable import first_few
from metarank.persist.fields import Array, Csr, List, Strings
from metarank.persist.spec import Saved, Spec
from metarank.types.checks import check_names_as_ids, check_writable, indicator
from metarank.types.label_table import LabelTable, relabeled


class LabelDescriptions(Saved):
    """A table of L labels: names, alternative names, descriptions, broader and related labels, vectors.

    All labels of the table can be ranked, those without a training row too. Everything is checked once, here.

    Parameters
    ----------
    ids : sequence of str or int (L), optional
        Identifiers such as URIs, all distinct. The default is the names, which are then distinct.
    names : sequence of str or None (L), optional
        Several labels may share a name; an empty name counts as missing. One of `ids` and `names` is
        required; without ids a label is identified by its name, or as "label 7" by its position.
    alternative_names : sequence (L) of sequences of str, optional
        Other names of each label, all distinct and different from its name. Two labels may share one.
    descriptions : sequence of str or None (L), optional
        A longer text of each label.
    parents : sequence (L) of sequences of labels, or CSR (L, L), optional
        The broader labels of each label, by id or by a name that one label has. No label is its own ancestor.
    related : sequence (L) of sequences of labels, or CSR (L, L), optional
        Labels on neighbouring subjects; a relation holds in both directions.
    vectors : array (L, dv) or sequence (L) of arrays or None, optional
        A vector of each label in the space of dense X. None and a vector of zeros count as missing.

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
    >>> labels.table.id_of("boats", "labels"), labels.depth
    (1, array([0, 1]))
    """

    ids: Annotated[list[str], Strings("", "L")]
    names: Annotated[list[str], Strings("", "L")]
    alternative_names: Annotated[list[list[str]] | None, List("", Strings(""), n="L", optional=True)]
    descriptions: Annotated[list[str] | None, Strings("", "L", optional=True)]
    parents: Annotated[sp.csr_matrix | None, Csr("", dims=("L", "L"), optional=True)]
    related: Annotated[sp.csr_matrix | None, Csr("", dims=("L", "L"), optional=True)]
    vectors: Annotated[NDArray[np.float32] | None, Array("", np.float32, ("L", None), optional=True)]

    saved: ClassVar[Spec] = Spec()

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
        self.names = _texts(names, "names") if names is not None else [""] * n
        if ids is None:
            check_names_as_ids([name for name in self.names if name.strip()], "names of labels without ids")
            ids = [name if name.strip() else f"label {label}" for label, name in enumerate(self.names)]
        self.ids = [_id(label) for label in ids]
        check_names_as_ids(self.ids, "ids")
        self.alternative_names = self._alternatives(alternative_names)
        self.descriptions = None if descriptions is None else _texts(descriptions, "descriptions")
        self.parents = self._relation(parents, "parents")
        self.related = self._relation(related, "related")
        if self.parents is not None:
            self.depth: NDArray[np.int64] = depths(self.parents, self.shown_names)
        else:
            self.depth = np.zeros(n, np.int64)
        if self.related is not None:
            first, second = self.related.nonzero()
            self.related = relation(np.append(first, second), np.append(second, first), n)
        self.vectors = None if vectors is None else self._vectors(vectors)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        parts = []
        if self.alternative_names is not None:
            parts.append(f"alternative names of {sum(map(bool, self.alternative_names)):,}")
        if self.descriptions is not None:
            parts.append(f"descriptions of {sum(map(bool, self.descriptions)):,}")
        for column, matrix in (("parents", self.parents), ("related labels", self.related)):
            if matrix is not None:
                parts.append(f"{column} of {np.count_nonzero(np.diff(matrix.indptr)):,}")
        if self.vectors is not None:
            parts.append(f"vectors of {self.vectors.shape[1]} numbers")
        return f"LabelDescriptions({len(self):,} labels{': ' if parts else ''}{', '.join(parts)})"

    # --- labels by id and name -------------------------------------------------------

    @cached_property
    def shown_names(self) -> list[str]:
        """The name of each label, or its id if it has none."""
        return [name if name.strip() else label for name, label in zip(self.names, self.ids)]

    def has_relatives(self, kind: str) -> bool:
        """Whether some label has relatives of a kind: "parent", "child", "sibling" or "related"."""
        matrix = self.related if kind == "related" else self.parents
        return matrix is not None and matrix.nnz > 0

    @property
    def has_relations(self) -> bool:
        """Whether some label has a parent or a related label."""
        return self.has_relatives("parent") or self.has_relatives("related")

    @cached_property
    def specificity(self) -> NDArray[np.float32]:
        """float32 (L,): 1 - log(1 + labels below) / log(L), in [0, 1]; 1 where none is below.

        The intrinsic information content of Seco, Veale & Hayes (2004), eq. 3.
        """
        n = len(self)
        below = 0 if self.parents is None else np.bincount(ancestors(self.parents).indices, minlength=n)
        return (1 - log(1.0 + below) / log(float(max(n, 2)))).astype(np.float32)

    @property
    def has_names(self) -> bool:
        """Whether some label has a name."""
        return any(name.strip() for name in self.names)

    @cached_property
    def table(self) -> LabelTable:
        """The labels by id, or else by name."""
        return LabelTable(len(self), self.names, ids=self.ids)

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
        unknown = [name for name in names if name not in self.table]
        if len(unknown) == len(names):
            raise ValueError(
                f"labels must have those of {where} by id or name, got none, such as {names[0]!r:.80}"
            )
        if unknown:
            warnings.warn(
                f"labels of {where} that the table of labels lacks: {first_few(unknown)}; they are labels "
                "without a description",
                stacklevel=2,
            )
        table = self.extended(unknown) if unknown else self
        columns = table.table.ids_of(names, where)
        return relabeled(sp.csr_matrix(Y, dtype=np.float32), columns, len(table)), table

    # --- other tables ----------------------------------------------------------------

    def columns(self) -> dict[str, list[Any]]:
        """The columns that the table has, as lists (L) by the parameters of the class; labels by their ids.

        Examples
        --------
        >>> LabelDescriptions(names=["sea", "port"], related=[["port"], []]).columns()
        {'ids': ['sea', 'port'], 'names': ['sea', 'port'], 'related': [['port'], ['sea']]}
        """
        columns: dict[str, Any] = {field.name: getattr(self, field.name) for field in self.saved.fields}
        for column in ("parents", "related"):
            if (matrix := columns[column]) is not None:
                others = [self.ids[label] for label in matrix.indices.tolist()]
                columns[column] = [others[start:end] for start, end in pairwise(matrix.indptr.tolist())]
        return {column: list(values) for column, values in columns.items() if values is not None}

    def extended(self, labels: Iterable[Any]) -> LabelDescriptions:
        """A table with more labels at its end, by their ids; those that it has already are passed over.

        A new label has only its id, which is also its name unless it is a URI.

        Examples
        --------
        >>> LabelDescriptions(names=["sea"]).extended(["sea", "sun"]).names
        ['sea', 'sun']
        """
        new = [str(label) for label in dict.fromkeys(labels)]
        new = [label for label in new if label not in self.table]
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
            called = self.shown_names[label]
            given = _listed(own, "alternative_names")
            names = [_text(name, "alternative_names", called) for name in given]
            bare = [name.strip() for name in names]
            if not all(bare) or len({self.names[label].strip(), *bare}) <= len(bare):
                rule = "names, each once and none that is the name of its label"
                raise ValueError(f"alternative_names must hold {rule}, got {names!r:.80} of {called!r:.80}")
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
            self.table.id_of(str(other), f"{column} of label {self.shown_names[label]!r:.80}")
            for label, own in enumerate(lists)
            for other in own
        ]
        return relation(np.repeat(np.arange(n), [len(own) for own in lists]), second, n)

    def _vectors(self, values: Any) -> np.ndarray:
        width = next((np.size(row) for row in values if row is not None), 0)
        rows = values if isinstance(values, np.ndarray) else [[0] * width if v is None else v for v in values]
        try:
            with np.errstate(over="ignore"):
                out = np.ascontiguousarray(rows, np.float32)
        except (ValueError, TypeError) as error:
            raise ValueError(f"vectors must be numbers, as many of each label: {error}") from None
        if out.ndim != 2 or width == 0:
            raise ValueError(f"vectors must be numbers (L, dv), got shape {out.shape}")
        bad = np.flatnonzero(~np.isfinite(out).all(axis=1))
        if len(bad):
            value = out[bad[0]][~np.isfinite(out[bad[0]])][0]
            called = self.shown_names[bad[0]]
            raise ValueError(f"vectors must hold finite numbers, got {value} of label {called!r:.80}")
        return out


def _common_length(columns: dict[str, Any]) -> int:
    """The number of rows of the columns that are given; ValueError if they differ."""
    sizes = {}
    for column, values in columns.items():
        if isinstance(values, str) or not (
            values is None or hasattr(values, "__len__") or sp.issparse(values)
        ):
            raise TypeError(f"{column} must be a sequence with an entry per label, got {values!r:.80}")
        if values is not None:
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
        raise TypeError(f"{column} must hold a list per label, got {value!r:.80}")
    return list(value)


def relation(first: Sequence[int] | np.ndarray, second: Sequence[int] | np.ndarray, n: int) -> sp.csr_matrix:
    """Pairs of labels as a canonical float32 CSR (n, n) of ones; a pair that occurs twice counts once.

    Examples
    --------
    >>> relation([1, 2, 2], [0, 0, 0], 3).toarray()
    array([[0., 0., 0.],
           [1., 0., 0.],
           [1., 0., 0.]], dtype=float32)
    """
    return indicator(first, second, (n, n))


def depths(parents: sp.csr_matrix, names: Sequence[Any] | None = None) -> np.ndarray:
    """The steps from each label up to a label without parents, the longest way; int64 (L,).

    Parameters
    ----------
    parents : CSR (L, L)
        Row l holds the parents of label l.
    names : sequence (L), optional
        The names of the labels, for the error.

    Raises
    ------
    ValueError
        If a label is an ancestor of itself; the message names a link that closes a cycle.

    Examples
    --------
    >>> depths(relation([1, 2], [0, 1], 3))
    array([0, 1, 2])
    """
    children = sp.csr_matrix(parents.T)
    waiting = np.diff(parents.indptr).astype(np.int64)
    depth = np.zeros(len(waiting), np.int64)
    level, found = np.flatnonzero(waiting == 0), 0
    while len(level):
        found += len(level)
        below, n_parents = np.unique(children[level].indices, return_counts=True)
        waiting[below] -= n_parents
        ready = below[waiting[below] == 0]
        depth[ready] = depth[level[0]] + 1  # the last of its parents stands in this level
        level = ready
    if found < len(waiting):
        label, parent = without_cycles(parents)[1][0]
        names = range(len(waiting)) if names is None else names
        raise ValueError(
            f"parents must not form a cycle, got {names[label]!r} -> {names[parent]!r}, which is below it"
        )
    return depth


def without_cycles(
    parents: sp.csr_matrix, order: np.ndarray | None = None
) -> tuple[sp.csr_matrix, list[tuple[int, int]]]:
    """The parents without the links that close a cycle, and those links, as (label, parent).

    Labels are walked up from in their order, and to their parents in the same order; a link to a label that
    the walk came from closes a cycle.

    Parameters
    ----------
    parents : CSR (L, L)
    order : int array (L,), optional
        The position of each label in the order, all distinct; by default that of the table.

    Examples
    --------
    >>> kept, closing = without_cycles(relation([0, 1, 2, 2], [1, 2, 0, 2], 3))
    >>> kept.nonzero()[0].tolist(), closing
    ([0, 1], [(2, 0), (2, 2)])
    """
    n = parents.shape[0]
    place = np.arange(n) if order is None else np.asarray(order)
    _, part = connected_components(parents, connection="strong")
    label = np.repeat(np.arange(n), np.diff(parents.indptr))
    inside = part[label] == part[parents.indices]
    above: dict[int, list[int]] = {}
    for own, parent in zip(label[inside].tolist(), parents.indices[inside].tolist()):
        above.setdefault(own, []).append(parent)
    closing = []
    state: dict[int, bool] = {}  # whether the walk came from there and has not left it
    for start in sorted(above, key=lambda own: place[own]):
        way = [] if start in state else [(start, _sorted(above[start], place))]
        state.setdefault(start, True)
        while way:
            own, left = way[-1]
            parent = next(left, None)
            if parent is None:
                state[own] = False
                way.pop()
            elif parent not in state:
                state[parent] = True
                way.append((parent, _sorted(above.get(parent, []), place)))
            elif state[parent]:
                closing.append((own, parent))
    if not closing:
        return parents, closing
    removed = relation([own for own, _ in closing], [parent for _, parent in closing], n)
    kept = sp.csr_matrix(parents - parents.multiply(removed), dtype=np.float32)
    kept.eliminate_zeros()
    return kept, sorted(closing)


def _sorted(labels: list[int], place: np.ndarray) -> Iterator[int]:
    return iter(sorted(labels, key=lambda label: int(place[label])))


def ancestors(parents: sp.csr_matrix) -> sp.csr_matrix:
    """The parents of each label, their parents, and so on; CSR (L, L) of ones.

    Examples
    --------
    >>> ancestors(relation([1, 2], [0, 1], 3)).toarray()
    array([[0., 0., 0.],
           [1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    found, step = parents, parents
    while step.nnz:
        step = sp.csr_matrix(step @ parents)
        step.data[:] = 1
        found = sp.csr_matrix(found + step)
        found.data[:] = 1
    found = sp.csr_matrix(found, dtype=np.float32)
    found.sum_duplicates()
    return found
