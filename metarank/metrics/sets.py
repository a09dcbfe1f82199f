"""Metrics of decided label sets: as they are, or with the ancestors of their labels in a hierarchy.

``Y_true``: (n, L) array or sparse matrix, relevant where > 0. ``Y_pred``: the same of decisions 0 and 1.
``parents``: what `metarank.metrics.inputs.as_parents` takes.

In a hierarchy a wrong label near the right one shares ancestors with it, and so costs less than one far from
it: Kiritchenko et al. (2006), "Learning and evaluation in the presence of class hierarchies". They leave out
the root. Here every label counts; to leave one out, leave it out of the parents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank.metrics.inputs import Inputs
from metarank.metrics.statistics import Statistics, mean, ratio


def micro_f1_rows(inputs: Inputs, k: None = None) -> Statistics:
    """F1 of all decisions pooled, ``2 TP / (2 TP + FP + FN)``: micro-F1.

    Yang & Gopal (2012), eq. 10 to 12. Returns 0 where no label is relevant and none is predicted.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1], [0, 1, 0]], None, ["micro-F1"], Y_pred=[[1, 1, 0], [0, 1, 0]])["micro-F1"]
    0.6666666666666666
    """
    hits, predicted, relevant = _row_counts(inputs)
    return ratio(2 * hits, predicted + relevant, empty=0.0)


def macro_f1_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Mean over the L labels of a label's F1: macro-F1.

    Yang & Gopal (2012), eq. 13 to 15. A label that is never relevant and never predicted counts 0, as in
    scikit-learn's ``f1_score(average="macro", zero_division=0)``.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> # (1 + 2/3 + 0) / 3
    >>> evaluate([[1, 0, 1], [0, 1, 0]], None, ["macro-F1"], Y_pred=[[1, 1, 0], [0, 1, 0]])["macro-F1"]
    0.5555555555555555
    """
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


def example_f1_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Mean over the rows of a row's F1: example-F1.

    A row with no relevant and no predicted label counts 1, as in scikit-learn's
    ``f1_score(average="samples", zero_division=1)``.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1], [0, 0, 0]], None, ["example-F1"], Y_pred=[[1, 1, 0], [0, 0, 0]])["example-F1"]
    0.75
    """
    hits, predicted, relevant = _row_counts(inputs)
    return mean(_f1(hits, predicted + relevant, empty=1.0))


def example_precision_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Share of a row's predicted labels that are relevant, averaged over rows with any: example-precision.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> Y, sets = [[1, 0, 1], [0, 1, 0]], [[1, 1, 0], [0, 0, 0]]
    >>> evaluate(Y, None, ["example-precision"], Y_pred=sets)["example-precision"]
    0.5
    """
    hits, predicted, _ = _row_counts(inputs)
    return mean(_f1(hits, 2 * predicted, empty=np.nan))


def example_recall_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Share of a row's relevant labels that are predicted, averaged over rows with any: example-recall.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> Y, sets = [[1, 0, 1], [0, 0, 0]], [[1, 1, 0], [0, 0, 0]]
    >>> evaluate(Y, None, ["example-recall"], Y_pred=sets)["example-recall"]
    0.5
    """
    hits, _, relevant = _row_counts(inputs)
    return mean(_f1(hits, 2 * relevant, empty=np.nan))


def hamming_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Share of the n L decisions that are wrong: Hamming.

    Yang & Gopal (2012), eq. 16.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1, 0], [0, 1, 0, 0]], None,
    ...     ["Hamming"], Y_pred=[[1, 1, 0, 0], [0, 1, 0, 0]])["Hamming"]
    0.25
    """
    hits, predicted, relevant = _row_counts(inputs)
    return mean((predicted + relevant - 2 * hits) / max(inputs.n_labels, 1))


def subset_accuracy_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Share of rows whose whole set is right: subset-accuracy.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1], [0, 1, 0]], None,
    ...     ["subset-accuracy"], Y_pred=[[1, 1, 0], [0, 1, 0]])["subset-accuracy"]
    0.5
    """
    hits, predicted, relevant = _row_counts(inputs)
    return mean(((hits == predicted) & (hits == relevant)).astype(np.float64))


def label_coverage_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Share of the L labels that are predicted at least once, rightly or not: LabelCoverage.

    The Coverage of the LALE paper's Table 2. Only the shape of `Y_true` is used.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1, 0], [0, 1, 0, 0]], None,
    ...     ["LabelCoverage"], Y_pred=[[1, 1, 0, 0], [0, 1, 0, 0]])["LabelCoverage"]
    0.5
    """
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


def hierarchical_precision_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Share of the predicted labels and their ancestors that are relevant labels or ancestors of these: hP.

    ``sum_i |P_i & T_i| / sum_i |P_i|`` over the rows, with P_i and T_i the extended sets. 0 where nothing is
    predicted.

    Examples
    --------
    Of animals (0), cats (1) are a kind of mammals (2), which are animals, and so are birds (3). Cats are
    predicted where birds are right: of cats, mammals and animals only animals are right.

    >>> parents = [[], [2], [0], [0]]
    >>> from metarank.metrics import evaluate
    >>> evaluate([[0, 0, 0, 1]], None, ["hP"], parents=parents, Y_pred=[[0, 1, 0, 0]])["hP"]
    0.3333333333333333
    """
    hits, predicted, _ = _counts_above(inputs)
    return ratio(hits, predicted, empty=0.0)


def hierarchical_recall_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Share of the relevant labels and their ancestors that are predicted labels or ancestors of these: hR.

    ``sum_i |P_i & T_i| / sum_i |T_i|``, see hP. 0 where nothing is relevant.

    Examples
    --------
    Of birds and animals, which are right, animals are found.

    >>> from metarank.metrics import evaluate
    >>> evaluate([[0, 0, 0, 1]], None, ["hR"], parents=[[], [2], [0], [0]], Y_pred=[[0, 1, 0, 0]])["hR"]
    0.5
    """
    hits, _, relevant = _counts_above(inputs)
    return ratio(hits, relevant, empty=0.0)


def hierarchical_f1_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Harmonic mean of hP and hR: hF.

    ``2 sum_i |P_i & T_i| / sum_i (|P_i| + |T_i|)``; 0 where no label is relevant and none is predicted.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> # 2 * 1 / (3 + 2)
    >>> evaluate([[0, 0, 0, 1]], None, ["hF"], parents=[[], [2], [0], [0]], Y_pred=[[0, 1, 0, 0]])["hF"]
    0.4
    """
    hits, predicted, relevant = _counts_above(inputs)
    return ratio(2 * hits, predicted + relevant, empty=0.0)


def _counts_above(inputs: Inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(hits, predicted labels, relevant labels) of each row, ancestors included."""
    relevant, predicted = _extended(_relevant(inputs), inputs), _extended(inputs.sets, inputs)
    hits = np.asarray(predicted.multiply(relevant).sum(axis=1)).ravel()
    return hits, np.diff(predicted.indptr).astype(np.float64), np.diff(relevant.indptr).astype(np.float64)


def _extended(sets: sp.csr_matrix, inputs: Inputs) -> sp.csr_matrix:
    """The sets with all ancestors of their labels, CSR (n, L) of ones."""
    out = sp.csr_matrix(sets + sets @ inputs.ancestors)
    out.data[:] = 1
    return out
