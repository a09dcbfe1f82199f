"""Bayes-optimal scorers: the order that is optimal for each aggregation when the distribution is known.

``eta[i, k]`` is P(y_k = 1 | x_i), ``pi[k]`` its mean over x, ``weights[k]`` the weight the user gives to
label k. Only the order of a scorer's values matters: any increasing function of it is equally good. All sums
run over the labels in their order, row by row, so a row's value does not depend on the other rows.

Propositions are those of Lukasik et al., *Bipartite ranking from multiple labels: on loss versus label
aggregation*, 2025 (arXiv 2504.11284).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metarank.objectives.checks import check_weights
from metarank.types.checks import check_numbers

# What rounding may take a probability beyond its bounds.
_SLACK = 1e-9


def inner_weights(pi: Any, weights: Any = None) -> np.ndarray:
    """Implicit weight of each eta_k under loss aggregation: ``a_k / (pi_k (1 - pi_k))``.

    The mean over its own pairs divides label k's loss by their number, a share of 2 pi_k (1 - pi_k) of all
    pairs. So the more skewed a label, the more it counts (Lukasik et al. 2025, Proposition 5.2).

    Parameters
    ----------
    pi : float array (K,)
        Share of positives of each label, within (0, 1).
    weights : float array (K,), optional
        a_k >= 0, not all zero; ones by default.

    Returns
    -------
    float64 array (K,)

    Raises
    ------
    ValueError
        A share that is not within (0, 1): a constant label has no AUC; weights of another length,
        negative, not finite or all zero.

    Examples
    --------
    A balanced label against one that holds for one row in ten (Appendix F):

    >>> inner_weights([0.5, 0.1]).round(2)
    array([ 4.  , 11.11])
    """
    shares = np.asarray(pi, np.float64)
    if shares.ndim != 1 or len(shares) == 0:
        raise ValueError(f"pi must have shape (K,) with K >= 1, got {shares.shape}")
    for k in np.flatnonzero(~((shares > 0) & (shares < 1))):
        raise ValueError(
            "pi must lie strictly between 0 and 1 (a constant label has no AUC), "
            f"got {shares[k]:g} for label {k}"
        )
    return check_weights(weights, len(shares)) / (shares * (1 - shares))


def loss_aggregated_scorer(eta: Any, pi: Any, weights: Any = None) -> np.ndarray:
    """``sum_k a_k eta_k(x) / (pi_k (1 - pi_k))``: the optimum of ``sum_k a_k AUC_k`` (Proposition 5.2).

    Parameters
    ----------
    eta : float array (n, K)
        Probabilities.
    pi : float array (K,)
        Shares of positives, within (0, 1).
    weights : float array (K,), optional
        a_k; ones by default.

    Returns
    -------
    float64 array (n,)

    Raises
    ------
    ValueError
        As `inner_weights`; eta that is not two-dimensional, not finite or outside of [0, 1]; pi of
        another length.

    Examples
    --------
    >>> loss_aggregated_scorer([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.1]).round(2)
    array([ 4.  , 11.11])
    """
    probabilities = _probabilities(eta)
    inner = inner_weights(pi, weights)
    if len(inner) != probabilities.shape[1]:
        raise ValueError(
            f"pi must have {probabilities.shape[1]} entries, one per column of eta, got {len(inner)}"
        )
    return label_aggregated_scorer(probabilities, inner)


def label_aggregated_scorer(eta: Any, weights: Any = None) -> np.ndarray:
    """``sum_k w_k eta_k(x)``: the optimum for ybar = sum_k w_k y_k and costs |ybar - ybar'| (5.4, D.2).

    The labels may depend on each other in any way. They may also be graded; eta_k is then E[y_k | x].

    Parameters
    ----------
    eta : float array (n, K)
        Probabilities or conditional means, >= 0.
    weights : float array (K,), optional
        w_k; ones by default.

    Returns
    -------
    float64 array (n,)

    Raises
    ------
    ValueError
        eta that is not two-dimensional, not finite or negative; weights of another length, negative, not
        finite or all zero.

    Examples
    --------
    >>> label_aggregated_scorer([[0.9, 0.1], [0.5, 0.4]])
    array([1. , 0.9])
    """
    means = _probabilities(eta, highest=np.inf)
    total = np.zeros(len(means))
    for column, weight in zip(means.T, check_weights(weights, means.shape[1])):
        total += weight * column
    return total


def uniform_cost_scorer(eta: Any, both: Any = None) -> np.ndarray:
    """``P(ybar >= 1 | x) / P(ybar <= 1 | x)`` as a share of the two: K = 2, ybar = y_1 + y_2, uniform costs.

    With ybar in {0, 1, 2} and one cost for every pair, x belongs above x' where
    ``(p_1 + p_2)(p_0' + p_1') > (p_0 + p_1)(p_1' + p_2')``, p_j = P(ybar = j | x); the pairs in which both
    have grade 1 are on both sides. So the ratio ``r = (p_1 + p_2) / (p_0 + p_1)`` is optimal. The function
    returns ``r / (1 + r)``, which gives the same order and is finite where p_2 = 1. For more labels, or
    other weights, no scorer is optimal for all pairs in general (Uematsu and Lee, Theorem 3).

    Parameters
    ----------
    eta : float array (n, 2)
        Probabilities.
    both : float array (n,), optional
        P(y_1 = y_2 = 1 | x); eta_1 eta_2, labels independent given x, by default.

    Returns
    -------
    float64 array (n,)
        Within [0, 1].

    Raises
    ------
    ValueError
        As `loss_aggregated_scorer`; eta without exactly two columns; `both` of another length or impossible
        with eta: outside of [max(0, eta_1 + eta_2 - 1), min(eta_1, eta_2)].

    Examples
    --------
    Four rows whose uniform-cost optimum is dominated (Proposition 5.3):

    >>> eta = [[0.6, 0.88], [0.5, 1.0], [0.0, 0.6], [0.12, 0.5]]
    >>> uniform_cost_scorer(eta).argsort()[::-1].tolist()
    [0, 1, 2, 3]
    """
    probabilities = _probabilities(eta)
    if probabilities.shape[1] != 2:
        raise ValueError(f"eta must have two columns, got {probabilities.shape[1]}: no closed form beyond")
    first, second = probabilities.T
    two = first * second if both is None else _joint(both, probabilities)
    none = np.maximum(1 - first - second + two, 0.0)
    above, below = 1 - none, 1 - two
    return above / (above + below)


def product_scorer(eta: Any, both: Any = None) -> np.ndarray:
    """``P(all y_k = 1 | x)``: the optimum for the product of the labels, a single binary label (Lemma 2.2).

    Parameters
    ----------
    eta : float array (n, K)
        Probabilities.
    both : float array (n,), optional
        P(all y_k = 1 | x); the product of the eta_k, labels independent given x, by default.

    Returns
    -------
    float64 array (n,)

    Raises
    ------
    ValueError
        eta that is not two-dimensional, not finite or outside of [0, 1]; `both` of another length or
        impossible with eta: outside of [max(0, sum_k eta_k - K + 1), min_k eta_k].

    Examples
    --------
    >>> product_scorer([[0.5, 0.4], [0.9, 0.1]])
    array([0.2 , 0.09])
    """
    probabilities = _probabilities(eta)
    if both is not None:
        return _joint(both, probabilities)
    product = np.ones(len(probabilities))
    for column in probabilities.T:
        product *= column
    return product


def _joint(both: Any, eta: np.ndarray) -> np.ndarray:
    """P(all y_k = 1 | x), checked against what eta allows."""
    values = np.asarray(both, dtype=np.float64)
    if values.shape != (len(eta),):
        raise ValueError(f"both must have shape ({len(eta)},), one entry per row of eta, got {values.shape}")
    low, high = np.maximum(0.0, eta.sum(axis=1) - eta.shape[1] + 1), eta.min(axis=1)
    possible = (values >= low - _SLACK) & (values <= high + _SLACK)
    if not possible.all():
        i = int(np.flatnonzero(~possible)[0])
        raise ValueError(
            f"both must lie in [{low[i]:g}, {high[i]:g}], as eta has it, got {values[i]:g} at row {i}"
        )
    return np.clip(values, low, high)


def _probabilities(eta: Any, highest: float = 1.0) -> np.ndarray:
    values = check_numbers(eta, "eta", n_dims=2)
    allowed = (values >= -_SLACK) & (values <= highest + _SLACK)
    if not allowed.all():
        row, column = np.argwhere(~allowed)[0]
        rule = "be >= 0" if np.isinf(highest) else "lie in [0, 1]"
        raise ValueError(f"eta must {rule}, got {values[row, column]:g} at row {row}, column {column}")
    return np.clip(values, 0.0, highest)
