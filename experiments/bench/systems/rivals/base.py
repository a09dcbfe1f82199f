"""`Rival`: a method of the papers, small; its lists, ridge regression, and the choice of its settings.

X is CSR with rows of unit length, Y CSR with the relevances of relevant pairs; scores are dense, (n, L).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from metarank import Candidates, metrics
from metarank.metrics.propensity import inv_propensity

HELD_OUT = 0.1  # of the training rows
JUDGES = ("PSP@1", "PSP@3", "PSP@5")
OF_GRADES = ("WP@1", "WP@3", "WP@5")
_ROWS = 256  # whose scores of all labels are in memory at a time
_LARGEST_FACTOR = 6000  # rows or features that are factorised; beyond, conjugate gradients
_STEPS = 30  # of conjugate gradients


def drawn_pairs(
    of: sp.csr_matrix, passes: int, size: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of rows in an order of each pass, and one column of each that is drawn among its entries."""
    entries = np.diff(of.indptr)
    for _ in range(passes):
        order = rng.permutation(np.flatnonzero(entries))
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            yield rows, of.indices[of.indptr[rows] + rng.integers(entries[rows])]


class Rival(ABC):
    """Free parameters are attributes of the class; the same seed and data give the same scores."""

    # Values whose combinations are tried on held-out rows, and what makes these trials quicker.
    grid: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    in_trials: tuple[tuple[str, Any], ...] = ()

    def __init__(self, random_state: int = 0, **given: Any) -> None:
        self.seed = random_state
        vars(self).update(given)

    @abstractmethod
    def learn(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None: ...

    @abstractmethod
    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        """Larger is better."""

    def fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, *, n_jobs: int = 1) -> Rival:
        self.learn(sp.csr_matrix(X, dtype=np.float32), sp.csr_matrix(Y, dtype=np.float32))
        return self

    def shortlist(self, X: sp.csr_matrix, k: int, *, n_jobs: int = 1) -> Candidates:
        """The k labels of largest score for each row, all where there are fewer; ties: the lower label."""
        parts = []
        for start in range(0, X.shape[0], _ROWS):
            scores = np.asarray(self.scores(X[start : start + _ROWS]), np.float32)
            most = min(k, scores.shape[1])
            last = -np.partition(-scores, most - 1, axis=1)[:, most - 1 : most]
            better, tied = scores > last, scores == last
            room = most - better.sum(axis=1, keepdims=True)
            labels = np.nonzero(better | (tied & (np.cumsum(tied, axis=1) <= room)))[1].reshape(-1, most)
            indptr = np.arange(len(labels) + 1, dtype=np.int64) * most
            values = np.take_along_axis(scores, labels, axis=1).ravel()
            ids = labels.ravel().astype(np.int32)
            parts.append(Candidates(indptr, ids, scores.shape[1], {"score": values}))
        return Candidates.stack(parts)


def chosen(kind: type[Rival], X: sp.csr_matrix, Y: sp.csr_matrix, seed: int) -> dict[str, Any]:
    """The settings of `grid` with the best mean of PSP@1, 3, 5 (WP of grades) on held-out rows."""
    order = np.random.default_rng(seed).permutation(X.shape[0])
    cut = max(1, round(HELD_OUT * len(order)))
    held_out, kept = np.sort(order[:cut]), np.sort(order[cut:])
    weight, judges = inv_propensity(Y[kept]), OF_GRADES if np.any(Y.data != 1) else JUDGES
    names, values = [name for name, _ in kind.grid], [values for _, values in kind.grid]
    settings = [dict(zip(names, combination)) for combination in product(*values)]

    def worth(setting: dict[str, Any]) -> float:
        model = kind(seed, **{**dict(kind.in_trials), **setting}).fit(X[kept], Y[kept])
        found = model.shortlist(X[held_out], 5)
        return sum(metrics.evaluate(Y[held_out], found, judges, inv_propensity=weight).values())

    return max(settings, key=worth) if len(settings) > 1 else settings[0]


class Popularity(Rival):
    """The most frequent labels, the same for every row."""

    def learn(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        self.counts = np.bincount(Y.indices, minlength=Y.shape[1])

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
            gram = (self.X @ self.X.T if self.dual else self.X.T @ self.X).toarray()
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
