"""ML-CSSP, column subset selection (Bi & Kwok 2013, "Efficient multi-label classification with many
labels", Algorithm 1).

With V (L, m) the right singular vectors of Y, label l is drawn with probability |V_l|^2 / m, until
m labels C are drawn. X is regressed on these columns alone, and the others follow from them: the scores are
(x W) Y_C^+ Y.

Small version: ridge regression in place of one classifier a label, singular vectors by randomised
projection.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from protocol import Ridge
from sklearn.utils.extmath import randomized_svd

_LEAST = 1e-6  # on the diagonal of Y_C'Y_C: labels of the same rows have no inverse


class CSSP:
    """See above; `columns` is m."""

    def __init__(self, columns: int = 100, penalty: float = 1.0, seed: int = 0) -> None:
        self.columns, self.penalty, self.seed = columns, penalty, seed

    def fit(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> CSSP:
        X, Y = X.astype(np.float64), Y.astype(np.float64)
        self.chosen = drawn_columns(Y, self.columns, self.seed)
        columns = Y[:, self.chosen]
        gram = (columns.T @ columns).toarray() + _LEAST * np.eye(len(self.chosen))
        self.decoder = scipy.linalg.solve(gram, (columns.T @ Y).toarray(), assume_a="pos")
        self.W = Ridge(X, self.penalty).solve(columns.toarray())
        return self

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        return (X @ self.W) @ self.decoder


def drawn_columns(Y: sp.csr_matrix, columns: int, seed: int) -> np.ndarray:
    """The chosen labels, ascending: without replacement, which is drawing until there are enough."""
    seen = np.flatnonzero(Y.getnnz(axis=0))
    columns = min(columns, len(seen))
    rank = min(columns, *Y.shape)
    share = (randomized_svd(Y, rank, random_state=seed)[2][:, seen] ** 2).sum(axis=0)
    share = np.maximum(share, 1e-12 * share.max())
    drawn = np.random.default_rng(seed).choice(seen, columns, replace=False, p=share / share.sum())
    return np.sort(drawn)
