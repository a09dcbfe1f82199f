"""`LinearFit`: a weighted sum of standardised columns on an objective of several targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from metarank import _core
from metarank._util.algebra import gram, solve_upper, times, upper_factor
from metarank.objectives.aggregation import Aggregation
from metarank.objectives.objective_model import ObjectiveModel
from metarank.objectives.watch import Unwatched, Watch
from metarank.persist.fields import Array, Number
from metarank.persist.spec import Spec
from metarank.ranker.linear_ranker import column_scale, minimised

# Rows looked at to guess how strongly the columns go together.
_CURVATURE_ROWS = 20_000
# How often the ranks that weigh the pairs of nDCG are renewed.
_RENEWALS = 5

# Scores to a loss and its gradient in the scores.
Loss = Callable[[np.ndarray], tuple[float, np.ndarray]]


class LinearScorer(ObjectiveModel):
    """Weights of standardised columns."""

    kind = "linear"

    saved: ClassVar[Spec] = Spec(
        Array("mean", np.float64, ("d",)),
        Array("weights", np.float64, ("d",)),
        Number("intercept"),
        Array("spread", np.float64, ("d",), least=0, optional=True),  # not kept in older files
    )

    def __init__(
        self, mean: np.ndarray, weights: np.ndarray, intercept: float, spread: np.ndarray | None = None
    ) -> None:
        self.mean: np.ndarray = mean
        self.weights: np.ndarray = weights
        self.intercept: float = intercept
        self.spread: np.ndarray | None = spread

    def importances(self) -> np.ndarray:
        """float64 (d,): size of each weight times the standard deviation of its column."""
        if self.spread is None:
            raise AttributeError("this model was saved before feature_importances_ was kept with it: refit")
        return np.abs(self.weights) * self.spread

    def score(self, X: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """float64 (n,)."""
        return _core.linear_scores(X, self.mean, self.weights, self.intercept, n_jobs)

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """float64 (n, d + 1): shares of the columns in the score, and the intercept."""
        return np.column_stack([(X - self.mean) * self.weights, np.full(len(X), self.intercept)])


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
        self.X: np.ndarray = X
        self.X_eval: np.ndarray = X if X_eval is None else X_eval
        self.l2: float = l2
        self.max_iterations: int = max_iterations
        self.n_jobs: int = n_jobs
        self.mean: np.ndarray
        self.scale: np.ndarray
        self.mean, self.scale = column_scale(X)
        # Columns go together: in coordinates where their covariance is one, L-BFGS takes few steps.
        rows = X[:: max(1, len(X) // _CURVATURE_ROWS)]
        z = (rows - self.mean) * self.scale
        self.root: np.ndarray = upper_factor(
            0.25 * gram(z, n_jobs=n_jobs) / len(z) + max(l2, 1e-6) * np.eye(X.shape[1])
        )

    def fit(self, objective: Aggregation, watch: Watch, start: Aggregation | None = None) -> LinearScorer:
        """The optimum of an objective; one that weighs pairs by ranks renews them from `start`'s optimum on.

        LambdaRank's weights depend on the ranking: they are held while the loss is minimised, then taken
        from its optimum, a few times.
        """
        if start is None:
            return self._minimize(objective.mean_loss, watch, np.zeros(len(self.mean)), False)
        w = self._solve(start.mean_loss, None, np.zeros(len(self.mean)), False)[0]
        for number in range(_RENEWALS):
            ranks = self._scores(self.X, w, 0.0)

            def loss(scores: np.ndarray, ranks: np.ndarray = ranks) -> tuple[float, np.ndarray]:
                return objective.mean_loss(scores, ranks)

            if number < _RENEWALS - 1:
                w = self._solve(loss, None, w, False)[0]
        return self._minimize(loss, watch, w, False)

    def fit_probability(self, target: np.ndarray, watch: Watch) -> LinearScorer:
        """Logistic regression on a target in [0, 1], with an intercept without penalty."""
        indptr, weight, y = np.arange(len(target) + 1), np.full(len(target), 1 / len(target)), target

        def loss(scores: np.ndarray) -> tuple[float, np.ndarray]:
            return _core.logistic_loss(scores, y.astype(np.float32), indptr, weight, self.n_jobs)

        return self._minimize(loss, watch, np.zeros(len(self.mean)), True)

    def _minimize(self, loss: Loss, watch: Watch, w: np.ndarray, has_intercept: bool) -> LinearScorer:
        w, b = self._solve(loss, watch, w, has_intercept)
        spread = np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0)
        return LinearScorer(self.mean, self.scale * w, b, spread)

    def _solve(
        self, loss: Loss, watch: Watch | None, w: np.ndarray, has_intercept: bool
    ) -> tuple[np.ndarray, float]:
        def in_weights(w: np.ndarray, b: float) -> tuple[float, np.ndarray, float]:
            value, slope = loss(self._scores(self.X, w, b))
            gradient = _core.linear_gradient(self.X, self.mean, slope, self.n_jobs)
            return value, self.scale * gradient, float(slope.sum())

        kept = np.append(times(self.root, w), 0.0)

        def after(u: np.ndarray) -> None:
            nonlocal kept
            if watch is None or isinstance(watch, Unwatched):
                return
            watch.report(f"step {len(watch.history)}", min(1.0, len(watch.history) / self.max_iterations))
            stop = watch.record(self._scores(self.X_eval, solve_upper(self.root, u[:-1]), u[-1]))
            if watch.best == len(watch.history) - 1:
                kept = u.copy()
            if stop:
                raise StopIteration

        found = minimised(
            in_weights,
            kept,
            self.root,
            self.l2,
            most_steps=self.max_iterations,
            flat=1e-7,
            least_gain=1e-13,
            has_intercept=has_intercept,
            after=after,
        )
        if watch is None or isinstance(watch, Unwatched):
            kept = found.x
        elif not watch.history:  # the start is the optimum
            watch.record(self._scores(self.X_eval, solve_upper(self.root, kept[:-1]), kept[-1]))
        return solve_upper(self.root, kept[:-1]), float(kept[-1])

    def _scores(self, X: np.ndarray, w: np.ndarray, b: float) -> np.ndarray:
        return _core.linear_scores(X, self.mean, self.scale * w, float(b), self.n_jobs)
