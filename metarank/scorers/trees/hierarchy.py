"""`Hierarchy`: the label trees of an ensemble as flat arrays, learned or given by the user."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._util.parameters import check_choice, check_flag, check_integer, check_real
from metarank._util.threads import resolve_n_jobs
from metarank.persist.fields import Array, Declared, Known
from metarank.persist.spec import Saved, Spec
from metarank.scorers.names.label_vectors import (
    TILE,
    exact_label_vectors,
    given_label_vectors,
    principal_label_vectors,
)
from metarank.scorers.trees.parent_tree import Tree, check_acyclic, parents_of_mapping, tree_of_parents
from metarank.types.arrays import csr_parts
from metarank.types.checks import check_features, check_labels

Representation = Literal["principal", "exact"]

# Labels that 2-means looks at before its last assignment of all.
_SAMPLE = 1 << 12
_MAX_LABELS = np.iinfo(np.int32).max
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
    ValueError, TypeError
        If the arrays do not describe T trees over the same labels, or hold anything other than integers.

    Examples
    --------
    A root with two leaves, of labels 0, 1 and of 2, 3:

    >>> h = Hierarchy.from_nested([[0, 1], [2, 3]])
    >>> h
    Hierarchy of 1 tree over 4 labels, 3 nodes
    >>> h.child_start, h.child
    (array([0, 2, 4, 6]), array([ 1,  2, -1, -2, -3, -4], dtype=int32))
    >>> h.depth, h.parent
    (array([0, 1, 1], dtype=int32), array([-1,  0,  0], dtype=int32))
    >>> h.labels_under(2)
    array([2, 3], dtype=int32)
    >>> h.label_slot
    array([[2, 3, 4, 5]])
    """

    roots: np.ndarray
    child_start: np.ndarray
    child: np.ndarray
    n_labels: int

    saved: ClassVar[Spec] = Spec(
        Array("roots", np.int32, ("trees",)),
        Array("child_start", np.int64, (None,)),
        Array("child", np.int32, ("slots",)),
        Declared("n_labels", size="L"),
        check=_check_places,
    )

    def __post_init__(self) -> None:
        for name, dtype in (("roots", np.int32), ("child_start", np.int64), ("child", np.int32)):
            object.__setattr__(self, name, _ids(name, getattr(self, name), dtype))
        object.__setattr__(self, "n_labels", _check_int("n_labels", self.n_labels, 0, _MAX_LABELS))
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
            raise ValueError("every node that is no root must be the child of exactly one slot")
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
    def parent_slot(self) -> np.ndarray:
        """int64 (N,): the slot that leads to each node, -1 for a root."""
        out = np.full(self.n_nodes, -1, np.int64)
        slots = np.flatnonzero(self.child >= 0)
        out[self.child[slots]] = slots
        return out

    @cached_property
    def parent(self) -> np.ndarray:
        """int32 (N,): the parent of each node, -1 for a root."""
        out = np.full(self.n_nodes, -1, np.int32)
        inner = self.parent_slot >= 0
        out[inner] = self.slot_node[self.parent_slot[inner]]
        return out

    @cached_property
    def depth(self) -> np.ndarray:
        """int32 (N,): edges from the root to each node."""
        out = np.zeros(self.n_nodes, np.int32)
        level = np.zeros(self.n_nodes, bool)
        level[self.roots] = True
        while level.any():
            children = self.child[level[self.slot_node] & (self.child >= 0)]
            out[children] = out[self.parent[children]] + 1
            level[:] = False
            level[children] = True
        return out

    @cached_property
    def labels(self) -> np.ndarray:
        """int32, ascending: the labels in the trees."""
        end = self.child_start[self.roots[1]] if self.n_trees > 1 else self.n_slots
        tree = self.child[:end]
        return np.sort(~tree[tree < 0])

    @cached_property
    def label_slot(self) -> np.ndarray:
        """int64 (T, L): the slot of each label in each tree, -1 for labels in none."""
        out = np.full((self.n_trees, self.n_labels), -1, np.int64)
        slots = np.flatnonzero(self.child < 0)
        tree = np.searchsorted(self.child_start[self.roots], slots, side="right") - 1
        # Empty trees share their first slot's number with the next; there are no slots to misplace then.
        out[tree, ~self.child[slots]] = slots
        return out

    def tree_nodes(self, tree: int) -> range:
        """Node ids of one tree, 0 to T - 1, the root first."""
        tree = _check_int("tree", tree, 0, self.n_trees - 1)
        end = self.n_nodes if tree == self.n_trees - 1 else int(self.roots[tree + 1])
        return range(int(self.roots[tree]), end)

    def trees(self, first: int, count: int) -> Hierarchy:
        """Some consecutive trees, with nodes numbered from 0.

        Raises
        ------
        ValueError, TypeError
            If they are not within the trees 0 to T - 1, or none.

        Examples
        --------
        >>> learn_hierarchy(np.eye(4), np.eye(4), n_trees=3, max_leaf=2).trees(1, 2)
        Hierarchy of 2 trees over 4 labels, 6 nodes
        """
        first = _check_int("first", first, 0, self.n_trees - 1)
        count = _check_int("count", count, 1, self.n_trees - first)
        begin, end = self.tree_nodes(first).start, self.tree_nodes(first + count - 1).stop
        slots = slice(int(self.child_start[begin]), int(self.child_start[end]))
        child = self.child[slots]
        return Hierarchy(
            self.roots[first : first + count] - begin,
            self.child_start[begin : end + 1] - slots.start,
            np.where(child >= 0, child - begin, child),
            self.n_labels,
        )

    def labels_under(self, node: int) -> np.ndarray:
        """int32, ascending: the labels below a node, 0 to N - 1."""
        found, nodes = [np.empty(0, np.int32)], [_check_int("node", node, 0, self.n_nodes - 1)]
        while nodes:
            n = nodes.pop()
            children = self.child[self.child_start[n] : self.child_start[n + 1]]
            found.append(~children[children < 0])
            nodes += children[children >= 0].tolist()
        return np.sort(np.concatenate(found))

    def nested(self, tree: int = 0) -> list[Any]:
        """One tree as nested lists of label ids."""
        lists: dict[int, list[Any]] = {}
        for node in reversed(self.tree_nodes(tree)):
            children = self.child[self.child_start[node] : self.child_start[node + 1]].tolist()
            lists[node] = [lists[c] if c >= 0 else ~c for c in children]
        return lists[int(self.roots[tree])]

    def restricted_to(self, labels: Any) -> Hierarchy:
        """The trees restricted to some labels, without nodes that are left with fewer than two children.

        Parameters
        ----------
        labels : int array of ids, all of them in the trees

        Raises
        ------
        ValueError, TypeError
            If a label is in no tree, or `labels` is no vector of integers.

        Examples
        --------
        >>> Hierarchy.from_nested([[0, 1], [2, 3], 4]).restricted_to([0, 2, 3]).nested()
        [0, [2, 3]]
        """
        ids = _ids("labels", labels, np.int64)
        outside = ids[(ids < 0) | (ids >= self.n_labels)]
        if len(outside):
            raise ValueError(f"labels must lie in [0, {self.n_labels}), got {outside[0]}")
        wanted = np.zeros(self.n_labels, bool)
        wanted[ids] = True
        unknown = wanted.copy()
        unknown[self.labels] = False
        if unknown.any():
            raise ValueError(f"label {int(np.flatnonzero(unknown)[0])} is in no tree of the hierarchy")
        trees: list[Tree] = []
        for slots, root in zip(self.label_slot, self.roots):
            nodes = self.tree_nodes(len(trees))
            label_parent = np.where(slots >= 0, self.slot_node[slots] - root, -1) if self.n_slots else slots
            parent = np.concatenate([label_parent, self.parent[nodes.start : nodes.stop] - root])
            inner = parent >= 0
            parent[inner] += self.n_labels
            trees.append(tree_of_parents(np.maximum(parent, -1), wanted))
        return _joined(trees, self.n_labels)

    @classmethod
    def from_parents(
        cls,
        parent: Any,
        *,
        n_labels: int | None = None,
        label_names: Sequence[Hashable] | None = None,
    ) -> Hierarchy:
        """One tree from the parent of each label and of each inner node.

        A label with children becomes a sibling of them, in a node of its own. Inner nodes without a label
        below, and those with a single child, are removed. The children of a node are its labels, ascending,
        then its inner nodes. If several nodes have no parent, a common root is added.

        Parameters
        ----------
        parent : int array (M,), or mapping of child to parent
            Array: ids 0 to L - 1 are the labels, larger ids are inner nodes, and -1 means no parent. Mapping:
            labels are the entries of `label_names` (without it, the ids 0 to L - 1); all other keys and
            values are inner nodes; None, -1 or a missing entry means no parent.
        n_labels : int or None
            Size L of the label set; of a mapping with names their number, of an array by default all
            M ids that are no parents.
        label_names : sequence or None
            The keys of the labels in a mapping, by id.

        Raises
        ------
        ValueError, TypeError
            If there is a cycle, a label is missing, or an id is not an integer in [-1, M).

        Examples
        --------
        >>> Hierarchy.from_parents([4, 4, 5, 5, -1, -1], n_labels=4).nested()
        [[0, 1], [2, 3]]
        >>> birds = {"eagle": "bird", "tit": "bird", "great tit": "tit", "bird": None, "oak": None}
        >>> Hierarchy.from_parents(birds, label_names=["eagle", "tit", "great tit", "oak"]).nested()
        [3, [0, [1, 2]]]
        """
        if n_labels is not None:
            n_labels = _check_int("n_labels", n_labels, 0, _MAX_LABELS)
        if isinstance(parent, Mapping):
            array, n_labels = parents_of_mapping(parent, n_labels, label_names)
        elif label_names is not None:
            raise ValueError("label_names goes with a mapping of names, not with an array of parents")
        else:
            array = _ids("parent", parent, np.int64)
            if np.any((array < -1) | (array >= len(array))):
                i = int(np.flatnonzero((array < -1) | (array >= len(array)))[0])
                raise ValueError(f"parent must lie in [-1, {len(array)}), got {array[i]} at {i}")
            if n_labels is None:
                n_labels = int(array[array >= 0].min(initial=len(array)))
            if n_labels > len(array):
                raise ValueError(f"parent must place all {n_labels} labels, got {len(array)} entries")
            check_acyclic(array, range(len(array)))
        return _joined([tree_of_parents(array, np.ones(n_labels, bool))], n_labels)

    @classmethod
    def from_nested(cls, nested: Any, *, n_labels: int | None = None) -> Hierarchy:
        """One tree from nested lists of label ids, each once.

        Nodes without a label or with one child are removed, as by `from_parents`.

        Parameters
        ----------
        nested : list of label ids and such lists
        n_labels : int or None
            Size L of the label set. If given, labels may be missing from the lists: they are never proposed
            and must not have a training point. By default the lists must hold all of 0 to L - 1.

        Raises
        ------
        ValueError, TypeError
            If a label is duplicated, missing or out of range, or an entry is neither an id nor a list.

        Examples
        --------
        >>> Hierarchy.from_nested([[1, 0], [[3], []], 2]).nested()
        [2, 3, [0, 1]]
        """
        if n_labels is not None:
            n_labels = _check_int("n_labels", n_labels, 0, _MAX_LABELS)
        if not _is_list(nested):
            raise TypeError(f"nested must be a list of label ids and lists, got {nested!r:.80}")
        parent_of_label: dict[int, int] = {}
        parent_of_node = [-1]
        waiting = [(0, nested)]
        for node, children in waiting:
            for c in children:
                if isinstance(c, Integral) and not isinstance(c, bool):
                    if int(c) in parent_of_label:
                        raise ValueError(f"label {int(c)} is in the hierarchy twice")
                    parent_of_label[int(c)] = node
                elif _is_list(c):
                    waiting.append((len(parent_of_node), c))
                    parent_of_node.append(node)
                else:
                    raise TypeError(f"nested must hold label ids and lists, got {c!r}")
        size = max(parent_of_label, default=-1) + 1 if n_labels is None else n_labels
        for label in parent_of_label:
            if not 0 <= label < size:
                raise ValueError(f"labels must lie in [0, {size}), got {label}")
        placed = np.zeros(size, bool)
        placed[list(parent_of_label)] = True
        if n_labels is None and not placed.all():
            missing = int(np.flatnonzero(~placed)[0])
            raise ValueError(f"label {missing} is missing from the hierarchy; n_labels={size} allows that")
        parent = np.array([parent_of_label.get(i, -1) for i in range(size)] + parent_of_node, np.int64)
        parent[parent >= 0] += size
        return _joined([tree_of_parents(parent, placed)], size)


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
    X: Any,
    Y: Any,
    *,
    n_trees: int = 3,
    first_tree: int = 0,
    branching: int = 16,
    max_leaf: int = 100,
    balanced: bool = True,
    representation: Representation = "principal",
    n_dims: int = 64,
    label_vectors: Any = None,
    max_iterations: int = 10,
    tolerance: float = 1e-4,
    seed: int = 0,
    n_jobs: int | None = 1,
) -> Hierarchy:
    """Label trees by hierarchical clustering of labels with similar training points.

    A label is the unit vector along ``v_l = sum_i y_il x_i`` (XReg, eq. 3). A node of more than `max_leaf`
    labels is cut into ``min(branching, ceil(labels / max_leaf))`` groups of equal size, give or take one,
    by rounds of balanced spherical 2-means; a node of at most `max_leaf` labels has them as its children.
    Labels without a training point are in no tree. Tree t depends on (seed, t) and the data only.

    With ``balanced=False`` the groups are those of spherical k-means, of any size (Khandagale et al. 2020,
    "Bonsai"). Where that leaves all labels in one group, and from the ninth level on, they are balanced
    all the same.

    Parameters
    ----------
    X : features (n, d)
    Y : relevances (n, L), values >= 0
    n_trees : int
    first_tree : int
        Number of the first tree, if only some trees of an ensemble are learned. All balanced trees have the
        same number of slots.
    branching : int
        Largest number of children of an inner node, 2 to 256.
    max_leaf : int
        Most labels of a leaf, 1 to 256.
    balanced : bool
        Whether the groups of a node are of equal size.
    representation : "principal" or "exact"
        Label vectors within a subspace of `n_dims` dimensions that holds most of them, found anew for each
        tree, so that the trees differ; or the sparse vectors themselves, many times slower.
    n_dims : int
        A multiple of 32; halved while the vectors of all labels or features take more than 512 MiB. No more
        features than that are kept as they are.
    label_vectors : array or CSR (L, anything) or None
        Vectors to cluster instead of those of eq. 3, such as of the labels' texts; X is then ignored.
    max_iterations, tolerance : int, float
        2-means stops after that many rounds, or when the sum of cosines grows by less than this share.
    seed : int >= 0
    n_jobs : int or None
        Threads. The trees do not depend on it.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of its range, or the shapes do not agree.

    Examples
    --------
    >>> X = [[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    >>> Y = np.array([[1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0]])
    >>> sorted(learn_hierarchy(X, Y, n_trees=1, max_leaf=2).nested())
    [[0, 1], [2, 3]]
    """
    check_integer("n_trees", n_trees, 1, 10_000)
    check_integer("first_tree", first_tree, 0, 10_000)
    check_integer("branching", branching, 2, 256)
    check_integer("max_leaf", max_leaf, 1, 256)
    check_integer("n_dims", n_dims, TILE, 1 << 12)
    check_integer("max_iterations", max_iterations, 1, 1_000_000)
    check_integer("seed", seed, 0, 2**64 - 1)
    if n_dims % TILE:
        raise ValueError(f"n_dims must be a multiple of {TILE}, got {n_dims}")
    check_real("tolerance", tolerance, 0, np.nextafter(1, 0), "a number in [0, 1)")
    check_flag("balanced", balanced)
    check_choice("representation", representation, ("principal", "exact"))
    threads = resolve_n_jobs(n_jobs)
    Y = check_labels(Y, ids="positions")[0]
    n_labels = Y.shape[1]
    seen = np.flatnonzero(np.bincount(Y.indices, minlength=n_labels)).astype(np.int32)
    fixed = None  # label vectors that all trees share
    if label_vectors is not None:
        fixed = given_label_vectors(label_vectors, n_labels)
    else:
        X = check_features(X)
        if X.shape[0] != Y.shape[0]:
            raise ValueError(f"X and Y must have the same number of rows, got {X.shape[0]} and {Y.shape[0]}")
        X = sp.csr_matrix(X)
        if representation == "exact":
            fixed = exact_label_vectors(X, Y)
    trees = []
    for t in range(first_tree, first_tree + n_trees):
        basis_seed, tree_seed = np.random.SeedSequence([seed, t]).generate_state(2, np.uint64).tolist()
        V = fixed
        if V is None:
            V = principal_label_vectors(X, Y, n_dims=n_dims, seed=basis_seed, n_jobs=threads)
        how = _core.Clustering(
            branching=branching,
            max_leaf=max_leaf,
            max_iterations=max_iterations,
            tolerance=float(tolerance),
            sample=_SAMPLE,
            seed=tree_seed,
            balanced=bool(balanced),
        )
        if sp.issparse(V):
            trees.append(_core.partition_labels_sparse((*csr_parts(V), V.shape[1]), seen, how, threads))
        else:
            trees.append(_core.partition_labels_dense(V, seen, how, threads))
    return _joined(trees, n_labels)


def _check_int(name: str, value: Any, low: int, high: int) -> int:
    check_integer(name, value, low, high)
    return int(value)


def _ids(name: str, values: Any, dtype: type[np.signedinteger[Any]]) -> np.ndarray:
    """A vector of integers as `dtype`; floats and bools are refused, not cut."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of unequal length
        raise TypeError(f"{name} must be a vector of integers, got {values!r:.80}") from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be a vector of integers, got {array.dtype} of shape {array.shape}")
    if array.size and not np.iinfo(dtype).min <= array.min() <= array.max() <= np.iinfo(dtype).max:
        raise ValueError(f"{name} must hold {np.dtype(dtype).name}, got {array.min()} to {array.max()}")
    return np.ascontiguousarray(array, dtype)


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
