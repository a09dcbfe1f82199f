"""`AveragedRanker`: base of rankers that average models, each of which sees the lists outside one fold."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager

import numpy as np
from sklearn.base import clone

from metarank._util.progress import as_part, side_by_side
from metarank.ranker.base import Ranker
from metarank.ranker.lists import RankingData, cross_fit_scores
from metarank.types.feature_table import FeatureTable


class AveragedRanker(Ranker):
    """The lists of each fold are scored by the model that did not see them, so that out-of-fold scores cost
    no further fit.

    Attributes
    ----------
    n_models : int
        Models that are averaged, or one for each fold of the lists where folds are fewer.
    """

    n_models: int

    def fit_out_of_fold(self, data: RankingData, n_jobs: int = 1) -> np.ndarray:
        """Fit, and return each training pair's score from a model that did not see its list."""
        if data.outer is not None:
            with as_part("held out", 0.0, 0.5):
                scores = cross_fit_scores(clone(self).set_params(n_models=1), data, n_jobs)
            with as_part("on all folds", 0.5, 0.5):
                self.fit_lists(data, n_jobs)
            return scores
        self.fit_lists(data, n_jobs)
        left_out, scores = self._left_out(data), np.zeros(len(data.gains))
        n_models = int(left_out.max(initial=0)) + 1
        if n_models == 1:  # it has seen every list
            return cross_fit_scores(self, data, n_jobs)
        for number in range(n_models):
            pairs = data.pairs_of(np.flatnonzero(left_out == number))
            scores[pairs] = self._score_of_model(number, data.table.pairs(pairs), n_jobs)
        return scores

    @abstractmethod
    def _score_of_model(self, number: int, table: FeatureTable, n_jobs: int) -> np.ndarray: ...

    def _models(self, data: RankingData) -> Iterator[tuple[int, np.ndarray, AbstractContextManager[None]]]:
        """Of each model its number, the lists that it sees, bool (n,), and the context that tells of it."""
        left_out = self._left_out(data)
        n_models = int(left_out.max()) + 1
        told = side_by_side([f"model {i + 1} of {n_models}" for i in range(n_models)])
        for number, context in enumerate(told):
            yield number, (left_out != number) | (n_models == 1), context

    def _left_out(self, data: RankingData) -> np.ndarray:
        """int (n,): the model that does not see the list; all 0 where one model sees all."""
        folds = np.unique(data.fold)
        return np.searchsorted(folds, data.fold) % min(self.n_models, len(folds))
