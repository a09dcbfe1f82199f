"""`Report`: what a page shows, and how it is measured on a fitted model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank import metrics
from metarank._util.progress import report as report_progress
from metarank.apps.report.evidence import Importance, alone, importance
from metarank.apps.report.examples import Example, example, typical_rows
from metarank.data.dataset import Dataset
from metarank.metrics import FrequencyBin, Interval, Metric
from metarank.metrics.relevance import Relevance
from metarank.metrics.slices import LABEL_FREQUENCY
from metarank.model.answering.measure import Evaluation, SliceFigures, aligned_relevance, length_below
from metarank.model.estimator import MetaRanker
from metarank.types.ranking import Ranking
from metarank.types.restrict import check_lists, for_each_row

MODEL = "metarank"
KS = tuple(range(1, 11))
TAIL_K = 5
# The axes of curves over the length of lists.
LENGTH = "k (length of the list)"
SHARES = {"precision": "share of the first k that is relevant", "recall": "share of the relevant found"}


class Reliability(NamedTuple):
    """Calibration by bins of equal width: mean forecast, share found relevant (NaN where empty), pairs."""

    forecast: np.ndarray
    observed: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, relevant: np.ndarray, probability: np.ndarray, n_bins: int = 10) -> Reliability:
        """Bins of the pairs' probabilities against what they turned out to be."""
        index = np.minimum((probability * n_bins).astype(np.int64), n_bins - 1)
        counts = np.bincount(index, minlength=n_bins)
        with np.errstate(invalid="ignore"):
            forecast = np.bincount(index, probability, n_bins) / counts
            observed = np.bincount(index, relevant, n_bins) / counts
        return cls(forecast, observed, counts)

    @property
    def error(self) -> float:
        """Mean |forecast - observed| over the pairs beyond the first bin.

        The first holds nearly all pairs, which are easy: with it every model looks calibrated.
        """
        kept = (self.counts > 0) & (np.arange(len(self.counts)) > 0)
        gaps = np.abs(self.forecast[kept] - self.observed[kept])
        return float(np.average(gaps, weights=self.counts[kept])) if kept.any() else float("nan")


@dataclass(frozen=True)
class Report:
    """The content of a page. The page leaves out empty parts.

    Attributes
    ----------
    title, lead : str
    facts : list of (name, value)
    metrics : dict of method to dict of metric name to Interval; the first method is the model
    notes : list of str
        Remarks on the table.
    propensity_weight : float or None
        That of the lists.
    slices : dict of column to list of SliceFigures
        Figures of the model by slice.
    settings : list of (name, value)
        What the page was made of: settings, seed, versions, digests.
    ks, precision, recall : list lengths, and dict of method to values
    bins, tail : label frequencies, and dict of method to recall at `tail_k`
    reliability : Reliability or None
    importance : Importance or None
    examples : list of Example
    """

    title: str
    lead: str = ""
    facts: Sequence[tuple[str, str]] = ()
    metrics: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    propensity_weight: float | None = None
    slices: Mapping[str, Sequence[SliceFigures]] = field(default_factory=dict)
    settings: Sequence[tuple[str, str]] = ()
    ks: Sequence[int] = ()
    precision: Mapping[str, Sequence[float]] = field(default_factory=dict)
    recall: Mapping[str, Sequence[float]] = field(default_factory=dict)
    bins: Sequence[FrequencyBin] = ()
    tail: Mapping[str, Sequence[float]] = field(default_factory=dict)
    tail_k: int = TAIL_K
    reliability: Reliability | None = None
    importance: Importance | None = None
    examples: Sequence[Example] = ()


def measure_report(
    model: MetaRanker,
    dataset: Dataset,
    *,
    baselines: Mapping[str, Ranking] | None = None,
    slices: Mapping[str, Any] | None = None,
    exclude: Any = None,
    n_examples: int = 4,
) -> Report:
    """Measure a fitted model on labelled rows.

    Parameters
    ----------
    model : fitted MetaRanker
    dataset : Dataset
        Rows as in `MetaRanker.rank`, with labels as `aligned_relevance` takes them. Labels that are not in
        the training data count as missed; a note gives their number. Another note, and a warning, give the
        number of rows without evidence.
    baselines : dict of name to Ranking of at least ten labels per row, optional
        The methods to compare the model with. By default each of its scorers that can propose labels.
    slices : dict of name to n values, optional
        Columns, such as a date or a source: the rows of each value are also measured separately.
    exclude : as in `MetaRanker.rank`, optional
        Labels to leave out of rankings, decisions and metrics.
    n_examples : int
        Rows to show, at evenly spaced quantiles of nDCG@5.

    Raises
    ------
    ValueError
        If the data set is empty, its labels cannot be matched to those of the model, or a column of `slices`
        has another number of values.
    """
    if dataset.n_rows == 0:
        raise ValueError("dataset must have at least one row")
    relevance = aligned_relevance(model.fitted_, dataset)
    Y, k = relevance.Y, min(KS[-1], model.n_labels_)
    n_labels = model.n_labels_ - len(model.removed_)
    report_progress("measuring: lists", 0.0)
    excluded = None
    if exclude is not None:
        lists_of_rows = check_lists(exclude, dataset.n_rows, model.label_table_, "exclude")
        excluded = for_each_row(lists_of_rows, dataset.n_rows, model.n_labels_)
    evaluation = Evaluation(model, dataset, relevance, exclude=exclude)
    if evaluation.unknown_rows:
        warnings.warn(evaluation.unknown_rows, stacklevel=3)
    ranking = evaluation.ranking(max(KS[-1], 100))
    others = alone(model, dataset, k, excluded) if baselines is None else baselines
    lists = {MODEL: ranking.top(k)} | {name: r.top(k) for name, r in others.items()}
    report_progress("measuring: intervals", 0.2)
    names = evaluation.default_names()
    by_frequency = {} if evaluation.label_counts is None else {LABEL_FREQUENCY: None}
    measured = {
        "metrics": _intervals(evaluation, names, lists),
        "slices": evaluation.by_slices(names, by_frequency | dict(slices or {})),
        **_by_length(relevance, lists, KS[: max(1, n_labels - 1)]),
        **_by_frequency(evaluation, lists, length_below(n_labels, TAIL_K)),
    }
    report_progress("measuring: calibration and importance", 0.5)
    # Of the candidate pairs; where all labels are ranked, of all pairs.
    if model.n_rows_:
        forecast = sp.coo_matrix(evaluation.probabilities())
        relevant = np.asarray((evaluation.Y > 0)[forecast.row, forecast.col]).ravel()
        measured["reliability"] = Reliability.of(relevant, forecast.data.astype(np.float64))
    measured["importance"] = importance(model, dataset, lists[MODEL], exclude=excluded)
    report_progress("measuring: examples", 0.8)
    shown = typical_rows(relevance, ranking, n_examples)
    examples = [example(model, dataset, int(i), ranking, relevance, exclude=excluded) for i in shown]
    report_progress("done", 1.0)
    return Report(
        title=f"{dataset.name or 'Evaluation'}: a metarank report",
        facts=[("test rows", f"{dataset.n_rows:,}"), ("labels", f"{n_labels:,}"),
               ("labels per row", f"{Y.nnz / dataset.n_rows:.2f}")],
        notes=[f"{remark}." for remark in (relevance.said, evaluation.unknown_rows) if remark],
        propensity_weight=model.propensity_weight_,
        settings=[(name, f"{value}") for name, value in model._facts().items() if name in _SETTINGS],
        examples=examples,
        **measured,
    )  # fmt: skip


_SETTINGS = ("settings", "seed", "training rows", "ranker", "thresholds", "propensity weight")


def _intervals(
    evaluation: Evaluation, names: Sequence[str], lists: Mapping[str, Ranking]
) -> dict[str, dict[str, Interval]]:
    """The metrics of each method; of a baseline, which decides nothing, those of lists."""
    of_model = evaluation.values(names, intervals=True)
    values = {MODEL: {name: Interval(*triple) for name, triple in of_model.items()}}
    parsed = [Metric.parse(name) for name in names]
    of_lists = [str(m) for m in parsed if m.needs == "ranking" and (m.k or 1) <= lists[MODEL].k]
    for name, ranking in lists.items():
        if name != MODEL:
            values[name] = metrics.bootstrap(
                evaluation.relevance, ranking, of_lists, inv_propensity=evaluation.inv_propensity
            )
    return values


def _by_length(relevance: Relevance, lists: Mapping[str, Ranking], ks: Sequence[int]) -> dict[str, Any]:
    """Precision and recall of each method over the length of its lists."""

    def curves(kind: str) -> dict[str, list[float]]:
        names = [f"{kind}@{k}" for k in ks]
        return {method: list(metrics.evaluate(relevance, of, names).values()) for method, of in lists.items()}

    return {"ks": ks, "precision": curves("P"), "recall": curves("R")}


def _by_frequency(evaluation: Evaluation, lists: Mapping[str, Ranking], k: int) -> dict[str, Any]:
    """Recall of each method over the training rows of the labels, where the model knows those."""
    counts, name = evaluation.label_counts, f"R@{k}"
    if counts is None:
        return {"tail_k": k}
    how: dict[str, Any] = {"slices": LABEL_FREQUENCY, "label_counts": counts}
    tail = {
        method: [
            values[name] for values in metrics.evaluate(evaluation.relevance, ranking, [name], **how).values()
        ]
        for method, ranking in lists.items()
    }
    return {"bins": evaluation.frequency_bins, "tail": tail, "tail_k": k}
