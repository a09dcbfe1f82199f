"""The weight of the relevance beside tail classifiers, chosen on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metarank._util.parameters import check_real
from metarank.metrics import Metric, per_row
from metarank.metrics.rerank import check_weight, rerank_with_tail
from metarank.types.candidates import Candidates

ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)


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
    """The weight of `rerank_with_tail` that optimises a metric on held-out rows.

    The largest weight within `standard_errors` of the best, since it intervenes least. The standard error is
    that of the mean paired difference over rows.

    Parameters
    ----------
    candidates, tail_scores, scale
        As in `rerank_with_tail`, of rows that neither the predictor nor the tail classifiers were trained on.
    Y : (n, L) array or sparse matrix
        The relevances of those rows.
    metric : str or sequence of str
        Any metric of `metarank.metrics` on scores that is a mean over rows; not metrics of label sets
        (micro-F1) or of all pairs (AUPRC, RMSE). For several metrics of the same direction, their mean.
    grid : sequence of floats in [0, 1]
        Include 1.0 to allow no re-ranking.
    standard_errors : float >= 0
        0 takes the best weight itself; ties go to the largest.
    inv_propensity : float array (L,), optional
        For propensity-scored metrics, from the training labels.

    Raises
    ------
    ValueError, TypeError
        If the grid is empty or the metric is unsuitable, and as in `rerank_with_tail` and
        `metarank.metrics.evaluate`.

    Examples
    --------
    >>> c = Candidates(np.array([0, 2]), np.array([0, 1]), 2, {"score": np.array([0.6, 0.5])})
    >>> choose_alpha(c, np.log([0.5, 0.9]), [[0, 1]], metric="WP@1", grid=(0.2, 0.7, 1.0))
    0.7
    """
    if not isinstance(grid, (Sequence, np.ndarray)) or isinstance(grid, str) or len(grid) == 0:
        raise ValueError(f"grid must hold at least one alpha, got {grid!r}")
    for alpha in grid:
        check_weight("grid", alpha)
    most = float(np.finfo(np.float64).max)
    check_real("standard_errors", standard_errors, 0, most, "a finite number >= 0")
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
