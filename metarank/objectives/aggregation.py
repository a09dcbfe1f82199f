"""`LossAggregation` and `LabelAggregation`: objectives of several targets, as callables of the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from metarank._util.parameters import check_choice
from metarank._util.threads import resolve_n_jobs
from metarank.objectives.checks import Grouping, check_groups, check_targets, check_weights, metric_of
from metarank.objectives.labels import Combination, aggregate_labels
from metarank.objectives.ndcg import NdcgLists
from metarank.objectives.pairwise import AucPairs, Cost, Surrogate
from metarank.objectives.partial_labels import (
    check_linear,
    check_propensities,
    completed,
    pair_costs,
    query_costs,
)

RankMetric = Literal["auc", "ndcg"]
METRICS: tuple[str, ...] = get_args(RankMetric)


class Aggregation:
    """A weighted sum of rank losses, each of one target.

    Called with scores (n,), it returns the gradient and the Hessian diagonal, scaled for boosting. An AUC
    loss is a mean over pairs; it is multiplied by n, so that LightGBM's ``min_sum_hessian_in_leaf`` and
    ``lambda_l2`` keep the meaning they have for a sum over rows. LambdaRank's scale is LightGBM's own. A
    second argument is ignored, so that LightGBM can take the object as its ``objective``.
    """

    def __init__(
        self,
        targets: Mapping[str, np.ndarray],
        weights: np.ndarray,
        grouping: Grouping,
        metric: RankMetric,
        n_jobs: int | None,
        *,
        label_gain: Any,
        norm: bool,
        costs: Sequence[np.ndarray] | None = None,
        **of_pairs: Any,
    ) -> None:
        check_choice("metric", metric, METRICS)
        metric_of(metric, grouping)
        self._terms: list[AucPairs | NdcgLists]
        if metric == "auc":
            of_target = [None] * len(targets) if costs is None else costs
            self._terms = [
                AucPairs(y, grouping, name=name, costs=cost, **of_pairs)
                for (name, y), cost in zip(targets.items(), of_target)
            ]
        else:
            of_lists = {"label_gain": label_gain, "norm": norm}
            self._terms = [NdcgLists(y, grouping, name=name, **of_lists) for name, y in targets.items()]
        self._weights = weights
        self._n_rows = len(grouping.order)
        self._n_jobs = resolve_n_jobs(n_jobs)

    def __call__(self, scores: np.ndarray, _data: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """(gradient, hessian), float64 (n,) each, for finite scores (n,)."""
        scores = np.ascontiguousarray(scores, np.float64)
        gradient, hessian = np.zeros(self._n_rows), np.zeros(self._n_rows)
        for weight, term in zip(self._weights, self._terms):
            if weight == 0:
                continue
            scale = weight * (self._n_rows if isinstance(term, AucPairs) else 1.0)
            _, g, h = term.gradients(scores, with_loss=False, n_jobs=self._n_jobs)
            gradient += scale * g
            hessian += scale * h
        return gradient, hessian

    def mean_loss(self, scores: np.ndarray, rank_by: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """The loss as a mean (over pairs, or over queries) and its gradient.

        Parameters
        ----------
        scores : array (n,)
        rank_by : array (n,) or None
            For nDCG: scores whose ranks weigh the pairs. If they are held fixed and the terms do not use
            LambdaRank's norm, the loss is convex in `scores`.
        """
        scores = np.ascontiguousarray(scores, np.float64)
        loss, gradient = 0.0, np.zeros(self._n_rows)
        for weight, term in zip(self._weights, self._terms):
            if weight == 0:
                continue
            if isinstance(term, AucPairs):
                value, slope, _ = term.gradients(scores, n_jobs=self._n_jobs)
            else:
                value, slope, _ = term.gradients(scores, rank_by=rank_by, n_jobs=self._n_jobs)
                weight = weight / (len(term.indptr) - 1)
            loss += weight * value
            gradient += weight * slope
        return loss, gradient


class LossAggregation(Aggregation):
    """Loss aggregation: ``sum_k a_k loss_k``, with weights a that sum to 1.

    Parameters
    ----------
    Y : array-like (n, K), data frame or mapping of names to columns
    weights : array-like (K,) or mapping of names, or None
    metric : "auc" or "ndcg"
        Pairwise surrogates of the AUC, each the mean over its own pairs, or LambdaRank.
    group, qid : array-like or None
        Sizes of consecutive queries, or the query of each row; "ndcg" needs one of them.
    surrogate, cost :
        As in `auc_gradients`; a matrix of costs is for the grades of each label.
    label_gain, norm :
        As in `ndcg_gradients`.
    n_jobs : int or None
    propensities : None, array-like (K,) or (n, K), or mapping of names
        Y is what was observed of complete labels: the losses are then estimates of theirs, see
        `metarank.objectives.partial_labels`. For "auc" and cost "difference" only.

    Attributes
    ----------
    weights : float64 array (K,)
        May be changed between calls.

    Raises
    ------
    ValueError
        Bad targets, weights, groups or propensities; a constant label, which has no AUC (the message names
        it).

    Examples
    --------
    >>> objective = LossAggregation([[0, 1], [1, 1], [1, 0]], weights=[1, 3], n_jobs=1)
    >>> gradient, hessian = objective(np.zeros(3))
    >>> gradient
    array([-0.1875, -0.75  ,  0.9375])
    """

    def __init__(
        self,
        Y: Any,
        weights: Any = None,
        *,
        metric: RankMetric = "auc",
        group: Any = None,
        qid: Any = None,
        surrogate: Surrogate = "logistic",
        cost: Cost = "difference",
        label_gain: Any = None,
        norm: bool = True,
        n_jobs: int | None = None,
        propensities: Any = None,
    ) -> None:
        values, names = check_targets(Y)
        self.names = names
        grouping = check_groups(len(values), group, qid)
        w = check_weights(weights, len(names), names=names)
        propensity = check_propensities(propensities, values.shape, names)
        costs = None
        if propensity is not None:
            check_linear(metric, cost)
            costs = query_costs(pair_costs(values, propensity, grouping)[1], grouping.sizes, names)
            values = completed(values, propensity)
        targets = {f"the label {name!r}": values[:, k] for k, name in enumerate(names)}
        options = {"surrogate": surrogate, "cost": cost, "label_gain": label_gain, "norm": norm}
        super().__init__(targets, w / w.sum(), grouping, metric, n_jobs, costs=costs, **options)

    @property
    def weights(self) -> np.ndarray:
        return self._weights

    @weights.setter
    def weights(self, weights: Any) -> None:
        w = check_weights(weights, len(self.names), names=self.names)
        self._weights = w / w.sum()


class LabelAggregation(Aggregation):
    """Label aggregation: the loss of one target that combines several.

    Parameters
    ----------
    Y : array-like (n, K), data frame or mapping of names to columns
    how : "sum", "product", "max", "lexicographic" or "stochastic"
        As in `aggregate_labels`.
    weights : array-like (K,) or mapping of names, or None
        Only their proportions count. The greatest becomes 1, so that a single label keeps its grades.
    order : sequence or None
        For "lexicographic", the most important label first.
    cost : "difference", "uniform" or float array (G, G)
        As in `auc_gradients`, of the aggregated label's grades; a matrix needs them to be integers, as the
        sum of binary labels of equal weight is. `scale_costs` makes those that have a Bayes-optimal scorer.
    metric, group, qid, surrogate, label_gain, norm, n_jobs :
        As in `LossAggregation`.
    random_state : int, None, RandomState or Generator
        For "stochastic".
    propensities : None, array-like (K,) or (n, K), or mapping of names
        As in `aggregate_labels`; for "auc" and cost "difference" only.

    Attributes
    ----------
    target : float64 array (n,)
        The aggregated label.

    Raises
    ------
    ValueError
        Bad targets, weights or groups; an aggregated label that is constant.

    Examples
    --------
    >>> objective = LabelAggregation([[0, 1], [1, 1], [0, 0]], n_jobs=1)
    >>> objective.target
    array([1., 2., 0.])
    >>> objective(np.zeros(3))[0]
    array([ 0.   , -1.125,  1.125])
    """

    def __init__(
        self,
        Y: Any,
        how: Combination = "sum",
        weights: Any = None,
        *,
        order: Sequence[int | str] | None = None,
        metric: RankMetric = "auc",
        group: Any = None,
        qid: Any = None,
        surrogate: Surrogate = "logistic",
        cost: Cost = "difference",
        label_gain: Any = None,
        norm: bool = True,
        random_state: Any = 0,
        n_jobs: int | None = None,
        propensities: Any = None,
    ) -> None:
        values, names = check_targets(Y)
        grouping = check_groups(len(values), group, qid)
        propensity = check_propensities(propensities, values.shape, names)
        if propensity is not None:
            check_linear(metric, cost, how)
        if weights is not None:
            weights = check_weights(weights, len(names), names=names)
            weights = weights / weights.max()
        self.target: NDArray[np.float64] = aggregate_labels(
            dict(zip(names, values.T)),
            how,
            weights=weights,
            order=order,
            group=grouping,
            random_state=random_state,
            propensities=propensity,
        )
        targets = {f"the aggregated label ({how} of {', '.join(names)})": self.target}
        options = {"surrogate": surrogate, "cost": cost, "label_gain": label_gain, "norm": norm}
        costs = None
        if propensity is not None and grouping.has_queries and np.ptp(self.target) > 0:
            found = pair_costs(self.target[:, None], np.ones(1), grouping)[0]
            costs = query_costs(found, grouping.sizes, ["the aggregated label"])
        super().__init__(targets, np.ones(1), grouping, metric, n_jobs, costs=costs, **options)
