"""Evaluation of a fitted model on labelled rows. Each set metric uses the cut learned for it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from metarank import metrics
from metarank.data.dataset import Dataset
from metarank.model.fitted import FittedModel
from metarank.model.relevance import Relevance, aligned_relevance
from metarank.thresholds import METRICS, check_metric
from metarank.types.checks import check_sample_weight
from metarank.types.given import read_given
from metarank.types.ranking import Ranking

if TYPE_CHECKING:
    from metarank.model.estimator import MetaRanker

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
    warn_of_a_leak(model.fitted_, candidates, relevance.Y)
    values = metrics.per_row(relevance.Y, relevance.widened(scores), "MAP")
    weight = check_sample_weight(sample_weight, len(values))
    counted = ~np.isnan(values)
    if not counted.any():
        return 0.0
    return float(np.average(values[counted], weights=None if weight is None else weight[counted]))


def evaluate_model(
    model: MetaRanker,
    X: Any,
    Y: Any,
    names: Sequence[str],
    *,
    intervals: bool = False,
    propensity_weight: float | None = None,
    candidates: Any = None,
    pair_features: Any = None,
) -> dict[str, Any]:
    """Values of the named metrics for the results of `MetaRanker.rank` and `predict`, in the order given.

    Parameters
    ----------
    model : fitted MetaRanker
    X : rows, as in `MetaRanker.rank`
    Y : Relevance, or what `aligned_relevance` takes: CSR (n, L), lists of names, a Dataset, ...
        Unknown labels count as missed: F1 is 0 in a mean over labels (macro-F1), and the propensity is that
        of a label without a training row. There is a warning, except for a `Relevance`.
    names : metric names such as "nDCG@5"
    intervals : bool
        Return (value, low, high) with a 95 % bootstrap interval instead of the value.
    propensity_weight : float, optional
        As in `MetaRanker.rank`. Cuts and predicted relevances depend on probabilities, not on this weight.
    candidates, pair_features : as in `MetaRanker.rank`

    Returns
    -------
    dict of name to float, or to a triple of floats
    """
    parsed = [metrics.Metric.parse(name) for name in names]
    lists = [m for m in parsed if m.needs in ("ranking", "scores")]
    relevances = [str(m) for m in parsed if m.needs == "relevance"]
    scored = model._scored(  # once, for all metrics
        X, propensity_weight=propensity_weight, candidates=candidates, pair_features=pair_features
    )
    if isinstance(Y, Relevance):
        relevance = Y
    else:
        relevance = aligned_relevance(model, Y, sum(s.candidates.n_rows for s in scored))
        relevance.warn()
    warn_of_a_leak(model.fitted_, candidates, relevance.Y)
    Y, widened = relevance.Y, relevance.widened
    above = relevance.parents(model)
    out: dict[str, Any] = {}
    if lists:
        depths = [m.k for m in lists if m.k is not None]
        whole = any(m.needs == "scores" for m in lists)
        result: Any = (
            sp.vstack([s.candidates.to_csr(s.scores) for s in scored], format="csr")
            if whole
            else Ranking.concatenate(
                [
                    Ranking.from_scores(s.candidates, min(max(depths), model.n_labels_), values=s.scores)
                    for s in scored
                ]
            )
        )
        weights = relevance.inv_propensity(model)
        out |= _measure(Y, widened(result), [str(m) for m in lists], intervals, inv_propensity=weights)
    if relevances:
        # A probability predicts relevance as a share of the maximum.
        predicted = widened(model.fitted_.probability_matrix(scored))
        out |= _measure(Y / Y.max() if Y.nnz else Y, predicted, relevances, intervals, scale=1.0)
    for m in parsed:
        if m.needs == "sets":
            # The cut learned for the metric; the default if there is none.
            cut = check_metric(m.name if m.name.lower() in METRICS else None)
            out |= _measure(
                Y,
                None,
                [str(m)],
                intervals,
                Y_pred=widened(model.fitted_.label_sets(scored, cut)),
                parents=above,
            )
    return {str(m): out[str(m)] for m in parsed}


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


def _measure(
    Y: sp.csr_matrix, scores: Any, names: list[str], intervals: bool, **kwargs: Any
) -> dict[str, Any]:
    if intervals:
        return {name: tuple(triple) for name, triple in metrics.bootstrap(Y, scores, names, **kwargs).items()}
    return {name: float(value) for name, value in metrics.evaluate(Y, scores, names, **kwargs).items()}
