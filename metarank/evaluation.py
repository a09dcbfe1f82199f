"""A fitted model measured on labelled rows, each set metric with the cut learned for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import scipy.sparse as sp

from metarank import metrics
from metarank.ranking import Ranking

if TYPE_CHECKING:
    from metarank.pipeline import MetaRanker

# The cut a set metric is measured with.
CUT_OF_METRIC = {
    "micro-F1": "micro-f1",
    "macro-F1": "macro-f1",
    "example-F1": "example-f1",
    "Hamming": "hamming",
    "subset-accuracy": "subset-accuracy",
}


def evaluate_model(
    model: MetaRanker,
    X: Any,
    Y: sp.csr_matrix,
    names: Sequence[str],
    *,
    intervals: bool = False,
    propensity_weight: float | None = None,
) -> dict[str, Any]:
    """Values of the named metrics, in the order given: of what `MetaRanker.rank` and `predict` give.

    Parameters
    ----------
    model : fitted MetaRanker
    X : rows, as in `MetaRanker.rank`
    Y : CSR (n, L)
    names : metric names such as "nDCG@5"
    intervals : bool
        Give (value, low, high) of a 95 % bootstrap interval instead of the value.
    propensity_weight : float, optional
        As in `MetaRanker.rank`. Cuts and predicted relevances stand on probabilities, which it leaves alone.

    Returns
    -------
    dict of name to float, or to a triple of floats
    """
    parsed = [metrics.Metric.parse(name) for name in names]
    lists = [m for m in parsed if m.needs in ("ranking", "scores")]
    relevances = [str(m) for m in parsed if m.needs == "relevance"]
    scored = model._scored(X, None, propensity_weight=propensity_weight)  # once, for all metrics
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
        out |= _measure(Y, result, [str(m) for m in lists], intervals, inv_propensity=model.inv_propensity_)
    if relevances:
        # A probability predicts relevance as a share of the greatest.
        parts = [s.candidates.to_csr(model.probabilities(s)) for s in scored]
        predicted = sp.vstack(parts, format="csr")
        out |= _measure(Y / Y.max() if Y.nnz else Y, predicted, relevances, intervals, scale=1.0)
    for m in parsed:
        if m.needs == "sets":
            cut = model.thresholds_.check_metric(CUT_OF_METRIC.get(m.name))
            out |= _measure(Y, None, [str(m)], intervals, Y_pred=model._cut(scored, cut))
    return {str(m): out[str(m)] for m in parsed}


def _measure(
    Y: sp.csr_matrix, scores: Any, names: list[str], intervals: bool, **kwargs: Any
) -> dict[str, Any]:
    if intervals:
        return {name: tuple(triple) for name, triple in metrics.bootstrap(Y, scores, names, **kwargs).items()}
    return {name: float(value) for name, value in metrics.evaluate(Y, scores, names, **kwargs).items()}
