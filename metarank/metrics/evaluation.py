"""`evaluate`: many metrics of one prediction; `per_row`: one metric of each row."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metarank.metrics.condensed import JudgedInputs
from metarank.metrics.inputs import Inputs
from metarank.metrics.names import Metric
from metarank.metrics.slices import slices_of


def evaluate(
    Y_true: Any,
    scores: Any,
    names: Iterable[str | Metric],
    *,
    inv_propensity: Any = None,
    Y_pred: Any = None,
    scale: float | None = None,
    parents: Any = None,
    judged: Any = None,
    slices: Any = None,
    label_counts: Any = None,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """Values of the named metrics, by name.

    Parameters
    ----------
    Y_true : (n, L) array or sparse matrix, `metarank.data.Dataset`, or `metarank.metrics.relevance.Relevance`
        Relevances >= 0; relevant means > 0. The labels of a `Dataset` are matched by id or name with those
        of a `Ranking` or of label sets with names; unknown labels count as missed, with a warning.
        Columns of tables are matched by name with those of a table of scores or sets, or with a `Ranking`.
        Otherwise labels are in the order of the scores.
    scores : `Ranking`, `Candidates`, (n, L) array or sparse matrix, or None
        The input of ranking metrics. Labels that are not listed (not in the `Ranking`, not stored in the
        sparse matrix, or with score -inf) are tied below all others: every container gives the same values.
        An array of integers in which each row holds distinct ids below L, such as `Ranking.labels`, is an
        error: ids are not scores. None if all metrics are for label sets.
    names : iterable of str or Metric
        As in `known_names`: "P@5", "nDCG", "PSP@5", "micro-F1", ...
    inv_propensity : float array (L,), optional
        For the propensity-scored metrics; from `metarank.metrics.propensity.inv_propensity` of the training
        labels.
    Y_pred : (n, L) array or sparse matrix of 0 and 1, or n lists of names, optional
        The input of metrics of label sets. With a `Dataset` with label names they are matched by name: lists,
        or a matrix by its attributes `label_names` and `label_ids`, which `predict` sets.
    scale : float, optional
        For the regression metrics: the relevance that counts as 1, such as the greatest of the *training*
        set. Relevances and scores are divided by it; by default the greatest relevance in `Y_true`.
    parents : LabelDescriptions, (L, L) matrix, or list of lists of label ids (L), optional
        For the hierarchical metrics: the parents of each label, without cycles.
    judged : CSR (n, L) or list of n lists of label ids, optional
        Pairs that a person judged, in addition to those of `Y_true`. All other labels are removed from
        rankings and label sets before the metric ("condensed lists", Sakai 2007): unjudged labels do not
        count as irrelevant. All stored entries of a CSR count. Not for metrics that count all labels:
        RankLoss, AUC, Hamming, subset-accuracy, LabelCoverage, labelwise and regression metrics.
    slices : sequence of n values, or "label frequency", optional
        Separate values for the rows of each value (a date, a source, ...), in the order of the values, with
        "(none)" last. Or for labels by their number of training rows, in bins with about as many relevant
        pairs: lists do not change, and only labels of the bin are relevant, so R@5 is the share of these that
        is found; label sets are reduced to the bin. Not for labelwise, hierarchical and regression metrics.
    label_counts : int array (L,), for slices="label frequency"
        Training rows of each label.
    n_jobs : int, optional
        Threads; None for all cores. The values do not depend on it.

    Returns
    -------
    dict of str to float; with `slices` a dict of such dicts by slice
        Fractions in [0, 1], Coverage in label positions, errors in shares of `scale`; NaN where no row
        counts.

    Raises
    ------
    ValueError
        If a name is unknown, an argument is missing, a shape is wrong, a score is NaN, the scores are label
        ids, or `judged` or `slices` does not fit a metric.

    Examples
    --------
    >>> Y, scores = [[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.8, 0.4]]
    >>> evaluate(Y, scores, ["P@1", "R@2", "RankLoss"])
    {'P@1': 1.0, 'R@2': 0.75, 'RankLoss': 0.25}
    >>> evaluate(Y, scores, ["MAP"], judged=[[], [2]])
    {'MAP': 1.0}
    >>> from metarank import Dataset
    >>> evaluate(Dataset(Y=[["sea", "sun"], ["sun"]]), None, ["micro-F1"], Y_pred=[["sun"], ["sun", "tea"]])
    {'micro-F1': 0.6666666666666666}
    >>> evaluate(Y, scores, ["P@1"], slices=["news", "web"])
    {'news': {'P@1': 1.0}, 'web': {'P@1': 1.0}}
    >>> evaluate(Y, scores, ["R@1"], slices="label frequency", label_counts=[9, 1, 1])
    {'1': {'R@1': 0.5}, '2-9': {'R@1': 1.0}}
    """
    metrics = parse_names(names)
    inputs = Inputs(Y_true, scores, Y_pred, inv_propensity, scale, parents, n_jobs)
    inputs_of = _condensed(inputs, judged, metrics)
    if slices is None and label_counts is None:
        return {str(metric): metric.value(of_metric) for metric, of_metric in inputs_of.items()}
    parts = slices_of(slices, label_counts, inputs, metrics)
    out: dict[str, Any] = {}
    for name, part_of in parts.items():
        part = cache(part_of)
        out[name] = {
            str(metric): metric.value(part(of_metric, metric.needs == "sets"))
            for metric, of_metric in inputs_of.items()
        }
    return out


def _condensed(inputs: Inputs, judged: Any, metrics: Iterable[Metric]) -> dict[Metric, Inputs]:
    """What each metric is computed from: the inputs, without the labels that nobody judged."""
    if judged is None:
        return dict.fromkeys(metrics, inputs)
    condensed = JudgedInputs(inputs, judged)
    return {metric: condensed.of(metric) for metric in metrics}


def per_row(
    Y_true: Any,
    scores: Any,
    name: str | Metric,
    *,
    inv_propensity: Any = None,
    Y_pred: Any = None,
    scale: float | None = None,
    parents: Any = None,
    judged: Any = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Values of one metric for each row, float64 (n,); their mean, NaN left out, is the metric.

    A labelwise metric gives one value for each label, (L,).

    NaN marks rows that the metric leaves out. PSP@k, PSnDCG@k, WP@k, WN@k and Tau@k, ratios of
    sums, give each row's attained gain over the mean of the best possible gains.

    Raises
    ------
    ValueError
        For a metric that is not a mean over rows (micro-F1, macro-F1, AUC, micro-AUC, AUPRC, RMSE, C@k,
        LabelCoverage), and as in `evaluate`.

    Examples
    --------
    >>> per_row([[1, 0, 1], [0, 0, 0]], [[0.9, 0.5, 0.1], [0.2, 0.8, 0.4]], "nDCG@1")
    array([ 1., nan])
    """
    metric = Metric.parse(name)
    inputs = Inputs(Y_true, scores, Y_pred, inv_propensity, scale, parents, n_jobs)
    values = metric.per_row(_condensed(inputs, judged, [metric])[metric])
    if values is None:
        raise ValueError(f"metric {str(metric)!r} is not a mean over rows")
    return values


def parse_names(names: Iterable[str | Metric]) -> list[Metric]:
    """Parse a list of names; refuse a single string."""
    if isinstance(names, (str, Metric)):
        raise TypeError(f"names must be a list of metrics, got {names!r}")
    return [Metric.parse(name) for name in names]
