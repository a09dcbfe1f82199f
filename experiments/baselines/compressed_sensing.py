"""CS, compressed sensing (Hsu, Kakade, Langford & Zhang 2009, "Multi-label prediction via compressed
sensing", Algorithms 1 and 2).

Random projections A (m, L) of the labels are regressed on X, and a label vector of few entries is recovered
from the projections of a row that are predicted, by orthogonal matching pursuit: the label
whose column correlates most with what is left joins, and all coefficients so far are solved for anew.

Small version: Gaussian A; `sparsity` labels of each row are recovered, and the others follow in the order
of their correlation with the prediction.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from protocol import Ridge


class CompressedSensing:
    """See above; `measurements` is m, at most half of the labels."""

    def __init__(
        self, measurements: int = 200, sparsity: int = 8, penalty: float = 1.0, seed: int = 0
    ) -> None:
        self.measurements, self.sparsity, self.penalty, self.seed = measurements, sparsity, penalty, seed

    def fit(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> CompressedSensing:
        m = max(1, min(self.measurements, Y.shape[1] // 2))
        A = np.random.default_rng(self.seed).standard_normal((m, Y.shape[1])) / np.sqrt(m)
        self.W = Ridge(X, self.penalty).solve(Y.astype(np.float64) @ A.T)
        self.A = A.astype(np.float32)
        return self

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        predicted = (X @ self.W).astype(np.float32)
        labels, values = matching_pursuit(self.A, predicted, self.sparsity)
        scores = 1e-6 * (predicted @ self.A)
        np.put_along_axis(scores, labels, values, axis=1)
        return scores


def matching_pursuit(A: np.ndarray, z: np.ndarray, sparsity: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of A (m, L) and coefficients whose sums come near the rows of z (n, m).

    Both are (n, sparsity), in the order in which the columns joined.
    """
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
