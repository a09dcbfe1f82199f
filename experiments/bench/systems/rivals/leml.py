"""LEML (Yu et al. 2014, "Large-scale multi-label learning with missing labels"), squared loss over all pairs.

``|Y - X W H'|^2 + penalty (|W|^2 + |H|^2)`` is minimised by alternating least squares; for W by conjugate
gradients, whose products touch X and Y alone.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from systems.rivals.base import Rival


class LEML(Rival):
    """See above."""

    rank, penalty, rounds, steps = 100, 1.0, 5, 10
    grid = (("rank", (100, 300)), ("penalty", (1.0, 0.1)))
    in_trials = (("rounds", 3),)

    def learn(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        X, Y, rank = X.astype(np.float64), Y.astype(np.float64), min(self.rank, *Y.shape)
        H = np.linalg.qr(Y.T @ np.random.default_rng(self.seed).standard_normal((Y.shape[0], rank)))[0]
        W = np.zeros((X.shape[1], rank))
        for _ in range(self.rounds):
            W = self._solve(X, X.T @ (Y @ H), H.T @ H, W)
            Z = X @ W
            H = np.linalg.solve(Z.T @ Z + self.penalty * np.eye(rank), (Y.T @ Z).T).T
        self.W, self.H = W.astype(np.float32), H.astype(np.float32)

    def _solve(self, X: sp.csr_matrix, right: np.ndarray, gram: np.ndarray, W: np.ndarray) -> np.ndarray:
        """W with ``X'X W gram + penalty W = right``, from `steps` conjugate gradient steps."""
        residual = right - (X.T @ (X @ W)) @ gram - self.penalty * W
        direction, size = residual.copy(), np.vdot(residual, residual)
        for _ in range(self.steps):
            if size == 0:
                break
            image = (X.T @ (X @ direction)) @ gram + self.penalty * direction
            step = size / np.vdot(direction, image)
            W, residual = W + step * direction, residual - step * image
            before, size = size, np.vdot(residual, residual)
            direction = residual + (size / before) * direction
        return W

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        return (X @ self.W) @ self.H.T
