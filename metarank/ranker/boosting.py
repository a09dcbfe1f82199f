"""What the rankers by LightGBM share: parameters, training, and draws of irrelevant pairs."""

from __future__ import annotations

import re
from typing import Any

import lightgbm as lgb
import numpy as np

from metarank._util.progress import report
from metarank._util.threads import openmp_threads, threads_for
from metarank.ranker.lists import hash_numbers

_THREADS = re.compile(r"^\[num_threads: \d+\]$", re.MULTILINE)
# Parameters of LightGBM that a ranker has under the same name.
_OWN = (
    "num_leaves",
    "learning_rate",
    "min_data_in_leaf",
    "lambda_l2",
    "feature_fraction",
    "max_bin",
)


def lightgbm_params(ranker: Any, seed: int, n_jobs: int, n_values: int) -> dict[str, Any]:
    """LightGBM's parameters for a ranker that learns from `n_values` values of pairs, such that a seed gives
    the same trees for any number of threads."""
    return {name: getattr(ranker, name) for name in _OWN} | {
        "seed": seed % 2**31,
        "num_threads": openmp_threads(threads_for(n_values, n_jobs)),
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }


def pointwise_objective(target: np.ndarray) -> str:
    """The logistic loss for targets 0 and 1, its extension to probabilities for others in [0, 1]."""
    return "cross_entropy" if bool(((target > 0) & (target < 1)).any()) else "binary"


def trained(
    params: dict[str, Any],
    train: lgb.Dataset,
    n_rounds: int,
    held_out: lgb.Dataset | None = None,
) -> str:
    """The text of a model of so many rounds, each of which is reported; see `model_text`."""

    def tell(env: Any) -> None:
        report(f"round {env.iteration + 1} of {n_rounds}", (env.iteration + 1) / n_rounds)

    valid = [] if held_out is None else [held_out]
    return model_text(lgb.train(params, train, n_rounds, valid_sets=valid, callbacks=[tell]))


def model_text(booster: lgb.Booster) -> str:
    """The model in LightGBM's text format, of which the number of threads is no part."""
    text: str = booster.model_to_string()
    return _THREADS.sub("[num_threads: 1]", text)


def sampled_pairs(
    gains: np.ndarray, weight: np.ndarray, max_irrelevant: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The relevant pairs, and at most so many irrelevant ones, drawn by hash and weighted to stand for all.

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
