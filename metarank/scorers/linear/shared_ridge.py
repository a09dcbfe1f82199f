"""`SharedRidge`: least squares for any number of labels from one factorisation.

For rows X (n, d) and the targets T (n, L) of all labels, minimises ``penalty ||W||^2 + ||X W - T||^2``:
``W = P T`` with ``P = X' G``, ``G = (X X' + penalty I)^-1`` (or, the same, ``P = (X'X + penalty I)^-1 X'``).
P does not depend on the labels, and T is sparse, so a label costs no more than its relevant rows. Nor does
what P would be without some rows f: their scores, from a fit on the other rows o, are ``H T_o`` with
``H = -(G_ff)^-1 G_fo``, which is ``y_f - (G_ff)^-1 alpha_f`` (alpha = G T) without T_f in it.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from metarank import _core
from metarank._util.threads import in_threads, single_threaded_blas
from metarank.metrics import per_row
from metarank.scorers.neighbors.training_rows import as_canonical
from metarank.types.arrays import csr_parts, pruning_factors

# Features to a block of P.
_BLOCK = 256
# Above this condition number of the matrix to be inverted, 32 bits are too few.
_FLOAT32_CONDITION = 1e4
_RESIDUAL = 1e-3
_MAX_ITERATIONS = 200
_JUDGED_ROWS = 1000
_TINY = np.finfo(np.float32).tiny


class SharedRidge:
    """The matrix P of some rows.

    Parameters
    ----------
    X : float32 CSR (n, d)
    penalty : float
    gram : array, optional
        `SharedRidge.gram(X)`, where several penalties are tried.
    """

    def __init__(
        self, X: sp.csr_matrix, penalty: float, gram: np.ndarray | None = None, n_jobs: int = 1
    ) -> None:
        self.X = X
        self.penalty = penalty
        magnitude = abs(X)
        largest = float((magnitude @ (magnitude.T @ np.ones(X.shape[0]))).max(initial=0.0))  # >= eigenvalues
        dtype = np.float32 if largest <= _FLOAT32_CONDITION * penalty else np.float64
        self.is_dual: bool = X.shape[0] <= X.shape[1]
        product = self.gram(X, dtype, n_jobs) if gram is None else gram.astype(dtype)
        self.inverse: np.ndarray = inverse_with(product, penalty)

    @staticmethod
    def gram(X: sp.csr_matrix, dtype: type = np.float64, n_jobs: int = 1) -> np.ndarray:
        """X X' or X'X, whichever is smaller, summed in 64 bits."""
        X = as_canonical(X if X.shape[0] <= X.shape[1] else X.T)
        K = np.empty((X.shape[0], X.shape[0]), dtype)
        _core.sparse_gram((*csr_parts(X), X.shape[1]), K, n_jobs)
        return K

    def blocks(self, features: np.ndarray) -> np.ndarray:
        """P' (n, len(features)) of some features."""
        if self.is_dual:
            return np.ascontiguousarray((self.X.T[features] @ self.inverse).T)
        return np.asarray(self.X @ np.ascontiguousarray(self.inverse[:, features]))

    def weights(self, T: sp.csr_matrix, density: float, seed: int, n_jobs: int) -> sp.csr_matrix:
        """The weights W (d, L) float32; all but the share `density` that matters most is set to 0.

        The largest stay after multiplication by `pruning_factors`; how large is large enough is estimated on
        512 features drawn by the seed.
        """
        d = self.X.shape[1]
        factor = pruning_factors(self.X)[:, None]
        by_label = sp.csr_matrix(T.T).astype(self.inverse.dtype)

        def dense_weights(features: np.ndarray) -> np.ndarray:
            return np.asarray(by_label @ self.blocks(features)).T.astype(np.float32)

        drawn = np.sort(np.random.default_rng([seed, d]).permutation(d)[: 2 * _BLOCK])
        least = _least_kept(dense_weights(drawn) * factor[drawn], density)

        def pruned(start: int) -> sp.csr_matrix:
            features = np.arange(start, min(start + _BLOCK, d))
            W = dense_weights(features)
            return _sparse(W, np.abs(W) * factor[features] >= least)

        return sp.vstack(list(in_threads(pruned, range(0, d, _BLOCK), n_jobs=n_jobs)), "csr")

    def held_out(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """H (len(rows), len(others)): scores of `rows` from a fit on all `others` are ``H T[others]``."""
        within, between = self._dual_block(rows, rows), self._dual_block(rows, others)
        factor = scipy.linalg.cho_factor(within, lower=True, check_finite=False)
        scores = scipy.linalg.cho_solve(factor, between, overwrite_b=True, check_finite=False)
        return np.negative(scores, out=scores)

    def leave_one_out(self, rows: np.ndarray) -> np.ndarray:
        """H (len(rows), n): the score of each row from a fit on all others is ``H T``."""
        H = self._dual_block(rows, np.arange(self.X.shape[0]))
        diagonal = np.arange(len(rows)), rows
        H /= -H[diagonal][:, None]
        H[diagonal] = 0
        return H

    def _dual_block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """``G[rows][:, columns]``; from the primal inverse A it is ``(I - X A X') / penalty``."""
        if self.is_dual:
            return self.inverse[np.ix_(rows, columns)]
        hat = (self.X[columns] @ np.ascontiguousarray((self.X[rows] @ self.inverse).T)).T
        return ((rows[:, None] == columns[None, :]) - hat) / self.penalty


def leave_one_out_ndcg(
    ridge: SharedRidge, T: sp.csr_matrix, weight: np.ndarray, own_weight: np.ndarray, *, n_jobs: int = 1
) -> float:
    """Mean nDCG@5 of the exact leave-one-out scores of up to 1,000 rows, spread evenly.

    Parameters
    ----------
    ridge : SharedRidge of the rows
    T : float32 CSR (n, L)
        Targets, before they are multiplied by the labels' weights; a pair's gain is its weighted target.
    weight, own_weight : float64 array (L,)
        The labels' weights where a row is left out in which the label is irrelevant, or relevant.
    """
    n = T.shape[0]
    judged = np.unique(np.linspace(0, n - 1, min(n, _JUDGED_ROWS)).astype(np.int64))
    by_label = T.T.tocsr()
    ndcg = []
    for rows in np.array_split(judged, -(-len(judged) // _BLOCK)):
        gains = T[rows]
        relevant = gains.tocoo()
        scores = np.asarray(by_label @ np.ascontiguousarray(ridge.leave_one_out(rows).T)).T * weight
        scores[relevant.row, relevant.col] *= own_weight[relevant.col] / weight[relevant.col]
        gains.data = (gains.data * own_weight[gains.indices]).astype(np.float32)
        ndcg.append(per_row(gains, scores, "nDCG@5", n_jobs=n_jobs))
    values = np.concatenate(ndcg)
    return float(np.nanmean(values)) if np.isfinite(values).any() else 0.0


def ridge_by_gradients(
    X: sp.csr_matrix, T: sp.csr_matrix, penalty: float, density: float, seed: int, n_jobs: int
) -> sp.csr_matrix:
    """W (d, L) by conjugate gradients on ``(X X' + penalty I) alpha = T``, a block of labels at a time.

    For more rows and features than can be factorised. A block is done when the residual of every label is
    below a thousandth of its target. Prunes as `SharedRidge.weights`, its estimate from one block of labels.
    """
    across = X.T.tocsr()
    columns = T.tocsc()
    factor = pruning_factors(X)[:, None]

    def dense_weights(labels: np.ndarray) -> np.ndarray:
        residual = columns[:, labels].toarray().astype(np.float32)
        alpha, direction = np.zeros_like(residual), residual.copy()
        squared = _column_norms(residual)
        goal = _RESIDUAL**2 * squared
        for _ in range(_MAX_ITERATIONS):
            if np.all(squared <= goal):
                break
            image = X @ (across @ direction) + np.float32(penalty) * direction
            step = squared / np.maximum(np.einsum("ij,ij->j", direction, image), _TINY)
            alpha += step * direction
            residual -= step * image
            before, squared = squared, _column_norms(residual)
            direction = residual + squared / np.maximum(before, _TINY) * direction
        return np.asarray(across @ alpha)

    n_labels = T.shape[1]
    drawn = np.random.default_rng([seed, n_labels]).permutation(n_labels)[:_BLOCK]
    least = _least_kept(dense_weights(np.sort(drawn)) * factor, density)

    def pruned(start: int) -> sp.csr_matrix:
        W = dense_weights(np.arange(start, min(start + _BLOCK, n_labels)))
        return _sparse(W, np.abs(W) * factor >= least)

    return sp.hstack(list(in_threads(pruned, range(0, n_labels, _BLOCK), n_jobs=n_jobs)), "csr")


def _sparse(W: np.ndarray, kept: np.ndarray) -> sp.csr_matrix:
    """The entries of W that are kept and not 0. Much faster than by way of a dense matrix with zeros."""
    kept &= W != 0
    at = np.flatnonzero(kept)
    indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(kept, axis=1))])
    return sp.csr_matrix((W.ravel()[at], (at % W.shape[1]).astype(np.int32), indptr), shape=W.shape)


def _column_norms(A: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", A, A)


def _least_kept(W: np.ndarray, density: float) -> np.float32:
    """The absolute value that the share `density` of the entries reaches."""
    if density >= 1:
        return np.float32(0)
    values = np.abs(W).ravel()
    kept = max(1, round(density * len(values)))
    return np.float32(np.partition(values, -kept)[-kept])


def inverse_with(K: np.ndarray, penalty: float) -> np.ndarray:
    """(K + penalty I)^-1 of a symmetric K, whose memory it takes. It costs half of what that of any matrix
    does."""
    K[np.diag_indices_from(K)] += penalty
    potrf, potri = scipy.linalg.get_lapack_funcs(("potrf", "potri"), (K,))
    with single_threaded_blas():
        # The transpose of a symmetric matrix is the same matrix in the order LAPACK works in, without a copy.
        factor, failed = potrf(K.T, lower=1, overwrite_a=1)
        if failed:
            raise ValueError(
                "C must be smaller, or alpha larger: the least squares problem is singular to the last digit"
            )
        inverse, _ = potri(factor, lower=1, overwrite_c=1)
    out = inverse.T  # its upper triangle is valid
    for start in range(0, len(out), _BLOCK):
        end = start + _BLOCK
        out[end:, start:end] = out[start:end, end:].T
        square = out[start:end, start:end]
        square[:] = np.triu(square) + np.triu(square, 1).T
    return out
