"""Classifier chains of logistic regressions."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.multioutput import ClassifierChain

from baselines.base import Baseline, Features
from baselines.logistic import make_logistic


class ClassifierChainLR(Baseline):
    """The mean of several scikit-learn chains in random order; the score is the probability."""

    cut = 0.5
    N_CHAINS = 10

    def fit(self, X: Features, Y: np.ndarray) -> ClassifierChainLR:
        # One chain on text: a chain of 90 labels over 26,000 words costs as much as ten elsewhere.
        n_chains = 1 if sp.issparse(X) or self.quick else self.N_CHAINS
        X = X.astype(np.float64)
        carried = Y.any(axis=0) & ~Y.all(axis=0)
        self.learned, self.constant = np.flatnonzero(carried), Y.all(axis=0).astype(np.float64)
        self.chains = [
            ClassifierChain(
                make_logistic(X, 10.0 if sp.issparse(X) else 1.0, self.seed),
                order="random",
                random_state=self.seed + i,
            ).fit(X, Y[:, self.learned].astype(np.int8))
            for i in range(n_chains)
        ]
        return self

    def scores(self, X: Features) -> np.ndarray:
        out = np.tile(self.constant, (X.shape[0], 1))
        out[:, self.learned] = np.mean(
            [chain.predict_proba(X.astype(np.float64)) for chain in self.chains], axis=0
        )
        return out
