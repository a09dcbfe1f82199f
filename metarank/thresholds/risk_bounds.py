"""Upper bounds of a mean loss that hold with a given confidence, for any distribution of the losses."""

from __future__ import annotations

import math

import numpy as np

from metarank._util.elementary import log1p

# Halvings of [0, 1]: bounds are exact to 2^-16, and rounded up.
_HALVINGS = 16


def betting_bounds(losses: np.ndarray, confidence: float, counted: np.ndarray | None = None) -> np.ndarray:
    """For each column an upper bound of the mean loss of new rows.

    Waudby-Smith & Ramdas (2024), as in Bates et al. (2021), proposition 5: someone bets on each row that its
    loss is below R, with stakes that depend on earlier rows only. If the mean is R or more, the capital
    exceeds 1 / (1 - confidence) with a probability of at most 1 - confidence. The bound is the least R at
    which the capital gets there.

    Parameters
    ----------
    losses : float64 array (n, G)
        Losses in [0, 1] of n independent rows, in an order that does not depend on them.
    confidence : float in (0, 1)
    counted : bool array (n, G), optional
        The rows that a column counts; the bound is for the mean over such rows.

    Returns
    -------
    float64 array (G,)
        In [0, 1], rounded up to a multiple of 2^-16; 1 where too few rows count.

    Examples
    --------
    Twenty losses of zero. The stakes are sqrt(2 log(10) / 20 / .25) = .960 at first, and 1 from then on:

    >>> betting_bounds(np.zeros((20, 1)), 0.9).round(4)
    array([0.1223])
    """
    wealth = math.log(1 / (1 - confidence))
    losses = np.ascontiguousarray(losses.T)
    counted = np.ones(losses.shape, bool) if counted is None else np.ascontiguousarray(counted.T)
    stakes = _stakes(losses, counted, wealth)
    low, high = np.zeros(len(losses)), np.ones(len(losses))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        capital = np.cumsum(log1p(-stakes * (losses - middle[:, None])), axis=1)
        enough = capital.max(axis=1, initial=0.0) >= wealth
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return high


def _stakes(losses: np.ndarray, counted: np.ndarray, wealth: float) -> np.ndarray:
    """What is staked on each row, (G, n): large where losses so far vary little; 0 on rows not counted."""
    seen = np.cumsum(counted, axis=1)
    mean = (0.5 + np.cumsum(losses * counted, axis=1)) / (1 + seen)
    spread = np.cumsum((losses - mean) ** 2 * counted, axis=1)
    variance = np.full(losses.shape, 0.25)
    variance[:, 1:] = ((0.25 + spread) / (1 + seen))[:, :-1]
    total = np.maximum(1, seen[:, -1:])
    stakes: np.ndarray = np.minimum(1.0, np.sqrt(2 * wealth / (total * variance))) * counted
    return stakes


def conformal_bounds(losses: np.ndarray) -> np.ndarray:
    """For each column the least alpha that conformal risk control promises, float64 (G,).

    Angelopoulos, Bates, Fisch, Lei & Schuster (2022), eq. 4 with B = 1: n / (n + 1) R + 1 / (n + 1), where R
    is the mean of the n losses.

    Examples
    --------
    >>> conformal_bounds(np.array([[0.0], [0.5], [0.0]]))
    array([0.375])
    """
    n = len(losses)
    bounds: np.ndarray = (np.cumsum(np.vstack([losses, np.ones(losses.shape[1])]), axis=0)[-1]) / (n + 1)
    return bounds
