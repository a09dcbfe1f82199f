"""`Aggregation`: how several targets become one objective, which is a callable of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from metarank._util.parameters import check_choice
from metarank._util.threads import resolve_n_jobs
from metarank.objectives.checks import Grouping, check_groups, check_targets, check_weights, metric_of
from metarank.objectives.ndcg import NdcgLists
from metarank.objectives.pairwise import COSTS, SURROGATES, AucPairs, Cost, Surrogate
from metarank.objectives.partial_labels import (
    check_linear,
    check_propensities,
    completed,
    pair_costs,
    query_costs,
)

RankMetric = Literal["auc", "ndcg"]
METRICS: tuple[str, ...] = get_args(RankMetric)
Combination = Literal["sum", "product", "max"]
COMBINATIONS: tuple[str, ...] = get_args(Combination)
Method = Literal["label", "loss", "product", "plug-in-label", "plug-in-loss"]
METHODS: tuple[str, ...] = get_args(Method)
PLUG_IN = ("plug-in-label", "plug-in-loss")


@dataclass(frozen=True, eq=False)
class Aggregation:
    """How several objectives become one.

    Parameters
    ----------
    method : str
        * "label": label aggregation: `combine` makes one target of all. With "sum" and
          difference costs the optimal order is that of ``sum_k w_k E[y_k | x]``.
        * "loss": loss aggregation: ``sum_k a_k loss_k``, each the mean over its own pairs. For AUC the
          optimal order is that of ``sum_k a_k eta_k(x) / (pi_k (1 - pi_k))``: skewed labels count
          more than their weight.
        * "product": "label" with ``combine="product"``. * "plug-in-label", "plug-in-loss": a probability
        model for each label, inserted into these two formulas.
          Only here `MultiObjectiveRanker.predict` takes other weights without a new fit.
    combine : "sum", "product" or "max"
        As in `aggregate_labels`.
    cost : "difference" or "uniform"
        The cost of misranking a pair of grades, as in `auc_gradients`: with "label" for grades of the
        aggregated label, otherwise of each label. Plug-ins use the formula of difference costs.
    surrogate : "logistic" or "hinge"
        As in `auc_gradients`.

    Raises
    ------
    ValueError
        If a value is unknown.

    Examples
    --------
    >>> objective = Aggregation("label").objective([[0, 1], [1, 1], [0, 0]], n_jobs=1)
    >>> objective(np.zeros(3))[0]
    array([ 0.   , -1.125,  1.125])
    """

    method: Method = "label"
    combine: Combination = "sum"
    cost: Cost = "difference"
    surrogate: Surrogate = "logistic"

    def __post_init__(self) -> None:
        check_choice("aggregation", self.method, METHODS)
        check_choice("combine", self.combine, COMBINATIONS)
        check_choice("surrogate", self.surrogate, SURROGATES)
        check_choice("cost", self.cost, COSTS)

    @classmethod
    def of(cls, value: Any) -> Aggregation:
        """An aggregation, the one of a method, or that of saved parameters."""
        if isinstance(value, Aggregation):
            return value
        if isinstance(value, Mapping):
            unknown = sorted(set(value) - set(cls.__dataclass_fields__))
            if unknown:
                raise ValueError(f"aggregation must be an Aggregation, got {unknown[0]!r:.80} of it")
            return cls(**value)
        return cls(value)

    @property
    def combination(self) -> Combination:
        """How labels are combined; the sum, where losses or probabilities are combined."""
        combine: dict[str, Combination] = {"label": self.combine, "product": "product"}
        return combine.get(self.method, "sum")

    def objective(
        self,
        Y: Any,
        weights: Any = None,
        *,
        metric: RankMetric = "auc",
        group: Any = None,
        qid: Any = None,
        label_gain: Any = None,
        norm: bool = True,
        n_jobs: int | None = None,
        propensities: Any = None,
    ) -> Objective:
        """The loss on some rows, for LightGBM's ``objective=``.

        Parameters
        ----------
        Y : array-like (n, K), data frame or mapping of names to columns
        weights : array-like (K,) or mapping of names, or None
            Only their proportions count. Those of losses sum to 1; the greatest of labels becomes 1, so that
            a single label keeps its grades.
        metric : "auc" or "ndcg"
            Pairwise surrogates of the AUC, each the mean over its own pairs, or LambdaRank.
        group, qid : array-like or None
            Sizes of consecutive queries, or the query of each row; "ndcg" needs one of them.
        label_gain, norm :
            As in `ndcg_gradients`.
        n_jobs : int or None
        propensities : None, array-like (K,) or (n, K), or mapping of names
            Y is what was observed of complete labels: the losses are then estimates of theirs, see
            `metarank.objectives.partial_labels`. For "auc" and cost "difference" only.

        Raises
        ------
        ValueError
            Invalid targets, weights, groups or propensities; a constant target, which has no AUC (the message
            names it); a plug-in, which has no objective.
        """
        if self.method in PLUG_IN:
            raise ValueError(f"aggregation must be 'label', 'loss' or 'product' here, got {self.method!r}")
        values, names = check_targets(Y)
        grouping = check_groups(len(values), group, qid)
        check_choice("metric", metric, METRICS)
        metric_of(metric, grouping)
        w = check_weights(weights, len(names), names=names)
        propensity = check_propensities(propensities, values.shape, names)
        costs = None
        if propensity is not None:
            check_linear(metric, self.cost, self.combination)
        if self.method == "loss":
            if propensity is not None:
                costs = query_costs(pair_costs(values, propensity, grouping)[1], grouping.sizes, names)
                values = completed(values, propensity)
            targets = {f"the label {name!r}": values[:, k] for k, name in enumerate(names)}
            w = w / w.sum()
        else:
            labels = dict(zip(names, values.T))
            scale = w if weights is None else w / w.max()
            target = aggregate_labels(labels, self.combination, weights=scale, propensities=propensity)
            if propensity is not None and grouping.has_queries and np.ptp(target) > 0:
                in_pairs = pair_costs(target[:, None], np.ones(1), grouping)[0]
                costs = query_costs(in_pairs, grouping.sizes, ["the aggregated label"])
            targets = {f"the aggregated label ({self.combination} of {', '.join(names)})": target}
            w = np.ones(1)
        terms: list[AucPairs | NdcgLists]
        if metric == "ndcg":
            terms = [
                NdcgLists(y, grouping, name=name, label_gain=label_gain, norm=norm)
                for name, y in targets.items()
            ]
        else:
            of_target: Sequence[np.ndarray | None] = [None] * len(targets) if costs is None else costs
            terms = [
                AucPairs(y, grouping, name=name, costs=cost, surrogate=self.surrogate, cost=self.cost)
                for (name, y), cost in zip(targets.items(), of_target)
            ]
        return Objective(terms, w, grouping, resolve_n_jobs(n_jobs))


class Objective:
    """A weighted sum of rank losses, each of one target.

    Called with scores (n,), it returns the gradient and the Hessian diagonal, scaled for boosting. An AUC
    loss is a mean over pairs; it is multiplied by n, so that LightGBM's ``min_sum_hessian_in_leaf`` and
    ``lambda_l2`` keep the meaning they have for a sum over rows. LambdaRank's scale is that of LightGBM. A
    second argument is ignored, so that LightGBM can take the object as its ``objective``.
    """

    def __init__(
        self, terms: list[AucPairs | NdcgLists], weights: np.ndarray, grouping: Grouping, n_jobs: int
    ) -> None:
        self._terms = terms
        self._weights = weights
        self._n_rows = len(grouping.order)
        self._n_jobs = n_jobs

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


def aggregate_labels(
    Y: Any, how: Combination = "sum", *, weights: Any = None, propensities: Any = None
) -> np.ndarray:
    """Label aggregation: combine several targets into one.

    Parameters
    ----------
    Y : array-like (n, K), data frame or mapping of names to columns
        Grades >= 0.
    how : str
        With weights w (ones by default):

        * "sum": ``sum_k w_k y_k``;
        * "product": ``prod_k y_k ** w_k``, a weight of 0 leaves a label out;
        * "max": ``max_k w_k y_k``.
    weights : array-like (K,) or mapping of names, or None
    propensities : None, array-like (K,) or (n, K), or mapping of names
        Of Y, the observed part of complete labels: for "sum" and "product" the value is then an
        unbiased estimate of that of the complete labels, see `metarank.objectives.partial_labels`.

    Returns
    -------
    float64 array (n,)

    Raises
    ------
    ValueError
        Invalid targets or weights; an unknown `how`; a sum or product too large for a float64.

    Examples
    --------
    >>> Y = [[0, 1], [1, 0], [1, 1], [0, 0]]
    >>> aggregate_labels(Y, weights=[1, 2])
    array([2., 1., 3., 0.])
    >>> aggregate_labels(Y, "product")
    array([0., 0., 1., 0.])
    """
    check_choice("how", how, COMBINATIONS)
    values, names = check_targets(Y)
    w = check_weights(weights, len(names), names=names)
    propensity = check_propensities(propensities, values.shape, names)
    observed_share: Any = 1.0
    if propensity is not None:
        check_linear("auc", "difference", how)
        if how == "product":  # a label of weight 0 has no part in it
            observed_share = np.where(w > 0, propensity, 1.0).prod(axis=-1)
        else:
            values = completed(values, propensity)
    with np.errstate(over="ignore"):
        if how == "sum":
            out = (values * w).sum(axis=1)
        elif how == "product":
            out = (values**w).prod(axis=1) / observed_share
        else:
            out = (values * w).max(axis=1)
    if not np.isfinite(out).all():
        raise ValueError(f"the {how} of the labels is too large for a float64 at row {np.argmax(out)}")
    return np.asarray(out)


def label_spread(Y: Any, propensities: Any = None) -> np.ndarray:
    """Half the mean difference of two rows' grades, E|y_k - y_k'| / 2: ``pi_k (1 - pi_k)`` of a binary label.

    The mean over its own pairs divides label k's loss by its spread, so skewed labels count more: loss
    aggregation ranks by ``sum_k a_k E[y_k | x] / spread_k`` (Lukasik et al. 2025,
    Proposition 5.2).

    Parameters
    ----------
    Y : float array (n, K)
        Grades >= 0.
    propensities : None, or float array (K,) or (n, K), optional
        Y is what was observed of complete labels: an unbiased estimate of their spread, times (n - 1) /
        n, see `metarank.objectives.partial_labels`.

    Returns
    -------
    float64 array (K,)
        0 for a constant label.

    Examples
    --------
    >>> label_spread([[1, 3], [0, 1], [0, 0], [0, 0]])
    array([0.1875, 0.625 ])
    """
    grades, names = check_targets(Y)
    n = len(grades)
    propensity = check_propensities(propensities, grades.shape, names)
    if propensity is not None:
        return np.asarray(pair_costs(grades, propensity, check_groups(n))[1][0] / n**2)
    # E|y - y'| / 2 = sum_i (2 i - n + 1) y_(i) / n^2 over the sorted grades, i from 0.
    rank = 2 * np.arange(n, dtype=np.float64) - (n - 1)
    ordered = np.sort(grades, axis=0)
    return np.array([(rank * (column - column[0])).sum() for column in ordered.T]) / n**2
