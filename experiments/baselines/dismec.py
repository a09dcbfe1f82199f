"""DiSMEC (Babbar & Schoelkopf 2017, "DiSMEC: Distributed sparse machines for extreme multi-label
classification").

For each label, with s_i = 1 on relevant rows and -1 elsewhere, 1/2 |w|^2 + C sum_i max(0, 1 - s_i w . x_i)^2
is minimised, and then all weights of absolute value below `least` (Delta in Algorithm 1, .01) are set to 0.

Small version: the classifiers are those of metarank's `OneVsAll`, solved to its tolerance, labels in
batches; one machine. `OneVsAll` itself prunes to a number of weights a label, `weights_per_label`.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from metarank.scorers.linear.one_vs_all import squared_hinge_weights

_BATCH = 1000  # labels, as in the paper


class DiSMEC:
    """See above."""

    def __init__(self, C: float = 1.0, least: float = 0.01, seed: int = 0) -> None:
        self.C, self.least, self.seed = C, least, seed

    def fit(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> DiSMEC:
        weights, biases = [], []
        for start in range(0, Y.shape[1], _BATCH):
            batch = sp.csr_matrix(Y[:, start : start + _BATCH])
            W, bias = squared_hinge_weights(
                sp.csr_matrix(X, dtype=np.float32),
                batch,
                positive_cost=np.ones(batch.shape[1], np.float32),
                C=self.C,
                tolerance=0.1,
                max_epochs=6,
                weights_per_label=None,
                seed=self.seed,
                n_jobs=1,
            )
            W.data[np.abs(W.data) < self.least] = 0
            W.eliminate_zeros()
            weights.append(W.tocsc())
            biases.append(bias)
        self.W, self.bias = sp.hstack(weights, "csr"), np.concatenate(biases)
        return self

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        return (X @ self.W).toarray() + self.bias
