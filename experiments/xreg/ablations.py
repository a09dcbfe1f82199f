"""The smaller tables: re-ranking by tail classifiers (Table 3), parameters of the trees (Table 8)."""

from __future__ import annotations

from typing import Any

import numpy as np
from problems import Problem
from study import Figures, labelwise
from systems import Clock, rescored, size_mib

from metarank import Candidates, metrics
from metarank.metrics.rerank import rerank_with_tail
from metarank.scorers.trees.tail import COLUMN, TailClassifiers
from metarank.scorers.trees.tail_reranking import ALPHAS
from metarank.shortlist import Parabel, XReg
from metarank.types.view import TrainingSet

K = 100
FIXED_ALPHA = 0.8


def filtering_and_reranking(problem: Problem) -> list[Figures]:
    """Table 3: relevances re-ranked with the alpha < 1 best on held-out rows, and with a fixed one."""
    metric = "WP-l@5" if problem.spec.labelwise else "WP@5"
    part = problem.held_out_part()
    tail_of_part, tail = _tail(part), _tail(problem)
    names = ("Parabel", "XReg", "XReg, own maxima", "XReg-zero")
    on_part, on_test = ({name: _found(name, p) for name in names[:-1]} for p in (part, problem))
    for lists in (on_part, on_test):
        lists["XReg-zero"] = _zero(lists["XReg"], problem.spec.labelwise)
    rows = []
    for name in names:
        held_out, found = on_part[name], on_test[name]
        tail_scores = tail_of_part.score(part.X_test, held_out)[COLUMN]
        careful, alpha = _alphas(held_out, tail_scores, part.Y_test, metric, problem.scale)
        values = metrics.evaluate(
            problem.Y_test, found, ["AUPRC", "XMAD@5", "MAD", metric], scale=problem.scale
        )
        tail_scores = tail.score(problem.X_test, found)[COLUMN]
        for key, weight in (("reranked", alpha), ("fixed", FIXED_ALPHA)):
            reranked = rerank_with_tail(found, tail_scores, weight, scale=problem.scale)
            values[key] = metrics.evaluate(problem.Y_test, reranked, [metric])[metric]
        rows.append({"name": name, "alpha": alpha, "careful": careful, "metric": metric, **values})
    return rows


def _alphas(
    found: Candidates, tail_scores: np.ndarray, Y: Any, metric: str, scale: float
) -> tuple[float, float]:
    """The largest weight within one standard error of the best, and the best below 1: that 1 is better than
    all of them is for the table to show."""
    values = np.array(
        [
            metrics.per_row(Y, rerank_with_tail(found, tail_scores, a, scale=scale), metric, scale=scale)
            for a in ALPHAS
        ]
    )
    values = values[:, np.isfinite(values[0])]
    mean = values.mean(axis=1)
    behind = values[int(np.argmax(mean))] - values
    near = behind.mean(axis=1) <= behind.std(axis=1) / np.sqrt(values.shape[1])
    return float(np.array(ALPHAS)[near].max()), ALPHAS[int(np.argmax(mean[:-1]))]


def _found(name: str, problem: Problem) -> Candidates:
    """Relevances in the unit of the set: lists of labels, but of XReg's on labelwise sets lists of points."""
    model: Any = Parabel()
    if name != "Parabel":
        model = XReg(**suited(problem), normalize="global" if name == "XReg" else "label")
    model.fit(problem.X, problem.Y)
    if problem.spec.labelwise and name != "Parabel":
        found = model.shortlist_points(problem.X_test, k=K).transpose()
    else:
        found = model.shortlist(problem.X_test, k=K)
    return rescored(found, (lambda s: s * problem.scale) if name == "Parabel" else None)


def _zero(found: Candidates, labelwise: bool) -> Candidates:
    """All relevances almost 0, in the same order: of the points of each label where these are ranked."""
    return xreg_zero(found.transpose()).transpose() if labelwise else xreg_zero(found)


def _tail(problem: Problem) -> TailClassifiers:
    fold = np.zeros(problem.X.shape[0], np.int32)
    return TailClassifiers().fit(TrainingSet(problem.X, problem.Y, fold).view())


def suited(problem: Problem) -> dict[str, Any]:
    """The relevance that XReg is to learn."""
    if problem.spec.relevance == "inverse propensity":
        return {"relevance": "inverse-propensity", "propensity": problem.spec.propensity}
    return {"relevance": "graded"}


# One parameter at a time away from the defaults.
PARAMETERS: dict[str, tuple[int, ...]] = {
    "n_trees": (1, 3, 5, 7),
    "beam": (5, 10, 20, 30),
    "max_leaf": (20, 50, 100, 200),
}
LABELWISE_PARAMETERS: dict[str, tuple[int, ...]] = {
    "n_trees": PARAMETERS["n_trees"],
    "factor": (1, 2, 4, 8),
    "max_leaf": PARAMETERS["max_leaf"],
}


def parameters(problem: Problem) -> list[Figures]:
    """Table 8, on a fifth of the training points: the test part is not for choices."""
    part, of_labels = problem.held_out_part(), problem.spec.labelwise
    names = ["WP@5", "Tau@5", "XMAD@5"]
    rows = []
    for name, values in (LABELWISE_PARAMETERS if of_labels else PARAMETERS).items():
        for value in values:
            given = {name: value}
            factor = given.pop("factor", 4)
            model, clock = XReg(**suited(problem), **given), Clock()
            model.fit(part.X, part.Y)
            clock.trained()
            if of_labels:
                found = model.shortlist_points(part.X_test, k=K, factor=factor).transpose()
            else:
                found = model.shortlist(part.X_test, k=K)
            cost = clock.cost(part, size_mib(model))
            asked = [labelwise(n) for n in names] if of_labels else names
            judged = metrics.evaluate(part.Y_test, found, asked, scale=problem.scale)
            rows.append({"parameter": name, "value": value, **dict(zip(names, judged.values())), **cost})
    return rows


def xreg_zero(found: Candidates) -> Candidates:
    """The same ranking of each row with all relevances almost 0: the corruption "XReg-zero" of Table 3.

    The label at rank r of its row (ties by label) gets the prediction 1e-6 / r, which keeps the order within
    rows and discards the predicted sizes.
    """
    values = next(iter(found.scores.values()))
    row = np.repeat(np.arange(len(found.indptr) - 1), np.diff(found.indptr))
    best_first = np.lexsort((found.labels, -values, row))
    rank = np.empty(len(values), np.int64)
    rank[best_first] = np.arange(len(values)) - found.indptr[row[best_first]] + 1
    return Candidates(found.indptr, found.labels, found.n_labels, {"score": 1e-6 / rank})
