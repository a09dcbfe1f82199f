"""CS, compressed sensing (Hsu et al. 2009, "Multi-label prediction via compressed sensing", Algorithms 1, 2).

Random projections A (m, L) of the labels are regressed on X, and a label vector of few entries is recovered
from the predicted projections by orthogonal matching pursuit: the label whose column correlates most with
what is left joins, and all coefficients so far are solved for anew.

Small version: Gaussian A; `sparsity` labels of each row are recovered, the others follow by their correlation
with the prediction.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from systems.rivals.base import Ridge, Rival


class CompressedSensing(Rival):
    """See above; `measurements` is m, at most half of the labels."""

    measurements, sparsity, penalty = 200, 8, 1.0
    grid = (("measurements", (200, 400)), ("penalty", (1.0, 0.1)))

    def learn(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        m = max(1, min(self.measurements, Y.shape[1] // 2))
        A = np.random.default_rng(self.seed).standard_normal((m, Y.shape[1])) / np.sqrt(m)
        self.W = Ridge(X, self.penalty).solve(Y.astype(np.float64) @ A.T)
        self.A = A.astype(np.float32)

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        predicted = (X @ self.W).astype(np.float32)
        labels, values = matching_pursuit(self.A, predicted, self.sparsity)
        scores = 1e-6 * (predicted @ self.A)
        np.put_along_axis(scores, labels, values, axis=1)
        return scores


def matching_pursuit(A: np.ndarray, z: np.ndarray, sparsity: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of A (m, L) and coefficients whose sums come near the rows of z, in order: (n, sparsity)."""
    sparsity, left = min(sparsity, *A.shape), z
    chosen = np.zeros((len(z), 0), np.int64)
    coefficient = np.zeros((len(z), 0), z.dtype)
    for _ in range(sparsity):
        likeness = np.abs(left @ A)
        np.put_along_axis(likeness, chosen, -1, axis=1)
        chosen = np.column_stack([chosen, likeness.argmax(axis=1)])
        of_row = A.T[chosen]  # (n, t, m)
        gram = of_row @ of_row.transpose(0, 2, 1) + 1e-6 * np.eye(chosen.shape[1], dtype=z.dtype)
        coefficient = np.linalg.solve(gram, of_row @ z[:, :, None])[:, :, 0]
        left = z - np.einsum("nt,ntm->nm", coefficient, of_row)
    return chosen, coefficient
