"""Evaluation of a fitted model on labelled rows. Each set metric uses the cut learned for it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank import metrics
from metarank.data.dataset import Dataset
from metarank.metrics.propensity.curve import counts_of_weights
from metarank.metrics.slices import LABEL_FREQUENCY, goes_by_label, rows_by_value
from metarank.model.explain import said_of_unknown_rows
from metarank.model.fitted import FittedModel, Scored
from metarank.model.relevance import Relevance, aligned_relevance
from metarank.thresholds import METRICS, check_metric
from metarank.types.checks import check_sample_weight
from metarank.types.given import read_given
from metarank.types.ranking import Ranking

if TYPE_CHECKING:
    from metarank.model.estimator import MetaRanker

# The eight of Yang & Gopal, then those of extreme classification.
FULL_LIST = ["MAP", "RankLoss", "nDCG", "One-error", "Coverage"]
SETS = ["micro-F1", "macro-F1", "example-F1", "Hamming"]
# Where the model has a table of labels with parents.
HIERARCHICAL = ["hP", "hR", "hF"]
TOP = ["P@1", "P@3", "P@5", "nDCG@5", "R@10", "PSP@5"]

# A source is far worse on later rows if it is right at the first place so much less often.
_FAR, _LEAST_ROWS = 0.1, 30


def score_model(model: MetaRanker, X: Any, Y: Any, sample_weight: Any, **how: Any) -> float:
    """`MetaRanker.score`."""
    if isinstance(Y, Mapping) and not sp.issparse(Y):
        raise ValueError("Y must be the relevances of one objective, got a dict: score each apart")
    if isinstance(X, Dataset) and Y is None:
        Y = X
    elif isinstance(X, Dataset) and X.n_labels:
        raise ValueError("Y must be left out where X is a Dataset, which holds its labels")
    candidates = how["candidates"]
    scored = model._scored(X, **how)
    if candidates is None:
        scores: Any = np.concatenate([s.candidates.to_dense(s.scores) for s in scored])
    else:  # of many labels, perhaps, most of which are no candidates
        scores = sp.vstack([s.candidates.to_csr(s.scores) for s in scored], format="csr")
    relevance = aligned_relevance(model, Y, scores.shape[0])
    relevance.warn(stacklevel=4)
    if said := said_of_unknown_rows(_unknown_rows(scored)):
        warnings.warn(said, stacklevel=3)
    warn_of_a_leak(model.fitted_, candidates, relevance.Y)
    values = metrics.per_row(relevance.Y, relevance.widened(scores), "MAP")
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
        As in `MetaRanker.rank`. Cuts and predicted relevances depend on probabilities, not on this weight.
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
        model: MetaRanker,
        X: Any,
        Y: Any,
        *,
        exclude: Any = None,
        propensity_weight: float | None = None,
        candidates: Any = None,
        pair_features: Any = None,
    ) -> None:
        self.model = model
        self._scored = model._scored(
            X,
            exclude=exclude,
            propensity_weight=propensity_weight,
            candidates=candidates,
            pair_features=pair_features,
        )
        if isinstance(Y, Relevance):
            self.relevance: Relevance = Y
        else:
            self.relevance = aligned_relevance(model, Y, sum(s.candidates.n_rows for s in self._scored))
            self.relevance.warn(stacklevel=4)
            if self.unknown_rows:
                warnings.warn(self.unknown_rows, stacklevel=3)
        warn_of_a_leak(model.fitted_, candidates, self.relevance.Y)

    @property
    def unknown_rows(self) -> str:
        """The message about rows of which the model knows nothing; "" if there are none."""
        return said_of_unknown_rows(_unknown_rows(self._scored))

    @property
    def Y(self) -> sp.csr_matrix:
        return self.relevance.Y

    def ranking(self, k: int) -> Ranking:
        """The k best labels of each row."""
        k = min(k, self.model.n_labels_)
        return self.relevance.widened(
            Ranking.concatenate(
                [
                    Ranking.from_scores(s.candidates, k, values=s.scores, without_evidence=s.blank)
                    for s in self._scored
                ]
            )
        )

    def probabilities(self) -> sp.csr_matrix:
        """Probabilities of the candidates, which carry no lean towards rare labels."""
        return self.relevance.widened(self.model.fitted_.probability_matrix(self._scored))

    def sets(self, metric: str) -> sp.csr_matrix:
        """Label sets by the cut learned for a metric, by the default one if there is none."""
        cut = check_metric(metric if metric.lower() in METRICS else None)
        return self.relevance.widened(self.model.fitted_.label_sets(self._scored, cut))

    def default_names(self) -> list[str]:
        """The metrics that are measured if none is named."""
        full = [] if self.model.shortlisters_ else FULL_LIST
        above = [] if self.relevance.parents(self.model) is None else HIERARCHICAL
        recall = f"R@{length_below(self.model.n_labels_ - len(self.model.removed_))}"
        return [*full, *SETS, *above, *(recall if name == "R@10" else name for name in TOP)]

    @cached_property
    def label_counts(self) -> np.ndarray | None:
        """Training rows of each label, unknown ones among them, int64; None if the model does not tell."""
        known = training_counts(self.model)
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
        how: dict[str, Any] = {"slices": slices, "intervals": intervals}
        if isinstance(slices, str) and slices == LABEL_FREQUENCY:
            how["label_counts"] = self.label_counts
            if self.label_counts is None:
                raise ValueError(
                    f"slices={slices!r} needs a model that tells the training rows of its labels"
                )
        found: dict[str, dict[str, Any]] = {}
        for scores, group, more in self._groups(parsed):
            values = _measure(*scores, group, more | how)
            for name, own in values.items() if slices is not None else [("", values)]:
                found.setdefault(name, {}).update(own)
        # Without a metric there is no slice either.
        found = {name: {str(m): own[str(m)] for m in parsed} for name, own in found.items()}
        return found if slices is not None else found.get("", {})

    def by_slices(self, names: Sequence[str], columns: Mapping[str, Any]) -> dict[str, list[SliceFigures]]:
        """Figures by the values of each column, one a row, with the number of rows.

        "label frequency" is no column: figures of the metrics that can be taken so, with the numbers of
        labels and of relevant pairs.
        """
        out = {}
        for column, values in columns.items():
            if column == LABEL_FREQUENCY:
                own = [name for name in names if goes_by_label(metrics.Metric.parse(name))]
                found = self.values(own, slices=LABEL_FREQUENCY)
                sizes = [{"labels": b.n_labels, "pairs": b.n_pairs} for b in self.frequency_bins]
            else:
                found = self.values(names, slices=values)
                sizes = [{"rows": len(rows)} for rows in rows_by_value(values, self.Y.shape[0]).values()]
            out[column] = [SliceFigures(name, size, found[name]) for name, size in zip(found, sizes)]
        return out

    def _groups(
        self, parsed: Sequence[metrics.Metric]
    ) -> Iterator[tuple[tuple[sp.csr_matrix, Any], list[str], dict[str, Any]]]:
        """What metrics judge, those that judge it, and further arguments of `metrics.evaluate`."""
        Y = self.Y
        lists = [m for m in parsed if m.needs in ("ranking", "scores")]
        relevances = [str(m) for m in parsed if m.needs == "relevance"]
        if lists:
            if any(m.needs == "scores" for m in lists):
                whole = sp.vstack([s.candidates.to_csr(s.scores) for s in self._scored], format="csr")
                result: Any = self.relevance.widened(whole)
            else:
                result = self.ranking(max(m.k for m in lists if m.k is not None))
            weights = self.relevance.inv_propensity(self.model)
            yield (Y, result), [str(m) for m in lists], {"inv_propensity": weights}
        if relevances:
            # A probability predicts relevance as a share of the maximum.
            share = Y / Y.max() if Y.nnz else Y
            yield (share, self.probabilities()), relevances, {"scale": 1.0}
        above = self.relevance.parents(self.model)
        for m in parsed:
            if m.needs == "sets":
                yield (Y, None), [str(m)], {"Y_pred": self.sets(m.name), "parents": above}


def _unknown_rows(scored: Sequence[Scored]) -> np.ndarray:
    """A flag for each row: whether nothing of it is known."""
    return np.concatenate([s.blank for s in scored])


def length_below(n_labels: int, most: int = 10) -> int:
    """The greatest of 10, 5, 3 and 1 up to `most` that is below a number of labels: lists of all of them miss
    none.

    Examples
    --------
    >>> [length_below(n) for n in (11, 10, 8, 4, 1)], length_below(100, 5)
    ([10, 5, 5, 3, 1], 5)
    """
    return next((k for k in (10, 5, 3) if k <= most and k < n_labels), 1)


def evaluate_model(
    model: MetaRanker,
    X: Any,
    Y: Any,
    names: Sequence[str],
    *,
    intervals: bool = False,
    slices: Any = None,
    **how: Any,
) -> dict[str, Any]:
    """`Evaluation.values` of an `Evaluation` of these rows; `how` is passed to the latter."""
    return Evaluation(model, X, Y, **how).values(names, intervals=intervals, slices=slices)


def training_counts(model: MetaRanker) -> np.ndarray | None:
    """Training rows of each label, int64 (L,); None of models of earlier versions that did not keep it."""
    if model.n_rows_ is not None and model.n_rows_ >= 3:
        return counts_of_weights(model.inv_propensity_, model.n_rows_)
    for source in model.sources_:
        found = source.scorer.training_labels()
        if found is not None:
            return np.bincount(found[1].indices, minlength=model.n_labels_)
    return None


def warn_of_a_leak(model: FittedModel, candidates: Any, Y: sp.csr_matrix) -> None:
    """Warn about given sources that are far worse on these labelled rows than on the training rows.

    The best pair of a row must be relevant in .1 less of the rows, and by three standard errors. Y (n, L) or
    wider. Fewer than 30 rows with labels say too little.
    """
    records = [record for scorer in model.scorers if (record := scorer.training_record()) is not None]
    labelled = np.flatnonzero(np.diff(Y.indptr))
    if candidates is None or not records or len(labelled) < _LEAST_ROWS:
        return
    given = read_given(candidates, None, Y.shape[0], model.label_table, model.given_sources)
    assert given is not None
    for name, before, n_before in records:
        top = given.candidates(name).rows(labelled).top(1)
        now = float((top.values_of(Y[labelled][:, : model.n_labels]) > 0).mean()) if top.n_pairs else 0.0
        pooled = (before * n_before + now * top.n_pairs) / max(1, n_before + top.n_pairs)
        error = np.sqrt(pooled * (1 - pooled) * (1 / max(1, n_before) + 1 / max(1, top.n_pairs)))
        if before - now > max(_FAR, 3 * error):
            warnings.warn(
                f"candidates[{name!r}] are right in {before:.0%} of the training rows at place 1, and "
                f"in {now:.0%} of these: were the scores of the training rows made by a model that had seen "
                "their labels? See candidates_fold of MetaRanker.fit",
                stacklevel=4,
            )


def _measure(Y: sp.csr_matrix, scores: Any, names: list[str], how: dict[str, Any]) -> dict[str, Any]:
    intervals, slices = how.pop("intervals"), how.pop("slices")
    if slices is not None:
        return metrics.evaluate(Y, scores, names, slices=slices, **how)
    if intervals:
        return {name: tuple(triple) for name, triple in metrics.bootstrap(Y, scores, names, **how).items()}
    return {name: float(value) for name, value in metrics.evaluate(Y, scores, names, **how).items()}
