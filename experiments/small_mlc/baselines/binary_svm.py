"""Binary-SVM: a linear support vector machine a label, cut at zero."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from baselines.base import Baseline, Features, Scorer, one_vs_rest


class BinarySVM(Baseline):
    """One-vs-rest linear SVM (squared hinge), C by five-fold cross-validation."""

    GRID = (0.0001, 0.001, 0.01, 0.1, 1.0)
    # Rows of unit length ask for larger C than features of unit variance.
    TEXT_GRID = (0.1, 0.3, 1.0, 3.0, 10.0)

    def fit(self, X: Features, Y: np.ndarray) -> BinarySVM:
        grid = self.TEXT_GRID if sp.issparse(X) else self.GRID
        C = self.choose("C", grid[2:4] if self.quick else grid, lambda C: partial(self._fit, C), X, Y)
        self.scores_of = self._fit(C, X, Y)
        self.training = self.scores_of(X)
        return self

    def _fit(self, C: float, X: Features, Y: np.ndarray) -> Scorer:
        dual = sp.issparse(X) or X.shape[0] < X.shape[1]

        def fit_one(y: np.ndarray):
            return (
                LinearSVC(C=C, dual=dual, random_state=self.seed, max_iter=2000).fit(X, y).decision_function
            )

        return one_vs_rest(fit_one, Y, self.n_jobs)

    def scores(self, X: Features) -> np.ndarray:
        return self.scores_of(X)

    def training_scores(self) -> np.ndarray:
        return self.training
