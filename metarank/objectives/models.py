"""What a `MultiObjectiveRanker` learns on one objective: a linear model or boosted trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._util.algebra import gram, solve_upper, times, upper_factor
from metarank.objectives.aggregation import Objective
from metarank.objectives.watch import Watch
from metarank.persist.fields import Array, Number
from metarank.persist.spec import Saved
from metarank.ranker.boosting import grown, pointwise_objective
from metarank.ranker.linear_ranker import StandardisedColumns
from metarank.types.boosters import BoosterArrays
from metarank.types.view import Features

# Rows of sparse features that are made dense at a time, and their values: of many features, fewer rows.
_BLOCK = 4096
_BLOCK_VALUES = 1 << 24
# Rows looked at to guess how strongly the columns go together.
_CURVATURE_ROWS = 20_000
# How often the ranks that weigh the pairs of nDCG are renewed.
_RENEWALS = 5

# Scores and what is ignored to gradients and Hessians.
Gradients = Callable[[np.ndarray, Any], tuple[np.ndarray, np.ndarray]]
# Scores to a loss and its gradient in the scores.
Loss = Callable[[np.ndarray], tuple[float, np.ndarray]]


@dataclass(frozen=True, eq=False)
class LinearModel(Saved):
    """Weights of columns, from which their means are subtracted; `spread` holds their standard deviations."""

    mean: Annotated[np.ndarray, Array("", np.float64, ("d",))]
    weights: Annotated[np.ndarray, Array("", np.float64, ("d",))]
    intercept: Annotated[float, Number("")]
    spread: Annotated[np.ndarray, Array("", np.float64, ("d",), least=0)]

    def predict(self, X: np.ndarray, *, n_jobs: int = 1) -> np.ndarray:
        return _core.linear_scores(X, self.mean, self.weights, self.intercept, n_jobs)

    def contributions(self, X: np.ndarray) -> np.ndarray:
        return np.column_stack([(X - self.mean) * self.weights, np.full(len(X), self.intercept)])

    def importances(self) -> np.ndarray:
        return np.abs(self.weights) * self.spread


def raw_scores(
    model: LinearModel | BoosterArrays, X: np.ndarray | sp.csr_matrix, n_jobs: int = 1
) -> np.ndarray:
    """float64 (n,): the scores of one model; sparse rows are made dense by blocks."""
    if isinstance(X, np.ndarray):
        return model.predict(X, n_jobs=n_jobs)
    step = max(1, min(_BLOCK, _BLOCK_VALUES // max(1, X.shape[1])))
    parts = [model.predict(X[i : i + step].toarray(), n_jobs=n_jobs) for i in range(0, X.shape[0], step)]
    return np.concatenate([np.zeros(0), *parts])


def normalised_importances(model: LinearModel | BoosterArrays) -> np.ndarray:
    """float64 (d,), summing to 1: of trees by the gain of their splits, of a linear model by the absolute
    weight times the column's standard deviation."""
    values = model.importances()
    return np.asarray(values / (values.sum() or 1.0))


class Boosting:
    """Trains on features that are binned once.

    Parameters
    ----------
    X, X_eval : float32 array or CSR matrix
        X_eval is None where the training rows are watched.
    params : dict
        LightGBM's.
    n_rounds : int
    """

    def __init__(self, X: Features, X_eval: Features | None, params: dict[str, Any], n_rounds: int) -> None:
        import lightgbm as lgb

        self.params: dict[str, Any] = params | {"metric": "None", "feature_pre_filter": False}
        self.n_rounds = n_rounds
        unlabelled = np.zeros(X.shape[0], np.float32)
        self.train = lgb.Dataset(X, label=unlabelled, params=self.params, free_raw_data=False).construct()
        self.held_out: lgb.Dataset | None = None
        if X_eval is not None:
            unlabelled = np.zeros(X_eval.shape[0], np.float32)
            self.held_out = self.train.create_valid(X_eval, label=unlabelled, params=self.params)

    def fit(
        self, objective: Gradients, watch: Watch | None = None, start: Objective | None = None
    ) -> BoosterArrays:
        """Trees grown on the gradients of an objective, up to the best round of the watch."""
        return self._grown("none", watch, objective)

    def fit_probability(self, target: np.ndarray, watch: Watch) -> BoosterArrays:
        """Trees whose raw score is the log-odds of a target in [0, 1]."""
        self.train.set_label(target)
        return self._grown(pointwise_objective(target), watch, None)

    def _grown(self, name: str, watch: Watch | None, objective: Gradients | None) -> BoosterArrays:
        n_features = self.train.num_feature()
        if all(self.train.feature_num_bin(j) < 2 for j in range(n_features)):  # nothing to split by
            if watch is not None:
                watch.record(np.zeros((self.held_out or self.train).num_data()))
            return BoosterArrays.without_trees(n_features)
        params, watched = self.params | {"objective": name}, {}
        if watch is not None:
            watched = {"after": watch.record, "best": lambda: watch.best + 1, "tell": watch.report}
        how: dict[str, Any] = {"objective": objective, "held_out": self.held_out, **watched}
        return grown(params, self.train, self.n_rounds, **how)


class LinearFit:
    """Minimises ``mean loss + l2 / 2 |w|^2`` by L-BFGS, as often as asked.

    Parameters
    ----------
    X, X_eval : float32 array
        X_eval is None where the training rows are watched.
    l2 : float
    max_iterations : int
    n_jobs : int
    """

    def __init__(
        self, X: np.ndarray, X_eval: np.ndarray | None, l2: float, max_iterations: int, n_jobs: int
    ) -> None:
        self.columns: StandardisedColumns = StandardisedColumns(X, n_jobs)
        self.X_eval: np.ndarray = X if X_eval is None else X_eval
        self.l2: float = l2
        self.max_iterations: int = max_iterations
        self.n_jobs: int = n_jobs
        # Columns go together: in coordinates where their covariance is one, L-BFGS takes few steps.
        rows = X[:: max(1, len(X) // _CURVATURE_ROWS)]
        z = (rows - self.columns.mean) * self.columns.scale
        self.root: np.ndarray = upper_factor(
            0.25 * gram(z, n_jobs=n_jobs) / len(z) + max(l2, 1e-6) * np.eye(X.shape[1])
        )

    def fit(self, objective: Objective, watch: Watch, start: Objective | None = None) -> LinearModel:
        """The optimum of an objective; one that weighs pairs by ranks renews them from `start`'s optimum on.

        LambdaRank's weights depend on the ranking: they are held while the loss is minimised, then taken
        from its optimum, a few times.
        """
        w = np.zeros(len(self.columns.mean))
        if start is None:
            return self._model(objective.mean_loss, watch, w)
        w = self._solve(start.mean_loss, w)[0]
        for number in range(_RENEWALS):
            ranks = self.columns.scores(self.columns.values, w, 0.0)

            def loss(scores: np.ndarray, ranks: np.ndarray = ranks) -> tuple[float, np.ndarray]:
                return objective.mean_loss(scores, ranks)

            if number < _RENEWALS - 1:
                w = self._solve(loss, w)[0]
        return self._model(loss, watch, w)

    def fit_probability(self, target: np.ndarray, watch: Watch) -> LinearModel:
        """Logistic regression on a target in [0, 1], with an intercept without penalty."""
        indptr, weight, y = np.arange(len(target) + 1), np.full(len(target), 1 / len(target)), target

        def loss(scores: np.ndarray) -> tuple[float, np.ndarray]:
            return _core.list_loss("logistic", scores, y.astype(np.float32), indptr, weight, self.n_jobs)

        return self._model(loss, watch, np.zeros(len(self.columns.mean)), has_intercept=True)

    def _model(self, loss: Loss, watch: Watch, w: np.ndarray, has_intercept: bool = False) -> LinearModel:
        w, b = self._solve(loss, w, watch, has_intercept)
        scale = self.columns.scale
        spread = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        return LinearModel(self.columns.mean, scale * w, b, spread)

    def _solve(
        self, loss: Loss, w: np.ndarray, watch: Watch | None = None, has_intercept: bool = False
    ) -> tuple[np.ndarray, float]:
        """The optimum, or the best step of the watch."""
        kept = np.append(times(self.root, w), 0.0)

        def watched_scores(u: np.ndarray) -> np.ndarray:
            return self.columns.scores(self.X_eval, solve_upper(self.root, u[:-1]), u[-1])

        def after(u: np.ndarray) -> None:
            nonlocal kept
            assert watch is not None
            watch.report(f"step {len(watch.history)}", min(1.0, len(watch.history) / self.max_iterations))
            stop = watch.record(watched_scores(u))
            if watch.best == len(watch.history) - 1:
                kept = u.copy()
            if stop:
                raise StopIteration

        solution = self.columns.minimised(
            loss,
            kept,
            self.root,
            self.l2,
            has_intercept,
            most_steps=self.max_iterations,
            flat=1e-7,
            after=None if watch is None else after,
        )
        if watch is None:
            kept = solution.x
        elif not watch.history:  # the start is the optimum
            watch.record(watched_scores(kept))
        return solve_upper(self.root, kept[:-1]), float(kept[-1])
