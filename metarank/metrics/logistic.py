"""Logistic regression: `Platt` by one line for all pairs; terms of each label, shrunk to the pooled ones."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from metarank import _core
from metarank._util.algebra import dot
from metarank._util.elementary import logistic
from metarank.persist.fields import Number
from metarank.persist.spec import Saved

# Log-odds beyond say nothing more, and could overflow.
_CLIP = 15.0


class Platt(Saved):
    """``logit P = a s + b`` for all pairs: puts the scores of any ranker on the scale of log-odds."""

    # Products of such numbers, and sums of them, stay far within double precision.
    slope: Annotated[float, Number("", -1e60, 1e60)]
    offset: Annotated[float, Number("", -1e60, 1e60)]

    def fit(self, scores: np.ndarray, target: np.ndarray) -> Platt:
        """Learn a and b by Platt scaling (log loss)."""
        mean, scale = float(scores.mean()), float(scores.std())
        scale = scale if scale > 1e-12 * max(1.0, abs(mean)) else 1.0
        X = np.column_stack([np.ones(len(scores)), (scores - mean) / scale])
        (b, a), _ = fit_label_logistic(
            X,
            np.zeros(len(X), np.int32),
            target,
            np.ones(len(X)),
            np.array([mean_log_odds(target), 0.0]),
            np.zeros((1, 0)),
            label_ridge=0.0,
        )
        self.slope, self.offset = float(a / scale), float(b - a * mean / scale)
        return self

    def slope_error(self, scores: np.ndarray) -> float:
        """The standard error of the slope on the scores it was learned from."""
        p = logistic(self.logits(scores))
        weight = p * (1 - p)
        spread = dot(weight, (scores - dot(weight, scores) / max(weight.sum(), 1e-300)) ** 2)
        return 1 / float(np.sqrt(max(spread, 1e-300)))

    def logits(self, scores: np.ndarray) -> NDArray[np.float64]:
        """float64 (m,), held within [-15, 15]."""
        return np.clip(self.slope * scores + self.offset, -_CLIP, _CLIP)


def mean_log_odds(target: np.ndarray) -> float:
    """Of the share of relevant pairs."""
    rate = (target.sum() + 0.5) / (len(target) + 1.0)
    return float(np.log(rate / (1 - rate)))


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
