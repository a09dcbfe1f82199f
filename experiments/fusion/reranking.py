"""Before and after: what a retriever's hundred best labels are worth, and re-ranked by metarank."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from retrievers import RETRIEVERS

from metarank import MetaRanker, data, metrics
from metarank.metrics.propensity import inv_propensity

METRICS = ("P@1", "nDCG@5", "PSP@5")
FOLDS = 5


def cpu_seconds() -> float:
    """Of this process and of those that it ran."""
    return sum(os.times()[:4])


def scores_by_folds(retriever: str, X: sp.csr_matrix, Y: sp.csr_matrix, fold: np.ndarray) -> sp.csr_matrix:
    """The training rows' scores, each from a retriever that did not see the row's fold."""
    parts, order = [], []
    for f in np.unique(fold):
        seen, inside = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        parts.append(RETRIEVERS[retriever](X[seen], Y[seen], X[inside]))
        order.append(inside)
    stacked = sp.vstack(parts, format="csr")
    return sp.csr_matrix(stacked[np.argsort(np.concatenate(order))])


def reranked(name: str, retriever: str, seed: int) -> dict[str, Any]:
    """P@1, nDCG@5 and PSP@5 of the retriever, and of the same candidates re-ranked."""
    train, test = data.load_named(name, "train"), data.load_named(name, "test")
    X, Y = sp.csr_matrix(train.X), sp.csr_matrix(train.Y)
    fold = np.random.default_rng(seed).integers(0, FOLDS, X.shape[0])
    started = cpu_seconds()
    scores = scores_by_folds(retriever, X, Y, fold)
    found = RETRIEVERS[retriever](X, Y, sp.csr_matrix(test.X))
    retrieving = cpu_seconds() - started
    weights = inv_propensity(Y)

    def measured(result: Any) -> dict[str, float]:
        values = metrics.evaluate(test.Y, result, list(METRICS), inv_propensity=weights)
        return {metric: float(value) for metric, value in values.items()}

    started = cpu_seconds()
    model = MetaRanker(n_jobs=1, random_state=seed)
    model.fit(train, candidates={"retriever": scores}, folds=fold)
    ranking = model.rank(test, k=10, candidates={"retriever": found})
    return {
        "before": measured(found),
        "after": measured(ranking),
        "retriever CPU s": retrieving,
        "metarank CPU s": cpu_seconds() - started,
        "choices": model.choices_,
        "rows": X.shape[0],
        "labels": Y.shape[1],
    }
