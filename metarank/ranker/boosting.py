"""The one way by which metarank trains with LightGBM, and draws of irrelevant pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metarank._util.progress import report
from metarank._util.threads import openmp_threads, threads_for
from metarank.ranker.lists import hash_numbers
from metarank.types.boosters import BoosterArrays


def lightgbm_params(params: dict[str, Any], seed: int, n_jobs: int, n_values: int) -> dict[str, Any]:
    """LightGBM's parameters to learn from `n_values` values, such that a seed gives the same trees for any
    number of threads."""
    return params | {
        "seed": seed % 2**31,
        "num_threads": openmp_threads(threads_for(n_values, n_jobs), "lightgbm"),
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }


def pointwise_objective(target: np.ndarray) -> str:
    """The logistic loss for targets 0 and 1, its extension to probabilities for others in [0, 1]."""
    return "cross_entropy" if bool(((target > 0) & (target < 1)).any()) else "binary"


def grown(
    params: dict[str, Any],
    train: Any,
    n_rounds: int,
    *,
    objective: Callable[[np.ndarray, Any], tuple[np.ndarray, np.ndarray]] | None = None,
    held_out: Any = None,
    after: Callable[[np.ndarray], bool] | None = None,
    best: Callable[[], int] | None = None,
    tell: Callable[[str, float], None] = report,
) -> BoosterArrays:
    """Trees of this many rounds.

    Parameters
    ----------
    params : dict
        LightGBM's.
    train : lightgbm.Dataset
    n_rounds : int
    objective : function of the scores and the rows, optional
        Gives gradients and Hessians instead of an objective that LightGBM knows.
    held_out : lightgbm.Dataset, optional
        Rows that are scored after each round; those of the training by default.
    after : function of their scores, optional
        Called after each round; whether to stop.
    best : function, optional
        How many rounds are kept; all by default.
    tell : function of a text and the share of the work that is done
    """
    import lightgbm as lgb

    booster = lgb.Booster(params, train)
    if held_out is not None:
        booster.add_valid(held_out, "held out")
    stop = False

    def measure(scores: np.ndarray, _: Any) -> tuple[str, float, bool]:
        nonlocal stop
        stop = after is not None and after(scores)
        return "watched", 0.0, True

    for number in range(n_rounds):
        tell(f"round {number + 1} of {n_rounds}", (number + 1) / n_rounds)
        finished = booster.update(fobj=objective)
        if after is not None:
            booster.eval_train(measure) if held_out is None else booster.eval_valid(measure)
        # A later round may draw other features, by which there is something to split.
        if stop or (finished and after is not None):
            break
    if best is not None:
        booster.best_iteration = best()
    return BoosterArrays.from_lightgbm(booster)


def sampled_pairs(
    gains: np.ndarray, weight: np.ndarray, max_irrelevant: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The relevant pairs, and at most this many irrelevant ones, drawn by hash and weighted to stand for all.

    Parameters
    ----------
    gains, weight : arrays (m,)
        Pairs of weight 0 take no part.
    max_irrelevant : int, at least 1
    seed : int

    Returns
    -------
    kept : int64 array
        Positions, ascending.
    weight : float64 array of the same length
    """
    counted = weight > 0
    irrelevant = np.flatnonzero((gains == 0) & counted)
    if len(irrelevant) <= max_irrelevant:
        kept = np.flatnonzero(counted)
        return kept, weight[kept]
    order = np.argsort(hash_numbers(len(irrelevant), seed), kind="stable")
    drawn = irrelevant[order[:max_irrelevant]]
    kept = np.sort(np.concatenate([np.flatnonzero((gains > 0) & counted), drawn]))
    factor = weight[irrelevant].sum() / weight[drawn].sum()
    return kept, np.where(gains[kept] > 0, weight[kept], weight[kept] * factor)


def pairs_within(gains: np.ndarray, row_of_pair: np.ndarray, longest: int, seed: int) -> np.ndarray:
    """Ascending positions of at most `longest` pairs of each list: the relevant ones, then others by a hash
    of (seed, pair)."""
    order = np.lexsort((hash_numbers(len(gains), seed), gains == 0, row_of_pair))
    first = np.searchsorted(row_of_pair, row_of_pair)
    return np.sort(order[np.arange(len(gains)) - first < longest])
