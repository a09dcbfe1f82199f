"""ProXML (Babbar & Schoelkopf 2019, "Data scarcity, robustness and extreme multi-label classification").

The squared hinge that is robust to changes of each feature of a row is one with an l1 penalty on the weights,
solved by proximal gradients (Algorithm 1): for each label, with s_i = 1 on relevant rows and -1 elsewhere,

    min_w |w|_1 + C sum_i max(0, 1 - s_i (w . x_i + b))^2.

Small version: accelerated steps (FISTA, restarted where the direction turns back), all labels of a block
together, a fixed number of steps; the bias b has no penalty; no weights of labels by propensity.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from systems.rivals.base import Rival

_BLOCK = 128  # labels together


class ProXML(Rival):
    """See above; too slow to try settings."""

    C, steps = 1.0, 150

    def learn(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        X = with_bias(X)
        curvature = 2 * self.C * largest_square(X, self.seed)
        blocks = []
        for start in range(0, Y.shape[1], _BLOCK):
            sign = np.where(Y[:, start : start + _BLOCK].toarray() > 0, np.float32(1), np.float32(-1))
            blocks.append(sp.csc_matrix(robust_weights(X, sign, self.C, curvature, self.steps)))
        self.W = sp.hstack(blocks, "csr")

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        return (with_bias(X) @ self.W).toarray()


def with_bias(X: sp.csr_matrix) -> sp.csr_matrix:
    """X and a column of ones."""
    return sp.hstack([X, np.ones((X.shape[0], 1), np.float32)], "csr", dtype=np.float32)


def largest_square(X: sp.csr_matrix, seed: int) -> float:
    """The square of the largest singular value, a little above it."""
    v = np.random.default_rng(seed).random(X.shape[1])
    for _ in range(50):
        v = X.T @ (X @ (v / np.linalg.norm(v)))
    return 1.01 * float(np.linalg.norm(v))


def robust_weights(X: sp.csr_matrix, sign: np.ndarray, C: float, curvature: float, steps: int) -> np.ndarray:
    """Weights (d, labels) of the problem above, of labels with the signs (n, labels)."""
    W = np.zeros((X.shape[1], sign.shape[1]), np.float32)
    W[-1] = -1
    ahead, momentum, backward = W, 1.0, X.T.tocsr()
    for _ in range(steps):
        violation = np.maximum(0, 1 - sign * (X @ ahead))
        step = ahead - backward @ (np.float32(-2 * C) * sign * violation) / np.float32(curvature)
        # The proximal step of the l1 penalty, which the bias in the last row does not have.
        moved = np.sign(step) * np.maximum(np.abs(step) - np.float32(1 / curvature), 0)
        moved[-1] = step[-1]
        if np.vdot(ahead - moved, moved - W) > 0:
            momentum = 1.0
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + np.float32((momentum - 1) / grown) * (moved - W)
        W, momentum = moved, grown
    return W
