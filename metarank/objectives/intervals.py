"""Confidence intervals of AUCs, of nDCG and of their differences, from the influence of each unit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from metarank._util.elementary import log2
from metarank.metrics.resampling import Interval
from metarank.objectives.pair_terms import pair_terms


@dataclass(frozen=True)
class Estimates:
    """Values with the influence of every unit, row or query, on each of them.

    Attributes
    ----------
    values : float64 array (K,)
    influence : float64 array (units, K)
        Value + mean of the influences of a sample's units approximates the value on that sample; the
        variance of a linear combination of values is that of its influences over the number of units.
    """

    values: np.ndarray
    influence: np.ndarray

    def interval(self, combination: np.ndarray, level: float) -> Interval:
        """Normal interval of ``combination @ values``; NaN bounds where there are fewer than two units."""
        value = float((combination * self.values).sum())
        spread = self.standard_error(combination) * float(ndtri((1 + level) / 2))
        return Interval(value, value - spread, value + spread)

    def standard_error(self, combination: np.ndarray) -> float:
        """Of ``combination @ values``; NaN with fewer than two units."""
        n = len(self.influence)
        if n < 2:
            return float("nan")
        return float(np.sqrt(((self.influence * combination).sum(axis=1) ** 2).sum()) / n)


def auc_estimates(scores: np.ndarray, grades: np.ndarray, group: np.ndarray | None = None) -> Estimates:
    """Multipartite AUC (difference costs) of the scores against each label.

    Without groups the units are rows, and the intervals of a binary label are DeLong's (1988), with m in
    place of m - 1. With groups the units are groups, and the AUC is the mean over the groups in which the
    label has two grades.

    Parameters
    ----------
    scores : float array (n,)
    grades : float array (n, K)
        No label constant, or constant within all groups.
    group : integer array (n,), optional
        0 to G - 1.

    Examples
    --------
    >>> found = auc_estimates(np.array([3.0, 2.0, 1.0, 0.0]), np.array([[1.0], [0.0], [1.0], [0.0]]))
    >>> found.values
    array([0.75])
    >>> round(found.standard_error(np.ones(1)), 4)
    0.25
    """
    columns = []
    for column in grades.T:
        terms = pair_terms(scores, column, "difference", group)
        if group is None:
            stake = terms.cost.sum()
            value = terms.won.sum() / stake
            columns.append((value, 2 * len(scores) * (terms.won - value * terms.cost) / stake))
        else:
            stake = np.bincount(group, terms.cost)
            won = np.bincount(group, terms.won)
            columns.append(_mean_over_groups(won, stake))
    return Estimates(*_stacked(columns))


def ndcg_estimates(scores: np.ndarray, grades: np.ndarray, group: np.ndarray, k: int) -> Estimates:
    """nDCG@k against each label: gains y, discounts 1 / log2(1 + rank), the mean over the groups with a gain.

    Rows tied in their score share the mean of their places' discounts: the expectation over all orders of
    the ties.

    Parameters
    ----------
    scores : float array (n,)
    grades : float array (n, K)
        >= 0, each label with a grade above 0.
    group : integer array (n,)
        0 to G - 1.
    k : int

    Examples
    --------
    >>> one_query = np.zeros(3, int)
    >>> gains = np.array([[1.0], [0.0], [1.0]])
    >>> ndcg_estimates(np.array([3.0, 2.0, 1.0]), gains, one_query, 10).values.round(4)
    array([0.9197])
    """
    discount = _expected_discounts(scores, group, k)
    columns = []
    for gains in grades.T:
        found = np.bincount(group, gains * discount)
        best = np.bincount(group, gains * _expected_discounts(gains, group, k))
        columns.append(_mean_over_groups(found, best))
    return Estimates(*_stacked(columns))


def _expected_discounts(scores: np.ndarray, group: np.ndarray, k: int) -> np.ndarray:
    order = np.lexsort((-scores, group))
    starts = np.concatenate([[True], np.diff(group[order]) != 0])
    ties = starts | np.concatenate([[True], np.diff(scores[order]) != 0])
    rank = np.arange(len(order)) - np.flatnonzero(starts)[np.cumsum(starts) - 1]
    discount = np.where(rank < k, 1 / log2(2 + rank), 0.0)
    tie = np.cumsum(ties) - 1
    out = np.empty(len(order))
    out[order] = (np.bincount(tie, discount) / np.bincount(tie))[tie]
    return out


def _mean_over_groups(found: np.ndarray, best: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean of found / best over the groups where best > 0, and what each group adds to it."""
    counted = best > 0
    ratio = np.divide(found, best, out=np.zeros(len(best)), where=counted)
    value = float(ratio[counted].mean())
    return value, np.where(counted, ratio - value, 0.0) * (len(best) / counted.sum())


def _stacked(columns: list[tuple[float, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([value for value, _ in columns]), np.column_stack([of for _, of in columns])
