"""ML-CSSP (Bi & Kwok 2013, "Efficient multi-label classification with many labels", Algorithm 1).

With V (L, m) the right singular vectors of Y, label l is drawn with probability |V_l|^2 / m, until m labels C
are drawn. X is regressed on these columns alone, and the scores are (x W) Y_C^+ Y.

Small version: ridge regression in place of one classifier a label, singular vectors by randomised projection.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from systems.rivals.base import Ridge, Rival

_LEAST = 1e-6  # on the diagonal of Y_C'Y_C: labels of the same rows have no inverse


class CSSP(Rival):
    """See above; `columns` is m."""

    columns, penalty = 100, 1.0
    grid = (("columns", (100, 300)), ("penalty", (1.0, 0.1)))

    def learn(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        Y = Y.astype(np.float64)
        columns = Y[:, drawn_columns(Y, self.columns, self.seed)]
        gram = (columns.T @ columns).toarray() + _LEAST * np.eye(columns.shape[1])
        self.decoder = scipy.linalg.solve(gram, (columns.T @ Y).toarray(), assume_a="pos")
        self.W = Ridge(X, self.penalty).solve(columns.toarray())

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        return (X @ self.W) @ self.decoder


def drawn_columns(Y: sp.csr_matrix, columns: int, seed: int) -> np.ndarray:
    """The chosen labels, ascending: without replacement, which is drawing until there are enough."""
    seen = np.flatnonzero(Y.getnnz(axis=0))
    columns = min(columns, len(seen))
    vectors = randomized_svd(Y, min(columns, *Y.shape), random_state=seed)[2]
    share = (vectors[:, seen] ** 2).sum(axis=0)
    share = np.maximum(share, 1e-12 * share.max())
    drawn = np.random.default_rng(seed).choice(seen, columns, replace=False, p=share / share.sum())
    return np.sort(drawn)
