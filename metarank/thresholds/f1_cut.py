"""The cut that maximises F1 over sorted scores, for many groups of pairs at once."""

from __future__ import annotations

import numpy as np


def best_f1_cuts(
    z: np.ndarray, y: np.ndarray, group: np.ndarray, n_groups: int, missed: float = 0.0
) -> np.ndarray:
    """For each group the threshold t that maximises ``2 sum y[z >= t] / (count[z >= t] + sum y)``.

    Parameters
    ----------
    z : float array (m,)
        Scores; infinite ones are always kept.
    y : float array (m,)
        Relevance: 0/1, or probabilities (then the F1 of expected counts).
    group : int array (m,)
    n_groups : int
    missed : float
        Relevant pairs that no threshold can reach; they stand in the denominator.

    Returns
    -------
    float64 array (n_groups,)
        Half-way to the next score; the highest of equally good cuts; inf (keep nothing) for
        groups whose y is all 0, nan for groups without pairs.

    Examples
    --------
    >>> best_f1_cuts(np.array([3.0, 2, 1, 0]), np.array([1.0, 0, 1, 0]), np.zeros(4, int), 1)
    array([0.5])
    """
    out = np.full(n_groups, np.nan)
    if len(z) == 0:
        return out
    order = np.lexsort((-z, group))
    z, y, group = z[order], y[order], group[order]
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    sizes = np.diff(np.append(starts, len(z)))
    within = np.repeat(np.arange(len(starts)), sizes)
    sums = np.concatenate([[0.0], np.cumsum(y)])
    hits = sums[1:] - sums[starts][within]
    total = np.add.reduceat(y, starts)
    count = np.arange(1, len(z) + 1) - starts[within]
    f1 = 2 * hits / (count + total[within] + missed)
    last = np.append(group[1:] != group[:-1], True)
    cuttable = last | np.append(z[1:] != z[:-1], True)
    f1[~cuttable] = -1.0
    best = np.maximum.reduceat(f1, starts)
    at = np.minimum.reduceat(np.where(f1 == best[within], np.arange(len(z)), len(z)), starts)
    below = np.where(last[at], z[at], z[np.minimum(at + 1, len(z) - 1)])
    out[group[starts]] = np.where(total > 0, _between(z[at], below), np.inf)
    return out


def _between(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """A number in (low, high], half-way where there is one; infinite scores stay alone."""
    with np.errstate(invalid="ignore"):
        middle = low + (high - low) / 2
    return np.where(np.isfinite(high), np.where(middle > low, middle, high), np.inf)
