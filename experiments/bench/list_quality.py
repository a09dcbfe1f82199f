"""What lists are worth on rare labels, and by the best score threshold that there is for the test labels."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from metarank import Ranking, metrics

TAIL, F1_AT_5 = "tail R@5", "F1@5"
TAIL_POINTS = 5  # a tail label has 1 to 5 training rows
F1 = ("micro-F1", "macro-F1", "example-F1")


def tail_recall(Y: sp.csr_matrix, Y_test: sp.csr_matrix, ranking: Ranking) -> float:
    """Share of all test labels with 1 to 5 training points that are among the first five."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    return share_found(of_labels(Y_test, (counts > 0) & (counts <= TAIL_POINTS)), ranking, 5)


def of_labels(Y: sp.csr_matrix, among: np.ndarray) -> sp.csr_matrix:
    """The relevant pairs of the labels of a mask alone."""
    only = sp.csr_matrix(Y @ sp.diags(among.astype(np.float32)))
    only.eliminate_zeros()
    return only


def share_found(Y: sp.csr_matrix, ranking: Ranking, k: int) -> float:
    """Share of all relevant pairs that are among the first k."""
    found = metrics.evaluate(Y, ranking, [f"P@{k}"])[f"P@{k}"] * k * Y.shape[0]
    return found / Y.nnz if Y.nnz else float("nan")


def f1_at_5(Y: sp.csr_matrix, ranking: Ranking) -> float:
    """F1 of the five best labels of a row, or of the fewer that are listed; mean over rows."""
    hits, listed = 5 * metrics.per_row(Y, ranking, "P@5"), (ranking.labels[:, :5] >= 0).sum(axis=1)
    return float(np.mean(2 * hits / (listed + np.diff(Y.indptr))))


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
