"""Estimated propensities of single labels, and the curve fitted to them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from metarank.metrics.propensity.curve import inv_propensity

# Where a and b are looked for. All published values lie far inside.
A_BOUNDS = (1e-3, 10.0)
B_BOUNDS = (1e-3, 1e4)
_STARTS = [(a, b) for a in (0.2, 0.55, 1.5) for b in (0.1, 1.5, 30.0)]


class PropensityFit(NamedTuple):
    """The curve closest to given propensities.

    Attributes
    ----------
    a, b : float
        For `inv_propensity(Y, fit.a, fit.b)`.
    error : float
        Root of the (weighted) mean squared difference of curve and given propensities.
    at_bound : bool
        Whether a or b ended at the limit of the search: the propensities do not have the shape of
        the curve, or do not determine it.
    """

    a: float
    b: float
    error: float
    at_bound: bool


class PropensityBins(NamedTuple):
    """Bins of labels of similar frequency; every field is (n_bins,), the rarest labels first.

    Attributes
    ----------
    counts, propensities : float64
        Means over the labels of the bin.
    sizes : int64
        Number of labels.
    """

    counts: np.ndarray
    propensities: np.ndarray
    sizes: np.ndarray


@dataclass(frozen=True, eq=False)
class PropensityPoints:
    """Propensities of the labels for which an estimate exists.

    Attributes
    ----------
    labels : int64 (m,)
        Ids, ascending.
    counts : int64 (m,)
        N_l, the number of points that carry the label, at least 1.
    found, possible : int64 (m,)
        The label was found `found` times out of the `possible` times where it should have been.
    propensities : float64 (m,)
        `found / possible`, at most 1.
    n_points : int
        N.

    Raises
    ------
    ValueError
        If the lengths differ or a number is out of range.

    Examples
    --------
    >>> points = PropensityPoints(
    ...     labels=np.arange(4), counts=np.array([8, 1, 2, 9]), found=np.array([8, 1, 2, 9]),
    ...     possible=np.array([10, 5, 5, 10]), n_points=20,
    ... )
    >>> points.propensities
    array([0.8, 0.2, 0.4, 0.9])
    >>> points.binned(labels_per_bin=2)
    PropensityBins(counts=array([1.5, 8.5]), propensities=array([0.3 , 0.85]), sizes=array([2, 2]))
    """

    labels: np.ndarray
    counts: np.ndarray
    found: np.ndarray
    possible: np.ndarray
    n_points: int

    def __post_init__(self) -> None:
        lowest = {"labels": 0, "counts": 1, "found": 0, "possible": 1}
        for name, low in lowest.items():
            values = np.asarray(getattr(self, name), np.int64)
            if values.ndim != 1 or len(values) != len(self.labels):
                raise ValueError(f"{name} must have shape ({len(self.labels)},), got {values.shape}")
            high = self.n_points if name == "counts" else np.iinfo(np.int64).max
            wrong = np.flatnonzero((values < low) | (values > high))
            if len(wrong):
                raise ValueError(f"{name} must lie in [{low}, {high}], got {values[wrong[0]]} at {wrong[0]}")
            object.__setattr__(self, name, values)

    @property
    def propensities(self) -> np.ndarray:
        return np.minimum(self.found / self.possible, 1.0)

    def __len__(self) -> int:
        return len(self.labels)

    def binned(self, labels_per_bin: int = 20) -> PropensityBins:
        """The equal-height histogram of Jain et al. (2016), Fig. 2.

        The labels, in order of their counts, are split into bins of nearly equal size, one for every
        `labels_per_bin` labels (rounded, at least one). Labels of equal count all enter with their mean
        propensity, so that the order of labels does not matter.

        Raises
        ------
        ValueError
            If `labels_per_bin` is not positive.
        """
        if labels_per_bin < 1:
            raise ValueError(f"labels_per_bin must be at least 1, got {labels_per_bin!r}")
        if len(self) == 0:
            return PropensityBins(np.empty(0), np.empty(0), np.empty(0, np.int64))
        values, group, sizes = np.unique(self.counts, return_inverse=True, return_counts=True)
        # Sums in order of value, so that the bytes of the mean do not depend on the order of the labels.
        order = np.lexsort((self.propensities, group))
        means = np.add.reduceat(self.propensities[order], np.cumsum(sizes) - sizes) / sizes
        n_bins = max(1, round(len(self) / labels_per_bin))
        counts = np.array_split(np.repeat(values, sizes), n_bins)
        propensities = np.array_split(np.repeat(means, sizes), n_bins)
        return PropensityBins(
            np.array([c.mean() for c in counts]),
            np.array([p.mean() for p in propensities]),
            np.array([len(c) for c in counts], np.int64),
        )

    def fit(self) -> PropensityFit:
        """`fit_propensity` on these labels, each with the same weight."""
        return fit_propensity(self.counts, self.propensities, self.n_points)


def fit_propensity(
    counts: Any, propensities: Any, n_points: int, *, sample_weight: Any = None
) -> PropensityFit:
    """Fit a and b of the curve of `inv_propensity` to given propensities.

    Minimises ``sum_i s_i (p(N_i; a, b) - p_i)^2`` with p of Jain et al. (2016), eq. 1, where C follows from
    a, b and N. The search runs over log a and log b within bounds, from several fixed starts, and keeps the
    best result; equal input gives equal results.

    All these curves meet in ``p = 1 / log N`` at N_i = 1, so labels of a single point say nothing about a
    and b.

    Parameters
    ----------
    counts : (m,) float or int
        N_i, in [0, N].
    propensities : (m,) float
        p_i, in [0, 1]. The curve never reaches 0, but an estimate may. Do not leave such labels out: the
        others are not typical.
    n_points : int
        N, at least 3.
    sample_weight : (m,) float, optional
        s_i, finite and not negative; 1 by default.

    Raises
    ------
    ValueError
        If the lengths differ or a value is out of range; if fewer than two different counts other than 1
        have a positive weight, so that a and b are not determined.

    Examples
    --------
    >>> counts = np.array([1, 10, 100, 1000])
    >>> fit = fit_propensity(counts, 1 / inv_propensity(counts, 0.6, 2.6, n_points=5000), 5000)
    >>> round(fit.a, 3), round(fit.b, 3), fit.at_bound
    (0.6, 2.6, False)
    """
    x, p = np.asarray(counts, np.float64), np.asarray(propensities, np.float64)
    s = np.ones(x.shape) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if x.ndim != 1 or p.shape != x.shape or s.shape != x.shape:
        raise ValueError(
            f"counts, propensities and sample_weight must have the same length, got shapes "
            f"{x.shape}, {p.shape}, {s.shape}"
        )
    if not n_points > math.e:
        raise ValueError(f"n_points must be at least 3, got {n_points!r}")
    for name, values, high in (
        ("counts", x, float(n_points)), ("propensities", p, 1.0), ("sample_weight", s, np.finfo(float).max)
    ):  # fmt: skip
        wrong = np.flatnonzero(~((values >= 0) & (values <= high)))
        if len(wrong):
            raise ValueError(f"{name} must lie in [0, {high:g}], got {values[wrong[0]]} at {wrong[0]}")
    telling = np.unique(x[(s > 0) & (x != 1)])
    if len(telling) < 2:
        raise ValueError(
            f"a and b need at least 2 different counts other than 1, got {len(telling)} "
            f"(among {len(x)} propensities)"
        )
    # Sums in a fixed order: the same bytes for any order of the points.
    order = np.lexsort((s, p, x))
    x, p, s = x[order], p[order], s[order] / s.sum()

    def residuals(log_ab: np.ndarray) -> np.ndarray:
        a, b = np.exp(log_ab)
        return np.sqrt(s) * (1.0 / inv_propensity(x, a, b, n_points=n_points) - p)

    from scipy.optimize import least_squares  # slow to import

    low, high = np.log([A_BOUNDS, B_BOUNDS]).T
    solutions = [
        least_squares(residuals, np.log(start), bounds=(low, high), ftol=1e-12, xtol=1e-12, gtol=1e-12)
        for start in _STARTS
    ]
    best = min(solutions, key=lambda solution: solution.cost)
    a, b = np.exp(best.x)
    at_bound = bool(np.any((best.x < low + 1e-3) | (best.x > high - 1e-3)))
    return PropensityFit(float(a), float(b), math.sqrt(2.0 * best.cost), at_bound)
