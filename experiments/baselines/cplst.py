"""CPLST, conditional principal label space transformation (Chen & Lin 2012, "Feature-aware label space
dimension reduction for multi-label classification", Algorithm 1).

With Z the labels less their means and H = X (X'X + penalty)^-1 X' of ridge regression, the directions V (L,
m) are the m largest eigenvectors of Z'HZ: those that hold much of the labels and that X predicts
well. X is regressed on Z V, and the scores are (x W) V' plus the means.

Small version: eigenvectors by subspace iteration from random vectors; scores are not rounded to 0 and 1.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from protocol import Ridge

_ROUNDS, _SPARE = 4, 10  # of subspace iteration; directions more than are kept


class CPLST:
    """See above; `rank` is m."""

    def __init__(self, rank: int = 100, penalty: float = 1.0, seed: int = 0) -> None:
        self.rank, self.penalty, self.seed = rank, penalty, seed

    def fit(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> CPLST:
        X, Y = X.astype(np.float64), Y.astype(np.float64)
        n_labels = Y.shape[1]
        ridge = Ridge(X, self.penalty)
        self.mean = np.asarray(Y.mean(axis=0)).ravel()

        def centred(V: np.ndarray) -> np.ndarray:
            return Y @ V - self.mean @ V

        rank = min(self.rank, n_labels)
        V = np.random.default_rng(self.seed).standard_normal((n_labels, min(n_labels, rank + _SPARE)))
        for _ in range(_ROUNDS):
            fitted = X @ ridge.solve(centred(np.linalg.qr(V)[0]))
            V = Y.T @ fitted - np.outer(self.mean, fitted.sum(axis=0))
        # The order within the subspace is that of the singular values of its last image.
        self.V = np.linalg.svd(V, full_matrices=False)[0][:, :rank]
        self.W = ridge.solve(centred(self.V))
        return self

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        return (X @ self.W) @ self.V.T + self.mean
