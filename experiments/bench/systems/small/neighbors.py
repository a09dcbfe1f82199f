"""Systems that see how often each label stands among the nearest training rows: IBLR-ML, IBLR-ML+, ML-kNN."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import scipy.sparse as sp

from metarank.scorers.neighbors.training_rows import TrainingRows, training_rows
from systems.small.base import Baseline, Features, best_of, folds_to_choose_by, one_vs_rest
from systems.small.linear import fit_logistic

GRID = tuple(range(10, 101, 10))


def neighbors(index: TrainingRows, X: Features, among: np.ndarray, k: int) -> np.ndarray:
    """Row numbers int32 (n, k) of the nearest of the rows `among`, -1 where there are fewer."""
    return index.nearest(X, among, k, "l2", 1)[0]


def neighbors_of_training_rows(index: TrainingRows, X: Features, rows: np.ndarray, k: int) -> np.ndarray:
    """The nearest others of each of `rows` among `rows`, int32 (len(rows), k): the row itself is left out."""
    near = neighbors(index, X[rows], rows, k + 1)
    other = near != rows[:, None]
    other[other.all(axis=1), -1] = False  # equal rows may crowd the row itself out of its own list
    return near[other].reshape(len(rows), k)


def label_counts(near: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """How many of each row's neighbours carry each label, int64 (n, L)."""
    padded = np.vstack([Y, np.zeros((1, Y.shape[1]), Y.dtype)])  # -1, no neighbour, carries no label
    counts = np.zeros((near.shape[0], Y.shape[1]), np.int64)
    for column in near.T:
        counts += padded[column]
    return counts


class NeighborBaseline(Baseline):
    """A model of the label counts among the k nearest rows, k from 10 to 100 by cross-validation."""

    cut = 0.5

    def fit(self, X: Features, Y: np.ndarray) -> NeighborBaseline:
        self.index, self.Y = training_rows(X), Y
        if "k" not in self.chosen:
            self.chosen["k"] = self._choose_k(X, Y)
        k = self.chosen["k"]
        counts = label_counts(neighbors_of_training_rows(self.index, X, np.arange(len(Y)), k), Y)
        self._learn(counts, X, Y, k)
        self.training = self._scores(counts, X)
        return self

    def _choose_k(self, X: Features, Y: np.ndarray) -> int:
        """The neighbours of a fold are found once: those of a smaller k come first."""
        n = len(Y)
        grid = [k for k in GRID if k < 0.75 * n] or [1]
        folds = []
        for inside, outside in folds_to_choose_by(n, self.seed):
            own = neighbors_of_training_rows(self.index, X, inside, grid[-1])
            folds.append((inside, outside, own, neighbors(self.index, X[outside], inside, grid[-1])))
        judged = np.concatenate([outside for _, outside, _, _ in folds])

        def held_out(k: int) -> np.ndarray:
            scores = []
            for inside, outside, own, near in folds:
                self._learn(label_counts(own[:, :k], Y), X[inside], Y[inside], k)
                scores.append(self._scores(label_counts(near[:, :k], Y), X[outside]))
            return np.vstack(scores)

        return best_of(grid, held_out, Y[judged])

    def scores(self, X: Features) -> np.ndarray:
        near = neighbors(self.index, X, np.arange(len(self.Y)), self.chosen["k"])
        return self._scores(label_counts(near, self.Y), X)

    @abstractmethod
    def _learn(self, counts: np.ndarray, X: Features, Y: np.ndarray, k: int) -> None:
        """Learn from the counts (n, L) of training rows, each without itself."""

    @abstractmethod
    def _scores(self, counts: np.ndarray, X: Features) -> np.ndarray:
        """Probability of each label, float64 (n, L)."""


class IBLR(NeighborBaseline):
    """log-odds of label i = w_i0 + sum_j a_ij * (number of the k neighbours that carry label j).

    So the presence of any label among the neighbours may speak for or against label i.
    """

    # On counts from 0 to k this is next to no regularisation, yet labels that separate stay finite.
    C = 1.0

    def _inputs(self, counts: np.ndarray, X: Features) -> Features:
        return counts.astype(np.float64)

    def _learn(self, counts: np.ndarray, X: Features, Y: np.ndarray, k: int) -> None:
        inputs = self._inputs(counts, X)
        self.scores_of = one_vs_rest(lambda y: fit_logistic(inputs, y, self.C, self.seed), Y)

    def _scores(self, counts: np.ndarray, X: Features) -> np.ndarray:
        return self.scores_of(self._inputs(counts, X))


class IBLRPlus(IBLR):
    """IBLR-ML with the instance's own features beside the counts."""

    def _inputs(self, counts: np.ndarray, X: Features) -> Features:
        if sp.issparse(X):
            # Words of unit rows are small numbers: the counts are brought down to them.
            return sp.hstack([sp.csr_matrix(counts / 10.0), X.astype(np.float64)], format="csr")
        return np.hstack([counts, X.astype(np.float64)])


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
