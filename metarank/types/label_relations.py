"""Relations of labels as sparse matrices: broader labels (parents) without cycles, ancestors, depths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from metarank._util.elementary import log


def relation(first: Sequence[int] | np.ndarray, second: Sequence[int] | np.ndarray, n: int) -> sp.csr_matrix:
    """Pairs of labels as a canonical float32 CSR (n, n) of ones; a pair that occurs twice counts once.

    Examples
    --------
    >>> relation([1, 2, 2], [0, 0, 0], 3).toarray()
    array([[0., 0., 0.],
           [1., 0., 0.],
           [1., 0., 0.]], dtype=float32)
    """
    out = sp.csr_matrix((np.ones(len(first), np.float32), (first, second)), shape=(n, n))
    out.sum_duplicates()
    out.data[:] = 1
    return out


def depths(parents: sp.csr_matrix, name_of: Callable[[int], str] = str) -> np.ndarray:
    """The steps from each label up to a label without parents, the longest way; int64 (L,).

    Parameters
    ----------
    parents : CSR (L, L)
        Row l holds the parents of label l.
    name_of : function
        The name of a label in the error.

    Raises
    ------
    ValueError
        If a label is an ancestor of itself; the message shows the cycle.

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
        cycle = _cycle(parents, waiting > 0)
        raise ValueError(f"parents must not form a cycle, got {' -> '.join(map(name_of, cycle))}")
    return depth


def _cycle(parents: sp.csr_matrix, left: np.ndarray) -> list[int]:
    """Labels of one cycle, the first of them at its end too; each of `left` has a parent in `left`."""
    label = int(np.flatnonzero(left)[0])
    at: dict[int, int] = {}
    way: list[int] = []
    while label not in at:
        at[label] = len(way)
        way.append(label)
        above = parents.indices[parents.indptr[label] : parents.indptr[label + 1]]
        label = int(above[left[above]][0])
    return [*way[at[label] :], label]


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
        The place of each label in the order, all distinct; by default that of the table.

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


class LabelRelations:
    """The relations of L labels, as columns of pairs need them.

    Parameters
    ----------
    parents, related : CSR (L, L) of ones, or None
        Row l holds the parents of label l, or the labels related to it.

    Examples
    --------
    >>> relations = LabelRelations(relation([1, 2], [0, 0], 3), None)
    >>> relations.depth, relations.specificity.round(2)
    (array([0, 1, 1]), array([0., 1., 1.], dtype=float32))
    """

    def __init__(self, parents: sp.csr_matrix | None, related: sp.csr_matrix | None) -> None:
        self.parents = parents
        self.related = related

    def of(self, kind: str) -> bool:
        """Whether labels can have relatives of a kind: "parent", "child", "sibling" or "related"."""
        matrix = self.related if kind == "related" else self.parents
        return matrix is not None and matrix.nnz > 0

    @cached_property
    def depth(self) -> np.ndarray:
        """int64 (L,): the steps up to a label without parents, see `depths`."""
        assert self.parents is not None
        return depths(self.parents)

    @cached_property
    def specificity(self) -> np.ndarray:
        """float32 (L,): 1 - log(1 + labels below) / log(L), in [0, 1]; 1 where none is below.

        The intrinsic information content of Seco, Veale & Hayes (2004), eq. 3.
        """
        assert self.parents is not None
        n = self.parents.shape[0]
        below = np.bincount(ancestors(self.parents).indices, minlength=n)
        return (1 - log(1.0 + below) / log(float(max(n, 2)))).astype(np.float32)
