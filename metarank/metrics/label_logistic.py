"""Logistic regression with terms of each label shrunk towards the pooled ones."""

from __future__ import annotations

import numpy as np

from metarank import _core


def fit_label_logistic(
    X: np.ndarray,
    index: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    shared: np.ndarray,
    by_label: np.ndarray,
    *,
    label_ridge: float,
    ridge: float = 1e-2,
) -> tuple[np.ndarray, np.ndarray]:
    """Newton's method for ``logit P = sum_j x_j (shared_j + by_label[l, j])``; no step raises the loss.

    Minimises the weighted log loss plus ``ridge / 2 |shared|²`` (the first column, which is 1,
    nearly free) plus ``label_ridge / 2 |by_label|²``. Fastest where the pairs of a label stand together.

    Parameters
    ----------
    X : float64 array (m, p), C-contiguous, the first column 1
    index : int32 array (m,)
        Row of `by_label` for each pair.
    target, weight : float64 arrays (m,)
    shared : float64 array (p,)
        Where to start.
    by_label : float64 array (k, q), q <= p
        Where to start; labels have terms for the first q columns.

    Returns
    -------
    shared, by_label : the minimiser
    """
    penalty = np.full(len(shared), ridge)
    penalty[0] = 1e-6
    return _core.fit_label_logistic(X, index, target, weight, shared, by_label, penalty, float(label_ridge))
