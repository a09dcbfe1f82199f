"""Areas under the ROC curve and under the curve of precision and recall.

``Y_true`` and ``scores`` as in `metarank.metrics.ranking_metrics`; relevant means > 0. Under ROC a tie counts
one half. For precision and recall, one threshold holds for all pairs (row, label), and pairs of equal
scores are kept together. Pairs that are not listed are tied with each other below all that are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metarank.metrics.inputs import Inputs
from metarank.metrics.ranking_metrics import divide


def auc_per_label(Y_true: Any, scores: Any) -> NDArray[np.float64]:
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


def macro_auc(inputs: Inputs, k: None = None) -> float:
    """Mean of `auc_per_label` over the labels that have one: AUC.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0], [0, 1], [1, 0]], [[0.9, 0.5], [0.5, 0.1], [0.5, 0.3]], ["AUC"])["AUC"]
    0.375
    """
    values = label_aucs(inputs)
    defined = ~np.isnan(values)
    return float(values[defined].mean()) if defined.any() else float("nan")


def label_aucs(inputs: Inputs) -> NDArray[np.float64]:
    """AUC of each label over the rows, float64 (L,); NaN where a label has no two classes."""
    labels = inputs.swapped
    _, _, above, not_below = labels.standing
    wrong = labels.row_sum((above + not_below) / 2)
    return 1.0 - divide(wrong, labels.n_relevant * (inputs.n_rows - labels.n_relevant))


def pooled_auc(inputs: Inputs, k: None = None) -> float:
    """AUC of all pairs (row, label) pooled: micro-AUC; NaN if they are all relevant or all irrelevant.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0], [0, 0]], [[0.5, 0.9], [0.1, 0.5]], ["micro-AUC"])["micro-AUC"]
    0.5
    """
    ordered, relevant = np.sort(inputs.listed_scores), inputs.relevant_score
    n_unlisted = inputs.n_rows * inputs.n_labels - len(ordered)
    below = np.searchsorted(ordered, relevant, "left") + np.where(np.isneginf(relevant), 0, n_unlisted)
    not_above = np.searchsorted(ordered, relevant, "right") + n_unlisted
    n_relevant = len(relevant)
    n_irrelevant = inputs.n_rows * inputs.n_labels - n_relevant
    if n_relevant == 0 or n_irrelevant == 0:
        return float("nan")
    wins = (below.sum() + not_above.sum()) / 2 - n_relevant**2 / 2
    return float(wins / (n_relevant * n_irrelevant))


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


def average_precision(inputs: Inputs, k: None = None) -> float:
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
    >>> from metarank.metrics import evaluate
    >>> # 1/2 * 1 + 1/2 * 2/3
    >>> round(evaluate([[1, 0], [0, 1]], [[0.9, 0.5], [0.1, 0.4]], ["AUPRC"])["AUPRC"], 4)
    0.8333
    """
    precision, recall, _ = curve(inputs)
    if len(recall) == 0:
        return float("nan")
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))
