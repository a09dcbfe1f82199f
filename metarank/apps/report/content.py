"""`Report`: what a page shows, and how it is measured on a fitted model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from metarank import metrics
from metarank._util.progress import report as report_progress
from metarank.apps.report.baselines import alone
from metarank.apps.report.examples import Example, example, typical_rows
from metarank.apps.report.measures import (
    FrequencyBin,
    Importance,
    Reliability,
    frequency_bins,
    importance,
    precision_and_recall,
    recall_by_frequency,
    reliability_bins,
)
from metarank.metrics import Interval
from metarank.model.relevance import aligned_relevance
from metarank.types.ranking import Ranking
from metarank.types.restrict import check_lists, for_each_row

if TYPE_CHECKING:
    from metarank.data.dataset import Dataset
    from metarank.model.estimator import MetaRanker
    from metarank.model.relevance import Relevance

MODEL = "metarank"
LIST_METRICS = ("P@1", "P@3", "P@5", "nDCG@5", "R@10", "PSP@5")
SET_METRICS = ("micro-F1", "example-F1")
KS = tuple(range(1, 11))
TAIL_K = 5


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
    ks: Sequence[int] = ()
    precision: Mapping[str, Sequence[float]] = field(default_factory=dict)
    recall: Mapping[str, Sequence[float]] = field(default_factory=dict)
    bins: Sequence[FrequencyBin] = ()
    tail: Mapping[str, Sequence[float]] = field(default_factory=dict)
    tail_k: int = TAIL_K
    reliability: Reliability | None = None
    importance: Importance | None = None
    examples: Sequence[Example] = ()
    examples_note: str = ""


def measure_report(
    model: MetaRanker,
    dataset: Dataset,
    *,
    baselines: Mapping[str, Ranking] | None = None,
    exclude: Any = None,
    rows: Sequence[int] | np.ndarray | None = None,
    n_examples: int = 4,
) -> Report:
    """Measure a fitted model on labelled rows.

    Parameters
    ----------
    model : fitted MetaRanker
    dataset : Dataset
        Rows as in `MetaRanker.rank`, with labels as `metarank.model.relevance.aligned_relevance` takes them.
        Labels that the model never met count as missed; a note says how many there are.
    baselines : dict of name to Ranking of at least ten labels a row, optional
        The methods to compare the model with. By default each of its scorers that can propose labels, alone.
    exclude : as in `MetaRanker.rank`, optional
        Labels to leave out of rankings, decisions and metrics.
    rows : sequence of int, optional
        Rows to show as examples. By default rows at evenly spaced quantiles of nDCG@5.
    n_examples : int

    Raises
    ------
    ValueError
        If the data set is empty, or its labels cannot be matched to those of the model.
    """
    if dataset.n_rows == 0:
        raise ValueError("dataset must have at least one row")
    relevance = aligned_relevance(model, dataset)
    Y, widened, k = relevance.Y, relevance.widened, min(KS[-1], model.n_labels_)
    report_progress("measuring: lists", 0.0)
    excluded = None
    if exclude is not None:
        lists_of_rows = check_lists(exclude, dataset.n_rows, model.label_table_, "exclude")
        excluded = for_each_row(lists_of_rows, dataset.n_rows, model.n_labels_)
    own = widened(model.rank(dataset, k=max(KS[-1], 100), exclude=exclude))
    others = alone(model, dataset, k) if baselines is None else baselines
    lists = {MODEL: own.top(k)} | {name: widened(r.top(k)) for name, r in others.items()}
    report_progress("measuring: intervals", 0.2)
    values = _values(model, dataset, relevance, lists, exclude)
    report_progress("measuring: calibration and importance", 0.5)
    contributions = importance(model, dataset, lists[MODEL], exclude=excluded)
    report_progress("measuring: examples", 0.8)
    shown = typical_rows(Y, own, n_examples) if rows is None else np.asarray(rows, np.int64)
    examples = [example(model, dataset, int(i), own, relevance, exclude=excluded) for i in shown]
    report_progress("done", 1.0)
    return Report(
        title=f"{dataset.name or 'Evaluation'}: a metarank report",
        facts=[("test rows", f"{dataset.n_rows:,}"), ("labels", f"{model.n_labels_:,}"),
               ("labels a row", f"{Y.nnz / dataset.n_rows:.2f}")],
        metrics=values,
        notes=[
            _NOTE_PSP,
            *([f"{relevance.said}."] if relevance.said else []),
            *([_NOTE_CUT] if len(lists) > 1 else []),
        ],
        **_by_length(Y, lists, KS[:k]),
        **_by_frequency(model, relevance, lists, min(TAIL_K, k)),
        reliability=_reliability(model, dataset, Y, exclude),
        importance=contributions,
        examples=examples,
        examples_note=_NOTE_EXAMPLES if rows is None else "",
    )  # fmt: skip


_NOTE_PSP = "PSP@5 weighs each label by its inverse propensity: rare labels count more."
_NOTE_CUT = (
    "For the F1 metrics metarank decides the number of labels of each row by the thresholds it learned; "
    "the others give every row the same number, the one that suits them best on these very rows."
)
_NOTE_EXAMPLES = "Rows at evenly spaced quantiles of nDCG@5, best first: neither the best nor the worst."


def label_counts(model: MetaRanker) -> np.ndarray | None:
    """Training rows of each label, where a source of the model keeps them; int64 (L,)."""
    for source in model.sources_:
        found = source.scorer.training_labels()
        if found is not None:
            return np.bincount(found[1].indices, minlength=model.n_labels_)
    return None


def _values(
    model: MetaRanker, dataset: Dataset, relevance: Relevance, lists: Mapping[str, Ranking], exclude: Any
) -> dict[str, dict[str, Interval]]:
    """The metrics of each method: of its lists, and of the sets that it decides for or that suit it best."""
    Y, weights, k = relevance.Y, relevance.inv_propensity(model), lists[MODEL].k
    names = [name for name in LIST_METRICS if int(name.partition("@")[2]) <= k]
    values = {
        name: dict(metrics.bootstrap(Y, ranking, names, inv_propensity=weights))
        for name, ranking in lists.items()
    }
    for name in SET_METRICS:
        decided = relevance.widened(model.predict(dataset, optimize=name, exclude=exclude))
        values[MODEL] |= metrics.bootstrap(Y, None, [name], Y_pred=decided)
    for name, ranking in lists.items():
        if name != MODEL:
            values[name] |= _best_cut(Y, ranking)
    return values


def _by_length(Y: sp.csr_matrix, lists: Mapping[str, Ranking], ks: Sequence[int]) -> dict[str, Any]:
    """Precision and recall of each method over the length of its lists."""
    curves = {name: precision_and_recall(Y, ranking, ks) for name, ranking in lists.items()}
    precision = {name: found[0] for name, found in curves.items()}
    return {"ks": ks, "precision": precision, "recall": {name: found[1] for name, found in curves.items()}}


def _by_frequency(
    model: MetaRanker, relevance: Relevance, lists: Mapping[str, Ranking], k: int
) -> dict[str, Any]:
    """Recall of each method over the training rows of the labels, where the model knows those."""
    counts = label_counts(model)
    if counts is None:
        return {"tail_k": k}
    counts = np.append(counts, np.zeros(len(relevance.unknown), counts.dtype))
    bins = frequency_bins(relevance.Y, counts)
    tail = {name: recall_by_frequency(relevance.Y, r, counts, bins, k) for name, r in lists.items()}
    return {"bins": bins, "tail": tail, "tail_k": k}


def _best_cut(Y: sp.csr_matrix, ranking: Ranking) -> dict[str, Interval]:
    """Set metrics of the first k labels of every row, with the k of the greatest value."""
    ones = [ranking.top(k).to_csr() for k in range(1, ranking.k + 1)]
    for matrix in ones:
        matrix.data[:] = 1
    out: dict[str, Interval] = {}
    for name in SET_METRICS:
        best = max(ones, key=lambda decided: metrics.evaluate(Y, None, [name], Y_pred=decided)[name])
        out |= metrics.bootstrap(Y, None, [name], Y_pred=best)
    return out


def _reliability(model: MetaRanker, dataset: Dataset, Y: sp.csr_matrix, exclude: Any) -> Reliability:
    """Forecasts of the candidate pairs (all pairs where all labels are ranked) against their relevance."""
    forecast = sp.coo_matrix(model.predict_proba(dataset, exclude=exclude))
    relevant = np.asarray((Y > 0)[forecast.row, forecast.col]).ravel()
    return reliability_bins(relevant, forecast.data.astype(np.float64))
