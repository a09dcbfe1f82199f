"""Evaluation of a fitted model on labelled rows. Each set metric uses the cut learned for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import scipy.sparse as sp

from metarank import metrics
from metarank.model.asked import warn_of_a_leak
from metarank.model.relevance import Relevance, aligned_relevance
from metarank.thresholds import METRICS, check_metric
from metarank.types.ranking import Ranking

if TYPE_CHECKING:
    from metarank.model.estimator import MetaRanker


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
        X,
        None,
        propensity_weight=propensity_weight,
        candidates=candidates,
        pair_features=pair_features,
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


def _measure(
    Y: sp.csr_matrix, scores: Any, names: list[str], intervals: bool, **kwargs: Any
) -> dict[str, Any]:
    if intervals:
        return {name: tuple(triple) for name, triple in metrics.bootstrap(Y, scores, names, **kwargs).items()}
    return {name: float(value) for name, value in metrics.evaluate(Y, scores, names, **kwargs).items()}
