"""Exact nearest training rows by Euclidean distance, and how often each label stands among them."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from baselines.base import Baseline, Features, best_of, folds_to_choose_by
from metarank.scorers.neighbors.training_rows import TrainingRows, training_rows

GRID = tuple(range(10, 101, 10))


def neighbors(index: TrainingRows, X: Features, among: np.ndarray, k: int, n_jobs: int) -> np.ndarray:
    """Row numbers int32 (n, k) of the nearest of the rows `among`, -1 where there are fewer."""
    return index.nearest(X, among, k, "l2", n_jobs)[0]


def neighbors_of_training_rows(
    index: TrainingRows, X: Features, rows: np.ndarray, k: int, n_jobs: int
) -> np.ndarray:
    """The nearest others of each of `rows` among `rows`, int32 (len(rows), k): the row itself is left out."""
    near = neighbors(index, X[rows], rows, k + 1, n_jobs)
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
        counts = label_counts(neighbors_of_training_rows(self.index, X, np.arange(len(Y)), k, self.n_jobs), Y)
        self._learn(counts, X, Y, k)
        self.training = self._scores(counts, X)
        return self

    def _choose_k(self, X: Features, Y: np.ndarray) -> int:
        """The neighbours of a fold are found once: those of a smaller k come first."""
        n = len(Y)
        grid = [k for k in (GRID[:3] if self.quick else GRID) if k < 0.75 * n] or [1]
        folds = []
        for inside, outside in folds_to_choose_by(n, self.seed, self.quick):
            own = neighbors_of_training_rows(self.index, X, inside, grid[-1], self.n_jobs)
            folds.append(
                (inside, outside, own, neighbors(self.index, X[outside], inside, grid[-1], self.n_jobs))
            )
        judged = np.concatenate([outside for _, outside, _, _ in folds])

        def held_out(k: int) -> np.ndarray:
            scores = []
            for inside, outside, own, near in folds:
                self._learn(label_counts(own[:, :k], Y), X[inside], Y[inside], k)
                scores.append(self._scores(label_counts(near[:, :k], Y), X[outside]))
            return np.vstack(scores)

        return best_of(grid, held_out, Y[judged])

    def scores(self, X: Features) -> np.ndarray:
        near = neighbors(self.index, X, np.arange(len(self.Y)), self.chosen["k"], self.n_jobs)
        return self._scores(label_counts(near, self.Y), X)

    def training_scores(self) -> np.ndarray:
        return self.training

    @abstractmethod
    def _learn(self, counts: np.ndarray, X: Features, Y: np.ndarray, k: int) -> None:
        """Learn from the counts (n, L) of training rows, each without itself."""

    @abstractmethod
    def _scores(self, counts: np.ndarray, X: Features) -> np.ndarray:
        """Probability of each label, float64 (n, L)."""
