"""`held_out_quality_`: what a fit says of new rows, from rows that no part of what is judged has seen."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from metarank.metrics import per_row
from metarank.metrics.resampling import Interval
from metarank.persist.fields import Each, List, Number
from metarank.thresholds import ThresholdLearner
from metarank.thresholds.set_metrics import METRICS
from metarank.types.candidates import Candidates

# Of the order; those of label sets are in `ThresholdLearner.held_out_`.
ORDER = ("P@1", "P@5", "nDCG@5", "MAP")
SETS = dict(zip(METRICS, ("micro-F1", "macro-F1", "example-F1", "Hamming", "subset-accuracy")))
# Standard errors on each side of a mean that hold it in 95 of 100 cases.
_WIDTH = 1.959964


def held_out_quality(
    candidates: Candidates,
    scores: np.ndarray,
    Y: sp.csr_matrix,
    group: np.ndarray,
    thresholds: ThresholdLearner,
    n_jobs: int = 1,
) -> dict[str, Interval]:
    """Metrics of the order, and of the label sets as far as the cuts were judged, with 95 % intervals.

    Parameters
    ----------
    candidates : Candidates of n rows
    scores : float array (m,)
        Ranking scores of rankers that saw nothing of the row.
    Y : CSR (n, L)
        The rows' relevances, labels that are no candidates included.
    group : int array (n,)
        Rows of the same number are copies of one row, and count as one where the width is told.
    thresholds : fitted ThresholdLearner
    n_jobs : int

    Returns
    -------
    dict of str to Interval
        Means over rows, with the interval of a mean of groups; a metric that no row counts for is left out.

    Examples
    --------
    >>> pairs = Candidates.all_labels(2, 2)
    >>> Y = sp.csr_matrix(np.float32([[1, 0], [0, 1]]))
    >>> learner = ThresholdLearner().fit(pairs, np.arange(4.0), Y.toarray().ravel(), fold=np.array([0, 1]))
    >>> held_out_quality(pairs, np.array([2.0, 1, 1, 2]), Y, np.arange(2), learner)["P@1"]
    Interval(value=1.0, low=0.0, high=1.0)
    """
    ranked = Candidates.of_core(
        candidates.indptr, candidates.labels, candidates.n_labels, {"score": scores.astype(np.float32)}
    )
    of_rows = {name: per_row(Y, ranked, name, n_jobs=n_jobs) for name in ORDER}
    found = {name: _mean(values, group) for name, values in of_rows.items() if not np.isnan(values).all()}
    return found | {SETS[metric]: Interval(*values) for metric, values in thresholds.held_out_.items()}


def _mean(values: np.ndarray, group: np.ndarray) -> Interval:
    """The mean of rows that count, and its interval by the spread of the groups' sums.

    Where all have one value, it reaches as far as a share may lie for that to happen in one of twenty cases.
    """
    counted = ~np.isnan(values)
    values, group = values[counted], np.unique(group[counted], return_inverse=True)[1]
    mean = float(values.mean())
    n_groups = int(group.max()) + 1
    away = np.bincount(group, weights=values - mean)
    correction = n_groups / max(1, n_groups - 1)
    width = _WIDTH * float(np.sqrt(correction * np.sum(away**2))) / len(values)
    if not width:
        return Interval(mean, max(0.0, mean - 3 / n_groups), min(1.0, mean + 3 / n_groups))
    return Interval(mean, mean - width, mean + width)


def quality_lines(quality: Mapping[str, Interval]) -> list[str]:
    """A line a metric for a person, times 100.

    Examples
    --------
    >>> quality_lines({"P@1": Interval(0.5, 0.45, 0.55)})
    ['P@1              50.0 (45.0 to 55.0)']
    """
    return [
        f"{name:<15} {100 * value:5.1f} ({100 * low:.1f} to {100 * high:.1f})"
        for name, (value, low, high) in quality.items()
    ]


# What a model saves of it; None in files of before.
SAVED = Each(
    "held_out_quality",
    List("", Number(""), 3, into=lambda values: Interval(*values)),
    (*ORDER, *SETS.values()),
    optional=True,
)
