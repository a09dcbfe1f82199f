"""`ShortlistingTrees`: the common base of the tree shortlisters."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import clone

from metarank import _core
from metarank.scorers.neighbors.training_rows import check_lists
from metarank.scorers.shortlister import Shortlister
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingView, fold_of_rows

T = TypeVar("T", bound="ShortlistingTrees")


class ShortlistingTrees(Shortlister):
    """A shortlister of trees over rows of unit length.

    Each tree depends on the view, the parameters and the number of the tree only. A subclass grows all trees
    in `_grow`, and learns in `_learn_rest` what needs fitted trees.
    """

    is_classifier = True
    # Names of the score columns start with it.
    column: ClassVar[str]
    n_trees: int
    # Parameters of the cheaper model that is fitted to make choices within `fit`.
    _cheaper: ClassVar[dict[str, Any]] = {}

    def _held_out(
        self: T, share: int, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int
    ) -> tuple[T, TrainingView, TrainingView] | None:
        """A cheaper model fitted without 1 / `share` of the rows, the view of its rows, and that of the
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

    def _seed_on(self, view: TrainingView) -> int:
        """The seed of the trees grown on a TrainingView."""
        drawn = np.random.SeedSequence([view.seed, self.random_state]).generate_state(1, np.uint64)[0]
        return int(drawn >> 1)

    def _learn(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        self.random_state_: int = int(self.random_state)
        self._grow(view, sample_weight, n_jobs)
        self._learn_rest(view, sample_weight, n_jobs)

    def _grow(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        raise TypeError(f"{type(self).__name__} must implement _grow")

    def _learn_rest(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        """Learn what is chosen once the trees are grown."""

    def _unit_parts(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """CSR arrays of new rows, of unit length."""
        indptr, indices, data = self._row_parts(X)
        return indptr, indices, _core.unit_rows(indptr, data)

    def _pairs(
        self, X: Any, candidates: Candidates
    ) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
        """`_unit_parts`, and the pairs of the candidates, which must be lists of the labels learned."""
        rows = self._unit_parts(X)
        check_lists(candidates, len(rows[0]) - 1, self.n_labels_)
        return rows, candidates.indptr, candidates.labels
