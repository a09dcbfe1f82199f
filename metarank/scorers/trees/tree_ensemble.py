"""`TreeEnsemble`: a scorer of trees that know nothing of each other: a fit divides into blocks of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import clone

from metarank import _core
from metarank._util.parameters import check_integer, require_seed
from metarank._util.progress import is_heard, report
from metarank._util.threads import resolve_n_jobs
from metarank.scorers.base import LabelScorer
from metarank.scorers.neighbors.training_rows import check_lists
from metarank.scorers.shortlister import Shortlister
from metarank.types.arrays import joined_ids
from metarank.types.candidates import Candidates
from metarank.types.view import View, fold_of_rows

E = TypeVar("E", bound="TreeEnsemble")
T = TypeVar("T", bound="ShortlistingTrees")

# What makes an ensemble smaller.
FEWER_TREES = "take fewer trees (n_trees), or another shortlister"


@dataclass(frozen=True, eq=False)
class TreeBlock:
    """Some consecutive trees of an ensemble, as `TreeEnsemble.fit_trees` grows them.

    Parameters
    ----------
    first, count : int
        The trees ``first .. first + count`` of the ensemble.
    n_features, n_labels : int
        Of the View that they were grown on.
    arrays : dict of str to array or CSR
        The trees, in the form of their class; nodes, leaves and slots are numbered from 0.
    """

    first: int
    count: int
    n_features: int
    n_labels: int
    arrays: dict[str, Any]


class TreeEnsemble(LabelScorer):
    """A `LabelScorer` that grows each of its trees from the View, its parameters and the tree's number only.

    So it does not matter where a tree is grown, and beside which others: `fit` is, to the byte,

        scorer.joined([scorer.fit_trees(view, first, count) for first, count in scorer.blocks()],
                      scorer.fit_rest(view))

    for any blocks that hold each tree once. A subclass implements `_grow`, `_take` and, where it learns
    something that needs no tree of its own, `rest`, `_learn_rest` and `_take_rest`. One with a `fit` or
    `_learn` of its own and no `_grow` is fitted as a whole.

    Attributes
    ----------
    trees_per_block : int
        Trees that are worth a task of their own.
    rest : tuple of str
        Names of what `fit_rest` learns.
    """

    trees_per_block: ClassVar[int] = 1
    n_trees: int
    # Arrays that do not depend on the tree, the same in all blocks of a fit.
    _common: ClassVar[tuple[str, ...]] = ()
    _divides: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        if "_grow" in own:
            cls._divides = True
        elif "fit" in own or "_learn" in own:  # which may do more than grow trees
            cls._divides = False

    @property
    def tree_count(self) -> int:
        """Trees that a fit grows."""
        return int(self.n_trees)

    def blocks(self) -> list[tuple[int, int]]:
        """(first, count) of the blocks of trees that a fit is best divided into; one if it does not divide.

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range.

        Examples
        --------
        >>> from metarank.shortlist import FastXML
        >>> FastXML(n_trees=12).blocks()
        [(0, 5), (5, 5), (10, 2)]
        """
        self._check_params()
        n, size = self.tree_count, self.trees_per_block if self._divides else self.tree_count
        return [(first, min(size, n - first)) for first in range(0, n, size)]

    def fit_trees(self, view: View, first: int, count: int, *, n_jobs: int | None = 1) -> TreeBlock:
        """The trees ``first .. first + count`` of a fit on the View; the scorer stays as it is.

        Parameters
        ----------
        view : View
        first, count : int
            Within the trees that a fit grows: 0 <= first, 1 <= count, first + count <= tree_count.
        n_jobs : int or None
            Threads; None uses all cores. The trees are the same for any number.

        Raises
        ------
        ValueError, TypeError
            If there are no such trees, or a parameter is out of range.

        Examples
        --------
        >>> from metarank.shortlist import FastXML
        >>> from metarank.types.view import TrainingSet
        >>> import scipy.sparse as sp
        >>> X = sp.csr_matrix(np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2, 3]])
        >>> view = TrainingSet(X, X, np.zeros(6)).view()
        >>> forest = FastXML(n_trees=3, max_leaf=2, C=10.0)
        >>> parts = [forest.fit_trees(view, 2, 1), forest.fit_trees(view, 0, 2)]
        >>> whole = forest.fit(view)
        >>> all((whole.forest_[name] == a).all() for name, a in forest.joined(parts).forest_.items())
        True
        """
        self._check_params()
        if not isinstance(view, View):
            raise TypeError(f"view must be a View, got {type(view).__name__}")
        require_seed(getattr(self, "random_state", 0), "for a fit in parts")
        if self.is_tunable:
            raise ValueError("tune must be 0 for a fit in parts: `tuned` chooses first, for all of them")
        check_integer("first", first, 0, self.tree_count - 1)
        check_integer("count", count, 1, self.tree_count - int(first))
        return self._block(view, None, int(first), int(count), resolve_n_jobs(n_jobs))

    def fit_rest(self, view: View, *, n_jobs: int | None = 1) -> dict[str, Any]:
        """What a fit on the View learns without its trees, by the names of `rest`."""
        self._check_params()
        if not isinstance(view, View):
            raise TypeError(f"view must be a View, got {type(view).__name__}")
        return self._learn_rest(view, None, resolve_n_jobs(n_jobs))

    def joined(self: E, blocks: Sequence[TreeBlock], rest: Mapping[str, Any] | None = None) -> E:
        """The fitted scorer of all trees; this one stays as it is.

        Parameters
        ----------
        blocks : list of TreeBlock
            Of `fit_trees` of a scorer with the same parameters on one View; each tree once, in any order.
        rest : dict or None
            Of `fit_rest` on that View; None where the class learns nothing but trees.

        Raises
        ------
        ValueError
            If a tree is missing or there twice, blocks are not of one View, or `rest` is not of the class.
        """
        self._check_params()
        ordered = sorted(blocks, key=lambda block: block.first)
        ends = [0, *(block.first + block.count for block in ordered)]
        if [block.first for block in ordered] != ends[:-1] or ends[-1] != self.tree_count:
            found = ", ".join(f"{b.first} to {b.first + b.count - 1}" for b in ordered) or "none"
            raise ValueError(f"blocks must hold each of {self.tree_count} trees once, got trees {found}")
        for block in ordered[1:]:
            differing = _difference(ordered[0], block, self._common)
            if differing is not None:
                raise ValueError(
                    f"blocks must be of one View, those from trees 0 and {block.first} on differ in "
                    f"{differing}"
                )
        given = {} if rest is None else dict(rest)
        if set(given) != set(self.rest):
            raise ValueError(f"rest must hold {sorted(self.rest)}, as fit_rest gives it, got {sorted(given)}")
        out = type(self)(**self.get_params(deep=False))
        out._take(ordered)
        out._take_rest(given)
        return out

    def _learn(self, view: View, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        """A whole fit: one block of all trees, or several, of the same bytes, where progress is shown."""
        n = self.tree_count
        size = max(self.trees_per_block, n_jobs) if self._divides and is_heard() else n
        blocks = []
        for first in range(0, n, size):
            report(f"tree {first + 1} of {n}", first / n)
            blocks.append(self._block(view, sample_weight, first, min(size, n - first), n_jobs))
        self._take(blocks)
        self._take_rest(self._learn_rest(view, sample_weight, n_jobs))

    def _block(
        self, view: View, sample_weight: np.ndarray | None, first: int, count: int, n_jobs: int
    ) -> TreeBlock:
        arrays = self._grow(view, sample_weight, first, count, n_jobs)
        return TreeBlock(first, count, view.n_features, view.n_labels, arrays)

    def _grow(
        self, view: View, sample_weight: np.ndarray | None, first: int, count: int, n_jobs: int
    ) -> dict[str, Any]:
        """`TreeBlock.arrays` of some trees."""
        raise TypeError(f"{type(self).__name__} must implement _grow")

    def _take(self, blocks: list[TreeBlock]) -> None:
        """Become the scorer of these trees, all there are, in their order."""
        raise TypeError(f"{type(self).__name__} must implement _take")

    def _learn_rest(self, view: View, sample_weight: np.ndarray | None, n_jobs: int) -> dict[str, Any]:
        return {}

    def _take_rest(self, rest: dict[str, Any]) -> None:
        """Keep what `_learn_rest` gave."""


class ShortlistingTrees(TreeEnsemble, Shortlister):
    """A `TreeEnsemble` with the door of an estimator, over rows of unit length."""

    is_classifier = True
    # Names of the score columns start with it.
    column: ClassVar[str]
    # Parameters of the cheaper model that is fitted to make choices within `fit`.
    _cheaper: ClassVar[dict[str, Any]] = {}

    def _held_out(
        self: T, share: int, view: View, sample_weight: np.ndarray | None, n_jobs: int
    ) -> tuple[T, View, View] | None:
        """A cheaper model fitted without 1 / `share` of the rows, the View of its rows, and that of the
        others.

        Returns None if there are too few rows to hold any out.
        """
        if view.n_rows < 2 * share:
            return None
        inside = fold_of_rows(view.n_rows, share, self.random_state, groups=view.groups) == 0
        if not inside.any() or inside.all():
            return None
        others, held_out = view.part(np.flatnonzero(~inside)), view.part(np.flatnonzero(inside))
        weight = None if sample_weight is None else sample_weight[~inside]
        cheaper = clone(self).set_params(**self._cheaper)
        cheaper.n_trees = min(cheaper.n_trees, self.n_trees)
        return cheaper.fit(others, sample_weight=weight, n_jobs=n_jobs), others, held_out

    def _seed_on(self, view: View) -> int:
        """The seed of the trees grown on a View."""
        drawn = np.random.SeedSequence([view.seed, self.random_state]).generate_state(1, np.uint64)[0]
        return int(drawn >> 1)

    def _take(self, blocks: list[TreeBlock]) -> None:
        self.n_features_in_: int = blocks[0].n_features
        self.n_labels_: int = blocks[0].n_labels
        self.random_state_: int = int(self.random_state)

    def _unit_parts(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """CSR arrays of new rows, of unit length."""
        indptr, indices, data = self._row_parts(X)
        return indptr, indices, _core.unit_rows(indptr, data)

    def _pairs(
        self, X: Any, candidates: Candidates
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """`_unit_parts`, and the pairs of the candidates, which must be lists of the labels learned."""
        rows = self._unit_parts(X)
        check_lists(candidates, len(rows[0]) - 1, self.n_labels_)
        return *rows, candidates.indptr, candidates.labels


def _difference(a: TreeBlock, b: TreeBlock, common: Sequence[str]) -> str | None:
    """What two blocks of one fit cannot differ in, and do."""
    if (a.n_features, a.n_labels) != (b.n_features, b.n_labels):
        return "numbers of features or labels"
    return next((name for name in common if not np.array_equal(a.arrays[name], b.arrays[name])), None)


def stacked(blocks: Sequence[TreeBlock], name: str) -> np.ndarray:
    """One array of those of several blocks; of a single block its own."""
    arrays = [block.arrays[name] for block in blocks]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def stacked_starts(blocks: Sequence[TreeBlock], name: str) -> np.ndarray:
    """The same of arrays that say where lists begin, and where the last one ends.

    Examples
    --------
    >>> parts = [TreeBlock(i, 1, 1, 1, {"start": np.array([0, 2, 3])}) for i in range(2)]
    >>> stacked_starts(parts, "start")
    array([0, 2, 3, 5, 6])
    """
    arrays = [block.arrays[name] for block in blocks]
    if len(arrays) == 1:
        return arrays[0]
    before = np.cumsum([0, *(array[-1] for array in arrays[:-1])])
    return np.concatenate([arrays[0][:1], *(array[1:] + start for array, start in zip(arrays, before))])


def stacked_ids(
    blocks: Sequence[TreeBlock], name: str, n_nodes: list[int], n_leaves: list[int]
) -> np.ndarray:
    """The same of ids: nodes >= 0 and leaves ``~leaf`` < 0, of which each block has so many; int32."""
    ids = [np.asarray(block.arrays[name]) for block in blocks]
    return ids[0] if len(ids) == 1 else joined_ids(ids, n_nodes, n_leaves)
