"""Subword vectors to begin with: subwords that stand in the same texts get similar ones."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from metarank._util.threads import single_threaded_blas
from metarank.text.subwords import PAD

# Exponent of the counts of neighbours: rare ones count for less (Levy, Goldberg and Dagan, 2015).
_SMOOTHING = 0.75
_MORE_ROWS = 4 / 3
# So many subwords of a text are seen together; the number of pairs grows with its square.
_MOST_OF_A_TEXT = 128


def first_vectors(texts: np.ndarray, n_subwords: int, dim: int, seed: int) -> np.ndarray:
    """Vectors of subwords from texts without labels (ids, padded), float32 (n_subwords, dim).

    The positive pointwise mutual information of standing in one text, whose singular vectors, each times the
    root of its singular value, make vectors; that of a subword in df of n texts is weighted by
    ``log(4/3 (n + 1) / (df + 1))``, which is above 0 for all, and all by one number that makes the mean
    squared length over the subwords of texts 1. Missing dimensions are zero.

    Examples
    --------
    >>> texts = np.array([[1, 2, 3], [1, 2, 4], [5, 6, 7], [5, 6, 8]])
    >>> vectors = first_vectors(texts, 9, dim=2, seed=0)
    >>> bool(vectors[1] @ vectors[2] > abs(vectors[1] @ vectors[5]))
    True
    """
    from sklearn.utils.extmath import randomized_svd

    row, place = np.nonzero(texts[:, :_MOST_OF_A_TEXT] != PAD)
    shape = (len(texts), n_subwords)
    there = sp.csr_matrix((np.ones(len(row)), (row, texts[row, place])), shape)
    there.data[:] = 1
    information = _information(there)
    n_found = min(dim, n_subwords - 1)
    out = np.zeros((n_subwords, dim), np.float32)
    if information.nnz:
        with single_threaded_blas():
            vectors, values, _ = randomized_svd(information, n_found, n_iter=3, random_state=seed)
        out[:, :n_found] = vectors * np.sqrt(values)
        frequency = np.bincount(there.indices, minlength=n_subwords)
        out *= np.log(_MORE_ROWS * (len(texts) + 1) / (frequency + 1))[:, None]
        out /= np.sqrt(frequency @ (out**2).sum(axis=1) / frequency.sum())
    return out


def _information(there: sp.csr_matrix) -> sp.csr_matrix:
    """Positive pointwise mutual information of two subwords in one text, CSR (V, V)."""
    others = np.maximum(np.diff(there.indptr) - 1, 1)
    together = sp.csr_matrix(there.T @ sp.diags(1 / others) @ there)
    together.setdiag(0)
    together.eliminate_zeros()
    together.sort_indices()
    total = np.asarray(together.sum(axis=1)).ravel()
    neighbor = total**_SMOOTHING
    neighbor *= total.sum() / max(neighbor.sum(), 1e-300)
    row = np.repeat(np.arange(together.shape[0]), np.diff(together.indptr))
    expected = total[row] * neighbor[together.indices] / max(total.sum(), 1e-300)
    together.data = np.maximum(np.log(together.data / expected), 0)
    together.eliminate_zeros()
    return together
