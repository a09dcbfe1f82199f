"""RankSVM with sampled irrelevant labels: one linear scorer a label, stochastic subgradients.

For each relevant pair (x, l) and irrelevant labels m drawn anew in every pass, the loss is
``y_l max(0, 1 - (w_l - w_m) . x)``, y in shares of the greatest relevance.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from systems.rivals.base import Rival


class RankingSVM(Rival):
    """See above."""

    negatives, passes, rate, batch = 5, 10, 1.0, 32
    grid = (("rate", (1.0, 0.3)),)

    def learn(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        rng, n_labels, largest = np.random.default_rng(self.seed), Y.shape[1], Y.data.max()
        self.W = np.zeros((X.shape[1], n_labels), np.float32)
        for done in range(self.passes):
            order = rng.permutation(X.shape[0])
            for start in range(0, len(order), self.batch):
                rows = order[start : start + self.batch]
                self._step(X[rows], Y[rows], largest, self.rate / (1 + done), rng)

    def _step(self, x: sp.csr_matrix, y: sp.csr_matrix, largest: float, rate: float, rng) -> None:
        flat, n_labels = self.W.reshape(-1), self.W.shape[1]
        of_pair = np.repeat(np.arange(x.shape[0]), np.diff(y.indptr)).repeat(self.negatives)
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

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        return X @ self.W
