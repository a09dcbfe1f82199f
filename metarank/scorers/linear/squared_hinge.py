"""Squared hinge classifiers of all labels, trained sixteen similar labels at a time."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._util.progress import is_heard, report
from metarank.scorers.trees.hierarchy import learn_hierarchy
from metarank.types.arrays import csr_parts, pruning_factors

_GROUP = 16
# Groups that tell how small a weight is too small.
_SAMPLE_GROUPS = 16


def squared_hinge_weights(
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    *,
    positive_cost: np.ndarray,
    C: float,
    tolerance: float,
    max_epochs: int,
    weights_per_label: int | None,
    seed: int,
    n_jobs: int,
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Weights (d, L) and biases (L,), float32, of the classifiers of all labels.

    For each label with y_i = 1 on relevant rows and -1 elsewhere, minimises
    ``1/2 (||w||^2 + b^2) + C sum_i c_i max(0, 1 - y_i (w . x_i + b))^2``, c_i the label's entry of
    `positive_cost` on relevant rows and 1 elsewhere. Stops when no row violates the conditions of optimality
    by more than `tolerance`. A label without relevant rows gets weights 0 and bias -1.

    Of the weights, as many as `weights_per_label` for each label on average stay, the largest after
    multiplication by `pruning_factors`; how large is large enough is estimated on 256 labels.
    """
    n_labels = Y.shape[1]
    by_label = sp.csc_matrix(Y > 0)
    labels = by_label.indptr.astype(np.int64), by_label.indices.astype(np.int32)
    if not len(labels[1]):
        return sp.csr_matrix((X.shape[1], n_labels), dtype=np.float32), np.full(n_labels, -1, np.float32)
    order = _similar_together(X, Y, seed)

    factor = pruning_factors(X)

    def train(order: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        options = _core.SquaredHingeOptions(
            C=C, tolerance=tolerance, least=least, max_epochs=max_epochs, seed=seed
        )
        return _core.train_squared_hinge(
            X=(*csr_parts(X), X.shape[1]),
            label_indptr=labels[0],
            label_rows=labels[1],
            positive_cost=positive_cost.astype(np.float32),
            order=order,
            factor=factor,
            options=options,
            n_threads=n_jobs,
        )

    least = 0.0
    if weights_per_label is not None:
        starts = np.arange(0, len(order), _GROUP)
        drawn = starts[np.unique(np.linspace(0, len(starts) - 1, _SAMPLE_GROUPS).astype(np.int64))]
        sample = np.concatenate([order[start : start + _GROUP] for start in drawn])
        _, features, values, _ = train(sample, 0.0)
        magnitude = np.abs(values) * factor[features]
        kept = weights_per_label * len(sample)
        if kept < len(magnitude):
            least = float(np.partition(magnitude, -kept)[-kept])
    # Groups of labels are trained apart: where progress is shown, so many of them at a time.
    step = _GROUP * max(16, n_jobs) if is_heard() else len(order)
    parts = []
    for start in range(0, len(order), step):
        report(f"label {start} of {len(order)}", start / len(order))
        parts.append(train(order[start : start + step], least))
    label = np.repeat(order, np.concatenate([np.diff(indptr) for indptr, _, _, _ in parts]))
    features, values, biases = (np.concatenate([part[i] for part in parts]) for i in (1, 2, 3))
    W = sp.csr_matrix((values, (features, label)), shape=(X.shape[1], n_labels))
    bias = np.full(n_labels, -1, np.float32)
    bias[order] = biases
    return W, bias


def _similar_together(X: sp.csr_matrix, Y: sp.csr_matrix, seed: int) -> np.ndarray:
    """The labels with relevant rows, int32, in the order of the leaves of a tree."""
    child = learn_hierarchy(X, Y, n_trees=1, max_leaf=_GROUP, seed=seed).child
    return np.ascontiguousarray(~child[child < 0])
