"""What a user would write for the fusion and re-ranking of lists: CSR matrices (rows, labels) of scores."""

from __future__ import annotations

from collections.abc import Sequence

import lightgbm as lgb
import numpy as np
import scipy.sparse as sp

from metarank import metrics

MOST_ROUNDS, PATIENCE = 500, 25
LIGHTGBM = {"objective": "lambdarank", "learning_rate": 0.05, "num_threads": 1, "verbose": -1}


def row_of(scores: sp.csr_matrix) -> np.ndarray:
    """The row of each entry."""
    return np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))


def ranks(scores: sp.csr_matrix) -> np.ndarray:
    """1 for the best entry of its row; ties in order of column."""
    row = row_of(scores)
    order = np.lexsort((scores.indices, -scores.data, row))
    out = np.empty(len(order), np.int64)
    out[order] = np.arange(len(order)) - scores.indptr[row[order]] + 1
    return out


def with_values(scores: sp.csr_matrix, values: np.ndarray) -> sp.csr_matrix:
    """The same pairs with other values."""
    return sp.csr_matrix((values.astype(np.float32), scores.indices, scores.indptr), scores.shape)


def best(scores: sp.csr_matrix, k: int) -> sp.csr_matrix:
    """The k best entries of each row."""
    scores = sp.csr_matrix(scores, dtype=np.float32)
    kept = ranks(scores) <= k
    entries = scores.data[kept], (row_of(scores)[kept], scores.indices[kept])
    return sp.csr_matrix(entries, scores.shape)


def reciprocal_ranks(sources: Sequence[sp.csr_matrix], k: int = 60) -> sp.csr_matrix:
    return sum(with_values(scores, 1 / (k + ranks(scores))) for scores in sources)


def weighted_mean(first: sp.csr_matrix, second: sp.csr_matrix, weight: float) -> sp.csr_matrix:
    return sp.csr_matrix(weight * first + (1 - weight) * second)


def best_weight(Y: sp.csr_matrix, first: sp.csr_matrix, second: sp.csr_matrix) -> float:
    """The weight of the first source, in steps of .05, with the greatest nDCG@10."""
    grid = np.arange(21) / 20
    values = [metrics.evaluate(Y, weighted_mean(first, second, w), ["nDCG@10"])["nDCG@10"] for w in grid]
    return float(grid[np.argmax(values)])


def lambdarank(
    X: np.ndarray, grades: np.ndarray, query: np.ndarray, judged: np.ndarray, new: np.ndarray, seed: int
) -> np.ndarray:
    """LightGBM's scores of new pairs; the rounds that are best on the judged pairs are learned from all.

    query : of each pair, in order; judged : whether a pair is of the part that stops the first training
    """

    def dataset(which: np.ndarray) -> lgb.Dataset:
        return lgb.Dataset(X[which], grades[which], group=np.unique(query[which], return_counts=True)[1])

    parameters = LIGHTGBM | {"seed": seed, "deterministic": True}
    found = lgb.train(
        parameters | {"metric": "ndcg", "eval_at": [10]},
        dataset(~judged),
        MOST_ROUNDS,
        valid_sets=[dataset(judged)],
        callbacks=[lgb.early_stopping(PATIENCE, verbose=False)],
    )
    return lgb.train(parameters, dataset(np.ones_like(judged)), found.best_iteration).predict(new)
