"""Bootstrap confidence intervals: how much a value varies with the choice of test rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from metarank._util.threads import single_threaded_blas
from metarank.metrics.evaluation import parse_names
from metarank.metrics.inputs import Inputs
from metarank.metrics.names import Metric

_CELLS_AT_ONCE = 1 << 22


class Interval(NamedTuple):
    """A metric with its confidence interval."""

    value: float
    low: float
    high: float


def bootstrap(
    Y_true: Any,
    scores: Any,
    names: Iterable[str | Metric],
    *,
    n_resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    inv_propensity: Any = None,
    Y_pred: Any = None,
    scale: float | None = None,
    parents: Any = None,
    n_jobs: int | None = None,
) -> dict[str, Interval]:
    """Percentile bootstrap over rows of the named metrics.

    Each draw takes n rows with replacement and computes every metric anew. All metrics see the same draws,
    which depend on `seed` and n only. Ratios of sums (micro-F1, PSP@k) and metrics of labels (macro-F1) are
    computed in each draw, not as means of rows. AUC, micro-AUC, AUPRC and the labelwise metrics are not sums
    over rows: each draw takes a full evaluation.

    A draw has fewer distinct labels than the rows, so macro-F1 and C@k are lower in draws: their draws are
    moved up by the difference between the value and their mean (the bootstrap's estimate of bias: Efron and
    Tibshirani, An Introduction to the Bootstrap, 1993, section 10.2).

    Parameters
    ----------
    Y_true, scores, names, inv_propensity, Y_pred, scale, parents, n_jobs
        As in `evaluate`.
    n_resamples : int
    level : float in (0, 1)
        Share of the draws whose value lies in the interval.
    seed : int

    Returns
    -------
    dict of str to (value, low, high)
        NaN where no draw has a value; draws without one are left out.

    Raises
    ------
    ValueError
        If `Y_true` has no row, `level` or `n_resamples` is out of range, and as in `evaluate`.

    Examples
    --------
    >>> Y, scores = [[1, 0], [0, 1], [1, 0]], [[0.9, 0.5], [0.8, 0.2], [0.7, 0.1]]
    >>> bootstrap(Y, scores, ["P@1"], n_resamples=200)["P@1"]
    Interval(value=0.6666666666666666, low=0.0, high=1.0)
    """
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be positive, got {n_resamples}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    metrics = parse_names(names)
    inputs = Inputs(Y_true, scores, Y_pred, inv_propensity, scale, parents, n_jobs)
    if inputs.n_rows == 0:
        raise ValueError("Y_true must have at least one row")
    statistics = {metric: metric.statistics(inputs) for metric in metrics}
    widest = max([inputs.n_rows] + [s.rows.shape[1] for s in statistics.values() if s is not None])
    chunk = max(1, _CELLS_AT_ONCE // widest)

    draws: dict[Metric, list[np.ndarray]] = {metric: [] for metric in metrics}
    with single_threaded_blas():
        for start in range(0, n_resamples, chunk):
            counts = _draw_counts(inputs.n_rows, range(start, min(start + chunk, n_resamples)), seed)
            for metric, of_rows in statistics.items():
                if of_rows is not None:
                    values = of_rows.finish(np.asarray(counts @ of_rows.rows))
                else:
                    rows = (np.repeat(np.arange(inputs.n_rows), c.astype(np.int64)) for c in counts)
                    values = np.array([metric.value(inputs.rows(index)) for index in rows])
                draws[metric].append(values)
    intervals = {}
    for metric, of_rows in statistics.items():
        value, values = metric.value(inputs), np.concatenate(draws[metric])
        if of_rows is not None and of_rows.over_labels:
            values = np.clip(values + (value - values.mean()), 0.0, 1.0)
        intervals[str(metric)] = _interval(value, values, level)
    return intervals


def _draw_counts(n: int, draws: range, seed: int) -> np.ndarray:
    """float64 (len(draws), n): how often each row is drawn; draw b comes from (seed, b)."""
    return np.array(
        [np.bincount(np.random.default_rng([seed, b]).integers(n, size=n), minlength=n) for b in draws],
        dtype=np.float64,
    )


def _interval(value: float, values: np.ndarray, level: float) -> Interval:
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return Interval(value, float("nan"), float("nan"))
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))
