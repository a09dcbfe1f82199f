"""CPLST (Chen & Lin 2012, "Feature-aware label space dimension reduction for multi-label classification",
Algorithm 1).

With Z the labels less their means and H = X (X'X + penalty)^-1 X', the directions V (L, m) are the m largest
eigenvectors of Z'HZ: those that hold much of the labels and that X predicts well. X is regressed on Z V, and
the scores are (x W) V' plus the means.

Small version: eigenvectors by subspace iteration from random vectors; scores are not rounded to 0 and 1.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from systems.rivals.base import Ridge, Rival

_ROUNDS, _SPARE = 4, 10  # of subspace iteration; directions more than are kept


class CPLST(Rival):
    """See above; `rank` is m."""

    rank, penalty = 100, 1.0
    grid = (("rank", (100, 300)), ("penalty", (1.0, 0.1)))

    def learn(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        X, Y = X.astype(np.float64), Y.astype(np.float64)
        ridge, n_labels = Ridge(X, self.penalty), Y.shape[1]
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

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        return (X @ self.W) @ self.V.T + self.mean
