"""The best thresholds of sorted scores, for many groups of pairs at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Sweep:
    """Scores sorted downwards within groups: each prefix that ends before a smaller score has a threshold.

    Parameters
    ----------
    z : float array (m,), m >= 1
        Scores; infinite ones are always kept.
    group : int array (m,)
    n_groups : int
    """

    def __init__(self, z: np.ndarray, group: np.ndarray, n_groups: int) -> None:
        self.order: NDArray[np.intp] = np.lexsort((-z, group))
        self.z: np.ndarray = z[self.order]
        group = group[self.order]
        first = np.concatenate([[True], group[1:] != group[:-1]])
        self.starts: NDArray[np.intp] = np.flatnonzero(first)
        self.within: NDArray[np.intp] = np.cumsum(first) - 1
        self.last: NDArray[np.bool_] = np.append(first[1:], True)
        # Equal scores are kept or dropped together.
        self._ends = self.last | np.append(self.z[1:] != self.z[:-1], True)
        self.groups: np.ndarray = group[self.starts]
        self.n_groups: int = n_groups
        self.count: NDArray[np.int64] = np.arange(1, len(z) + 1) - self.starts[self.within]

    def prefix_sums(self, y: np.ndarray) -> np.ndarray:
        """For each threshold, in sorted order, the sum of `y` over the pairs kept."""
        sums = np.concatenate([[0.0], np.cumsum(y[self.order])])
        return sums[1:] - sums[self.starts][self.within]

    def totals(self, y: np.ndarray) -> np.ndarray:
        """The sum of `y` over each group that has pairs."""
        return np.add.reduceat(y[self.order], self.starts)

    def best(self, value: np.ndarray, floor: np.ndarray | float) -> np.ndarray:
        """float64 (n_groups,): the highest threshold of greatest value, half-way to the next score.

        It is inf (keep nothing) where no value exceeds `floor`, nan for a group without pairs.
        """
        value = np.where(self._ends, value, -np.inf)
        best = np.maximum.reduceat(value, self.starts)
        position = np.arange(len(value))
        at = np.minimum.reduceat(np.where(value == best[self.within], position, len(value)), self.starts)
        high = self.z[at]
        low = np.where(self.last[at], high, self.z[np.minimum(at + 1, len(value) - 1)])
        with np.errstate(invalid="ignore"):
            middle = low + (high - low) / 2
        # Between neighbouring numbers there may be none; an infinite score stands alone.
        between = np.where(np.isfinite(high), np.where(middle > low, middle, high), np.inf)
        out = np.full(self.n_groups, np.nan)
        out[self.groups] = np.where(best > floor, between, np.inf)
        return out

    def best_f1(self, y: np.ndarray, missed: float = 0.0) -> np.ndarray:
        """For each group the t that maximises ``2 sum y[z >= t] / (count[z >= t] + sum y + missed)``.

        y is 0/1, or probabilities (then the F1 of expected counts); `missed` are relevant pairs that no
        threshold can reach. See `best`; inf where y is all 0.

        Examples
        --------
        >>> Sweep(np.array([3.0, 2, 1, 0]), np.zeros(4, int), 1).best_f1(np.array([1.0, 0, 1, 0]))
        array([0.5])
        """
        f1 = 2 * self.prefix_sums(y) / (self.count + self.totals(y)[self.within] + missed)
        return self.best(f1, 0.0)

    def greatest_f1(self, y: np.ndarray, prior: float, weight: float) -> np.ndarray:
        """float64 (n_groups,): the greatest F1 of each group over all thresholds, with one that keeps
        nothing. It is drawn towards `prior` as by `weight` pairs; a group without pairs has `prior`."""
        totals = self.totals(y)
        f1 = (2 * self.prefix_sums(y) + weight * prior) / (self.count + totals[self.within] + weight)
        f1 = np.where(self._ends, f1, 0.0)
        out = np.full(self.n_groups, float(prior))
        out[self.groups] = np.maximum(
            np.maximum.reduceat(f1, self.starts), weight * prior / (totals + weight)
        )
        return out

    def best_mean_f1(self, y: np.ndarray) -> float:
        """The one threshold for all groups with the greatest mean of their F1; inf where y is all 0."""
        f1 = 2 * self.prefix_sums(y) / (self.count + self.totals(y)[self.within])
        change = f1 - np.where(self.count > 1, np.append(0.0, f1[:-1]), 0.0)
        every = Sweep(self.z, np.zeros(len(self.z), np.int64), 1)
        return float(every.best(every.prefix_sums(change), 0.0)[0])

    def fewest_mistakes(self, y: np.ndarray) -> np.ndarray:
        """For each group the threshold with the least ``sum (1 - y)[z >= t] + sum y[z < t]``."""
        return self.best(self.prefix_sums(2 * y - 1), 0.0)
