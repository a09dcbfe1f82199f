"""What all baselines share: `fit(X, Y)`, `scores(X)`, the best k labels of a row, and ridge regression.

X is CSR with rows of unit length, Y CSR with the value 1 at relevant pairs; scores are dense, (n, L),
larger is better.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from metarank import Candidates

_ROWS = 256  # whose scores of all labels are in memory at a time
_LARGEST_FACTOR = 6000  # rows or features that are factorised; beyond, conjugate gradients
_STEPS = 30  # of conjugate gradients


class Baseline(Protocol):
    """A method; it has a seed of its own, and the same seed and data give the same scores."""

    def fit(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> Baseline: ...

    def scores(self, X: sp.csr_matrix) -> np.ndarray: ...


def shortlist(model: Baseline, X: sp.csr_matrix, k: int) -> Candidates:
    """The k labels of largest score for each row, all where there are fewer; ties go to the lower label."""
    parts = []
    for start in range(0, X.shape[0], _ROWS):
        scores = np.asarray(model.scores(X[start : start + _ROWS]), np.float32)
        most = min(k, scores.shape[1])
        last = -np.partition(-scores, most - 1, axis=1)[:, most - 1 : most]
        better, tied = scores > last, scores == last
        room = most - better.sum(axis=1, keepdims=True)
        labels = np.nonzero(better | (tied & (np.cumsum(tied, axis=1) <= room)))[1].reshape(-1, most)
        indptr = np.arange(len(labels) + 1, dtype=np.int64) * most
        values = np.take_along_axis(scores, labels, axis=1).ravel()
        ids = labels.ravel().astype(np.int32)
        parts.append(Candidates(indptr, ids, scores.shape[1], {"relevance": values}))
    return Candidates.stack(parts)


class Popularity:
    """The most frequent labels, the same for every row."""

    def fit(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> Popularity:
        self.counts = np.bincount(Y.indices, minlength=Y.shape[1])
        return self

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        return np.broadcast_to(self.counts, (X.shape[0], len(self.counts)))


class Ridge:
    """W minimises ``|X W - T|^2 + penalty |W|^2``, for any number of targets T (n, m) in turn.

    A factorisation of X X' or X' X where one of them is small, else conjugate gradients.
    """

    def __init__(self, X: sp.csr_matrix, penalty: float) -> None:
        self.X, self.penalty = sp.csr_matrix(X, dtype=np.float64), penalty
        n, d = X.shape
        self.dual, self.factor = n <= d, None
        if min(n, d) <= _LARGEST_FACTOR:
            product = self.X @ self.X.T if self.dual else self.X.T @ self.X
            gram = product.toarray()
            gram[np.diag_indices_from(gram)] += penalty
            self.factor = scipy.linalg.cho_factor(gram, overwrite_a=True, check_finite=False)

    def solve(self, T: np.ndarray) -> np.ndarray:
        """W (d, m)."""
        if self.factor is None:
            return self._gradients(T)
        if self.dual:
            return self.X.T @ scipy.linalg.cho_solve(self.factor, T, check_finite=False)
        return scipy.linalg.cho_solve(self.factor, self.X.T @ T, check_finite=False)

    def _gradients(self, T: np.ndarray) -> np.ndarray:
        residual = self.X.T @ T
        W, direction = np.zeros_like(residual), residual.copy()
        size = (residual**2).sum(axis=0)
        for _ in range(_STEPS):
            image = self.X.T @ (self.X @ direction) + self.penalty * direction
            step = size / np.maximum((direction * image).sum(axis=0), 1e-300)
            W += step * direction
            residual -= step * image
            before, size = size, (residual**2).sum(axis=0)
            direction = residual + size / np.maximum(before, 1e-300) * direction
        return W
