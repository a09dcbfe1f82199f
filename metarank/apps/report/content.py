"""`Report`: what a page shows, and how it is measured on a fitted model."""

from __future__ import annotations

import warnings
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
    Importance,
    Reliability,
    importance,
    precision_and_recall,
    reliability_bins,
)
from metarank.metrics import FrequencyBin, Interval, Metric
from metarank.metrics.slices import LABEL_FREQUENCY
from metarank.model.measure import Evaluation, SliceFigures, length_below
from metarank.model.relevance import aligned_relevance
from metarank.types.ranking import Ranking
from metarank.types.restrict import check_lists, for_each_row

if TYPE_CHECKING:
    from metarank.data.dataset import Dataset
    from metarank.model.estimator import MetaRanker

MODEL = "metarank"
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
    lean : float or None
        The propensity weight of the lists.
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
    lean: float | None = None
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
    examples_note: str = ""


def measure_report(
    model: MetaRanker,
    dataset: Dataset,
    *,
    baselines: Mapping[str, Ranking] | None = None,
    slices: Mapping[str, Any] | None = None,
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
        Labels that the model never met count as missed; a note says how many there are. Another one, and a
        warning, tell of rows of which nothing is known.
    baselines : dict of name to Ranking of at least ten labels a row, optional
        The methods to compare the model with. By default each of its scorers that can propose labels, alone.
    slices : dict of name to n values, optional
        Columns, such as a date or a source, by whose values figures are shown apart.
    exclude : as in `MetaRanker.rank`, optional
        Labels to leave out of rankings, decisions and metrics.
    rows : sequence of int, optional
        Rows to show as examples. By default rows at evenly spaced quantiles of nDCG@5.
    n_examples : int

    Raises
    ------
    ValueError
        If the data set is empty, its labels cannot be matched to those of the model, or a column of `slices`
        has another number of values.
    """
    if dataset.n_rows == 0:
        raise ValueError("dataset must have at least one row")
    relevance = aligned_relevance(model, dataset)
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
    own = evaluation.ranking(max(KS[-1], 100))
    others = alone(model, dataset, k) if baselines is None else baselines
    lists = {MODEL: own.top(k)} | {name: relevance.widened(r.top(k)) for name, r in others.items()}
    report_progress("measuring: intervals", 0.2)
    names = evaluation.default_names()
    values = _values(evaluation, names, lists)
    by_frequency = {} if evaluation.label_counts is None else {LABEL_FREQUENCY: None}
    by_slice = evaluation.by_slices(names, by_frequency | dict(slices or {}))
    report_progress("measuring: calibration and importance", 0.5)
    contributions = importance(model, dataset, lists[MODEL], exclude=excluded)
    report_progress("measuring: examples", 0.8)
    shown = typical_rows(Y, own, n_examples) if rows is None else np.asarray(rows, np.int64)
    examples = [example(model, dataset, int(i), own, relevance, exclude=excluded) for i in shown]
    report_progress("done", 1.0)
    return Report(
        title=f"{dataset.name or 'Evaluation'}: a metarank report",
        facts=[("test rows", f"{dataset.n_rows:,}"), ("labels", f"{n_labels:,}"),
               ("labels a row", f"{Y.nnz / dataset.n_rows:.2f}")],
        metrics=values,
        notes=[
            *(f"{said}." for said in (relevance.said, evaluation.unknown_rows) if said),
            *([_NOTE_CUT] if len(lists) > 1 else []),
        ],
        lean=model.propensity_weight_,
        slices=by_slice,
        settings=settings_of(model),
        **_by_length(Y, lists, KS[: max(1, n_labels - 1)]),
        **_by_frequency(evaluation, lists, length_below(n_labels, TAIL_K)),
        reliability=_reliability(evaluation),
        importance=contributions,
        examples=examples,
        examples_note=_NOTE_EXAMPLES if rows is None else "",
    )  # fmt: skip


_NOTE_CUT = (
    "For the F1 metrics metarank decides the number of labels of each row by the thresholds it learned; "
    "the others give every row the same number, the one that suits them best on these very rows."
)
_NOTE_EXAMPLES = "Rows at evenly spaced quantiles of nDCG@5, best first: neither the best nor the worst."


def settings_of(model: MetaRanker) -> list[tuple[str, str]]:
    """What the model was fitted with: settings other than the defaults, the seed, the lean."""
    usual = type(model)().get_params(deep=False)
    apart = ("random_state", "n_jobs", "memory_budget")
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in apart}
    own = [f"{name}={value!r:.80}" for name, value in given.items() if repr(value) != repr(usual[name])]
    return [
        ("settings", (", ".join(own) + "; others: default") if own else "default"),
        ("seed", str(model.random_state_)),
        ("training rows", "unknown" if model.n_rows_ is None else f"{model.n_rows_:,}"),
        ("ranker", model.ranker_.summary()),
        ("cuts", model.thresholds_.summary()),
        ("propensity weight of the lists", f"{model.propensity_weight_:g}"),
    ]


def _values(
    evaluation: Evaluation, names: Sequence[str], lists: Mapping[str, Ranking]
) -> dict[str, dict[str, Interval]]:
    """The metrics of each method. Of a baseline those of its first labels, and of the number of them that
    suits it best."""
    own = evaluation.values(names, intervals=True)
    values = {MODEL: {name: Interval(*triple) for name, triple in own.items()}}
    weights = evaluation.relevance.inv_propensity(evaluation.model)
    k = lists[MODEL].k
    parsed = [Metric.parse(name) for name in names]
    first = [str(m) for m in parsed if m.needs == "ranking" and (m.k or 1) <= k]
    of_sets = [str(m) for m in parsed if m.needs == "sets"]
    parents = evaluation.relevance.parents(evaluation.model)
    for name, ranking in lists.items():
        if name != MODEL:
            values[name] = metrics.bootstrap(evaluation.Y, ranking, first, inv_propensity=weights)
            values[name] |= _best_cut(evaluation.Y, ranking, of_sets, parents)
    return values


def _by_length(Y: sp.csr_matrix, lists: Mapping[str, Ranking], ks: Sequence[int]) -> dict[str, Any]:
    """Precision and recall of each method over the length of its lists."""
    curves = {name: precision_and_recall(Y, ranking, ks) for name, ranking in lists.items()}
    precision = {name: found[0] for name, found in curves.items()}
    return {"ks": ks, "precision": precision, "recall": {name: found[1] for name, found in curves.items()}}


def _by_frequency(evaluation: Evaluation, lists: Mapping[str, Ranking], k: int) -> dict[str, Any]:
    """Recall of each method over the training rows of the labels, where the model knows those."""
    counts, name = evaluation.label_counts, f"R@{k}"
    if counts is None:
        return {"tail_k": k}

    def recall(ranking: Ranking) -> list[float]:
        how: dict[str, Any] = {"slices": LABEL_FREQUENCY, "label_counts": counts}
        return [values[name] for values in metrics.evaluate(evaluation.Y, ranking, [name], **how).values()]

    tail = {method: recall(ranking) for method, ranking in lists.items()}
    return {"bins": evaluation.frequency_bins, "tail": tail, "tail_k": k}


def _best_cut(Y: sp.csr_matrix, ranking: Ranking, names: Sequence[str], parents: Any) -> dict[str, Interval]:
    """Set metrics of the first k labels of every row, with the k of the best value."""
    ones = [ranking.top(k).to_csr() for k in range(1, ranking.k + 1)]
    for matrix in ones:
        matrix.data[:] = 1
    values = [metrics.evaluate(Y, None, names, Y_pred=decided, parents=parents) for decided in ones]
    out: dict[str, Interval] = {}
    for name in names:
        best = max if Metric.parse(name).greater_is_better else min
        k = best(range(len(ones)), key=lambda i: values[i][name])
        out |= metrics.bootstrap(Y, None, [name], Y_pred=ones[k], parents=parents)
    return out


def _reliability(evaluation: Evaluation) -> Reliability:
    """Forecasts of the candidate pairs (all pairs where all labels are ranked) against their relevance."""
    forecast = sp.coo_matrix(evaluation.probabilities())
    relevant = np.asarray((evaluation.Y > 0)[forecast.row, forecast.col]).ravel()
    return reliability_bins(relevant, forecast.data.astype(np.float64))
