"""Bayes-optimal scorers: the order that is optimal for each aggregation when the distribution is known.

``eta[i, k]`` is P(y_k = 1 | x_i), ``pi[k]`` its mean over x, ``weights[k]`` the weight of label k. Only the
order of a scorer's values matters: any increasing function of it is equally good.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def loss_aggregated_scorer(eta: Any, pi: Any, weights: Any = 1.0) -> np.ndarray:
    """``sum_k a_k eta_k(x) / (pi_k (1 - pi_k))``: the optimum of ``sum_k a_k AUC_k`` (Proposition 5.2)."""
    pi = np.asarray(pi)
    return label_aggregated_scorer(eta, weights / (pi * (1 - pi)))


def label_aggregated_scorer(eta: Any, weights: Any = 1.0) -> np.ndarray:
    """``sum_k w_k eta_k(x)``: the optimum for ybar = sum_k w_k y_k and costs |ybar - ybar'| (5.4, D.2)."""
    total = np.zeros(len(eta))
    for column in (np.asarray(eta) * weights).T:
        total += column
    return total


def uniform_cost_scorer(eta: Any, both: Any = None) -> np.ndarray:
    """``P(ybar >= 1 | x) / P(ybar <= 1 | x)`` as a share of the two: K = 2, ybar = y_1 + y_2, uniform costs.

    x belongs above x' where ``(p_1 + p_2)(p_0' + p_1') > (p_0 + p_1)(p_1' + p_2')``, p_j = P(ybar = j | x).
    For more labels, or other weights, no scorer is optimal for all pairs in general (Uematsu and Lee, Theorem
    3). `both` is P(y_1 = y_2 = 1 | x); by default labels are independent given x.
    """
    first, second = np.asarray(eta).T
    two = first * second if both is None else both
    none = np.maximum(1 - first - second + two, 0.0)
    above, below = 1 - none, 1 - two
    return above / (above + below)
