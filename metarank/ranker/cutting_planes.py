"""The minimum of a convex loss that is not smooth, by cutting planes (Joachims et al. 2009)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_MAX_PLANES = 300
_TOLERANCE = 1e-3


class Planes:
    """Lower bounds ``offset_t + slope_t.w`` of a convex loss; the first says that it is not negative."""

    def __init__(self, n_features: int) -> None:
        self.slopes: np.ndarray = np.zeros((1, n_features))
        self.offsets: np.ndarray = np.zeros(1)
        self.share: np.ndarray = np.ones(1)  # dual variables: a point of the simplex

    def minimise(self, l2: float) -> tuple[np.ndarray, float]:
        """argmin and minimum of ``max_t (offset_t + slope_t.w) + l2 / 2 |w|²``.

        The dual, ``max offset.a - |slope' a|² / (2 l2)`` over the simplex, is solved by active
        sets: few planes touch the optimum, and most of them touched the last one.
        """
        gram, a = self.slopes @ self.slopes.T / l2, self.share
        gram[np.diag_indices(len(a))] += 1e-10 * np.trace(gram) / len(a) + 1e-15  # equal planes
        support = np.flatnonzero(a)
        for _ in range(10 * len(a)):
            # The dual optimum of these planes, shares of any sign that sum to one, and the common slope.
            k = len(support)
            system = np.ones((k + 1, k + 1))
            system[:k, :k], system[k, k] = gram[np.ix_(support, support)], 0.0
            solution = np.linalg.solve(system, np.append(self.offsets[support], 1.0))
            target, level = solution[:k], float(solution[k])
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


def by_cutting_planes(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]], planes: Planes, l2: float
) -> np.ndarray:
    """The w of least ``loss(w) + l2 / 2 |w|²``: until the duality gap is below 0.001, or after 300 planes.

    `loss` gives its value and a subgradient; the planes are those known before, and are added to.
    """
    best, best_value = np.zeros(planes.slopes.shape[1]), np.inf
    for _ in range(_MAX_PLANES):
        w, lower_bound = planes.minimise(l2)
        value, slope = loss(w)
        penalised = value + 0.5 * l2 * float(w @ w)
        if penalised < best_value:
            best, best_value = w, penalised
        if best_value - lower_bound <= _TOLERANCE:
            break
        planes.slopes = np.vstack([planes.slopes, slope])
        planes.offsets = np.append(planes.offsets, value - float(slope @ w))
        planes.share = np.append(planes.share, 0.0)
    return best
