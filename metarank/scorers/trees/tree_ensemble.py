"""`ShortlistingTrees`: the common base of the tree shortlisters."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from metarank import _core
from metarank.scorers.neighbors.training_rows import check_lists
from metarank.scorers.shortlister import StandaloneShortlister
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingView


class ShortlistingTrees(StandaloneShortlister):
    """A shortlister of trees over rows of unit length.

    Each tree depends on the view, the parameters and the number of the tree only. A subclass grows all trees
    in `_grow`.
    """

    is_classifier = True
    # The name of the score of all trees together.
    column: ClassVar[str]
    n_trees: int
    scale_: float

    def _seed_on(self, view: TrainingView) -> int:
        """The seed of the trees grown on a TrainingView."""
        drawn = np.random.SeedSequence([view.seed, self.random_state]).generate_state(1, np.uint64)[0]
        return int(drawn) >> 1

    def _learn(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        self.random_state_: int = int(self.random_state)
        self._grow(view, sample_weight, n_jobs)

    def _grow(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        raise TypeError(f"{type(self).__name__} must implement _grow")

    def _unit_parts(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """CSR arrays of new rows, of unit length."""
        indptr, indices, data = self._row_parts(X)
        return indptr, indices, _core.unit_rows(indptr, data)

    def _listed(self, indptr: np.ndarray, labels: np.ndarray, values: np.ndarray) -> Candidates:
        """Proposals for each row with their shares of the greatest relevance there is, as relevances."""
        scores = {self.shown_as: values * np.float32(self.scale_)}
        return Candidates.of_core(indptr, labels, self.n_labels_, scores)

    def _pairs(
        self, X: Any, candidates: Candidates
    ) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
        """`_unit_parts`, and the pairs of the candidates, which must be lists of the labels learned."""
        rows = self._unit_parts(X)
        check_lists(candidates, len(rows[0]) - 1, self.n_labels_)
        return rows, candidates.indptr, candidates.labels
