"""Metrics of decided label sets.

``Y_true``: (n, L) array or sparse matrix, relevant where > 0. ``Y_pred``: the same of decisions 0 and 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank.metrics.inputs import Inputs
from metarank.metrics.statistics import Statistics, mean, ratio


def micro_f1(Y_true: Any, Y_pred: Any) -> float:
    """F1 of all decisions pooled, ``2 TP / (2 TP + FP + FN)``: micro-F1.

    Yang & Gopal (2012), eq. 10 to 12. Returns 0 where no label is relevant and none is predicted.

    Examples
    --------
    >>> micro_f1([[1, 0, 1], [0, 1, 0]], [[1, 1, 0], [0, 1, 0]])
    0.6666666666666666
    """
    return micro_f1_rows(Inputs(Y_true, Y_pred=Y_pred)).value


def micro_f1_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Micro-F1: one F1 of all decisions."""
    hits, predicted, relevant = _row_counts(inputs)
    return ratio(2 * hits, predicted + relevant, empty=0.0)


def macro_f1(Y_true: Any, Y_pred: Any) -> float:
    """Mean over the L labels of a label's F1: macro-F1.

    Yang & Gopal (2012), eq. 13 to 15. A label that is never relevant and never predicted counts 0, as in
    scikit-learn's ``f1_score(average="macro", zero_division=0)``.

    Examples
    --------
    >>> macro_f1([[1, 0, 1], [0, 1, 0]], [[1, 1, 0], [0, 1, 0]])  # (1 + 2/3 + 0) / 3
    0.5555555555555555
    """
    return macro_f1_rows(Inputs(Y_true, Y_pred=Y_pred)).value


def macro_f1_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Macro-F1: the mean over labels of their F1."""
    n_labels = inputs.n_labels

    def finish(sums: np.ndarray) -> np.ndarray:
        return _f1(sums[:, :n_labels], sums[:, n_labels:]).mean(axis=1)

    relevant = _relevant(inputs)
    counts = sp.hstack([inputs.sets.multiply(relevant), inputs.sets + relevant], format="csr")
    return Statistics(counts, finish, over_labels=True)


def f1_per_label(Y_true: Any, Y_pred: Any) -> NDArray[np.float64]:
    """F1 of each label, float64 (L,); 0 for a label that is never relevant and never predicted.

    Examples
    --------
    >>> f1_per_label([[1, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 1, 0]])
    array([1., 1., 0.])
    """
    inputs = Inputs(Y_true, Y_pred=Y_pred)
    relevant = _relevant(inputs)
    hits = np.asarray(inputs.sets.multiply(relevant).sum(axis=0)).ravel()
    return _f1(hits, np.asarray((inputs.sets + relevant).sum(axis=0)).ravel())


def example_f1(Y_true: Any, Y_pred: Any) -> float:
    """Mean over the rows of a row's F1: example-F1.

    A row with no relevant and no predicted label counts 1, as in scikit-learn's
    ``f1_score(average="samples", zero_division=1)``.

    Examples
    --------
    >>> example_f1([[1, 0, 1], [0, 0, 0]], [[1, 1, 0], [0, 0, 0]])
    0.75
    """
    return example_f1_rows(Inputs(Y_true, Y_pred=Y_pred)).value


def example_f1_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Example-F1: the F1 of each row's label set."""
    hits, predicted, relevant = _row_counts(inputs)
    return mean(_f1(hits, predicted + relevant, empty=1.0))


def hamming_loss(Y_true: Any, Y_pred: Any) -> float:
    """Share of the n L decisions that are wrong: Hamming.

    Yang & Gopal (2012), eq. 16.

    Examples
    --------
    >>> hamming_loss([[1, 0, 1, 0], [0, 1, 0, 0]], [[1, 1, 0, 0], [0, 1, 0, 0]])
    0.25
    """
    return hamming_rows(Inputs(Y_true, Y_pred=Y_pred)).value


def hamming_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Hamming loss: the share of wrong decisions in each row."""
    hits, predicted, relevant = _row_counts(inputs)
    return mean((predicted + relevant - 2 * hits) / max(inputs.n_labels, 1))


def subset_accuracy(Y_true: Any, Y_pred: Any) -> float:
    """Share of rows whose whole set is right: subset-accuracy.

    Examples
    --------
    >>> subset_accuracy([[1, 0, 1], [0, 1, 0]], [[1, 1, 0], [0, 1, 0]])
    0.5
    """
    return subset_accuracy_rows(Inputs(Y_true, Y_pred=Y_pred)).value


def subset_accuracy_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Subset accuracy: 1 where a row's label set is exactly right."""
    hits, predicted, relevant = _row_counts(inputs)
    return mean(((hits == predicted) & (hits == relevant)).astype(np.float64))


def label_coverage(Y_true: Any, Y_pred: Any) -> float:
    """Share of the L labels that are predicted at least once, rightly or not: LabelCoverage.

    The Coverage of the LALE paper's Table 2. Only the shape of `Y_true` is used.

    Examples
    --------
    >>> label_coverage([[1, 0, 1, 0], [0, 1, 0, 0]], [[1, 1, 0, 0], [0, 1, 0, 0]])
    0.5
    """
    return label_coverage_rows(Inputs(Y_true, Y_pred=Y_pred)).value


def label_coverage_rows(inputs: Inputs, k: None = None) -> Statistics:
    """LabelCoverage: the share of labels that are predicted for some row."""
    return Statistics(inputs.sets, lambda sums: (sums > 0).mean(axis=1), over_labels=True)


def _relevant(inputs: Inputs) -> sp.csr_matrix:
    """CSR of ones."""
    return sp.csr_matrix((np.ones_like(inputs.gain), inputs.Y.indices, inputs.Y.indptr), shape=inputs.shape)


def _row_counts(inputs: Inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(true positives, predicted labels, relevant labels) of each row."""
    hits = np.asarray(inputs.sets.multiply(_relevant(inputs)).sum(axis=1)).ravel()
    return hits, np.diff(inputs.sets.indptr), inputs.n_relevant


def _f1(hits: np.ndarray, positives: np.ndarray, empty: float = 0.0) -> np.ndarray:
    """2 TP / (2 TP + FP + FN), where `positives` is predicted plus relevant; `empty` for 0 / 0."""
    return np.divide(2.0 * hits, positives, out=np.full(hits.shape, empty), where=positives > 0)
