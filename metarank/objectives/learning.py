"""`Training`: the steps of each method, from checked inputs to scorers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from metarank._util.elementary import logistic
from metarank.objectives.aggregation import Aggregation, LabelAggregation, LossAggregation, RankMetric
from metarank.objectives.bayes import label_aggregated_scorer, label_spread
from metarank.objectives.boosted_model import Boosting
from metarank.objectives.checks import Grouping, metric_of
from metarank.objectives.labels import Combination
from metarank.objectives.linear_model import LinearFit
from metarank.objectives.missing import check_linear, completed
from metarank.objectives.search import TRIALS, Trial, best_minimum, most_under_constraints
from metarank.objectives.watch import Metrics, Watch
from metarank.ranker.boosting import lightgbm_params

if TYPE_CHECKING:
    from metarank.objectives.multi_objective import MultiObjectiveRanker

PLUG_IN = ("plug-in-label", "plug-in-loss")


@dataclass
class Result(Trial):
    """Result of a fit: scorers, their weights, and the metrics of each round."""

    scorers: list[Any]
    evals: dict[str, dict[str, list[float]]]
    best_round: int | list[int]


class PlugIn:
    """The Bayes-optimal formulas, with probability models in place of the true probabilities.

    Parameters
    ----------
    top_grade : float64 array (K,)
        The models learn ``y_k / top_grade_k``.
    spread : float64 array (K,) or None
        Of the labels, by which loss aggregation divides their weights; None for label aggregation.
    """

    def __init__(self, top_grade: np.ndarray, spread: np.ndarray | None) -> None:
        self.top_grade: np.ndarray = top_grade
        self.spread: np.ndarray | None = spread

    def combine(self, log_odds: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """float64 (n,): ``sum_k w_k E[y_k | x]``, or with ``w_k / spread_k``."""
        if not len(log_odds[0]):
            return np.zeros(0)
        means = np.column_stack([logistic(s) for s in log_odds]) * self.top_grade
        return label_aggregated_scorer(means, self._inner(weights))

    def contributions(self, log_odds: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """float64 (n, d + 1) from those of each model's log-odds, scaled so that a row sums to its score."""
        out = np.zeros_like(log_odds[0])
        for part, weight in zip(log_odds, self._inner(weights) * self.top_grade):
            whole, common = part.sum(axis=1), part[:, -1]
            step = whole - common
            base = logistic(common)
            safe = np.where(np.abs(step) > 1e-12, step, 1.0)
            slope = np.where(np.abs(step) > 1e-12, (logistic(whole) - base) / safe, base * (1 - base))
            out[:, :-1] += weight * slope[:, None] * part[:, :-1]
            out[:, -1] += weight * base
        return out

    def _inner(self, weights: np.ndarray) -> np.ndarray:
        return weights if self.spread is None else weights / self.spread


class Training:
    """One call of `fit`: inputs that were checked, and the steps of each method."""

    def __init__(
        self,
        ranker: MultiObjectiveRanker,
        values: np.ndarray,
        names: list[str],
        grouping: Grouping,
        weights: np.ndarray,
        n_jobs: int,
        propensity: np.ndarray | None = None,
    ) -> None:
        self.ranker: MultiObjectiveRanker = ranker
        self.grouping: Grouping = grouping
        self.Y = dict(zip(names, values.T))
        self.values: np.ndarray = values
        self.names: list[str] = names
        self.weights: np.ndarray = weights
        self.n_jobs = n_jobs
        self.propensity: np.ndarray | None = propensity
        self.metric: RankMetric = "ndcg" if metric_of(ranker.metric, grouping) == "ndcg@10" else "auc"
        if propensity is not None:
            self._check_propensity(propensity)
        self.stop_on: int | str = self._check_stop_on()
        self.share: np.ndarray = self._check_constraints()
        self.alone: np.ndarray = np.full(len(names), np.nan)
        self._losses: dict[str, LossAggregation] = {}
        self.n_watched: int = 0

    def prepare(self, X: np.ndarray | sp.csr_matrix, X_eval: Any, metrics: Metrics) -> None:
        """Bins or standardises the features, once for all models."""
        self.watched = metrics
        self.watched_rows: np.ndarray | sp.csr_matrix = X if X_eval is None else X_eval
        ranker = self.ranker
        self.trainer: Boosting | LinearFit
        if ranker.model == "linear":
            self.trainer = LinearFit(X, X_eval, float(ranker.l2), 5 * int(ranker.n_rounds), self.n_jobs)
            return
        n_values = X.size  # of a sparse matrix those that are stored
        params = lightgbm_params(ranker, int(ranker.random_state), self.n_jobs, n_values)
        self.trainer = Boosting(X, X_eval, params, int(ranker.n_rounds))

    def fit(self) -> Result:
        """Train by the method that the ranker asks for."""
        search = {
            **dict.fromkeys(PLUG_IN, self._plug_in),
            "chebyshev": self._chebyshev,
            "epsilon": self._epsilon,
        }.get(self.ranker.aggregation)
        return self._one(self.weights) if search is None else search()

    def _plug_in(self) -> Result:
        watches = [self._watch(stop_on=k) for k in range(len(self.names))]
        plug_in = self.plug_in()
        values = self.values
        if self.propensity is not None and self._completes:
            values = completed(values, self.propensity)
        pairs = zip(values.T / self.values.max(axis=0)[:, None], watches)
        scorers = [self.trainer.fit_probability(target, watch) for target, watch in pairs]
        self.alone = np.array([watch.attained[k] for k, watch in enumerate(watches)])
        log_odds = [scorer.score(self.watched_rows, self.n_jobs) for scorer in scorers]
        attained = self.watched.measure(plug_in.combine(log_odds, self.weights))[:, watches[0].column]
        evals = {name: watch.curves()[name] for name, watch in zip(self.names, watches)}
        return Result(self.weights, attained, scorers, evals, [watch.best + 1 for watch in watches])

    def plug_in(self) -> PlugIn:
        """What a plug-in needs beside its models."""
        by_loss = self.ranker.aggregation == "plug-in-loss"
        top_grade = self.values.max(axis=0)
        if self.propensity is not None and not self._completes and self.propensity.ndim == 1:
            top_grade = top_grade / self.propensity  # models of what is observed
        return PlugIn(top_grade, label_spread(self.values, self.propensity) if by_loss else None)

    @property
    def _completes(self) -> bool:
        """Whether probability models take targets above 1: the logistic loss is linear in its target, so that
        o / p gives an unbiased one, convex for the linear model; trees would grow without end."""
        return self.ranker.model == "linear"

    def _chebyshev(self) -> Result:
        self._fit_alone([k for k in range(len(self.names)) if self.weights[k] > 0])
        alone = np.where(np.isnan(self.alone), 1.0, self.alone)
        return best_minimum(self._one, alone, self.weights * len(self.names))

    def _epsilon(self) -> Result:
        singles = self._fit_alone(list(range(len(self.names))))
        trial, kept = most_under_constraints(self._one, self.alone, self.share, self.weights, singles)
        if not kept:
            bound = [k for k in range(len(self.names)) if not np.isnan(self.share[k])]
            shown = ", ".join(f"{self.names[k]} {trial.attained[k] / self.alone[k]:.4f}" for k in bound)
            warnings.warn(
                f"no model found keeps all constraints; the shares attained are {shown}", stacklevel=4
            )
        return trial

    def _fit_alone(self, which: list[int]) -> list[Result]:
        trials = []
        for k in which:
            trials.append(self._one(np.eye(len(self.names))[k], stop_on=k))
            self.alone[k] = trials[-1].attained[k]
        return trials

    def _one(self, weights: np.ndarray, stop_on: int | None = None) -> Result:
        """A model of one aggregation with these weights."""
        watch = self._watch(stop_on)
        # The linear model minimises LambdaRank's loss without its norm, which has no fixed weights of pairs.
        linear = self.ranker.model == "linear" and self.metric == "ndcg"
        objective = self._aggregation(weights, self.metric, not linear)
        start = self._aggregation(weights, "auc", True) if linear else None
        scorer = self.trainer.fit(objective, watch, start)
        return Result(weights, watch.attained, [scorer], watch.curves(), watch.best + 1)

    def _watch(self, stop_on: int | None = None) -> Watch:
        whose = self.stop_on if stop_on is None else stop_on
        self.n_watched += 1
        part = (self.n_watched - 1, self._n_trainings())
        return Watch(self.watched, self.metric, whose, int(self.ranker.early_stopping), part)

    def _n_trainings(self) -> int:
        method = self.ranker.aggregation
        if method in PLUG_IN:
            return len(self.names)
        if method == "chebyshev":
            return int((self.weights > 0).sum()) + TRIALS
        return len(self.names) + TRIALS if method == "epsilon" else 1

    def _aggregation(self, weights: np.ndarray, metric: RankMetric, norm: bool) -> Aggregation:
        options = {name: getattr(self.ranker, name) for name in ("surrogate", "cost", "label_gain", "n_jobs")}
        options |= {"metric": metric, "norm": norm, "group": self.grouping, "propensities": self.propensity}
        method = self.ranker.aggregation
        if method not in ("label", "product"):
            if metric not in self._losses:  # pairs are sorted once for all weights
                self._losses[metric] = LossAggregation(self.Y, **options)
            self._losses[metric].weights = weights
            return self._losses[metric]
        how: Combination = "product" if method == "product" else self.ranker.combine
        if how == "lexicographic":
            return LabelAggregation(
                self.Y, how, order=np.argsort(-weights, kind="stable").tolist(), **options
            )
        seed = int(self.ranker.random_state)
        return LabelAggregation(self.Y, how, weights, random_state=seed, **options)

    def _check_propensity(self, propensity: np.ndarray) -> None:
        ranker = self.ranker
        combine = {"label": ranker.combine}.get(ranker.aggregation, "sum")
        check_linear(self.metric, ranker.cost, combine)
        if propensity.ndim == 2 and ranker.aggregation in PLUG_IN and not self._completes:
            raise ValueError(
                f"propensities must be one a label, shape ({len(self.names)},), with aggregation="
                f"{ranker.aggregation!r} and model={ranker.model!r}, got {propensity.shape}: its models are "
                "of observed labels, and a new row has no propensities; model='linear' takes them"
            )

    def _check_stop_on(self) -> int | str:
        stop_on = self.ranker.stop_on
        if stop_on is None:
            return "mean"
        if isinstance(stop_on, str) and stop_on in self.names:
            return self.names.index(stop_on)
        is_number = isinstance(stop_on, Integral) and not isinstance(stop_on, bool)
        if is_number and 0 <= int(stop_on) < len(self.names):
            return int(stop_on)
        if stop_on not in ("min", "mean"):
            raise ValueError(
                f"stop_on must be one of {self.names}, a number below {len(self.names)}, 'min' or 'mean', "
                f"got {stop_on!r}"
            )
        return str(stop_on)

    def _check_constraints(self) -> np.ndarray:
        """float64 (K,): the shares asked for, NaN where none is."""
        share = np.full(len(self.names), np.nan)
        for name, value in (self.ranker.constraints or {}).items():
            if name not in self.names:
                raise ValueError(f"constraints must name objectives of {self.names}, got {name!r}")
            if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1:
                raise ValueError(f"constraints must be shares in (0, 1], got {value!r} for {name!r}")
            share[self.names.index(name)] = float(value)
        if self.ranker.aggregation == "epsilon":
            free = np.isnan(share)
            if free.all() or not (self.weights[free] > 0).any():
                raise ValueError(
                    "constraints must name at least one objective and leave one of positive weight free, got "
                    f"{self.ranker.constraints!r}"
                )
        return share
