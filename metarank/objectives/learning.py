"""`Training`: from checked inputs to the models of one fit."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np

from metarank._util.elementary import logistic
from metarank.objectives.aggregation import PLUG_IN, Objective, RankMetric, label_spread
from metarank.objectives.checks import Grouping, check_groups, check_targets, metric_of
from metarank.objectives.models import Boosting, LinearFit, LinearModel, raw_scores
from metarank.objectives.partial_labels import check_linear, check_propensities, completed
from metarank.objectives.watch import Metrics, Watch
from metarank.persist.fields import Array
from metarank.persist.spec import Saved
from metarank.ranker.boosting import lightgbm_params
from metarank.types.boosters import BoosterArrays
from metarank.types.view import fold_of_rows


@dataclass(frozen=True, eq=False)
class GradedRows:
    """Rows with the grades of their objectives, checked.

    Parameters
    ----------
    X : features (n, d), or None where only grades are of interest
    values : float64 array (n, K)
        The grades.
    names : list of str
        Of the objectives.
    grouping : Grouping
    propensity : float64 array (K,) or (n, K), or None
    where : str
        How messages call the grades.
    """

    X: Any
    values: np.ndarray
    names: list[str]
    grouping: Grouping
    propensity: np.ndarray | None
    where: str = "Y"

    @property
    def n_queries(self) -> int:
        """0 without queries."""
        return len(self.grouping.ids) if self.grouping.has_queries else 0

    def folds(self, n_folds: int, seed: int) -> np.ndarray:
        """int array (n,): the fold of each row; queries, and without them copies of a row, are in one."""
        if not self.n_queries:
            return fold_of_rows(len(self.values), n_folds, seed, self.X, groups=np.arange(len(self.values)))
        of_query = fold_of_rows(self.n_queries, n_folds, seed, None, groups=np.arange(self.n_queries))
        return of_query[self.grouping.group_of_row]

    def take(self, rows: np.ndarray, where: str = "Y") -> GradedRows:
        """The rows of a mask (n,) of whole queries."""
        ids = self.grouping.ids[self.grouping.group_of_row][rows] if self.n_queries else None
        propensity = self.propensity
        if propensity is not None and propensity.ndim == 2:
            propensity = propensity[rows]
        grouping = check_groups(int(rows.sum()), qid=ids)
        return GradedRows(self.X[rows], self.values[rows], self.names, grouping, propensity, where)


def graded_rows(
    X: Any,
    Y: Any,
    group: Any = None,
    qid: Any = None,
    propensities: Any = None,
    *,
    where: str = "",
    objectives: list[str] | None = None,
) -> GradedRows:
    """Checked features, None for none, with grades, queries and propensities, which are checked.

    `where` is how messages call rows beside those of the training, `objectives` what they must have.
    """
    called = f"Y of {where}" if where else "Y"
    values, names = check_targets(Y, n_rows=None if X is None else X.shape[0], name=called)
    if objectives is not None and names != objectives:
        raise ValueError(f"{called} must hold the objectives {objectives}, got {names}")
    grouping = check_groups(len(values), group, qid)
    name = "eval_propensities" if where else "propensities"
    propensity = check_propensities(propensities, values.shape, names, name)
    return GradedRows(X, values, names, grouping, propensity, where or "Y")


@dataclass(frozen=True)
class Result:
    """Models, the final metric of each objective, and the metrics of each round."""

    models: list[Any]
    attained: np.ndarray
    evals: dict[str, dict[str, list[float]]]
    best_round: int | list[int]


@dataclass(eq=False, repr=False)
class PlugIn(Saved):
    """The Bayes-optimal formulas, with probability models in place of the true probabilities.

    Parameters
    ----------
    top_grade : float64 array (K,)
        The models learn ``y_k / top_grade_k``.
    spread : float64 array (K,) or None
        Of the labels, by which loss aggregation divides their weights; None for label aggregation.
    """

    top_grade: Annotated[np.ndarray, Array("", np.float64, ("K",), least=0)]
    spread: Annotated[np.ndarray | None, Array("", np.float64, ("K",), above=0, optional=True)]

    def combine(self, log_odds: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """float64 (n,): ``sum_k w_k E[y_k | x]``, or with ``w_k / spread_k``."""
        out = np.zeros(len(log_odds[0]))
        for part, weight, top in zip(log_odds, self._inner(weights), self.top_grade):
            out += weight * (logistic(part) * top)
        return out

    def contributions(self, log_odds: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """float64 (n, d + 1) from those of each model's log-odds, scaled so that a row sums to its score."""
        out = np.zeros_like(log_odds[0])
        for part, weight in zip(log_odds, self._inner(weights) * self.top_grade):
            total, common = part.sum(axis=1), part[:, -1]
            step = total - common
            base = logistic(common)
            safe = np.where(np.abs(step) > 1e-12, step, 1.0)
            slope = np.where(np.abs(step) > 1e-12, (logistic(total) - base) / safe, base * (1 - base))
            out[:, :-1] += weight * slope[:, None] * part[:, :-1]
            out[:, -1] += weight * base
        return out

    def _inner(self, weights: np.ndarray) -> np.ndarray:
        return weights if self.spread is None else weights / self.spread


@dataclass
class Training:
    """One call of `fit`: parameters and inputs that were checked, and the steps of each method."""

    settings: SimpleNamespace
    rows: GradedRows
    weights: np.ndarray

    def __post_init__(self) -> None:
        settings, rows = self.settings, self.rows
        self.values, self.names, self.propensity = rows.values, rows.names, rows.propensity
        self.metric: RankMetric = "ndcg" if metric_of(settings.metric, rows.grouping) == "ndcg@10" else "auc"
        self.is_plug_in: bool = settings.aggregation.method in PLUG_IN
        # The logistic loss is linear in its target, so that o / p gives an unbiased one, convex for the
        # linear model; trees would grow without end on targets above 1.
        self._completes: bool = settings.model == "linear"
        if self.propensity is not None:
            self._check_propensity(self.propensity)
        self.stop_on: int | str = self._check_stop_on()
        self.top_grade: np.ndarray = self.values.max(axis=0)

    def fit(self, X_eval: Any, metrics: Metrics) -> Result:
        """Trained, and measured on the rows to watch: those of `X_eval`, or all."""
        settings, X = self.settings, self.rows.X
        watched_rows = X if X_eval is None else X_eval
        trainer: LinearFit | Boosting
        if settings.model == "linear":
            trainer = LinearFit(X, X_eval, settings.l2, 5 * settings.n_rounds, settings.n_jobs)
        else:
            n_values = X.size  # of a sparse matrix those that are stored
            params = lightgbm_params(settings.params, settings.seed, settings.n_jobs, n_values)
            trainer = Boosting(X, X_eval, params, settings.n_rounds)
        if not self.is_plug_in:
            watch = self._watch(metrics, self.stop_on, (0, 1))
            model = self._ordered(trainer, watch)
            return Result([model], watch.attained, watch.curves(), watch.best + 1)
        values = self.values
        if self.propensity is not None and self._completes:
            values = completed(values, self.propensity)
        watches = [self._watch(metrics, k, (k, len(self.names))) for k in range(len(self.names))]
        targets = values.T / self.top_grade[:, None]
        models = [trainer.fit_probability(y, watch) for y, watch in zip(targets, watches)]
        log_odds = [raw_scores(model, watched_rows, settings.n_jobs) for model in models]
        scores = self.plug_in().combine(log_odds, self.weights)
        attained = metrics.measure(scores)[:, watches[0].column]
        evals = {name: watch.curves()[name] for name, watch in zip(self.names, watches)}
        return Result(models, attained, evals, [watch.best + 1 for watch in watches])

    def _ordered(self, trainer: Boosting | LinearFit, watch: Watch) -> LinearModel | BoosterArrays:
        """The model of an order."""
        # The linear model minimises LambdaRank's loss without its norm, which has no fixed weights of pairs.
        by_ranks = isinstance(trainer, LinearFit) and self.metric == "ndcg"
        start = self._objective("auc", True) if by_ranks else None
        return trainer.fit(self._objective(self.metric, not by_ranks), watch, start)

    def plug_in(self) -> PlugIn:
        """What a plug-in needs beside its models."""
        top_grade = self.top_grade
        if self.propensity is not None and not self._completes:
            top_grade = top_grade / self.propensity  # models of what is observed, one per label
        by_loss = self.settings.aggregation.method == "plug-in-loss"
        return PlugIn(top_grade, label_spread(self.values, self.propensity) if by_loss else None)

    def _watch(self, metrics: Metrics, stop_on: int | str, part: tuple[int, int]) -> Watch:
        return Watch(metrics, self.metric, stop_on, self.settings.early_stopping, part)

    def _objective(self, metric: RankMetric, norm: bool) -> Objective:
        return self.settings.aggregation.objective(
            dict(zip(self.names, self.values.T)),
            self.weights,
            metric=metric,
            group=self.rows.grouping,
            label_gain=self.settings.label_gain,
            norm=norm,
            n_jobs=self.settings.n_jobs,
            propensities=self.propensity,
        )

    def _check_propensity(self, propensity: np.ndarray) -> None:
        aggregation = self.settings.aggregation
        check_linear(self.metric, aggregation.cost, aggregation.combination)
        if propensity.ndim == 2 and self.is_plug_in and not self._completes:
            raise ValueError(
                f"propensities must be one per label, shape ({len(self.names)},), with aggregation="
                f"{aggregation.method!r} and model={self.settings.model!r}, got {propensity.shape}: its "
                "models are of observed labels, and a new row has no propensities; model='linear' takes them"
            )

    def _check_stop_on(self) -> int | str:
        stop_on = self.settings.stop_on
        if stop_on is None:
            return "mean"
        if isinstance(stop_on, str) and stop_on in self.names:
            return self.names.index(stop_on)
        if (type(stop_on) is int and 0 <= stop_on < len(self.names)) or stop_on in ("min", "mean"):
            return stop_on  # type: ignore[no-any-return]
        raise ValueError(
            f"stop_on must be one of {self.names}, a number below {len(self.names)}, 'min' or 'mean', "
            f"got {stop_on!r}"
        )
