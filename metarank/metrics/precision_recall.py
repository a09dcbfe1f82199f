"""Precision and recall of all pairs (row, label) kept by one global threshold on the scores.

``Y_true`` and ``scores`` as in `metarank.metrics.ranking_metrics`; relevant means > 0. Pairs with equal
scores are kept together; pairs that are not listed are kept last, all at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metarank.metrics.inputs import Inputs


def precision_recall_curve(Y_true: Any, scores: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Micro-averaged precision and recall of the pairs with a score at least as great as a threshold.

    Returns
    -------
    precision, recall, thresholds : float64 arrays
        One point for each distinct score of a relevant pair, with recall ascending to 1. The threshold is
        -inf where the last relevant pairs are found only by keeping every pair. Empty if no pair is relevant.

    Raises
    ------
    ValueError
        If a score is NaN or a shape is wrong.

    Examples
    --------
    >>> precision_recall_curve([[1, 0], [0, 1]], [[0.9, 0.5], [0.1, 0.4]])
    (array([1.        , 0.66666667]), array([0.5, 1. ]), array([0.9, 0.4]))
    """
    return curve(Inputs(Y_true, scores))


def curve(inputs: Inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `precision_recall_curve`."""
    ascending = np.sort(inputs.listed_scores)
    thresholds, found = np.unique(inputs.relevant_score, return_counts=True)
    kept = len(ascending) - np.searchsorted(ascending, thresholds.astype(ascending.dtype))
    kept = np.where(np.isneginf(thresholds), inputs.n_rows * inputs.n_labels, kept)
    found = np.cumsum(found[::-1])
    return found / kept[::-1], found / max(len(inputs.row), 1), thresholds[::-1]


def auprc(Y_true: Any, scores: Any) -> float:
    """Area under the micro-averaged precision-recall curve of one global threshold: AUPRC.

    Prabhu et al. (2020), Lemma 3.2. The area is that of average precision, ``sum_t (R_t - R_(t-1)) P_t`` over
    descending thresholds: every recall step has the precision at its end, without interpolation. It equals
    scikit-learn's `average_precision_score` of the flattened matrices. NaN if no pair is relevant. Points and
    labels play the same part, so there is no labelwise variant.

    Notes
    -----
    The lemma bounds what is lost to the ideal area, which is 1, by ``O(k XMAD@k)``. In full: if no row has
    more than k wrong predictions, all r relevant pairs have a relevance of d at least, and predictions are
    >= 0, then ``1 - AUPRC <= b (1 + log(1 + 1 / b))`` with ``b = 2 n k XMAD@k / (d r)``, n the number of rows
    and errors in the unit of d. The logarithm is needed: one irrelevant pair above r relevant ones of
    different scores costs about ``log(r) / r``.

    Examples
    --------
    >>> round(auprc([[1, 0], [0, 1]], [[0.9, 0.5], [0.1, 0.4]]), 4)  # 1/2 * 1 + 1/2 * 2/3
    0.8333
    """
    return average_precision(Inputs(Y_true, scores))


def average_precision(inputs: Inputs, k: None = None) -> float:
    """AUPRC: the precision at each recall step, weighed by the step."""
    precision, recall, _ = curve(inputs)
    if len(recall) == 0:
        return float("nan")
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))
