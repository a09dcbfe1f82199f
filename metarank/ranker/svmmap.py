"""`SVMMAP`: the structural SVM for average precision of Yue & Finley 2007."""

from __future__ import annotations

import numpy as np

from metarank import _core
from metarank.ranker.linear_ranker import LinearProblem, LinearRanker
from metarank.ranker.lists import RankingData

_MAX_PLANES = 300
_TOLERANCE = 1e-3


class SVMMAP(LinearRanker):
    """Linear scores that minimise a bound on 1 - MAP (Yue & Finley 2007).

    Minimises the mean over lists of ``max_y [1 - AP(y) + w.psi(x, y)] - w.psi(x, y*)``, their
    optimisation problem 1 with margin rescaling, plus ``l2 / 2 |w|²`` (their C is 1 / l2).
    ``psi = 1 / (|R| |N|) sum_{i in R, j in N} y_ij (x_i - x_j)`` with y_ij = 1 where the
    relevant i stands above the irrelevant j, else -1. The most violated ranking is found exactly
    by their Algorithm 1, w by cutting planes with one slack (Joachims et al. 2009), until the
    duality gap is below 0.001 or after 300 planes. Grades count as relevant or not.

    Parameters
    ----------
    l2 : see `LinearRanker`

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> table = FeatureTable(np.float32([[1], [3], [2], [0]]), ["nearness"], Candidates.all_labels(2, 2))
    >>> SVMMAP(l2=0.1).fit(table, np.array([0, 1, 1, 0])).score(table).argsort()
    array([3, 0, 2, 1])
    """

    name = "svmmap"
    _list_loss = staticmethod(_core.svmmap_loss)
    _grid = (1.0, 0.1, 0.01, 0.001)

    def _solve_path(
        self, problem: LinearProblem, data: RankingData, path: list[float], tolerance: float
    ) -> list[tuple[np.ndarray, float]]:
        # The planes bound the loss whatever the penalty: each solution starts from the last one's.
        planes = Planes(len(problem.mean))
        return [(_cutting_planes(problem, planes, l2), 0.0) for l2 in path]


class Planes:
    """Lower bounds ``offset_t + slope_t.w`` of a convex loss; the first says that it is not negative."""

    def __init__(self, n_features: int) -> None:
        self.slopes: np.ndarray = np.zeros((1, n_features))
        self.offsets: np.ndarray = np.zeros(1)
        self.share: np.ndarray = np.ones(1)  # dual variables: a point of the simplex

    def add(self, slope: np.ndarray, offset: float) -> None:
        self.slopes = np.vstack([self.slopes, slope])
        self.offsets = np.append(self.offsets, offset)
        self.share = np.append(self.share, 0.0)

    def minimise(self, l2: float) -> tuple[np.ndarray, float]:
        """argmin and minimum of ``max_t (offset_t + slope_t.w) + l2 / 2 |w|²``.

        The dual, ``max offset.a - |slope' a|² / (2 l2)`` over the simplex, is solved by active
        sets: few planes touch the optimum, and most of them touched the last one.
        """
        gram, a = self.slopes @ self.slopes.T / l2, self.share
        gram[np.diag_indices(len(a))] += 1e-10 * np.trace(gram) / len(a) + 1e-15  # equal planes
        support = np.flatnonzero(a)
        for _ in range(10 * len(a)):
            target, level = self._optimum_on(support, gram)
            if target.min() <= 0:  # go as far as the simplex reaches and drop who comes out at its border
                leaving = np.flatnonzero(target <= 0)
                reach = a[support][leaving] / (a[support][leaving] - target[leaving])
                a[support] += reach.min() * (target - a[support])
                a[support[leaving[reach == reach.min()]]] = 0.0
                support = np.flatnonzero(a > 0)
                continue
            a[support] = target
            rise = self.offsets - gram @ a - level
            entering = int(np.argmax(rise))
            if rise[entering] <= 0.1 * _TOLERANCE or a[entering] > 0:
                break
            support = np.append(support, entering)
        w = -(self.slopes.T @ a) / l2
        return w, float(self.offsets @ a - 0.5 * l2 * (w @ w))

    def _optimum_on(self, support: np.ndarray, gram: np.ndarray) -> tuple[np.ndarray, float]:
        """The dual optimum of some planes, their shares summing to one but of any sign; the common slope."""
        k = len(support)
        system = np.ones((k + 1, k + 1))
        system[:k, :k], system[k, k] = gram[np.ix_(support, support)], 0.0
        solution = np.linalg.solve(system, np.append(self.offsets[support], 1.0))
        return solution[:k], float(solution[k])


def _cutting_planes(problem: LinearProblem, planes: Planes, l2: float) -> np.ndarray:
    best, best_value = np.zeros(len(problem.mean)), np.inf
    for _ in range(_MAX_PLANES):
        w, lower_bound = planes.minimise(l2)
        loss, slope, _ = problem.loss(w, 0.0)
        value = loss + 0.5 * l2 * float(w @ w)
        if value < best_value:
            best, best_value = w, value
        if best_value - lower_bound <= _TOLERANCE:
            break
        planes.add(slope, loss - float(slope @ w))
    return best
