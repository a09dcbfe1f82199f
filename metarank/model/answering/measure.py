"""Evaluation of a fitted model on labelled rows. Each set metric uses the threshold learned for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from metarank import metrics
from metarank._util.modules import outside
from metarank.data.dataset import Dataset
from metarank.data.separators import described, same_separator, split_labels
from metarank.metrics.propensity import counts_of_weights, inv_propensity
from metarank.metrics.relevance import Relevance
from metarank.metrics.slices import LABEL_FREQUENCY, goes_by_label, rows_by_value
from metarank.model.answering.answer import ranking_of
from metarank.model.answering.explain import about_unknown_rows
from metarank.model.fitted import FittedModel, Scored
from metarank.thresholds import METRICS, check_metric
from metarank.types.checks import check_labels, check_same_order, check_sample_weight, integer_names
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.ranking import Ranking

# The eight of Yang & Gopal, then those of extreme classification.
FULL_LIST = ["MAP", "RankLoss", "nDCG", "One-error", "Coverage"]
SETS = ["micro-F1", "macro-F1", "example-F1", "Hamming"]
# Where the model has a table of labels with parents.
HIERARCHICAL = ["hP", "hR", "hF"]
_SHARES = (10, 25, 50, 75, 100)
TOP = ["P@1", "P@3", "P@5", "nDCG@5", "R@10", "PSP@5"]


class Scoring(Protocol):
    """A fitted model, and where it scores rows: in this process or on a cluster."""

    fitted_: FittedModel

    @property
    def _score_rows(self) -> Callable[..., list[Scored]]: ...


def score_model(
    model: Scoring, X: Any, Y: Any, sample_weight: Any, propensity_weight: float | str | None, **limits: Any
) -> float:
    """`MetaRanker.score`."""
    if isinstance(Y, Mapping) and not sp.issparse(Y):
        raise ValueError("Y must be the relevances of one objective, got a dict: score each separately")
    if isinstance(X, Dataset) and Y is None:
        Y = X
    elif isinstance(X, Dataset) and X.n_labels:
        raise ValueError("Y must be left out if X is a Dataset with labels")
    evaluation = Evaluation(model, X, Y, propensity_weight=propensity_weight, **limits)
    values = metrics.per_row(evaluation.relevance, evaluation.scores(), "MAP")
    weight = check_sample_weight(sample_weight, len(values))
    counted = ~np.isnan(values)
    if not counted.any():
        return 0.0
    return float(np.average(values[counted], weights=None if weight is None else weight[counted]))


class SliceFigures(NamedTuple):
    """Figures of a slice; `size` tells its number of rows, or of labels and of relevant pairs."""

    name: str
    size: dict[str, int]
    values: dict[str, float]


class Evaluation:
    """What a model answers for labelled rows, computed once; every figure is taken from it.

    Parameters
    ----------
    model : fitted MetaRanker
    X : rows, as in `MetaRanker.rank`
    Y : Relevance, or what `aligned_relevance` takes: CSR (n, L), lists of names, a Dataset, ...
        Unknown labels count as missed: F1 is 0 in a mean over labels (macro-F1), and the propensity is that
        of a label without a training row. There is a warning, and one of rows of which nothing is known,
        except for a `Relevance`.
    propensity_weight : float, optional
        As in `MetaRanker.rank`. Label sets and predicted relevances depend on probabilities only.
    exclude, candidates, pair_features : as in `MetaRanker.rank`

    Examples
    --------
    >>> from metarank import MetaRanker, data
    >>> both = data.make_multilabel(120, n_features=8, n_labels=4, seed=0)
    >>> model = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(both.take(slice(0, 80)))
    >>> test = both.take(slice(80, 120))
    >>> found = Evaluation(model, test, test)
    >>> list(found.values(["P@1", "micro-F1"], slices=["even", "odd"] * 20))
    ['even', 'odd']
    """

    def __init__(
        self,
        model: Scoring,
        X: Any,
        Y: Any,
        *,
        propensity_weight: float | str | None = None,
        optimize: Any = None,
        **limits: Any,
    ) -> None:
        self.fitted: FittedModel = model.fitted_
        self._optimize = None if optimize is None else self.fitted.thresholds.check_metric(optimize)
        check_same_order(X=X, Y=Y)
        self._scored = model._score_rows(X, 1, propensity_weight, **limits)
        if isinstance(Y, Relevance):
            self.relevance: Relevance = Y
            return
        n_rows = sum(s.candidates.n_rows for s in self._scored)
        self.relevance = aligned_relevance(model.fitted_, Y, n_rows)
        for message in filter(None, (self.relevance.said, self.unknown_rows)):
            warnings.warn(message, stacklevel=outside())

    @property
    def unknown_rows(self) -> str:
        """The message about rows of which the model knows nothing; "" if there are none."""
        return about_unknown_rows(np.concatenate([s.blank for s in self._scored]))

    @property
    def Y(self) -> sp.csr_matrix:
        return self.relevance.Y

    def ranking(self, k: int) -> Ranking:
        """The k best labels of each row."""
        return ranking_of(self._scored, min(k, self.fitted.n_labels))

    def scores(self) -> sp.csr_matrix:
        """The ranking scores of all candidates."""
        return sp.vstack([s.candidates.to_csr(s.scores) for s in self._scored], format="csr")

    def probabilities(self) -> sp.csr_matrix:
        """Probabilities of the candidates, without rare-label boost."""
        return self.fitted.probability_matrix(self._scored)

    def sets(self, metric: str) -> sp.csr_matrix:
        """Label sets by `optimize`, or by the threshold learned for a metric, or the default one."""
        known = check_metric(metric if metric.lower() in METRICS else None)
        return self.fitted.label_sets(self._scored, self._optimize or known)

    def surest_rows(self) -> dict[str, tuple[float, float]]:
        """The expected and the true mean F1 of the surest rows, with the micro-F1 thresholds, by the
        share of rows; 1 where nothing is kept and nothing relevant. None of a model without training rows."""
        if not self.fitted.n_rows:
            return {}
        sets = self.sets("micro-f1")
        forecast = self.fitted.expected_quality(self._scored, sets)["f1"]
        relevant = sp.csr_matrix(self.Y > 0)
        hits = np.asarray(sets.multiply(relevant[:, : self.fitted.n_labels]).sum(axis=1)).ravel()
        both = np.diff(sets.indptr) + np.diff(relevant.indptr)
        true = np.where(both > 0, 2 * hits / np.maximum(both, 1), 1.0)
        order = np.argsort(-forecast, kind="stable")
        heads = {f"{share}%": order[: -(-len(order) * share // 100)] for share in _SHARES}
        return {
            name: (float(forecast[rows].mean()), float(true[rows].mean())) for name, rows in heads.items()
        }

    def default_names(self) -> list[str]:
        """The metrics that are measured if none is named."""
        full = [] if self.fitted.shortlisters else FULL_LIST
        above = [] if self._hierarchy is None else HIERARCHICAL
        recall = f"R@{length_below(self.fitted.n_labels - len(self.fitted.removed))}"
        top = [recall if name == "R@10" else name for name in TOP]
        if not self.fitted.n_rows:  # no thresholds, and no label is known to be rare
            return [*full, *(name for name in top if not name.startswith("PSP"))]
        return [*full, *SETS, *above, *top]

    @property
    def _hierarchy(self) -> LabelDescriptions | None:
        """The table of labels, if it has parents."""
        table = self.fitted.labels
        return None if table is None or table.parents is None else table

    @property
    def inv_propensity(self) -> np.ndarray:
        """float64 (L + U,): the model's values; of unknown labels that of a label without a training row."""
        n, new = self.fitted.n_rows, np.zeros(len(self.relevance.unknown))
        unseen = inv_propensity(new, n_points=n) if n >= 3 else new + 1.0
        return np.concatenate([self.fitted.inv_propensity, unseen])

    @cached_property
    def label_counts(self) -> np.ndarray | None:
        """Training rows of each label, unknown ones among them, int64; None if the model does not tell."""
        known = training_counts(self.fitted)
        if known is None:
            return None
        return np.concatenate([known, np.zeros(len(self.relevance.unknown), np.int64)])

    @cached_property
    def frequency_bins(self) -> list[metrics.FrequencyBin]:
        """The labels by their number of training rows, if the model tells."""
        return [] if self.label_counts is None else metrics.frequency_bins(self.Y, self.label_counts)

    def values(self, names: Sequence[str], *, intervals: bool = False, slices: Any = None) -> dict[str, Any]:
        """Values of the named metrics, in the order given.

        Parameters
        ----------
        names : metric names such as "nDCG@5"
        intervals : bool
            Return (value, low, high) with a 95 % bootstrap interval instead of the value.
        slices : sequence of n values, or "label frequency", optional
            As in `metarank.metrics.evaluate`; training rows are counted in those of the model.

        Returns
        -------
        dict of name to float, or to a triple of floats; with `slices` a dict of such dicts by slice
        """
        if slices is not None and intervals:
            raise ValueError("intervals must be False with slices")
        parsed = [metrics.Metric.parse(name) for name in names]
        measure: Callable[..., dict[str, Any]] = metrics.bootstrap
        if not intervals:
            by_frequency = isinstance(slices, str) and slices == LABEL_FREQUENCY
            counts = self.label_counts if by_frequency else None
            if by_frequency and counts is None:
                raise ValueError(
                    f"slices={slices!r} needs a model that knows the training rows of its labels"
                )
            measure = partial(metrics.evaluate, slices=slices, label_counts=counts)
        figures: dict[str, dict[str, Any]] = {}
        for scores, group, more in self._groups(parsed):
            values = measure(*scores, group, **more)
            for name, by_metric in values.items() if slices is not None else [("", values)]:
                figures.setdefault(name, {}).update(by_metric)
        # Without a metric there is no slice either.
        figures = {name: {str(m): by_metric[str(m)] for m in parsed} for name, by_metric in figures.items()}
        return figures if slices is not None else figures.get("", {})

    def by_slices(self, names: Sequence[str], columns: Mapping[str, Any]) -> dict[str, list[SliceFigures]]:
        """Figures by the values of each column, one per row, with the number of rows.

        "label frequency" is not a column: figures of the metrics that can be taken so, with the numbers of
        labels and of relevant pairs.
        """
        out = {}
        for column, values in columns.items():
            if column == LABEL_FREQUENCY:
                by_label = [name for name in names if goes_by_label(metrics.Metric.parse(name))]
                figures = self.values(by_label, slices=LABEL_FREQUENCY)
                sizes = [{"labels": b.n_labels, "pairs": b.n_pairs} for b in self.frequency_bins]
            else:
                figures = self.values(names, slices=values)
                sizes = [{"rows": len(rows)} for rows in rows_by_value(values, self.Y.shape[0]).values()]
            out[column] = [SliceFigures(name, size, figures[name]) for name, size in zip(figures, sizes)]
        return out

    def _groups(
        self, parsed: Sequence[metrics.Metric]
    ) -> Iterator[tuple[tuple[Relevance, Any], list[str], dict[str, Any]]]:
        """What metrics judge, those that judge it, and further arguments of `metrics.evaluate`."""
        of_labels = self.relevance
        lists = [m for m in parsed if m.needs in ("ranking", "scores")]
        relevances = [str(m) for m in parsed if m.needs == "relevance"]
        if any(m.needs == "scores" for m in lists):
            yield (of_labels, self.scores()), [str(m) for m in lists], {"inv_propensity": self.inv_propensity}
        elif lists:
            ranking = self.ranking(max(m.k for m in lists if m.k is not None))
            yield (of_labels, ranking), [str(m) for m in lists], {"inv_propensity": self.inv_propensity}
        if relevances:
            # A probability predicts relevance as a share of the maximum.
            share = replace(of_labels, Y=self.Y / (self.Y.max() or 1.0))
            yield (share, self.probabilities()), relevances, {"scale": 1.0}
        for m in parsed:
            if m.needs == "sets":
                yield (of_labels, None), [str(m)], {"Y_pred": self.sets(m.name), "parents": self._hierarchy}


def length_below(n_labels: int, most: int = 10) -> int:
    """The greatest of 10, 5, 3 and 1 up to `most` that is below a number of labels: lists of all of them miss
    none.

    Examples
    --------
    >>> [length_below(n) for n in (11, 10, 8, 4, 1)], length_below(100, 5)
    ([10, 5, 5, 3, 1], 5)
    """
    return next((k for k in (10, 5, 3) if k <= most and k < n_labels), 1)


def training_counts(model: FittedModel) -> np.ndarray | None:
    """Training rows of each label, int64 (L,); None if the model does not tell."""
    if model.n_rows >= 3:
        return counts_of_weights(model.inv_propensity, model.n_rows)
    for source in model.sources:
        training = source.scorer.training_labels()
        if training is not None:
            return np.bincount(training[1].indices, minlength=model.n_labels)
    return None


def aligned_relevance(model: FittedModel, Y: Any, n_rows: int | None = None) -> Relevance:
    """Relevances for the labels of a model, matched by name if both have names, else by id.

    A label that was merged into another one counts as that one.

    Parameters
    ----------
    model : FittedModel
    Y : Dataset, table, matrix (n, L), list of n lists of labels, or vector of classes
        In a Dataset without names, columns from L on are unknown labels; a matrix must have L columns. The
        column names of a table are label names, unless they are the default numbers from 0 on.
    n_rows : int, optional
        Must agree.

    Raises
    ------
    ValueError, TypeError
        As `check_labels`; if several labels of the model share a name; if there are names but the model has
        none.
    """
    relevance = _of_labels(model, Y, n_rows)
    if model.removed.size == 0:
        return relevance
    if model.merged is not None:
        relevance = relevance.merged(model.merged)
    removed = np.intersect1d(relevance.Y.indices, model.removed).tolist()
    return replace(relevance, removed={label: model.label_table.shown(label) for label in removed})


def _of_labels(model: FittedModel, Y: Any, n_rows: int | None) -> Relevance:
    """Relevances for the labels of a model, removed ones included."""
    L, known = model.n_labels, model.label_names
    if isinstance(Y, Dataset):
        _check_same_separator(model, Y)
        given, names = check_labels(Y.Y, n_rows=n_rows, allow_no_labels=True)[0], Y.label_names
        if names is None:
            if given.shape[1] < L:
                raise ValueError(f"Y must have the {L} labels of the model, got {given.shape[1]}")
            place = np.where(np.arange(given.shape[1]) < L, np.arange(given.shape[1]), -1)
            return Relevance.placed(given, place, [f"label {label}" for label in range(len(place))], L)
    else:
        Y = split_labels(Y, model.label_separator)[0]
        given, names, kind = check_labels(Y, n_rows=n_rows, ids="names", allow_no_labels=True)
        if names is None and kind == "lists":  # of nothing
            given = sp.csr_matrix((given.shape[0], L), dtype=np.float32)
        elif kind == "ids" and not integer_names(known):
            names = None
            given = check_labels(Y, n_rows=n_rows, n_labels=L, ids="positions")[0]
        elif names is not None and names != known and kind in ("indicator", "graded"):
            names = None if names == [str(label) for label in range(L)] else names
    if names is None or names == known:
        if given.shape[1] != L:
            raise ValueError(f"Y must have {L} labels, got {given.shape[1]}")
        return Relevance(given)
    if known is None:
        if isinstance(Y, Dataset) and given.shape[1] == L:
            return Relevance(given)
        raise ValueError(
            f"Y must be a matrix of {L} columns or lists of ids, since labels have no names, got names such "
            f"as {names[0]!r:.80}"
        )
    columns = isinstance(Y, Dataset) or kind in ("indicator", "graded")
    place = model.label_table.places(names, "Y", np.unique(given.indices), are_columns=columns)
    return Relevance.placed(given, place[: given.shape[1]], names, L)


def _check_same_separator(model: FittedModel, dataset: Dataset) -> None:
    """Raise ValueError if a Dataset was read with another label separator and has unknown labels."""
    if same_separator(dataset.label_separator, model.label_separator):
        return
    known = set(model.label_names or ())
    unknown = next((name for name in dataset.label_names or () if name not in known), None)
    if unknown is not None:
        raise ValueError(
            f"label_separator must be that of the fit, {model.label_separator!r}, since {unknown!r} is not "
            f"a label of the model; in fit {described(model.label_separator)}, here "
            f"{described(dataset.label_separator)}"
        )
