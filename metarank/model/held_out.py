"""`held_out_quality_`: the quality to expect on new rows, from rows that the judged model has not seen."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from metarank.metrics import per_row
from metarank.metrics.resampling import Interval
from metarank.persist.fields import Each, List, Number
from metarank.thresholds import LearnedCuts
from metarank.thresholds.set_metrics import METRICS
from metarank.types.candidates import Candidates

# Metrics of the order. Those of label sets are in `LearnedCuts.held_out_`.
ORDER = ("P@1", "P@5", "nDCG@5", "MAP")
SETS = dict(zip(METRICS, ("micro-F1", "macro-F1", "example-F1", "Hamming", "subset-accuracy")))
# Standard errors on each side of a mean in a 95 % interval.
_WIDTH = 1.959964


def held_out_quality(
    candidates: Candidates,
    scores: np.ndarray,
    Y: sp.csr_matrix,
    group: np.ndarray,
    thresholds: LearnedCuts,
    n_jobs: int = 1,
) -> dict[str, Interval]:
    """Metrics of the order, and of the label sets if the cuts were judged, with 95 % intervals.

    Parameters
    ----------
    candidates : Candidates of n rows
    scores : float array (m,)
        Ranking scores from rankers that did not see the row.
    Y : CSR (n, L)
        The rows' relevances, including labels that are not candidates.
    group : int array (n,)
        Rows with the same number are copies, and count as one row in the width of an interval.
    thresholds : fitted LearnedCuts
    n_jobs : int

    Returns
    -------
    dict of str to Interval
        Means over rows, with the interval of a mean over groups. A metric without a row to count is left out.

    Examples
    --------
    >>> pairs = Candidates.all_labels(2, 2)
    >>> Y = sp.csr_matrix(np.float32([[1, 0], [0, 1]]))
    >>> learner = LearnedCuts().fit(pairs, np.arange(4.0), Y.toarray().ravel(), fold=np.array([0, 1]))
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
    """The mean of the rows that count, with an interval from the spread of the groups' sums.

    If all values are equal, the interval contains the shares for which that happens in one of twenty samples
    (rule of three).
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
    return Interval(mean, max(0.0, mean - width), min(1.0, mean + width))


def quality_lines(quality: Mapping[str, Interval]) -> list[str]:
    """One line per metric, times 100.

    Examples
    --------
    >>> quality_lines({"P@1": Interval(0.5, 0.45, 0.55)})
    ['P@1              50.0 (45.0 to 55.0)']
    """
    return [
        f"{name:<15} {100 * value:z5.1f} ({100 * low:z.1f} to {100 * high:z.1f})"
        for name, (value, low, high) in quality.items()
    ]


# The field of a saved model; earlier files lack it.
SAVED = Each(
    "held_out_quality",
    List("", Number(""), 3, into=lambda values: Interval(*values)),
    (*ORDER, *SETS.values()),
    optional=True,
)
