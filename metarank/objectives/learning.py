"""`Training`: the steps of each method, from checked inputs to scorers."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from metarank._util.elementary import logistic
from metarank.objectives.aggregation import Aggregation, LabelAggregation, LossAggregation, RankMetric
from metarank.objectives.bayes import label_aggregated_scorer, label_spread
from metarank.objectives.blended_model import Blending
from metarank.objectives.boosted_model import Boosting
from metarank.objectives.checks import Grouping, check_groups, metric_of
from metarank.objectives.choice import Choice
from metarank.objectives.labels import Combination
from metarank.objectives.linear_model import LinearFit
from metarank.objectives.partial_labels import check_linear, completed
from metarank.objectives.search import TRIALS, Trial, best_minimum, most_under_constraints
from metarank.objectives.watch import Metrics, Unwatched, Watch
from metarank.ranker.boosting import lightgbm_params

if TYPE_CHECKING:
    from metarank.objectives.multi_objective import MultiObjectiveRanker

PLUG_IN = ("plug-in-label", "plug-in-loss")
SEARCHES = ("chebyshev", "epsilon")
Trainer = Boosting | LinearFit | Blending


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
        self._losses: dict[tuple[str, bool], LossAggregation] = {}
        self.top_grade: np.ndarray = values.max(axis=0)
        self.n_watched: int = 0

    def prepare(
        self, X: np.ndarray | sp.csr_matrix, X_eval: Any, metrics: Metrics, choice: Choice | None = None
    ) -> None:
        """Bins or standardises the features, once for all models."""
        self.watched = metrics
        self.watched_rows: np.ndarray | sp.csr_matrix = X if X_eval is None else X_eval
        choice = Choice.of(self.ranker.model) if choice is None else choice
        linear = trees = None
        if choice.linear is not None:
            own = _with(self.ranker, choice.linear)
            linear = LinearFit(X, X_eval, float(own.l2), 5 * int(own.n_rounds), self.n_jobs)
        if choice.trees is not None:
            own = _with(self.ranker, choice.trees)
            n_values = X.size  # of a sparse matrix those that are stored
            params = lightgbm_params(own, int(own.random_state), self.n_jobs, n_values)
            trees = Boosting(X, X_eval, params, int(own.n_rounds))
        self.trainer: Trainer
        if linear is not None and trees is not None:
            factors = choice.factors(of_log_odds=self.is_plug_in)
            self.trainer = Blending(linear, trees, factors, choice.share, self.n_jobs)
        else:
            found = trees if linear is None else linear
            assert found is not None
            self.trainer = found

    @property
    def is_plug_in(self) -> bool:
        return self.ranker.aggregation in PLUG_IN

    @property
    def n_models(self) -> int:
        """How many scorers one fit has."""
        return len(self.names) if self.is_plug_in else 1

    def rows(self, rows: np.ndarray) -> Training:
        """The training of some rows, by their numbers, without a search for weights."""
        ranker = copy.copy(self.ranker)
        if ranker.aggregation in SEARCHES:
            ranker.aggregation, ranker.constraints = "loss", None
        ids = self.grouping.ids[self.grouping.group_of_row[rows]] if self.grouping.has_queries else None
        by_row = self.propensity is not None and self.propensity.ndim == 2
        propensity = self.propensity[rows] if by_row else self.propensity  # type: ignore[index]
        grouping = check_groups(len(rows), qid=ids)
        values = self.values[rows]
        out = Training(ranker, values, self.names, grouping, self.weights, self.n_jobs, propensity)
        out.top_grade = self.top_grade
        return out

    def can_learn(self) -> bool:
        """Whether every label, or the aggregated one, has an order."""
        if self.is_plug_in:
            return bool(np.ptp(self.values, axis=0).all())
        try:
            self._aggregation(self.weights, self.metric, True)
        except ValueError:
            return False
        return True

    def scorers(self) -> list[Any]:
        """Trained without a search; nothing is measured, unless to stop early."""
        if self.is_plug_in:
            return self._probabilities([self._unmeasured(k) for k in range(len(self.names))])
        watch = self._unmeasured()
        return [self._with_parts(self.trainer, self._trained, self.weights, watch)]

    def combined(self, scores: list[np.ndarray]) -> np.ndarray:
        """The ranking score, from those of each scorer."""
        return self.plug_in().combine(scores, self.weights) if self.is_plug_in else scores[0]

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
        scorers = self._probabilities(watches)
        self.alone = np.array([watch.attained[k] for k, watch in enumerate(watches)])
        log_odds = [scorer.score(self.watched_rows, self.n_jobs) for scorer in scorers]
        attained = self.watched.measure(self.combined(log_odds))[:, watches[0].column]
        evals = {name: watch.curves()[name] for name, watch in zip(self.names, watches)}
        return Result(self.weights, attained, scorers, evals, [watch.best + 1 for watch in watches])

    def _probabilities(self, watches: list[Watch]) -> list[Any]:
        """A probability model for each objective."""
        values = self.values
        if self.propensity is not None and self._completes:
            values = completed(values, self.propensity)

        def train(trainer: Boosting | LinearFit, target: np.ndarray, watch: Watch) -> Any:
            return trainer.fit_probability(target, watch)

        pairs = zip(values.T / self.top_grade[:, None], watches)
        return [self._with_parts(self.trainer, train, target, watch) for target, watch in pairs]

    @staticmethod
    def _with_parts(trainer: Trainer, train: Callable[..., Any], what: Any, watch: Watch) -> Any:
        """`train(trainer, what, watch)`, for either part of a blend."""
        if isinstance(trainer, Blending):
            return trainer.fit(lambda part, its_watch: train(part, what, its_watch), watch)
        return train(trainer, what, watch)

    def plug_in(self) -> PlugIn:
        """What a plug-in needs beside its models."""
        by_loss = self.ranker.aggregation == "plug-in-loss"
        top_grade = self.top_grade
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
        scorer = self._with_parts(self.trainer, self._trained, weights, watch)
        return Result(weights, watch.attained, [scorer], watch.curves(), watch.best + 1)

    def _trained(self, trainer: Boosting | LinearFit, weights: np.ndarray, watch: Watch) -> Any:
        # The linear model minimises LambdaRank's loss without its norm, which has no fixed weights of pairs.
        linear = isinstance(trainer, LinearFit) and self.metric == "ndcg"
        objective = self._aggregation(weights, self.metric, not linear)
        start = self._aggregation(weights, "auc", True) if linear else None
        return trainer.fit(objective, watch, start)

    def _unmeasured(self, stop_on: int | None = None) -> Watch:
        return self._watch(stop_on) if self.ranker.early_stopping else Unwatched()

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
            key = metric, norm
            if key not in self._losses:  # pairs are sorted once for all weights
                self._losses[key] = LossAggregation(self.Y, **options)
            self._losses[key].weights = weights
            return self._losses[key]
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


def _with(ranker: MultiObjectiveRanker, params: dict[str, Any]) -> MultiObjectiveRanker:
    """The ranker with other values of some parameters."""
    out = copy.copy(ranker)
    for name, value in params.items():
        setattr(out, name, value)
    return out
