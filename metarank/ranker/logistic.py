"""`LogisticRanker`: the probability that a pair is relevant, each pair by itself."""

from __future__ import annotations

import numpy as np

from metarank import _core
from metarank.ranker.linear_ranker import LinearProblem, LinearRanker
from metarank.ranker.lists import RankingData


class LogisticRanker(LinearRanker):
    """Linear log-odds of relevance, learned on all pairs alike (pointwise).

    Minimises the mean over pairs of ``log(1 + exp(s)) - y s`` plus ``l2 / 2 |w|²``, where
    ``y = gain / greatest gain``: with 0/1 gains the score is a log-odds, with graded ones the
    order is by expected gain. Scores can be compared across lists.

    Parameters
    ----------
    l2 : float or "auto"
        Penalty; "auto" chooses by cross-validation over the folds of the lists.

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> table = FeatureTable(np.float32([[1], [3], [2], [0]]), ["nearness"], Candidates.all_labels(2, 2))
    >>> LogisticRanker(l2=0.1).fit(table, np.array([0, 1, 1, 0])).score(table).round(2)
    array([-0.68,  2.04,  0.68, -2.04])
    """

    name = "logistic"
    _list_loss = staticmethod(_core.logistic_loss)
    _grid = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
    _has_intercept = True

    def _target(self, data: RankingData) -> np.ndarray:
        return data.gains / (data.gains.max(initial=0) or np.float32(1))

    def _curvature(self, problem: LinearProblem, data: RankingData) -> np.ndarray:
        rate = float(problem.target.mean())
        return super()._curvature(problem, data) * max(rate * (1.0 - rate), 1e-3)

    def _list_weight(self, data: RankingData) -> np.ndarray:
        return data.weight / (float(data.weight @ data.sizes) or 1.0)
