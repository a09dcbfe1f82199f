"""How well one ranking serves several labels: AUC of each, greatest difference, minimum, dominance."""

from __future__ import annotations

from typing import Any

import numpy as np

from metarank.objectives.checks import check_groups, check_targets, check_vector
from metarank.objectives.pairwise import AucPairs


def multipartite_auc(scores: Any, target: Any, cost: Any = "difference") -> float:
    """Share of the cost of all pairs of unequal grades that is in the right order (Definition 2.3).

    ``sum c(y, y') [s > s'] / sum c(y, y')`` over the pairs with y > y'; a tie of scores counts one half.
    For any cost and any number of grades 1 is the best value and one half is chance. With two grades it is
    the AUC.

    Parameters
    ----------
    scores : float array (n,)
        Greater is better; infinite values are fine.
    target : float array (n,)
        Grades, finite.
    cost : "difference" or "uniform"
        ``y - y'``, or 1.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        Scores that are NaN or of another shape than the target; a target that is constant or not finite; an
        unknown cost.

    Examples
    --------
    >>> multipartite_auc([3.0, 2.0, 1.0], [2, 0, 1])
    0.75
    >>> multipartite_auc([3.0, 2.0, 1.0], [2, 0, 1], cost="uniform").__round__(4)
    0.6667
    """
    grades = check_vector(target, "target")
    ranks = _ranks(scores, len(grades))
    return AucPairs(grades, check_groups(len(grades)), cost=cost).area(ranks)


def per_label_auc(scores: Any, Y: Any, cost: Any = "difference") -> np.ndarray:
    """AUC of one ranking against each label.

    Parameters
    ----------
    scores : float array (n,)
    Y : (n, K) array, table, or dict of name to column
        Grades >= 0; a binary label has its plain AUC whatever the cost.
    cost : as in `multipartite_auc`

    Returns
    -------
    float64 array (K,)

    Raises
    ------
    ValueError
        As `multipartite_auc`; a constant label is named.

    Examples
    --------
    >>> per_label_auc([4.0, 3.0, 2.0, 1.0], [[1, 0], [1, 1], [0, 0], [0, 1]])
    array([1.  , 0.25])
    """
    grades, names = check_targets(Y)
    ranks, grouping = _ranks(scores, len(grades)), check_groups(len(grades))
    labels = [
        AucPairs(column, grouping, cost=cost, name=f"the label {name!r} of Y")
        for column, name in zip(grades.T, names)
    ]
    return np.array([label.area(ranks) for label in labels])


def diff_auc(scores: Any, Y: Any, cost: Any = "difference") -> float:
    """Greatest minus least of `per_label_auc`: Diff AUC; of two labels |AUC_1 - AUC_2|.

    Examples
    --------
    >>> diff_auc([4.0, 3.0, 2.0, 1.0], [[1, 0], [1, 1], [0, 0], [0, 1]])
    0.75
    """
    areas = per_label_auc(scores, Y, cost)
    return float(areas.max() - areas.min())


def min_auc(scores: Any, Y: Any, cost: Any = "difference") -> float:
    """Least of `per_label_auc`: Min AUC.

    Examples
    --------
    >>> min_auc([4.0, 3.0, 2.0, 1.0], [[1, 0], [1, 1], [0, 0], [0, 1]])
    0.25
    """
    return float(per_label_auc(scores, Y, cost).min())


def dominates(a: Any, b: Any, *, tolerance: float = 0.0) -> bool:
    """Whether the values `a` are nowhere worse than `b` and somewhere better (Definition 3.1).

    Parameters
    ----------
    a, b : float arrays (K,)
        One value an objective, greater is better: AUCs for example.
    tolerance : float
        Differences up to it count as equal.

    Raises
    ------
    ValueError
        Other shapes, NaN, or a negative tolerance.

    Examples
    --------
    >>> dominates([0.8, 0.7], [0.8, 0.6]), dominates([0.8, 0.7], [0.9, 0.6]), dominates([0.8], [0.8])
    (True, False, False)
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape or len(first) == 0:
        raise ValueError(f"a and b must have the same shape (K,), got {first.shape} and {second.shape}")
    if np.isnan(first).any() or np.isnan(second).any():
        raise ValueError("a and b must not hold NaN")
    if not tolerance >= 0:
        raise ValueError(f"tolerance must be >= 0, got {tolerance!r}")
    return bool((first >= second - tolerance).all() and (first > second + tolerance).any())


def _ranks(scores: Any, n: int) -> np.ndarray:
    """Numbers in the order of the scores, which may be infinite."""
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (n,):
        raise ValueError(f"scores must have shape ({n},), one entry a row of the target, got {values.shape}")
    if np.isnan(values).any():
        raise ValueError(f"scores must not be NaN, got NaN at row {int(np.flatnonzero(np.isnan(values))[0])}")
    return np.unique(values, return_inverse=True)[1].astype(np.float64)
