"""Pairwise surrogates of the AUC: losses, gradients and Hessians in the scores.

The multipartite AUC (Definition 2.3 of Lukasik et al. 2025, arXiv 2504.11284) of scores s for a target y
is the cost-weighted share of the pairs ``y_i > y_j`` that have ``s_i > s_j``. Its surrogate is

    sum_{y_i > y_j} c_ij phi(s_i - s_j) / sum_{y_i > y_j} c_ij

with ``phi(z) = log(1 + exp(-z))`` (logistic) or ``max(0, 1 - z)`` (hinge), and cost ``c_ij = y_i - y_j``
("difference") or 1 ("uniform"). For a binary target either gives the bipartite AUC. The mean over pairs
then weighs a label by ``1 / (pi (1 - pi))``. Other costs ``s(y_i) - s(y_j)`` are difference costs of the
grades s(y).
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from metarank import _core
from metarank._util.parameters import check_choice
from metarank._util.threads import resolve_n_jobs
from metarank.objectives.checks import MAX_GRADE, Grouping, check_groups, check_targets
from metarank.types.checks import check_numbers

Surrogate = Literal["logistic", "hinge"]
Cost = Literal["difference", "uniform"]
COSTS: tuple[str, ...] = get_args(Cost)
SURROGATES: tuple[str, ...] = get_args(Surrogate)


class AucPairs:
    """The pairs of one target, sorted once and asked for many scores.

    Parameters
    ----------
    target : float64 array (n,)
        Finite; must differ between two rows of a group.
    grouping : Grouping
    surrogate : str
    cost : str
    name : str
        How messages call the target.
    costs : float64 array (G,), optional
        What the sum over each group's pairs is divided by before the groups' are added up, instead of the
        cost of its own pairs and their number.

    Examples
    --------
    >>> pairs = AucPairs(np.array([0.0, 1.0, 1.0]), check_groups(3))
    >>> pairs.area(np.array([0.5, 0.9, 0.5]))
    0.75
    """

    def __init__(
        self,
        target: np.ndarray,
        grouping: Grouping,
        *,
        surrogate: Surrogate = "logistic",
        cost: Cost = "difference",
        name: str = "target",
        costs: np.ndarray | None = None,
    ) -> None:
        check_choice("surrogate", surrogate, SURROGATES)
        check_choice("cost", cost, COSTS)
        self.target: NDArray[np.float64] = np.ascontiguousarray(target, np.float64)
        if np.abs(self.target).max(initial=0.0) > MAX_GRADE:  # sums of them would leave the range of numbers
            raise ValueError(f"{name} must be at most 1e100, got {np.abs(self.target).max():g}")
        self.surrogate = surrogate
        self.cost = cost
        self.costs: NDArray[np.float64] = np.zeros(0) if costs is None else np.ascontiguousarray(costs, float)
        self.order: np.ndarray = grouping.sorted_by(self.target)
        self.indptr: np.ndarray = grouping.indptr
        ordered = self.target[self.order]
        filled = grouping.sizes > 0
        ends = ordered[self.indptr[1:][filled] - 1] > ordered[self.indptr[:-1][filled]]
        if not ends.any():
            shown = " within each group" if grouping.has_queries else ""
            if len(ordered) and np.ptp(ordered) == 0:
                shown = f", {ordered[0]:g} everywhere"
            raise ValueError(f"{name} is constant{shown}: no AUC exists")

    def gradients(
        self, scores: np.ndarray, *, surrogate: str = "", with_loss: bool = True, n_jobs: int = 1
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """(loss, gradient, hessian) at finite float64 scores (n,); the loss is 0 where it is not wanted."""
        return _core.auc_gradients(
            scores=scores,
            target=self.target,
            order=self.order,
            indptr=self.indptr,
            costs=self.costs,
            difference=self.cost == "difference",
            surrogate=surrogate or self.surrogate,
            with_loss=with_loss,
            n_threads=n_jobs,
        )

    def lost(self, scores: np.ndarray, *, n_jobs: int = 1) -> float:
        """1 - AUC: the cost-weighted share of pairs in the wrong order, a tie one half; exact."""
        return self.gradients(scores, surrogate="step", n_jobs=n_jobs)[0]

    def area(self, scores: np.ndarray, *, n_jobs: int = 1) -> float:
        """The AUC itself."""
        return 1.0 - self.lost(scores, n_jobs=n_jobs)


def auc_gradients(
    scores: Any,
    target: Any,
    *,
    surrogate: Surrogate = "logistic",
    cost: Cost = "difference",
    group: Any = None,
    qid: Any = None,
    n_jobs: int | None = None,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Loss, gradient and Hessian diagonal of a surrogate of 1 - AUC.

    Parameters
    ----------
    scores : array-like (n,)
        Finite, of absolute value up to 1e15.
    target : array-like (n,)
        Finite grades, any number of them; rows of equal grade make no pair.
    surrogate : "logistic" or "hinge"
    cost : "difference" or "uniform"
        Weight of a pair: ``y_i - y_j``, or 1.
    group, qid : array-like or None
        Sizes of consecutive groups, or the group of each row in any order. Only rows of the same group then
        make pairs: a group's loss is the mean over its pairs, and all groups that have a pair count
        equally.
    n_jobs : int or None

    Returns
    -------
    loss : float
        The cost-weighted mean over all pairs.
    gradient : float64 array (n,)
        Its derivative; for "hinge" the subgradient that is 0 where a margin is exactly 1.
    hessian : float64 array (n,), >= 0
        "logistic": the diagonal of the second derivative. "hinge" has no second derivative: the value is
        the cost of all pairs of the row, as if each had curvature 1, so that a Newton step is at most one
        margin.

    Notes
    -----
    O(n log n). "hinge" is exact. "logistic" computes few pairs one by one, and many by a grid of scores with
    spacing 1/32 and cubic weights; each number then has a relative error below 1e-6 (commonly about 1e-8).
    The result depends on the input only, to the last bit, for any number of threads.

    Raises
    ------
    ValueError
        Bad shapes, values that are not finite, an unknown word, a target that is constant (in each group).

    Examples
    --------
    >>> loss, gradient, hessian = auc_gradients([0.0, 0.0, 0.0], [0, 1, 1], surrogate="hinge")
    >>> loss, gradient
    (1.0, array([ 1. , -0.5, -0.5]))
    """
    s = check_numbers(scores, "scores")
    if len(s) and np.abs(s).max() > 1e15:
        raise ValueError(f"scores must be of absolute value up to 1e15, got {np.abs(s).max():g}")
    y = check_numbers(target, "target", len(s))
    pairs = AucPairs(y, check_groups(len(s), group, qid), surrogate=surrogate, cost=cost)
    return pairs.gradients(s, n_jobs=resolve_n_jobs(n_jobs))


def per_label_auc(scores: Any, Y: Any, cost: Any = "difference") -> np.ndarray:
    """AUC of one ranking against each label; of a graded label the multipartite one (Definition 2.3).

    ``sum c(y, y') [s > s'] / sum c(y, y')`` over the pairs with y > y'; a tie of scores counts one half.
    For any cost and any number of grades 1 is the best value and one half is chance.

    Parameters
    ----------
    scores : float array (n,)
        Greater is better; infinite values are fine.
    Y : (n, K) array, table, dict of name to column, or one column (n,)
        Grades >= 0; a binary label has its plain AUC whatever the cost.
    cost : "difference" or "uniform"
        ``y - y'``, or 1.

    Returns
    -------
    float64 array (K,)

    Raises
    ------
    ValueError
        Scores that are NaN or of another shape than a target; a label that is constant (it is named) or not
        finite; an unknown cost.

    Examples
    --------
    >>> per_label_auc([4.0, 3.0, 2.0, 1.0], [[1, 0], [1, 1], [0, 0], [0, 1]])
    array([1.  , 0.25])
    """
    grades, names = check_targets(Y)
    values = np.asarray(scores, np.float64)
    if values.shape != (len(grades),) or np.isnan(values).any():
        raise ValueError(f"scores must be {len(grades)} numbers, one per row of Y, got {scores!r:.60}")
    # Numbers in the order of the scores, which may be infinite.
    ranks = np.unique(values, return_inverse=True)[1].astype(np.float64)
    grouping = check_groups(len(grades))
    labels = [
        AucPairs(column, grouping, cost=cost, name=f"the label {name!r} of Y")
        for column, name in zip(grades.T, names)
    ]
    return np.array([label.area(ranks) for label in labels])
