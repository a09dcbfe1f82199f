"""Confidence intervals of AUCs, of nDCG and of their differences, from the influence of each unit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from metarank._util.elementary import log2
from metarank.metrics.resampling import Interval
from metarank.objectives.checks import Grouping
from metarank.objectives.pair_terms import pair_terms
from metarank.objectives.partial_labels import completed, kept_shares


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


def complete_auc(
    scores: np.ndarray, observed: np.ndarray, propensity: np.ndarray, grouping: Grouping
) -> Estimates:
    """AUC of the complete labels, of which `observed` are seen: ``1/2 + c (AUC(z) - 1/2)``, see
    `metarank.objectives.partial_labels`; may exceed 1.

    Parameters
    ----------
    scores : float array (n,)
    observed : float array (n, K)
        Binary.
    propensity : float array (K,) or (n, K)
    grouping : Grouping

    Examples
    --------
    >>> from metarank.objectives.checks import check_groups
    >>> scores, seen = np.array([4.0, 3.0, 2.0, 1.0]), np.array([[1.0], [0.0], [1.0], [0.0]])
    >>> complete_auc(scores, seen, np.array([0.8]), check_groups(4)).values.round(4)  # 1/2 + 8/7 * 1/4
    array([0.7857])
    """
    group = grouping.group_of_row if grouping.has_queries else None
    z = completed(observed, propensity)
    if group is not None:
        kept, counted = kept_shares(observed, propensity, grouping)
        factor = counted.sum(axis=0) / kept.sum(axis=0)
        plain = auc_estimates(scores, z, group)
        # The factor is a ratio of sums over the queries.
        of_factor = len(kept) * (counted - factor * kept) / kept.sum(axis=0)
        away = plain.values - 0.5
        return Estimates(0.5 + factor * away, factor * plain.influence + away * of_factor)
    columns = []
    for y, weight in zip(z.T, np.broadcast_to(1 / propensity, observed.shape).T):
        terms = pair_terms(scores, y, "difference")
        # What the complete grades of each row's pairs differ by: z_i + z_j - 2 min(o_i, o_j) / (p_i p_j).
        w = np.where(y > 0, weight, 0.0)
        others = len(y) * y + y.sum() - 2 * y * w.sum()
        apart = others - 2 * (y - y * w)
        stake = apart.sum()
        half = terms.won - terms.cost / 2
        away = half.sum() / stake
        columns.append((0.5 + away, 2 * len(scores) * (half - away * apart) / stake))
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
