"""`Platt`: scores on the scale of log-odds, by one line for all pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from metarank._util.algebra import dot
from metarank._util.elementary import logistic
from metarank.metrics.label_logistic import fit_label_logistic

# Log-odds beyond say nothing more, and could overflow.
_CLIP = 15.0


class Platt:
    """``logit P = a s + b`` for all pairs: puts the scores of any ranker on the scale of log-odds."""

    slope: float
    offset: float

    @classmethod
    def of(cls, slope: float, offset: float) -> Platt:
        """With a and b that are known."""
        out = cls()
        out.slope, out.offset = slope, offset
        return out

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
