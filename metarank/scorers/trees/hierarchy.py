"""`Hierarchy`: the label trees of an ensemble as flat arrays, learned or given."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._util.progress import report
from metarank._util.threads import single_threaded_blas
from metarank.persist.fields import Array, Declared, Known
from metarank.persist.spec import Saved, Spec
from metarank.scorers.trees.parent_tree import Tree, flat, nested_of_mapping, pruned
from metarank.types.arrays import csr_parts, unit_rows
from metarank.types.checks import check_features
from metarank.types.view import Features

# Dimensions of the label vectors, halved while those of all labels or features take more than 512 MiB.
_DIMS = 64
# 2-means stops after so many rounds, or when the sum of cosines grows by less than this share.
_MOST_ROUNDS, _TOLERANCE = 10, 1e-4
# Labels that 2-means looks at before its last assignment of all.
_SAMPLE = 1 << 12
# Columns the kernels handle at a time: dimensions are multiples of it.
TILE = 32
# Bytes the dense vectors of all labels, or of all features, may take; more of them get shorter ones.
_MAX_BYTES = 1 << 29
# Subspace iterations: after the first, the subspace of random vectors, one more comes near the best.
_PASSES = 2
_TINY = np.finfo(np.float32).tiny
# Trees times labels in a saved hierarchy whose trees are all but empty.
_MOST_PLACES = 1 << 26


def _check_places(known: Known) -> None:
    """ValueError where trees of few nodes would know the slots of very many labels, each in each of them."""
    if known["trees"] * known["L"] > max(_MOST_PLACES, 16 * known["slots"]):
        raise ValueError(f"{known['trees']} trees over {known['L']} labels must hold some of them")


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy(Saved):
    """Label trees: inner nodes, their children, and labels as the leaves.

    Node n owns the *slots* ``child_start[n]:child_start[n + 1]``; each slot leads to a child node or to a
    label, and carries one classifier of a label tree. Every label is in one slot of each tree, or in no tree
    (a label without a training point). Two hierarchies are equal if their arrays are.

    Parameters
    ----------
    roots : int32 array (T,)
        Node id of the root of each tree. The nodes of a tree are consecutive.
    child_start : int64 array (N + 1,)
    child : int32 array (S,)
        Child of each slot: if >= 0 a node id, larger than that of its parent; if negative, the label
        ``~child``.
    n_labels : int
        Size L of the label set.

    Raises
    ------
    ValueError
        If the arrays do not describe T trees over the same labels.

    Examples
    --------
    A root with two leaves, of labels 0, 1 and of 2, 3:

    >>> h = Hierarchy.from_parents({0: "a", 1: "a", 2: "b", 3: "b"}, n_labels=4)
    >>> h
    Hierarchy of 1 tree over 4 labels, 3 nodes
    >>> h.child_start, h.child
    (array([0, 2, 4, 6]), array([ 1,  2, -1, -2, -3, -4], dtype=int32))
    >>> h.parent
    array([-1,  0,  0], dtype=int32)
    """

    roots: Annotated[np.ndarray, Array("", np.int32, ("trees",))]
    child_start: Annotated[np.ndarray, Array("", np.int64, (None,))]
    child: Annotated[np.ndarray, Array("", np.int32, ("slots",))]
    n_labels: Annotated[int, Declared("", size="L")]

    saved: ClassVar[Spec] = Spec(check=_check_places)

    def __post_init__(self) -> None:
        for name, dtype in (("roots", np.int32), ("child_start", np.int64), ("child", np.int32)):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype))
        self._check()

    def __repr__(self) -> str:
        trees = "1 tree" if self.n_trees == 1 else f"{self.n_trees} trees"
        return f"Hierarchy of {trees} over {len(self.labels)} labels, {self.n_nodes} nodes"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        pairs = zip(self.get_state().values(), other.get_state().values())
        return all(np.array_equal(ours, theirs) for ours, theirs in pairs)

    def _check(self) -> None:
        roots, start, child = self.roots, self.child_start, self.child
        if len(start) == 0 or start[0] != 0 or start[-1] != len(child) or np.any(np.diff(start) < 0):
            raise ValueError("child_start must ascend from 0 to the number of slots")
        if len(roots) == 0 or roots[0] != 0 or np.any(np.diff(roots) <= 0) or roots[-1] >= self.n_nodes:
            raise ValueError("roots must ascend from node 0 within the nodes")
        nodes = child[child >= 0]
        is_child = np.ones(self.n_nodes, bool)
        is_child[roots] = False
        if not np.array_equal(np.sort(nodes), np.flatnonzero(is_child)):
            raise ValueError("every node that is not a root must be the child of exactly one slot")
        if np.any(self.parent[is_child] >= np.flatnonzero(is_child)):
            raise ValueError("a child node must have a larger id than its parent")
        tree_of_node = np.searchsorted(roots, np.arange(self.n_nodes), side="right")
        if np.any(tree_of_node[self.parent[is_child]] != tree_of_node[is_child]):
            raise ValueError("a child node must be in its parent's tree")
        if self.n_labels <= ~child.min(initial=-1) and child.min(initial=0) < 0:
            raise ValueError(f"labels must lie in [0, {self.n_labels}), got {~child.min()}")
        empty = np.diff(start) == 0
        empty[roots] = False
        if empty.any():
            raise ValueError(f"every node must have a child, node {int(np.flatnonzero(empty)[0])} has none")
        first, *others = (np.sort(~c[c < 0]) for c in np.split(child, start[roots[1:]]))
        if np.any(np.diff(first) == 0):
            raise ValueError("a label must be in one slot of a tree")
        if not all(np.array_equal(first, labels) for labels in others):
            raise ValueError("every tree must hold the same labels, each once")

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    @property
    def n_nodes(self) -> int:
        return len(self.child_start) - 1

    @property
    def n_slots(self) -> int:
        return len(self.child)

    @cached_property
    def slot_node(self) -> np.ndarray:
        """int32 (S,): the node that owns each slot."""
        return np.repeat(np.arange(self.n_nodes, dtype=np.int32), np.diff(self.child_start))

    @cached_property
    def parent(self) -> np.ndarray:
        """int32 (N,): the parent of each node, -1 for a root."""
        out = np.full(self.n_nodes, -1, np.int32)
        slots = np.flatnonzero(self.child >= 0)
        out[self.child[slots]] = self.slot_node[slots]
        return out

    @cached_property
    def labels(self) -> np.ndarray:
        """int32, ascending: the labels in the trees."""
        end = self.child_start[self.roots[1]] if self.n_trees > 1 else self.n_slots
        tree = self.child[:end]
        return np.sort(~tree[tree < 0])

    def nested(self, tree: int = 0) -> list[Any]:
        """One tree as nested lists of label ids."""
        lists: dict[int, list[Any]] = {}
        end = self.n_nodes if tree == self.n_trees - 1 else int(self.roots[tree + 1])
        for node in reversed(range(int(self.roots[tree]), end)):
            children = self.child[self.child_start[node] : self.child_start[node + 1]].tolist()
            lists[node] = [lists[c] if c >= 0 else ~c for c in children]
        return lists[int(self.roots[tree])]

    def restricted_to(self, labels: np.ndarray) -> Hierarchy:
        """The trees restricted to some labels, without nodes that are left with fewer than two children.

        Raises
        ------
        ValueError
            If a label is in no tree.

        Examples
        --------
        >>> h = Hierarchy.from_parents({0: "a", 1: "a", 2: "b", 3: "b", 4: None}, n_labels=5)
        >>> h.restricted_to([0, 2, 3]).nested()
        [0, [2, 3]]
        """
        wanted = np.zeros(self.n_labels, bool)
        wanted[labels] = True
        unknown = wanted.copy()
        unknown[self.labels] = False
        if unknown.any():
            raise ValueError(f"label {int(np.flatnonzero(unknown)[0])} is in no tree of the hierarchy")
        trees = [flat(pruned(self.nested(tree), wanted)) for tree in range(self.n_trees)]
        return _joined(trees, self.n_labels)

    @classmethod
    def from_parents(
        cls,
        parent: Mapping[Any, Any],
        *,
        n_labels: int | None = None,
        label_names: Sequence[Hashable] | None = None,
    ) -> Hierarchy:
        """One tree from the parent of each label and of each inner node.

        A label with children becomes their sibling, in a separate node. Inner nodes without a label
        below, and those with a single child, are removed. The children of a node are its labels, ascending,
        then its inner nodes, in the order of the mapping. If several nodes have no parent, a common root is
        added.

        Parameters
        ----------
        parent : mapping of child to parent
            Labels are the entries of `label_names` (without it, the ids 0 to L - 1); all other keys and
            values are inner nodes; None, -1 or a missing entry means no parent.
        n_labels : int or None
            Size L of the label set, without `label_names`.
        label_names : sequence or None
            The keys of the labels, by id.

        Raises
        ------
        ValueError, TypeError
            If there is a cycle, or a label is missing.

        Examples
        --------
        >>> birds = {"eagle": "bird", "tit": "bird", "great tit": "tit", "bird": None, "oak": None}
        >>> Hierarchy.from_parents(birds, label_names=["eagle", "tit", "great tit", "oak"]).nested()
        [3, [0, [1, 2]]]
        """
        nested, n_labels = nested_of_mapping(parent, n_labels, label_names)
        return _joined([flat(pruned(nested, np.ones(n_labels, bool)))], n_labels)


def _joined(trees: Sequence[Tree], n_labels: int) -> Hierarchy:
    """One ensemble of trees whose nodes are numbered each from 0."""
    roots, starts, children, n_nodes, n_slots = [], [np.zeros(1, np.int64)], [], 0, 0
    for start, child in trees:
        roots.append(n_nodes)
        starts.append(start[1:] + n_slots)
        children.append(np.where(child >= 0, child + n_nodes, child))
        n_nodes += len(start) - 1
        n_slots += len(child)
    return Hierarchy(np.array(roots), np.concatenate(starts), np.concatenate(children), n_labels)


def learn_hierarchy(
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    *,
    n_trees: int = 3,
    branching: int = 16,
    max_leaf: int = 100,
    balanced: bool = True,
    label_vectors: Any = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> Hierarchy:
    """Label trees by hierarchical clustering of labels with similar training points.

    A label is the unit vector along ``v_l = sum_i y_il x_i`` (XReg, eq. 3), within a subspace of 64
    dimensions that holds most of it, computed for each tree, so that trees differ. A node of more than
    `max_leaf` labels is split into groups of equal size, up to one label, by rounds of balanced spherical
    2-means: into `branching` of them or, near the root, the fewest that need no more levels. A node of at
    most `max_leaf` labels has them as its children. Labels without a training point are in no tree. Tree t
    depends on (seed, t) and the data only.

    With ``balanced=False`` the groups are those of spherical k-means, of any size (Khandagale et al. 2020,
    "Bonsai"). If that leaves all labels in one group, and from the ninth level on, groups are
    balanced.

    Parameters
    ----------
    X : features (n, d), canonical
    Y : relevances (n, L), canonical, values > 0
    n_trees : int
    branching : int
        Largest number of children of an inner node, 2 to 256.
    max_leaf : int
        Most labels of a leaf, 1 to 256.
    balanced : bool
        Whether the groups of a node are of equal size.
    label_vectors : array or CSR (L, anything) or None
        Vectors to cluster instead of those of eq. 3, such as of the labels' texts; X is then ignored.
    seed : int >= 0
    n_jobs : int
        Threads. The trees do not depend on it.

    Raises
    ------
    ValueError
        If `label_vectors` are not one row per label.

    Examples
    --------
    >>> X = np.float32([[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    >>> Y = np.float32([[1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0]])
    >>> X, Y = sp.csr_matrix(X), sp.csr_matrix(Y)
    >>> sorted(learn_hierarchy(X, Y, n_trees=1, max_leaf=2).nested())
    [[0, 1], [2, 3]]
    """
    n_labels = Y.shape[1]
    seen = np.flatnonzero(np.bincount(Y.indices, minlength=n_labels)).astype(np.int32)
    shared = None if label_vectors is None else given_label_vectors(label_vectors, n_labels)
    trees = []
    for t in range(n_trees):
        report(f"clustering labels for tree {t + 1} of {n_trees}", t / n_trees / 2)
        basis_seed, tree_seed = np.random.SeedSequence([seed, t]).generate_state(2, np.uint64).tolist()
        V = shared
        if V is None:
            V = principal_label_vectors(X, Y, n_dims=_DIMS, seed=basis_seed, n_jobs=n_jobs)
        how = _core.Clustering(
            branching=branching,
            max_leaf=max_leaf,
            max_iterations=_MOST_ROUNDS,
            tolerance=_TOLERANCE,
            sample=_SAMPLE,
            seed=tree_seed,
            balanced=bool(balanced),
        )
        if sp.issparse(V):
            trees.append(_core.partition_labels_sparse((*csr_parts(V), V.shape[1]), seen, how, n_jobs))
        else:
            trees.append(_core.partition_labels_dense(V, seen, how, n_jobs))
    return _joined(trees, n_labels)


def principal_label_vectors(
    X: sp.csr_matrix, Y: sp.csr_matrix, *, n_dims: int, seed: int, n_jobs: int
) -> np.ndarray:
    """Eq. 3 within the principal subspace of the label vectors: float32 (L, n_dims), rows of unit length.

    Found by subspace iteration, in which v_l has the weight 1 / sqrt(sum_i y_il^2), about that of a unit
    vector. No more than `n_dims` features are kept as they are.
    """
    d, n_labels = X.shape[1], Y.shape[1]
    while max(d, n_labels) * n_dims * 4 > _MAX_BYTES and n_dims % (2 * TILE) == 0:
        n_dims //= 2
    # The largest values become 1, so that no sum overflows; directions stay.
    rows, relevance = (_scaled(A) for A in (X, Y))

    def vectors_in(basis: np.ndarray) -> np.ndarray:
        return unit_rows(_core.transposed_product(relevance, rows, basis, n_jobs))

    if d <= n_dims:
        return vectors_in(np.eye(d, -(-d // TILE) * TILE, dtype=np.float32))
    sq = np.bincount(
        Y.indices, (Y.data / Y.data.max(initial=_TINY)).astype(np.float64) ** 2, minlength=n_labels
    )
    scale = (1 / np.sqrt(np.where(sq > 0, sq, 1))).astype(np.float32)[:, None]
    V = np.random.default_rng(seed).standard_normal((n_labels, n_dims), np.float32)
    for _ in range(_PASSES):
        V *= scale
        V = vectors_in(_orthonormal(_core.transposed_product(rows, relevance, V, n_jobs)))
    return V


def _scaled(A: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """The arrays of A over its largest value, and its number of columns."""
    indptr, indices, data = csr_parts(A)
    largest = np.abs(data).max(initial=0) or np.float32(1)
    return indptr, indices, data * (np.float32(1) / largest), A.shape[1]


def _orthonormal(B: np.ndarray) -> np.ndarray:
    """Columns that span those of float32 B (d, k); zero ones where it has fewer dimensions."""
    with single_threaded_blas():
        variance, rotation = np.linalg.eigh((B.T @ B).astype(np.float64))
        kept = variance > 1e-5 * variance[-1]  # the others are lost in rounding
        return B @ np.where(kept, rotation / np.sqrt(np.where(kept, variance, 1)), 0).astype(np.float32)


def given_label_vectors(vectors: Any, n_labels: int) -> Features:
    """The given vectors, checked, one row per label, as rows of unit length or zero."""
    V = check_features(vectors, name="label_vectors")
    if V.shape[0] != n_labels:
        raise ValueError(f"label_vectors must have {n_labels} rows, one per label, got {V.shape[0]}")
    return unit_rows(V)
