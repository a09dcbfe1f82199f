"""Metrics of label sets in a hierarchy: sets are extended by the ancestors of their labels.

``Y_true``: (n, L) array or sparse matrix, relevant where > 0. ``Y_pred``: the same of decisions 0 and 1.
``parents``: what `metarank.metrics.parents.as_parents` takes.

A wrong label near the right one shares ancestors with it, and so costs less than one far from it: Kiritchenko
et al. (2006), "Learning and evaluation in the presence of class hierarchies". They leave out
the root. Here every label counts; to leave one out, leave it out of the parents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.metrics.inputs import Inputs
from metarank.metrics.statistics import Statistics, ratio


def hierarchical_precision(Y_true: Any, Y_pred: Any, parents: Any) -> float:
    """Share of the predicted labels and their ancestors that are relevant labels or ancestors of these: hP.

    ``sum_i |P_i & T_i| / sum_i |P_i|`` over the rows, with P_i and T_i the extended sets. 0 where nothing is
    predicted.

    Examples
    --------
    Of animals (0), cats (1) are a kind of mammals (2), which are animals, and so are birds (3). Cats are
    predicted where birds are right: of cats, mammals and animals only animals are right.

    >>> parents = [[], [2], [0], [0]]
    >>> hierarchical_precision([[0, 0, 0, 1]], [[0, 1, 0, 0]], parents)
    0.3333333333333333
    """
    return hierarchical_precision_rows(_inputs(Y_true, Y_pred, parents)).value


def hierarchical_precision_rows(inputs: Inputs, k: None = None) -> Statistics:
    """hP: hits over predicted labels, ancestors included."""
    hits, predicted, _ = _row_counts(inputs)
    return ratio(hits, predicted, empty=0.0)


def hierarchical_recall(Y_true: Any, Y_pred: Any, parents: Any) -> float:
    """Share of the relevant labels and their ancestors that are predicted labels or ancestors of these: hR.

    ``sum_i |P_i & T_i| / sum_i |T_i|``, see `hierarchical_precision`. 0 where nothing is relevant.

    Examples
    --------
    Of birds and animals, which are right, animals are found.

    >>> hierarchical_recall([[0, 0, 0, 1]], [[0, 1, 0, 0]], [[], [2], [0], [0]])
    0.5
    """
    return hierarchical_recall_rows(_inputs(Y_true, Y_pred, parents)).value


def hierarchical_recall_rows(inputs: Inputs, k: None = None) -> Statistics:
    """hR: hits over relevant labels, ancestors included."""
    hits, _, relevant = _row_counts(inputs)
    return ratio(hits, relevant, empty=0.0)


def hierarchical_f1(Y_true: Any, Y_pred: Any, parents: Any) -> float:
    """Harmonic mean of `hierarchical_precision` and `hierarchical_recall`: hF.

    ``2 sum_i |P_i & T_i| / sum_i (|P_i| + |T_i|)``; 0 where no label is relevant and none is predicted.

    Examples
    --------
    >>> hierarchical_f1([[0, 0, 0, 1]], [[0, 1, 0, 0]], [[], [2], [0], [0]])  # 2 * 1 / (3 + 2)
    0.4
    """
    return hierarchical_f1_rows(_inputs(Y_true, Y_pred, parents)).value


def hierarchical_f1_rows(inputs: Inputs, k: None = None) -> Statistics:
    """hF: micro-F1 of the extended sets."""
    hits, predicted, relevant = _row_counts(inputs)
    return ratio(2 * hits, predicted + relevant, empty=0.0)


def _inputs(Y_true: Any, Y_pred: Any, parents: Any) -> Inputs:
    return Inputs(Y_true, Y_pred=Y_pred, parents=parents)


def _row_counts(inputs: Inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(hits, predicted labels, relevant labels) of each row, ancestors included."""
    ones = sp.csr_matrix((np.ones(inputs.Y.nnz), inputs.Y.indices, inputs.Y.indptr), shape=inputs.shape)
    relevant, predicted = _extended(ones, inputs), _extended(inputs.sets, inputs)
    hits = np.asarray(predicted.multiply(relevant).sum(axis=1)).ravel()
    return hits, np.diff(predicted.indptr).astype(np.float64), np.diff(relevant.indptr).astype(np.float64)


def _extended(sets: sp.csr_matrix, inputs: Inputs) -> sp.csr_matrix:
    """The sets with all ancestors of their labels, CSR (n, L) of ones."""
    out = sp.csr_matrix(sets + sets @ inputs.ancestors)
    out.data[:] = 1
    return out
