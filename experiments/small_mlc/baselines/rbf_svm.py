"""One-vs-rest support vector machine with an RBF kernel."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from baselines.base import Baseline, Features, Scorer, one_vs_rest


class RBFSVM(Baseline):
    """scikit-learn's SVC a label, gamma = "scale", C by five-fold cross-validation, cut at zero."""

    GRID = (1.0, 3.0, 10.0)

    def fit(self, X: Features, Y: np.ndarray) -> RBFSVM:
        C = self.choose(
            "C", self.GRID[:1] if self.quick else self.GRID, lambda C: partial(self._fit, C), X, Y
        )
        self.scores_of = self._fit(C, X, Y)
        return self

    def _fit(self, C: float, X: Features, Y: np.ndarray) -> Scorer:
        if sp.issparse(X):
            return self._fit_text(C, X.astype(np.float64), Y)
        return one_vs_rest(lambda y: SVC(C=C).fit(X, y).decision_function, Y, self.n_jobs)

    def _fit_text(self, C: float, X: sp.csr_matrix, Y: np.ndarray) -> Scorer:
        """The same from one kernel for all labels: libsvm takes twenty times as long on sparse rows."""
        variance = X.multiply(X).mean() - X.mean() ** 2
        gamma = 1.0 / (X.shape[1] * variance)
        kernel = rbf_kernel(X, gamma=gamma)
        scores_of = one_vs_rest(
            lambda y: SVC(C=C, kernel="precomputed").fit(kernel, y).decision_function, Y, self.n_jobs
        )
        return lambda Z: scores_of(rbf_kernel(Z.astype(np.float64), X, gamma=gamma))

    def scores(self, X: Features) -> np.ndarray:
        return self.scores_of(X)
