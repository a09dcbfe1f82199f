"""Re-ranking with tail classifiers: predicted relevances combined with a second opinion on rare labels."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from metarank._elementary import exp, log, log1p
from metarank.candidates import Candidates

_BENT = -60.0
ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)


def rerank_with_tail(
    candidates: Candidates, tail_scores: np.ndarray, alpha: float, *, scale: float = 1.0
) -> Candidates:
    """Candidates scored by relevance and tail probability together, labels of relevance 0 left out.

    Jain et al. (2016), eq. 8: ``s = alpha log P + (1 - alpha) log P_tail``, over the labels with P > 0 only.
    The new final score is ``scale * exp(s)``: it orders as s does, and stays on the scale of relevances.
    Below -60, where float32 would lose the order, s is bent to ``-60 - log(1 - 60 - s)``.
    Pairs are combined one by one: lists by label (`Candidates.transpose`) are re-ranked just the same.

    Parameters
    ----------
    candidates : Candidates
        With predicted relevances as their final score.
    tail_scores : float array (m,)
        log P_tail of each pair, as from `metarank.scorers.tail.TailClassifiers`; finite, at most 0.
    alpha : float in [0, 1]
        Weight of the relevance; 1 leaves it as it is.
    scale : float
        The relevance that is probability 1: P = relevance / scale.

    Returns
    -------
    Candidates
        With the same score names; the first holds the new score.

    Raises
    ------
    ValueError, TypeError
        If alpha or scale is out of range, a shape is wrong or a number is not finite.

    Examples
    --------
    >>> c = Candidates(np.array([0, 3]), np.array([0, 1, 2]), 3, {"score": np.array([0.6, 0.5, 0.0])})
    >>> c = rerank_with_tail(c, np.log([0.1, 0.9, 0.9]), alpha=0.5)
    >>> c.labels, c.scores["score"].round(3)
    (array([0, 1], dtype=int32), array([0.245, 0.671], dtype=float32))
    """
    if not isinstance(candidates, Candidates):
        raise TypeError(f"candidates must be Candidates, got {type(candidates).__name__}")
    _check_alpha("alpha", alpha)
    if isinstance(scale, bool) or not isinstance(scale, Real):
        raise TypeError(f"scale must be a number, got {scale!r}")
    if not 0 < scale < np.inf:
        raise ValueError(f"scale must be finite and positive, got {scale}")
    if not candidates.scores:
        raise ValueError("candidates must carry predicted relevances as their final score, got no scores")
    tail = np.asarray(tail_scores)
    if tail.dtype.kind not in "fiu":
        raise TypeError(f"tail_scores must be numbers, got dtype {tail.dtype}")
    tail = tail.astype(np.float64)
    if tail.shape != candidates.labels.shape:
        raise ValueError(f"tail_scores must have shape {candidates.labels.shape}, got {tail.shape}")
    if not np.all(tail <= 0) or not np.all(np.isfinite(tail)):
        raise ValueError("tail_scores must be finite log-probabilities, at most 0")
    name = next(iter(candidates.scores))
    relevance = candidates.scores[name].astype(np.float64)
    if not np.all(np.isfinite(relevance)):
        pair = int(np.flatnonzero(~np.isfinite(relevance))[0])
        row, label = candidates.row_of_pair[pair], candidates.labels[pair]
        raise ValueError(
            f"candidates.scores[{name!r}] must be finite, got {relevance[pair]} at row {row}, label {label}"
        )

    listed = relevance > 0
    s = alpha * log(relevance[listed] / scale) + (1 - alpha) * tail[listed]
    indptr = np.concatenate([[0], np.cumsum(listed)])[candidates.indptr]
    scores = {other: values[listed] for other, values in candidates.scores.items()}
    scores[name] = (scale * exp(bent(s))).astype(np.float32)
    return Candidates.of_core(indptr, candidates.labels[listed], candidates.n_labels, scores)


def bent(s: np.ndarray) -> np.ndarray:
    """s where it is at least -60, and -60 - log(1 - 60 - s) below: in the same order, and exp(s) not 0."""
    return np.where(s < _BENT, _BENT - log1p(np.maximum(_BENT - s, 0)), s)


def choose_alpha(
    candidates: Candidates,
    tail_scores: np.ndarray,
    Y: Any,
    *,
    metric: str | Sequence[str] = "WP@5",
    grid: Sequence[float] = ALPHAS,
    standard_errors: float = 1.0,
    scale: float = 1.0,
    inv_propensity: Any = None,
    n_jobs: int | None = None,
) -> float:
    """The weight of `rerank_with_tail` that serves a metric on held-out rows.

    Of all weights that are within `standard_errors` of the best, the greatest: the weakest intervention.
    The error is that of the mean over rows of the difference between the two, row by row.

    Parameters
    ----------
    candidates, tail_scores, scale
        As in `rerank_with_tail`, of rows that neither the predictor nor the tail classifiers were trained on.
    Y : (n, L) array or sparse matrix
        The relevances of those rows.
    metric : str or sequence of str
        Any metric of `metarank.metrics` on scores that is a mean over rows, greater or less as is better:
        none of label sets (micro-F1), none of all pairs (AUPRC, RMSE). Of several, all of one direction,
        the mean.
    grid : sequence of floats in [0, 1]
        Include 1.0 to allow no re-ranking.
    standard_errors : float >= 0
        0 takes the best weight itself, of equal ones the greatest.
    inv_propensity : float array (L,), optional
        For the propensity-scored metrics; from the training labels.

    Raises
    ------
    ValueError, TypeError
        If the grid is empty or the metric unsuited, and as in `rerank_with_tail` and
        `metarank.metrics.evaluate`.

    Examples
    --------
    >>> c = Candidates(np.array([0, 2]), np.array([0, 1]), 2, {"score": np.array([0.6, 0.5])})
    >>> choose_alpha(c, np.log([0.5, 0.9]), [[0, 1]], metric="WP@1", grid=(0.2, 0.7, 1.0))
    0.7
    """
    from metarank.metrics import Metric, per_row  # which knows `rerank_with_tail`

    if not isinstance(grid, (Sequence, np.ndarray)) or isinstance(grid, str) or len(grid) == 0:
        raise ValueError(f"grid must hold at least one alpha, got {grid!r}")
    for alpha in grid:
        _check_alpha("grid", alpha)
    if isinstance(standard_errors, bool) or not isinstance(standard_errors, Real):
        raise TypeError(f"standard_errors must be a number >= 0, got {standard_errors!r}")
    if not 0 <= standard_errors < np.inf:
        raise ValueError(f"standard_errors must be finite and >= 0, got {standard_errors}")
    alphas = sorted(grid, reverse=True)
    chosen = [Metric.parse(name) for name in ([metric] if isinstance(metric, str) else metric)]
    if len({m.greater_is_better for m in chosen}) != 1:
        raise ValueError(
            f"metric must be one, or several of which all are better greater, or less; got {metric!r}"
        )
    for m in chosen:
        if m.needs == "sets":
            raise ValueError(f"metric must judge scores, row by row; {str(m)!r} judges label sets")
    sign = 1.0 if chosen[0].greater_is_better else -1.0
    values = []
    for alpha in alphas:
        reranked = rerank_with_tail(candidates, tail_scores, alpha, scale=scale)
        options: dict[str, Any] = {"inv_propensity": inv_propensity, "scale": scale, "n_jobs": n_jobs}
        values.append(sign * np.mean([per_row(Y, reranked, m, **options) for m in chosen], axis=0))
    counted = np.isfinite(values[0])
    if not counted.any():
        return float(alphas[0])
    best = max(values, key=lambda v: float(np.mean(v[counted])))
    for alpha, value in zip(alphas, values):
        behind = (best - value)[counted]
        if behind.mean() <= standard_errors * behind.std() / np.sqrt(len(behind)):
            return float(alpha)
    raise AssertionError("the best weight is within an error of itself")


def _check_alpha(name: str, alpha: float) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        raise TypeError(f"{name} must be a number in [0, 1], got {alpha!r}")
    if not 0 <= alpha <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {alpha}")
