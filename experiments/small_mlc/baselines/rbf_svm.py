"""One-vs-rest support vector machine with an RBF kernel."""

from __future__ import annotations

from functools import partial

import numpy as np
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
        return one_vs_rest(lambda y: SVC(C=C).fit(X, y).decision_function, Y, self.n_jobs)

    def scores(self, X: Features) -> np.ndarray:
        return self.scores_of(X)
