"""Costs of misranking a pair of grades: words, matrices, and those that have a Bayes-optimal scorer.

Definition 2.3 of Lukasik et al. 2025 (arXiv 2504.11284) has a cost c(y, y') for each pair of grades y > y'.
Where it is ``(s_y - s_y') w_y w_y'`` for a scale s and weights w >= 0 of the grades, which is the paper's
condition (2), from Uematsu and Lee (2015), the order by ``sum_y w_y s_y P(y | x) / sum_y w_y P(y | x)`` is
optimal: these are difference costs of other grades, over rows that are weighted by their grade. Any cost of
two or three grades has such a scorer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from metarank.objectives.checks import Grouping, check_matrix, check_vector

COSTS: tuple[str, ...] = ("difference", "uniform")
_RULE = "cost must be 'difference', 'uniform' or a matrix"
# Costs that differ from those of a scale by no more than rounding.
_SLACK = 1e-9
# Rounding may take shares beyond their bounds, and their sum from 1.
_ROUNDING = 1e-6


def check_cost(cost: Any) -> Any:
    """A word, or the costs below the diagonal as float64 (G, G), zeros elsewhere.

    Raises
    ------
    ValueError
        Another word; a matrix that is not square with G >= 2, not finite or negative below its diagonal, or
        that costs nothing for any pair.

    Examples
    --------
    >>> check_cost([[0, 9], [2, 0]])
    array([[0., 0.],
           [2., 0.]])
    """
    if isinstance(cost, str):
        if cost not in COSTS:
            raise ValueError(f"{_RULE}, got {cost!r}")
        return cost
    try:
        values = np.asarray(cost, np.float64)
    except (ValueError, TypeError):
        raise ValueError(f"{_RULE}, got {cost!r}") from None
    if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) < 2:
        raise ValueError(f"{_RULE} of shape (G, G) with G >= 2, got shape {values.shape}")
    below = np.tril(values, -1)
    if not (np.isfinite(below).all() and (below >= 0).all()):
        raise ValueError("cost must be finite and >= 0 below its diagonal")
    if not below.any():
        raise ValueError("cost must be above 0 for a pair of grades below its diagonal, got none")
    return below


def scale_costs(scale: Any, weights: Any = None) -> np.ndarray:
    """``(s_y - s_y') w_y w_y'`` of grades y > y': the costs of condition (2), for `cost` anywhere.

    Parameters
    ----------
    scale : float array (G,)
        s_y of the grades 0 to G - 1, nowhere falling.
    weights : float array (G,), optional
        w_y >= 0; ones by default. The inverse of the grades' shares lets each pair of grades count by its
        step of the scale, however rare they are.

    Returns
    -------
    float64 array (G, G)
        Zero on and above the diagonal.

    Raises
    ------
    ValueError
        A scale that is not finite, falls or has fewer than two grades; weights of another length, negative
        or not finite; costs that are all zero.

    Examples
    --------
    >>> scale_costs([0, 1, 2], weights=[1, 1, 10])
    array([[ 0.,  0.,  0.],
           [ 1.,  0.,  0.],
           [20., 10.,  0.]])
    """
    s = check_vector(scale, "scale")
    if len(s) < 2 or (np.diff(s) < 0).any():
        raise ValueError(f"scale must be of two grades or more and nowhere fall, got {s.tolist()}")
    w = np.ones(len(s)) if weights is None else check_vector(weights, "weights", len(s))
    if (w < 0).any():
        raise ValueError(f"weights must be >= 0, got {w.tolist()}")
    return np.asarray(check_cost((s[:, None] - s) * np.outer(w, w)))


def pair_cost_scorer(shares: Any, cost: Any = "difference") -> np.ndarray:
    """The optimal order of rows for costs of condition (2), or for any costs of two or three grades.

    With m the greatest grade, x belongs above x' where ``B(x) T(x') > T(x) B(x')``, the *cost against the
    smallest grade* being ``B(x) = sum_y c(y, 0) P(y | x)`` and that against the greatest ``T(x) = sum_y c(m,
    y) P(y | x)``: the antisymmetric matrix of the costs has rank 2 and is made of these two rows. The
    function returns ``B / (B + T)`` (Lukasik et al. 2025, Lemma 2.4). Difference costs rank by the expected
    grade; uniform ones of three grades are `uniform_cost_scorer`.

    Parameters
    ----------
    shares : float array (n, G)
        P(grade = y | x) of the aggregated label, y = 0 to G - 1; each row sums to 1.
    cost : "difference", "uniform" or float array (G, G)
        As in `multipartite_auc`.

    Returns
    -------
    float64 array (n,)
        Within [0, 1]; one half where no pair of a row costs anything.

    Raises
    ------
    ValueError
        Shares that are no distributions; a cost that is none; costs that break condition (2), of which no
        scorer is optimal for every distribution (the message names two grades that break it), or that are
        zero between the smallest and the greatest grade.

    Examples
    --------
    Squares of the grades put the row with a chance of grade 2 first:

    >>> shares = [[0.0, 1.0, 0.0], [0.55, 0.0, 0.45]]
    >>> pair_cost_scorer(shares), pair_cost_scorer(shares, scale_costs([0, 1, 4])).round(2)
    (array([0.5 , 0.45]), array([0.25, 0.45]))
    """
    p = check_matrix(shares, "shares")
    n_grades = p.shape[1]
    if n_grades < 2 or (p < -_ROUNDING).any() or (np.abs(p.sum(axis=1) - 1) > _ROUNDING).any():
        raise ValueError("shares must be distributions of two grades or more: each row >= 0, with sum 1")
    costs = check_cost(cost)
    if isinstance(costs, str):
        of = np.arange(n_grades, dtype=float)
        costs = np.tril(of[:, None] - of if costs == "difference" else np.ones((n_grades, n_grades)), -1)
    if len(costs) != n_grades:
        raise ValueError(
            f"cost must have shape ({n_grades}, {n_grades}), as shares has it, got {costs.shape}"
        )
    against_least, against_most = costs[:, 0], costs[-1]
    whole = costs[-1, 0]
    if whole == 0:
        raise ValueError("cost must be above 0 between the smallest and the greatest grade, got 0")
    by_scale = (np.outer(against_least, against_most) - np.outer(against_most, against_least)) / whole
    broken = np.abs(np.tril(by_scale - costs, -1)) > _SLACK * costs.max()
    if broken.any():
        y, other = np.argwhere(broken)[0]
        raise ValueError(
            f"cost must keep condition (2): of grades {y} and {other} it is {costs[y, other]:g}, and by the "
            f"costs against the smallest and the greatest {by_scale[y, other]:g}; there is no closed form"
        )
    below, above = (np.zeros(len(p)) for _ in range(2))
    for y, column in enumerate(np.maximum(p, 0.0).T):  # row by row, in one order
        below += against_least[y] * column
        above += against_most[y] * column
    total = below + above
    return np.where(total > 0, below / np.where(total > 0, total, 1.0), 0.5)


class GradePairs(NamedTuple):
    """The pairs of two grades: rows, sorted by group and grade, and what each group's sum is divided by."""

    rows: np.ndarray
    target: np.ndarray
    indptr: np.ndarray
    divisors: np.ndarray
    cost: float


def grade_pairs(target: np.ndarray, grouping: Grouping, cost: np.ndarray, name: str) -> list[GradePairs]:
    """All pairs of grades that cost something, for a mean over groups of each group's mean loss by cost.

    Raises
    ------
    ValueError
        Grades that are not integers of the matrix; no pair that costs something.
    """
    index = target.astype(np.int64)
    wrong = (index != target) | (index < 0) | (index >= len(cost))
    if wrong.any():
        raise ValueError(
            f"{name} must hold integers from 0 to {len(cost) - 1} for this cost, got {target[wrong][0]:g}"
        )
    n_groups = len(grouping.sizes)
    group = grouping.group_of_row
    counts = np.bincount(group * len(cost) + index, minlength=n_groups * len(cost)).reshape(n_groups, -1)
    whole = np.einsum("ga,ab,gb->g", counts, cost, counts)
    n_counted = int((whole > 0).sum())
    if not n_counted:
        raise ValueError(f"{name} has no pair of grades that costs something: no AUC exists")
    divisors = np.where(whole > 0, whole * n_counted, 1.0)
    order = grouping.sorted_by(target)
    out = []
    for a, b in zip(*np.nonzero(cost)):
        rows = order[(index[order] == a) | (index[order] == b)]
        if (counts[:, a] * counts[:, b]).any():
            indptr = np.concatenate([[0], np.cumsum(counts[:, a] + counts[:, b])]).astype(np.int64)
            out.append(GradePairs(rows, target[rows], indptr, divisors, float(cost[a, b])))
    return out
