"""Baselines of the paper that are no part of metarank, small: low-rank regression and a pairwise ranker."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from metarank import Candidates
from metarank.types.arrays import unit_rows

_ROWS = 256  # whose scores of all labels are in memory at a time


class LowRank:
    """LEML (Yu et al. 2014) with its squared loss over all pairs: relevance = x W H'.

    Minimises ``|Y - X W H'|^2 + penalty (|W|^2 + |H|^2)`` by alternating least squares; for W by conjugate
    gradients, whose products touch X and Y alone.
    """

    def __init__(self, rank: int = 100, penalty: float = 1.0, rounds: int = 5, steps: int = 10) -> None:
        self.rank, self.penalty, self.rounds, self.steps = rank, penalty, rounds, steps

    def fit(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> LowRank:
        X, rank = unit_rows(X).astype(np.float64), min(self.rank, *Y.shape)
        Y = Y.astype(np.float64)
        H = np.linalg.qr(Y.T @ np.random.default_rng(0).standard_normal((Y.shape[0], rank)))[0]
        W = np.zeros((X.shape[1], rank))
        for _ in range(self.rounds):
            gram = H.T @ H
            W = self._solve(X, X.T @ (Y @ H), gram, W)
            Z = X @ W
            H = np.linalg.solve(Z.T @ Z + self.penalty * np.eye(rank), (Y.T @ Z).T).T
        self.W, self.H = W.astype(np.float32), H.astype(np.float32)
        return self

    def _solve(self, X: sp.csr_matrix, right: np.ndarray, gram: np.ndarray, W: np.ndarray) -> np.ndarray:
        """W with ``X'X W gram + penalty W = right``, from `steps` conjugate gradient steps."""
        residual = right - (X.T @ (X @ W)) @ gram - self.penalty * W
        direction, size = residual.copy(), np.vdot(residual, residual)
        for _ in range(self.steps):
            if size == 0:
                break
            image = (X.T @ (X @ direction)) @ gram + self.penalty * direction
            step = size / np.vdot(direction, image)
            W, residual = W + step * direction, residual - step * image
            before, size = size, np.vdot(residual, residual)
            direction = residual + (size / before) * direction
        return W

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        """Relevances of all labels, dense."""
        return (X @ self.W) @ self.H.T

    @property
    def size_mib(self) -> float:
        return (self.W.nbytes + self.H.nbytes) / 2**20


class PairwiseRanker:
    """RankSVM with sampled irrelevant labels: one linear scorer a label, stochastic subgradients.

    For each relevant pair (x, l) and irrelevant labels m drawn anew in every pass, the loss is
    ``y_l max(0, 1 - (w_l - w_m) . x)``.
    """

    def __init__(self, negatives: int = 5, epochs: int = 10, rate: float = 1.0, batch: int = 32) -> None:
        self.negatives, self.epochs, self.rate, self.batch = negatives, epochs, rate, batch

    def fit(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> PairwiseRanker:
        X, rng, n_labels = unit_rows(X), np.random.default_rng(0), Y.shape[1]
        self.W = np.zeros((X.shape[1], n_labels), np.float32)
        flat, largest = self.W.reshape(-1), Y.data.max()
        for epoch in range(self.epochs):
            order = rng.permutation(X.shape[0])
            rate = self.rate / (1 + epoch)
            for start in range(0, len(order), self.batch):
                rows = order[start : start + self.batch]
                x, y = X[rows], Y[rows]
                of_pair = np.repeat(np.arange(len(rows)), np.diff(y.indptr)).repeat(self.negatives)
                relevant, weight = y.indices.repeat(self.negatives), (y.data / largest).repeat(self.negatives)
                drawn = rng.integers(n_labels, size=len(relevant))
                wrong = np.asarray(y[of_pair, drawn]).ravel() == 0 if len(of_pair) else np.zeros(0, bool)
                of_pair, relevant, drawn, weight = (a[wrong] for a in (of_pair, relevant, drawn, weight))
                # The entries (feature, label) of every pair, laid out one after another.
                counts = np.diff(x.indptr)[of_pair]
                pair = np.repeat(np.arange(len(of_pair)), counts)
                inside = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
                at = x.indptr[of_pair][pair] + inside
                cell, value = x.indices[at].astype(np.int64) * n_labels, x.data[at]
                up, down = cell + relevant[pair], cell + drawn[pair]
                margin = np.bincount(pair, value * (flat[up] - flat[down]), minlength=len(of_pair))
                step = (rate * weight * (margin < 1)).astype(np.float32)[pair] * value
                np.add.at(flat, up, step)
                np.subtract.at(flat, down, step)
        return self

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        """Scores of all labels, dense."""
        return X @ self.W

    @property
    def size_mib(self) -> float:
        return np.count_nonzero(self.W) * 8 / 2**20


def shortlist(model: LowRank | PairwiseRanker, X: sp.csr_matrix, k: int) -> Candidates:
    """The k labels of largest score for each row; what is negative counts as relevance 0."""
    X, parts = unit_rows(X), []
    for start in range(0, X.shape[0], _ROWS):
        scores = np.asarray(model.scores(X[start : start + _ROWS]))
        k = min(k, scores.shape[1])
        labels = np.sort(np.argpartition(-scores, k - 1, axis=1)[:, :k], axis=1)
        values = np.maximum(np.take_along_axis(scores, labels, axis=1), 0).astype(np.float32)
        indptr = np.arange(len(labels) + 1, dtype=np.int64) * k
        parts.append(Candidates(indptr, labels.ravel(), scores.shape[1], {"score": values.ravel()}))
    return Candidates.stack(parts)
