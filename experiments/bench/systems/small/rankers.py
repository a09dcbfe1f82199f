"""The paper's own systems: a learner to rank on the 3k + 2 meta-features of a pair (section 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from metarank.ranker import LinearRanker
from metarank.ranker.lists import RankingData
from metarank.scorers.neighbors.centroids import Centroids
from metarank.scorers.neighbors.voting import LabelNeighbors
from metarank.types.candidates import Candidates
from metarank.types.feature_table import FeatureTable
from metarank.types.view import TrainingSet, fold_of_rows
from systems.small.base import Baseline, Features, folds_to_choose_by, quality
from systems.small.lambda_net import LambdaNet

GRID = tuple(range(10, 101, 10))
# With more pairs, which is Reuters alone, these.
SHORT_GRID, MANY_PAIRS = (10, 20, 30), 200_000

Scores = Callable[[FeatureTable], np.ndarray]
Learn = Callable[[FeatureTable, np.ndarray, float, int], Scores]


class MetaFeatures:
    """The columns of eq. 1, each row described by all others, for k up to a greatest one."""

    def __init__(self, X: Features, Y: np.ndarray, k: int) -> None:
        self.X, self.Y, self.k = X, Y, k
        view = TrainingSet(X, sp.csr_matrix(Y, dtype=np.float32), np.zeros(len(Y), np.int32)).view()
        # One more, since the row itself is taken out.
        self.scorers = (LabelNeighbors(k=k + 1, columns="raw"), Centroids())
        for scorer in self.scorers:
            scorer.fit(view)

    def of_training_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """float32 (m, 3, k) and (m, 2): distances to neighbours by metric, and to centroids."""
        near, centroid = self._columns(self.X)
        return without_itself(near, self.X, self.Y), centroids_without_itself(centroid, self.X, self.Y)

    def of_new_rows(self, X: Features) -> tuple[np.ndarray, np.ndarray]:
        near, centroid = self._columns(X)
        return near[:, :, : self.k], centroid

    def _columns(self, X: Features) -> tuple[np.ndarray, np.ndarray]:
        pairs = Candidates.all_labels(X.shape[0], self.Y.shape[1])
        near, centroid = (
            np.column_stack(list(scorer.score(X, pairs, n_jobs=1).values())) for scorer in self.scorers
        )
        return near.reshape(len(near), 3, -1), centroid


def without_itself(near: np.ndarray, X: Features, Y: np.ndarray) -> np.ndarray:
    """Of k + 1 ascending distances (n L, 3, k + 1) by L2, L1 and cosine the k without the row's own.

    That is the first where it carries the label. A label of no other row is as far as one without a row.
    """
    out = np.where(Y.ravel()[:, None, None], near[:, :, 1:], near[:, :, :-1])
    row, label = np.nonzero(Y & (Y.sum(axis=0) == 1))
    squares, sums = _norms(X)
    far = np.stack([np.sqrt(squares + squares.max()), sums + sums.max(), np.ones(len(Y))], axis=1)
    out[row * Y.shape[1] + label] = far[row][:, :, None]
    return out


def centroids_without_itself(centroid: np.ndarray, X: Features, Y: np.ndarray) -> np.ndarray:
    """Distances (n L, 2), L2 and cosine, to centroids of which the row is no part."""
    out = centroid.astype(np.float64).reshape(*Y.shape, 2)
    X = X.astype(np.float64)
    squares = _norms(X)[0]
    total = np.asarray((X.T @ Y.astype(np.float64)).T)  # (L, d)
    row, label = np.nonzero(Y)
    others = Y.sum(axis=0)[label] - 1
    alone = others == 0
    others = np.maximum(others, 1)
    product = np.asarray(X @ total.T)[row, label]
    of_mean = (product - squares[row]) / others
    mean = np.maximum((total**2).sum(axis=1)[label] - 2 * product + squares[row], 0) / others**2
    lengths = np.sqrt(squares[row] * mean)
    out[row, label, 0] = np.sqrt(np.maximum(squares[row] - 2 * of_mean + mean, 0))
    out[row, label, 1] = 1 - of_mean / np.where(lengths > 0, lengths, np.inf)
    out[row[alone], label[alone], 0] = np.sqrt(squares[row[alone]] + squares.max())
    return out.reshape(-1, 2).astype(np.float32)


def _norms(X: Features) -> tuple[np.ndarray, np.ndarray]:
    """Of each row the sum of squares and that of absolute values, float64 (n,)."""
    X = X.astype(np.float64)
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel(), np.asarray(abs(X).sum(axis=1)).ravel()
    return (X * X).sum(axis=1), np.abs(X).sum(axis=1)


def table_of(near: np.ndarray, centroid: np.ndarray, k: int, n_labels: int) -> FeatureTable:
    """The 3k + 2 columns, with the nearest k of what is there."""
    values = np.concatenate([near[:, :, :k].reshape(len(near), -1), centroid], axis=1, dtype=np.float32)
    names = [f"column {i}" for i in range(values.shape[1])]
    return FeatureTable(values, names, Candidates.all_labels(len(near) // n_labels, n_labels))


def linear(loss: Any) -> Learn:
    def learn(table: FeatureTable, Y: np.ndarray, l2: float, seed: int) -> Scores:
        fold = fold_of_rows(len(Y), 5, seed)
        data = RankingData.checked(table, Y.astype(np.float32).ravel(), None, fold, seed)
        return LinearRanker(loss=loss, l2=l2).fit_lists(data).score

    return learn


def network(table: FeatureTable, Y: np.ndarray, rate: float, seed: int) -> Scores:
    return LambdaNet(rate=rate, seed=seed).fit(table.values, Y).score_table


class PaperRanker(Baseline):
    """Ranks labels by a learner on meta-features; k, and then the learner's strength, by cross-validated MAP.

    Each fold's rows are described, and ranked, by models of the other folds; on many rows one fold judges. k
    is chosen with the middle strength.
    """

    learn: ClassVar[Learn]
    grid: ClassVar[tuple[int, ...]] = GRID
    strengths: ClassVar[tuple[float, ...]] = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
    name_of_strength: ClassVar[str] = "l2"

    def fit(self, X: Features, Y: np.ndarray) -> PaperRanker:
        # Cosines are of dense features with a mean of nought.
        self.mean = X.mean(axis=0) if isinstance(X, np.ndarray) else None
        X = self._moved(X)
        if "k" not in self.chosen:
            self._choose(X, Y)
        self.features = MetaFeatures(X, Y, self.chosen["k"])
        table = self._table(self.features.of_training_rows(), self.chosen["k"], Y)
        self.Y = Y
        self.score_table = type(self).learn(table, Y, self.chosen[self.name_of_strength], self.seed)
        self.training = self.score_table(table).reshape(Y.shape)
        return self

    def _moved(self, X: Features) -> Features:
        return X if self.mean is None else X - self.mean

    def _table(self, columns: tuple[np.ndarray, np.ndarray], k: int, Y: np.ndarray) -> FeatureTable:
        return table_of(*columns, k, Y.shape[1])

    def _choose(self, X: Features, Y: np.ndarray) -> None:
        ks = SHORT_GRID if Y.size > MANY_PAIRS else self.grid
        folds = folds_to_choose_by(len(Y), self.seed)
        judged = np.concatenate([outside for _, outside in folds])
        columns = []
        for inside, outside in folds:
            features = MetaFeatures(X[inside], Y[inside], ks[-1])
            columns.append((inside, features.of_training_rows(), features.of_new_rows(X[outside])))

        def worth(k: int, strength: float) -> float:
            scores = []
            for inside, old, new in columns:
                rank = type(self).learn(self._table(old, k, Y), Y[inside], strength, self.seed)
                scores.append(rank(self._table(new, k, Y)).reshape(-1, Y.shape[1]))
            return quality(Y[judged], np.vstack(scores))

        middle = self.strengths[(len(self.strengths) - 1) // 2]
        by_k = {k: worth(k, middle) for k in ks}
        k = self.chosen["k"] = max(by_k, key=by_k.__getitem__)
        by_strength = {s: by_k[k] if s == middle else worth(k, s) for s in self.strengths}
        self.chosen[self.name_of_strength] = max(by_strength, key=by_strength.__getitem__)

    def scores(self, X: Features) -> np.ndarray:
        table = self._table(self.features.of_new_rows(self._moved(X)), self.chosen["k"], self.Y)
        return self.score_table(table).reshape(X.shape[0], -1)

    def decide(self, scores: np.ndarray) -> None:
        """The paper's threshold is the only one that these systems have."""
        return None


class PaperListNet(PaperRanker):
    learn = staticmethod(linear("listnet"))


class PaperRankSVM(PaperRanker):
    learn = staticmethod(linear("ranksvm"))


class PaperSVMMAP(PaperRanker):
    learn = staticmethod(linear("svmmap"))
    strengths = (1.0, 0.1, 0.01, 0.001)


class PaperLambdaRank(PaperRanker):
    """By a network; where others tune a penalty, its rate of learning. It takes a minute a hundred rows."""

    grid = (10, 30, 100)
    learn = staticmethod(network)
    strengths = (0.3, 0.1, 0.03)
    name_of_strength = "rate"


class PaperLogistic(PaperRanker):
    """No ranker: pointwise logistic regression on the same columns, against section 4.5."""

    learn = staticmethod(linear("logistic"))
