"""Weights of labels: inverse propensities, and two popular heuristics."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from metarank._util.parameters import POSITIVE, check_real
from metarank.metrics.propensity import inv_propensity, label_counts

WeightKind = Literal["inverse-propensity", "power", "log"]


def label_weights(
    Y: Any,
    kind: WeightKind = "inverse-propensity",
    *,
    a: float = 0.55,
    b: float = 1.5,
    beta: float = 0.5,
    n_points: int | None = None,
) -> NDArray[np.float64]:
    """One weight for every label: the rarer the label, the greater.

    Jain et al. (2016), section 5, "Recommending rare items", with N points of which N_l carry label l:

    ======================  =======================  ==========================================
    kind                    weight                   outside the range of the formula
    ======================  =======================  ==========================================
    "inverse-propensity"    1 + C (N_l + b)^-a       needs log N > 1 (eq. 2)
    "power"                 N_l^-beta                N_l = 0 weighs as much as N_l = 1
    "log"                   log(N / N_l), natural    N_l = 0 as N_l = 1, and N_l = N as N_l = N - 1
    ======================  =======================  ==========================================

    Every weight is finite and positive. Weights are not normalised. Inverse propensities make a loss
    unbiased as they are; a heuristic gives only the proportions between labels.

    Parameters
    ----------
    Y : (n, L) array or sparse matrix of relevances, relevant where > 0; or, if `n_points` is given,
        (L,) the number of points of each label
    kind : {"inverse-propensity", "power", "log"}
    a, b : float
        The curve of "inverse-propensity"; see `PRESETS`.
    beta : float
        Exponent of "power", at least 0.
    n_points : int, optional
        N, when `Y` holds counts.

    Returns
    -------
    float64 array (L,)

    Raises
    ------
    ValueError
        If `kind` is unknown; if `beta` is negative or not finite; if a count is negative or above N; if
        there are too few points (2 for "log", 3 for "inverse-propensity").

    Examples
    --------
    >>> counts = [100, 10, 1, 0]
    >>> label_weights(counts, "power", beta=0.5, n_points=1000).round(2)
    array([0.1 , 0.32, 1.  , 1.  ])
    >>> label_weights(counts, "log", n_points=1000).round(2)
    array([2.3 , 4.61, 6.91, 6.91])
    >>> label_weights(counts, n_points=1000).round(2)
    array([1.77, 3.55, 6.91, 8.82])
    """
    if kind == "inverse-propensity":
        return inv_propensity(Y, a, b, n_points=n_points)
    counts, n = label_counts(Y, n_points)
    if kind == "power":
        check_real("beta", beta, 0, POSITIVE[1], "a finite number of at least 0")
        return np.maximum(counts, 1).astype(np.float64) ** -beta
    if kind == "log":
        if n < 2:
            raise ValueError(f"kind 'log' needs at least 2 points, got N = {n}")
        return np.log(n / np.clip(counts, 1, n - 1))
    raise ValueError(f"kind must be 'inverse-propensity', 'power' or 'log', got {kind!r}")
