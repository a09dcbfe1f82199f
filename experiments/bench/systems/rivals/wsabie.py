"""WSABIE (Weston et al. 2011, "WSABIE: Scaling up to large vocabulary image annotation", Algorithm 1).

Scores x U V' of low rank. For a relevant pair, irrelevant labels are drawn until one violates the margin, the
N-th; its rank is about (L - 1) / N, and the step follows the gradient of Phi(rank) max(0, 1 - s_relevant +
s_drawn) with Phi(r) = 1 + 1/2 + ... + 1/r. Rows of U and V longer than `longest` are shortened.

Small version: batches of pairs share the labels drawn, each pair in an order of its own; steps are scaled by
row as in AdaGrad. One relevant label of each row is drawn in a pass.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from systems.rivals.base import Rival, drawn_pairs

_DRAWN = 256  # labels of a batch


class WSABIE(Rival):
    """See above."""

    rank, passes, rate, longest, batch = 100, 30, 0.1, 3.0, 128
    grid = (("longest", (3.0, 6.0)),)

    def learn(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        rng, L = np.random.default_rng(self.seed), Y.shape[1]
        self.U, self.V = (
            rng.normal(0, 1 / np.sqrt(self.rank), (rows, self.rank)).astype(np.float32)
            for rows in (X.shape[1], L)
        )
        spent = [np.full(len(M), 1e-8, np.float32) for M in (self.U, self.V)]
        penalty = np.concatenate([[0], np.cumsum(1 / np.arange(1, L + 1))]).astype(np.float32)
        for rows, relevant in drawn_pairs(Y, self.passes, self.batch, rng):
            drawn, rank = self._violators(X[rows], Y[rows], relevant, rng)
            _, *gradients = warp(self.U, self.V, X[rows], relevant, drawn, penalty[rank])
            for M, past, (at, gradient) in zip((self.U, self.V), spent, gradients):
                past[at] += (gradient**2).mean(axis=1)
                moved = M[at] - self.rate * gradient / np.sqrt(past[at])[:, None]
                length = np.linalg.norm(moved, axis=1, keepdims=True)
                M[at] = moved * np.minimum(1, self.longest / np.maximum(length, 1e-12))

    def _violators(
        self, X: sp.csr_matrix, Y: sp.csr_matrix, relevant: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """For each row, the first label drawn that violates, and its rank; rank 0 where none does."""
        L = len(self.V)
        pool = rng.choice(L, min(_DRAWN, L), replace=False)
        Z = X @ self.U
        own = (Z * self.V[relevant]).sum(axis=1, keepdims=True)
        violates = (1 - own + Z @ self.V[pool].T > 0) & (Y[:, pool].toarray() == 0)
        # Each row begins to draw at a place of its own.
        turned = (rng.integers(len(pool), size=(len(relevant), 1)) + np.arange(len(pool))) % len(pool)
        violates = np.take_along_axis(violates, turned, axis=1)
        first = violates.argmax(axis=1)
        label = pool[np.take_along_axis(turned, first[:, None], axis=1).ravel()]
        return label, np.where(violates.any(axis=1), np.maximum(1, (L - 1) // (first + 1)), 0)

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        return (X @ self.U) @ self.V.T


def warp(
    U: np.ndarray,
    V: np.ndarray,
    X: sp.csr_matrix,
    relevant: np.ndarray,
    drawn: np.ndarray,
    weight: np.ndarray,
) -> tuple[float, tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """``sum_i weight_i max(0, 1 - s_i,relevant + s_i,drawn)``, and its gradients by U and V: the numbers of
    the rows where it is not 0, and these rows."""
    features, inside = np.unique(X.indices, return_inverse=True)
    X = sp.csr_matrix((X.data, inside, X.indptr), shape=(X.shape[0], len(features)))
    Z, apart = X @ U[features], V[relevant] - V[drawn]
    margin = 1 - (Z * apart).sum(axis=1)
    weight = weight * (margin > 0)
    labels, where = np.unique(np.concatenate([relevant, drawn]), return_inverse=True)
    by_label = np.zeros((len(labels), V.shape[1]), V.dtype)
    pull = weight[:, None] * Z
    np.add.at(by_label, where, np.concatenate([-pull, pull]))
    by_feature = -(X.T @ (weight[:, None] * apart))
    return float((weight * margin).sum()), (features, by_feature), (labels, by_label)
