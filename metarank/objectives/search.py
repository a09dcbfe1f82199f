"""Search for weights of loss aggregation: the best minimum, or the best values under constraints.

Both searches train a model with some weights, measure it and choose the next weights. The result is a plain
loss aggregation whose weights can be read and used again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

# Models trained after those of each objective alone.
TRIALS = 8
# The first change of the logarithm of a weight.
_FIRST_STEP = 2.0


@dataclass
class Trial:
    """What was trained with some weights (summing to 1), and the metric of each objective."""

    weights: np.ndarray
    attained: np.ndarray


T = TypeVar("T", bound=Trial)
# Weights (K,) that sum to 1 -> a trial.
Train = Callable[[np.ndarray], T]


def best_minimum(train: Train[T], alone: np.ndarray, importance: np.ndarray) -> T:
    """Chebyshev: the least of the greatest ``importance_k (1 - attained_k / alone_k)``.

    Parameters
    ----------
    train : callable
    alone : float64 array (K,)
        What each objective attains alone.
    importance : float64 array (K,)
        Of objectives, on average 1; one of 0 has no say, and no weight.

    Notes
    -----
    Weights start in proportion to the importance. Each step raises the logarithms of those that lag and
    lowers the others; steps shrink by 2^(-1 / (K - 1)), which for two objectives is a bisection.
    """
    counted = importance > 0
    shrink = 0.5 ** (1 / max(1, counted.sum() - 1))
    log_weight = np.log(np.where(counted, importance, 1.0))
    best: T | None = None
    least = np.inf
    for number in range(TRIALS):
        weights = np.where(counted, np.exp(log_weight - log_weight[counted].max()), 0.0)
        trial = train(weights / weights.sum())
        lag = importance * (1 - trial.attained / alone)
        if best is None or lag.max() < least:
            best, least = trial, lag.max()
        away = lag - lag[counted].mean()
        scale = np.abs(away[counted]).max()
        if scale < 1e-12:
            break
        log_weight += _FIRST_STEP * shrink**number * away / scale
    assert best is not None
    return best


def most_under_constraints(
    train: Train[T], alone: np.ndarray, share: np.ndarray, importance: np.ndarray, singles: list[T]
) -> tuple[T, bool]:
    """Epsilon-constraint: the most of the free objectives, the others no lower than a share of their best.

    Parameters
    ----------
    train : callable
    alone : float64 array (K,)
    share : float64 array (K,)
        ``attained_k >= share_k alone_k`` is asked for; NaN for a free objective.
    importance : float64 array (K,)
        Of the free objectives, whose mean of ``attained_k / alone_k`` it weighs.
    singles : list of Trial
        The models of one objective alone; they are candidates too.

    Returns
    -------
    trial : Trial
        Of those that keep every constraint the one with most of the free objectives; where none does, the
        one whose worst constraint is missed by the least.
    kept : bool
        Whether it keeps them.

    Notes
    -----
    The weight of each constrained objective, relative to the free ones together, is found by bisection of
    its logarithm.
    """
    bound = ~np.isnan(share)
    free = np.where(bound, 0.0, importance)
    free = free / free.sum()
    log_weight, low, high = (np.full(len(share), fill) for fill in (0.0, -np.inf, np.inf))
    trials = list(singles)
    for number in range(TRIALS):
        weights = np.where(bound, np.exp(log_weight), free)
        trial = train(weights / weights.sum())
        trials.append(trial)
        held = trial.attained >= share * alone
        high = np.where(bound & held, log_weight, high)
        low = np.where(bound & ~held, log_weight, low)
        both = np.isfinite(low) & np.isfinite(high)
        stride = _FIRST_STEP * (1 + number)
        onward = np.where(held, log_weight - stride, log_weight + stride)
        with np.errstate(invalid="ignore"):
            log_weight = np.where(both, (low + high) / 2, onward)
    missed = [float(np.max((share * alone - t.attained)[bound])) for t in trials]
    of_free = [float(free @ (t.attained / alone)) for t in trials]
    keeping = [i for i, value in enumerate(missed) if value <= 0]
    if keeping:
        return trials[max(keeping, key=lambda i: of_free[i])], True
    return trials[int(np.argmin(missed))], False
