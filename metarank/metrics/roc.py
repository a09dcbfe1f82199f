"""Areas under the ROC curve.

``Y_true`` and ``scores`` as in `metarank.metrics.ranking_metrics`; a tie counts one half, and the pairs
(row, label) that are not listed are tied with each other below all that are.
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


def macro_auc(inputs: Inputs, k: None = None) -> float:
    """The mean of the labels' AUCs, over the labels that have one."""
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
    """Mann-Whitney: a relevant pair beats the pairs below it and half of those tied with it, other
    relevant ones included, which makes P^2 / 2 wins among the P relevant pairs themselves."""
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
