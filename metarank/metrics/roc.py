"""Areas under the ROC curve.

``Y_true`` and ``scores`` as in `metarank.metrics.ranking`; a tie counts one half, and the pairs
(row, label) that are not listed are tied with each other below all that are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.metrics.inputs import Inputs, standing
from metarank.metrics.ranking import divide
from metarank.ranking import Listed


def auc_per_label(Y_true: Any, scores: Any) -> np.ndarray:
    """Probability, for each label, that a relevant row has a greater score than an irrelevant one.

    Returns
    -------
    float64 array (L,), NaN for a label that is relevant in all rows or in none.

    Examples
    --------
    >>> auc_per_label([[1, 0], [0, 0], [1, 0]], [[0.9, 0.5], [0.5, 0.1], [0.5, 0.3]])
    array([0.75,  nan])
    """
    return label_aucs(Inputs(Y_true, scores))


def auc(Y_true: Any, scores: Any) -> float:
    """Mean of `auc_per_label` over the labels that have one: AUC.

    Examples
    --------
    >>> auc([[1, 0], [0, 1], [1, 0]], [[0.9, 0.5], [0.5, 0.1], [0.5, 0.3]])
    0.375
    """
    return macro_auc(Inputs(Y_true, scores))


def micro_auc(Y_true: Any, scores: Any) -> float:
    """AUC of all pairs (row, label) pooled: micro-AUC; NaN if they are all relevant or all irrelevant.

    Examples
    --------
    >>> micro_auc([[1, 0], [0, 0]], [[0.5, 0.9], [0.1, 0.5]])
    0.5
    """
    return pooled_auc(Inputs(Y_true, scores))


def macro_auc(inputs: Inputs) -> float:
    """The mean of the labels' AUCs, over the labels that have one."""
    values = label_aucs(inputs)
    defined = ~np.isnan(values)
    return float(values[defined].mean()) if defined.any() else float("nan")


def label_aucs(inputs: Inputs) -> np.ndarray:
    """AUC of each label over the rows, float64 (L,); NaN where a label has no two classes."""
    by_label = inputs.Y.T.tocsr()
    by_label.sort_indices()
    _, _, above, not_below = standing(by_label, _transpose(inputs.scores, inputs.n_rows), inputs.n_jobs)
    n_relevant = np.diff(by_label.indptr).astype(np.int64)
    label = np.repeat(np.arange(inputs.n_labels), n_relevant)
    wrong = np.bincount(label, (above + not_below) / 2, minlength=inputs.n_labels)
    return 1.0 - divide(wrong, n_relevant * (inputs.n_rows - n_relevant))


def _transpose(rows: np.ndarray | Listed, n_rows: int) -> np.ndarray | Listed:
    if isinstance(rows, np.ndarray):
        return np.ascontiguousarray(rows.T)
    row = np.repeat(np.arange(n_rows, dtype=np.int32), np.diff(rows.indptr))
    order = np.argsort(rows.labels, kind="stable")
    counts = np.bincount(rows.labels, minlength=rows.n_labels)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Listed(indptr, row[order], rows.scores[order], n_rows)


def pooled_auc(inputs: Inputs) -> float:
    """Mann-Whitney: a relevant pair beats the pairs below it and half of those tied with it, other
    relevant ones included, which makes P^2 / 2 wins among the P relevant pairs themselves."""
    rows = inputs.scores
    if isinstance(rows, np.ndarray):
        scores, n_unlisted = rows.ravel(), 0
        relevant = rows[inputs.row, inputs.Y.indices]
    else:
        scores, n_unlisted = rows.scores, inputs.n_rows * inputs.n_labels - len(rows.scores)
        relevant = _scores_of_relevant(rows, inputs.Y)
    if np.any(np.isnan(scores)):
        raise ValueError("scores must not be NaN")
    ordered = np.sort(scores)
    below = np.searchsorted(ordered, relevant, "left") + np.where(np.isneginf(relevant), 0, n_unlisted)
    not_above = np.searchsorted(ordered, relevant, "right") + n_unlisted
    n_relevant = len(relevant)
    n_irrelevant = inputs.n_rows * inputs.n_labels - n_relevant
    if n_relevant == 0 or n_irrelevant == 0:
        return float("nan")
    wins = (below.sum() + not_above.sum()) / 2 - n_relevant**2 / 2
    return float(wins / (n_relevant * n_irrelevant))


def _scores_of_relevant(rows: Listed, Y: sp.csr_matrix) -> np.ndarray:
    """Score of each relevant pair, -inf where it is not listed."""
    n, n_labels = Y.shape
    listed_key = np.repeat(np.arange(n, dtype=np.int64), np.diff(rows.indptr)) * n_labels + rows.labels
    order = np.argsort(listed_key)
    key = np.repeat(np.arange(n, dtype=np.int64), np.diff(Y.indptr)) * n_labels + Y.indices
    at = np.searchsorted(listed_key, key, sorter=order)
    out = np.full(len(key), -np.inf)
    inside = at < len(order)
    found = np.flatnonzero(inside)[listed_key[order[at[inside]]] == key[inside]]
    out[found] = rows.scores[order[at[found]]]
    return out
