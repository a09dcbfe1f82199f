"""One-vs-rest logistic regression."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from baselines.base import Baseline, Features, Scorer, one_vs_rest


class LogisticOneVsRest(Baseline):
    """A logistic regression a label, C by cross-validation; the score is the probability."""

    cut = 0.5
    GRID = (0.001, 0.01, 0.1, 1.0)
    TEXT_GRID = (1.0, 10.0, 100.0)

    def fit(self, X: Features, Y: np.ndarray) -> LogisticOneVsRest:
        grid = self.TEXT_GRID if sp.issparse(X) else self.GRID
        C = self.choose("C", grid[2:3] if self.quick else grid, lambda C: partial(self._fit, C), X, Y)
        self.scores_of = self._fit(C, X, Y)
        return self

    def _fit(self, C: float, X: Features, Y: np.ndarray) -> Scorer:
        inputs = X.astype(np.float64)
        return one_vs_rest(lambda y: fit_logistic(inputs, y, C, self.seed), Y, self.n_jobs)

    def scores(self, X: Features) -> np.ndarray:
        return self.scores_of(X)


def make_logistic(X: Features, C: float, seed: int) -> LogisticRegression:
    """liblinear's dual solver for text, Newton's method otherwise: each many times faster than L-BFGS there.

    Newton's method wants float64.
    """
    if sp.issparse(X):
        return LogisticRegression(C=C, solver="liblinear", dual=True, random_state=seed)
    return LogisticRegression(C=C, solver="newton-cholesky")


def fit_logistic(X: Features, y: np.ndarray, C: float, seed: int) -> Scorer:
    """The probability of y given a row, learned from float64 X (n, d) and boolean y (n,)."""
    model = make_logistic(X, C, seed).fit(X, y)
    return lambda Z: model.predict_proba(Z)[:, 1]
