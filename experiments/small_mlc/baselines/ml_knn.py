"""ML-kNN (Zhang & Zhou 2007): the posterior of a label given how many neighbours carry it."""

from __future__ import annotations

import numpy as np

from baselines.base import Features
from baselines.neighbors import NeighborBaseline

SMOOTHING = 1.0


class MLkNN(NeighborBaseline):
    """P(label | c of the k neighbours carry it), by Bayes' rule with smoothing s = 1.

    Prior (s + N_l) / (2 s + n). Likelihood of count c where the label is present (absent):
    (s + rows with it (without it) and count c) / (s (k + 1) + rows with it (without it)).
    The posterior is normalised over presence and absence, eq. 6 and 7 of the paper.
    """

    def _learn(self, counts: np.ndarray, X: Features, Y: np.ndarray, k: int) -> None:
        n, n_labels = Y.shape
        s = SMOOTHING
        present, absent = np.zeros((k + 1, n_labels)), np.zeros((k + 1, n_labels))
        label = np.broadcast_to(np.arange(n_labels), Y.shape)
        np.add.at(present, (counts[Y], label[Y]), 1)
        np.add.at(absent, (counts[~Y], label[~Y]), 1)
        n_present = Y.sum(axis=0)
        prior = (s + n_present) / (2 * s + n)
        with_label = prior * (s + present) / (s * (k + 1) + n_present)
        without = (1 - prior) * (s + absent) / (s * (k + 1) + n - n_present)
        self.posterior = with_label / (with_label + without)

    def _scores(self, counts: np.ndarray, X: Features) -> np.ndarray:
        return self.posterior[counts, np.arange(counts.shape[1])]
