"""nDCG: LambdaRank's gradients as LightGBM computes them, and the metric itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metarank import _core
from metarank._util.elementary import exp2
from metarank._util.parameters import POSITIVE, check_integer, check_real
from metarank._util.threads import resolve_n_jobs
from metarank.objectives.checks import Grouping, check_groups
from metarank.types.checks import check_numbers

# 2^1000 and sums of it are still numbers; beyond, gains overflow.
_MAX_EXPONENT = 1000


class NdcgLists:
    """The lists of one target: gains and ideal DCGs, computed once and asked for many scores.

    Parameters
    ----------
    target : float64 array (n,)
        Grades >= 0.
    grouping : Grouping
    label_gain : None, "linear" or array-like
        None: the gain of grade y is ``2 ** y - 1``, for any real y >= 0. "linear": y itself. An array: the
        gain of grade 0, 1, ..., as LightGBM's parameter of this name.
    sigmoid : float
    truncation : int
    norm : bool
    name : str
        How messages call the target.

    Examples
    --------
    >>> lists = NdcgLists(np.array([0.0, 1.0, 2.0]), check_groups(3, group=[3]))
    >>> lists.ndcg(np.array([0.1, 0.2, 0.3]))
    1.0
    """

    def __init__(
        self,
        target: np.ndarray,
        grouping: Grouping,
        *,
        label_gain: Any = None,
        sigmoid: float = 1.0,
        truncation: int = 30,
        norm: bool = True,
        name: str = "target",
    ) -> None:
        check_real("sigmoid", sigmoid, *POSITIVE, "a positive number")
        check_integer("truncation", truncation, 1)
        self.sigmoid: float = float(sigmoid)
        self.truncation: int = int(truncation)
        self.norm: bool = bool(norm)
        self.order: np.ndarray = grouping.order
        self.indptr: np.ndarray = grouping.indptr
        self.gains: np.ndarray = gains_of(target, label_gain, name)[self.order]
        self.ideal: NDArray[np.float64] = _core.ideal_dcg(self.gains, self.indptr, self.truncation, 1)
        filled = grouping.sizes > 0
        starts = self.indptr[:-1][filled]
        most, least = (extreme.reduceat(self.gains, starts) for extreme in (np.maximum, np.minimum))
        if not (most > least).any():
            raise ValueError(f"{name} is constant within each group: there is no order to learn")
        self._ideal_at: dict[int, np.ndarray] = {self.truncation: self.ideal}

    def gradients(
        self, scores: np.ndarray, rank_by: np.ndarray | None = None, with_loss: bool = True, n_jobs: int = 1
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """(loss, gradient, hessian) at finite float64 scores (n,); see `ndcg_gradients`."""
        return _core.lambda_gradients(
            scores=scores,
            rank_by=scores if rank_by is None else rank_by,
            gains=self.gains,
            ideal=self.ideal,
            order=self.order,
            indptr=self.indptr,
            sigmoid=self.sigmoid,
            truncation=self.truncation,
            norm=self.norm,
            with_loss=with_loss,
            n_threads=n_jobs,
        )

    def ndcg(self, scores: np.ndarray, k: int = 10, *, n_jobs: int = 1) -> float:
        """Mean nDCG@k over the groups with a positive gain; tied rows share the mean of their gains."""
        if k not in self._ideal_at:
            self._ideal_at[k] = _core.ideal_dcg(self.gains, self.indptr, k, n_jobs)
        values = _core.list_ndcg(scores, self.gains, self._ideal_at[k], self.order, self.indptr, k, n_jobs)
        return float(np.mean(values[~np.isnan(values)]))


def gains_of(target: np.ndarray, label_gain: Any = None, name: str = "target") -> np.ndarray:
    """float64 (n,): the gain of each grade; see `NdcgLists`.

    Examples
    --------
    >>> gains_of(np.array([0.0, 1.0, 2.0, 0.5]))
    array([0.        , 1.        , 3.        , 0.41421356])
    """
    if (target < 0).any():
        raise ValueError(f"{name} must be >= 0, got {target.min():g}")
    if label_gain is None:
        if target.max(initial=0) > _MAX_EXPONENT:
            raise ValueError(
                f"{name} must be at most {_MAX_EXPONENT} for gains 2^y - 1, got {target.max():g}: "
                "use label_gain='linear'"
            )
        return np.asarray(exp2(target) - 1.0)
    if isinstance(label_gain, str):
        if label_gain != "linear":
            raise ValueError(f"label_gain must be None, 'linear' or an array, got {label_gain!r}")
        return np.array(target, np.float64)
    table = check_numbers(label_gain, "label_gain")
    grade = target.astype(np.int64)
    if (grade != target).any() or (len(grade) and grade.max() >= len(table)):
        raise ValueError(
            f"{name} must hold integers below the length of label_gain, {len(table)}, got {target.max():g}"
        )
    return table[grade]


def ndcg_gradients(
    scores: Any,
    target: Any,
    group: Any = None,
    *,
    qid: Any = None,
    label_gain: Any = None,
    sigmoid: float = 1.0,
    truncation: int = 30,
    norm: bool = True,
    rank_by: Any = None,
    n_jobs: int | None = None,
) -> tuple[float, np.ndarray, np.ndarray]:
    """LambdaRank: a pair of a query weighs as much as nDCG would change if the two rows were swapped.

    A pair of rows at ranks i < j, one of them among the first `truncation`, whose gains differ, has weight

        |gain_i - gain_j| |1 / log2(i + 2) - 1 / log2(j + 2)| / ideal DCG          (ranks from 0)

    divided by 0.01 + |s_i - s_j| with `norm`. Its loss is ``log(1 + exp(-sigmoid z))``, z the score of the
    better row minus that of the other. With `norm` the sums of a query are multiplied by ``log2(1 + t) /
    t``, t the sum of the absolute values of its gradients. These are LightGBM's formulas, including its
    table of 2^20 sigmoids: boosting on them grows the trees of LightGBM's own objective="lambdarank".

    Parameters
    ----------
    scores : array-like (n,)
        Ties keep the order of the rows.
    target : array-like (n,)
        Grades >= 0.
    group, qid : array-like
        Sizes of consecutive queries, or the query of each row; one of them is needed.
    label_gain : None, "linear" or array-like
        Gains: ``2 ** y - 1`` (also between integers), y itself, or a table for grades 0, 1, ...
    sigmoid : float
    truncation : int
        LightGBM's ``lambdarank_truncation_level``; also the depth of the ideal DCG.
    norm : bool
        LightGBM's ``lambdarank_norm``.
    rank_by : array-like (n,) or None
        Scores that give the ranks instead. If they are held fixed, and with ``norm=False``, the loss is a
        convex function of `scores`.
    n_jobs : int or None

    Returns
    -------
    loss : float
        Sum over the queries of the weighted pair losses.
    gradient : float64 array (n,)
        Its derivative with the weights held fixed, as in LambdaRank; within 1.2e-5 of a pair's weight.
    hessian : float64 array (n,), >= 0
        The diagonal of its second derivative, likewise.

    Raises
    ------
    ValueError
        No queries, bad shapes, values that are negative or not finite, or a target that is constant
        within each query.

    Examples
    --------
    >>> loss, gradient, hessian = ndcg_gradients([0.0, 0.0], [0, 1], [2], norm=False)
    >>> gradient.round(4)
    array([ 0.1845, -0.1845])
    """
    s = check_numbers(scores, "scores")
    y = check_numbers(target, "target", len(s))
    if group is None and qid is None:
        raise ValueError("nDCG is defined within queries: give group (sizes) or qid (ids)")
    options = {"label_gain": label_gain, "sigmoid": sigmoid, "truncation": truncation, "norm": norm}
    lists = NdcgLists(y, check_groups(len(s), group, qid), **options)
    ranked = None if rank_by is None else check_numbers(rank_by, "rank_by", len(s))
    return lists.gradients(s, rank_by=ranked, n_jobs=resolve_n_jobs(n_jobs))
