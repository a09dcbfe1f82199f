"""The best that one score threshold for all pairs can do, chosen on the very labels it is judged by."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from metarank import Ranking

F1 = ("micro-F1", "macro-F1", "example-F1")


def best_f1(Y_true: sp.csr_matrix, ranking: Ranking) -> dict[str, float]:
    """The greatest micro-, macro- and example-F1 over all thresholds, each with a threshold of its own."""
    listed = ranking.labels >= 0
    row, label, score = np.nonzero(listed)[0], ranking.labels[listed], ranking.scores[listed]
    order = np.argsort(-score, kind="stable")
    row, label, score = row[order], label[order], score[order]
    hit = np.asarray(Y_true[row, label]).ravel() > 0
    # Pairs of one score are cut together.
    possible = np.append(score[1:] != score[:-1], True)[: len(score)]
    groups = {
        "micro-F1": (np.zeros_like(row), np.array([Y_true.nnz]), 0.0),
        "macro-F1": (label, np.bincount(Y_true.indices, minlength=Y_true.shape[1]), 0.0),
        "example-F1": (row, np.diff(Y_true.indptr), 1.0),
    }
    values = {}
    for name, (group, relevant, empty) in groups.items():
        nothing, growing = _mean_f1(hit, group, relevant, empty)
        values[name] = float(max(nothing, growing[possible].max(initial=0.0)))
    return values


def _mean_f1(
    hit: np.ndarray, group: np.ndarray, relevant: np.ndarray, empty: float
) -> tuple[float, np.ndarray]:
    """Mean over groups of F1 with no pair, and with the first 1, 2, ... pairs, which come best score first.

    relevant : relevant pairs of each group; empty : F1 of a group without relevant and predicted pairs
    """
    by_group = np.argsort(group, kind="stable")
    g, h = group[by_group], hit[by_group].astype(np.int64)
    sizes = np.bincount(g, minlength=len(relevant))
    start = np.cumsum(sizes) - sizes
    predicted = np.arange(len(g)) - start[g] + 1
    before_group = np.concatenate([[0], np.cumsum(h)])[start]
    hits = np.cumsum(h) - before_group[g]
    change = np.empty(len(g))
    change[by_group] = _f1(hits, predicted + relevant[g], empty) - _f1(
        hits - h, predicted - 1 + relevant[g], empty
    )
    nothing = empty * np.count_nonzero(relevant == 0)
    return nothing / len(relevant), (nothing + np.cumsum(change)) / len(relevant)


def _f1(hits: np.ndarray, positives: np.ndarray, empty: float) -> np.ndarray:
    return np.divide(2.0 * hits, positives, out=np.full(hits.shape, empty), where=positives > 0)
