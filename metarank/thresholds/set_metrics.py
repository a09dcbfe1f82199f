"""The five metrics a cut can be learned for, as functions of kept pairs."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from metarank.thresholds.lists import ScoredLists

METRICS = ("micro-f1", "macro-f1", "example-f1", "hamming", "subset-accuracy")


def check_metric(optimize: str | None) -> str:
    """The name of the metric to cut for, in any case ("micro-F1", "Hamming"); None means "micro-f1".

    Raises
    ------
    ValueError, TypeError
        If `optimize` is no known name.

    Examples
    --------
    >>> check_metric("micro-F1")
    'micro-f1'
    """
    if optimize is None:
        return METRICS[0]
    rule = f"optimize must be None or one of {', '.join(METRICS)}, got {optimize!r:.80}"
    if not isinstance(optimize, str):
        raise TypeError(rule)
    if optimize.lower() not in METRICS:
        raise ValueError(rule)
    return optimize.lower()


def quality(
    metric: str, kept: np.ndarray, lists: ScoredLists, weight: np.ndarray | None = None
) -> np.ndarray:
    """The metric, greater is better, under one or several weightings of the rows.

    Parameters
    ----------
    metric : str
        Hamming loss is negated. F1 of nothing kept and nothing relevant is 1 for a row, 0 for a
        label. Pairs missed by the candidates count in micro-F1 only.
    kept : bool array (m,)
    lists : ScoredLists
        With relevance.
    weight : float array (b, n), optional
        By default one weighting, of ones.

    Returns
    -------
    float64 array (b,)
    """
    n, n_labels = lists.n_rows, lists.candidates.n_labels
    W = np.ones((1, n)) if weight is None else weight
    hit = kept & lists.truth
    if metric == "macro-f1":
        hits, size = (W @ _matrix(pairs, lists) for pairs in (hit, kept))
        total = size + W @ _matrix(lists.truth, lists)
        return (2 * hits / np.where(total > 0, total, 1.0)).sum(axis=1) / n_labels
    hits_of_row, kept_of_row = (np.bincount(lists.row[pairs], minlength=n) for pairs in (hit, kept))
    total_of_row = kept_of_row + lists.relevant_per_row
    if metric == "micro-f1":
        total_weight = W @ total_of_row + lists.missed
        return 2 * (W @ hits_of_row) / np.where(total_weight > 0, total_weight, 1.0)
    wrong = total_of_row - 2 * hits_of_row
    if metric == "example-f1":
        value = np.where(total_of_row == 0, 1.0, 2 * hits_of_row / np.maximum(1, total_of_row))
    elif metric == "hamming":
        value = -wrong / n_labels
    else:
        value = (wrong == 0).astype(np.float64)
    return W @ value / np.maximum(W.sum(axis=1), 1e-12)


def _matrix(pairs: np.ndarray, lists: ScoredLists) -> sp.csr_matrix:
    shape = (lists.n_rows, lists.candidates.n_labels)
    ones = np.ones(np.count_nonzero(pairs))
    return sp.csr_matrix((ones, (lists.row[pairs], lists.labels[pairs])), shape=shape)
