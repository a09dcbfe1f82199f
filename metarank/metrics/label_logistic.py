"""Logistic regression with terms of each label shrunk towards the pooled ones."""

from __future__ import annotations

import numpy as np

from metarank import _core

_MAX_STEPS = 25
_TOLERANCE = 1e-7
_MIN_STEP = 1e-6


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
    nearly free) plus ``label_ridge / 2 |by_label|²``. The Hessian is an arrow: the labels' blocks
    are eliminated one by one.

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
    k, q = by_label.shape
    penalty = np.full(len(shared), ridge)
    penalty[0] = 1e-6

    def at(beta: np.ndarray, B: np.ndarray) -> tuple[float, tuple[np.ndarray, ...]]:
        loss, *terms = _core.label_logistic_terms(X, index, target, weight, beta, B)
        return loss + 0.5 * float(penalty @ beta**2) + 0.5 * label_ridge * float((B**2).sum()), tuple(terms)

    value, terms = at(shared, by_label)
    for _ in range(_MAX_STEPS):
        gradient, hessian, label_gradient, label_hessian = terms
        gradient = gradient + penalty * shared
        hessian = hessian + np.diag(penalty)
        if q:
            label_gradient = label_gradient + label_ridge * by_label
            cross = label_hessian.reshape(k, q, len(shared))
            blocks = cross[:, :, :q] + label_ridge * np.eye(q)
            solved = np.linalg.solve(blocks, np.concatenate([cross, label_gradient[:, :, None]], axis=2))
            inner, own = solved[:, :, :-1], solved[:, :, -1]
            hessian = hessian - np.einsum("lqp,lqr->pr", cross, inner)
            gradient = gradient - np.einsum("lqp,lq->p", cross, own)
            step = np.linalg.solve(hessian, gradient)
            label_step = own - inner @ step
        else:
            step, label_step = np.linalg.solve(hessian, gradient), by_label
        length = 1.0
        new = at(shared - length * step, by_label - length * label_step)
        while not new[0] <= value and length > _MIN_STEP:
            length /= 2
            new = at(shared - length * step, by_label - length * label_step)
        if not new[0] <= value:
            break
        shared, by_label = shared - length * step, by_label - length * label_step
        gained, value, terms = value - new[0], *new
        if gained < _TOLERANCE * abs(value):
            break
    return shared, by_label
