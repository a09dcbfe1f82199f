"""The smaller tables: re-ranking by tail classifiers (Table 3), parameters of the trees (Table 8)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from problems import Problem
from study import Figures

from metarank import Candidates, metrics
from metarank.metrics import xreg_zero
from metarank.rerank import choose_alpha, rerank_with_tail
from metarank.scorers.trees.tail import COLUMN, TailClassifiers
from metarank.shortlist import Parabel, XReg
from metarank.types.view import TrainingSet

K = 100


def filtering_and_reranking(problem: Problem) -> list[Figures]:
    """Table 3: Parabel, XReg and XReg-zero, each re-ranked with the alpha that serves it on held-out rows."""
    part = problem.held_out_part()
    tail_of_part, tail = _tail(part), _tail(problem)
    rows = []
    for name in ("Parabel", "XReg", "XReg-zero"):
        held_out, found = (_found(name, p) for p in (part, problem))
        tail_scores = tail_of_part.score(part.X_test, held_out)[COLUMN]
        alpha = choose_alpha(held_out, tail_scores, part.Y_test, metric="WP@5", scale=problem.scale)
        tail_scores = tail.score(problem.X_test, found)[COLUMN]
        reranked = rerank_with_tail(found, tail_scores, alpha, scale=problem.scale)
        names = ("AUPRC", "XMAD@5", "MAD", "WP@5")
        values = metrics.evaluate(problem.Y_test, found, names, scale=problem.scale)
        values["WP-rerank@5"] = metrics.evaluate(problem.Y_test, reranked, ["WP@5"])["WP@5"]
        rows.append({"name": name, "alpha": alpha, **values})
    return rows


def _found(name: str, problem: Problem) -> Candidates:
    if name == "Parabel":
        model: Any = Parabel().fit(problem.X, problem.Y)
    elif problem.spec.relevance == "inverse propensity":
        model = XReg(relevance="inverse-propensity", propensity=problem.spec.propensity)
        model.fit(problem.X, problem.Y)
    else:
        model = XReg().fit(problem.X, problem.Y)
    found = model.shortlist(problem.X_test, k=K)
    scores = next(iter(found.scores.values()))
    unit = np.float32(problem.scale if name == "Parabel" else 1)
    found = Candidates(found.indptr, found.labels, found.n_labels, {"relevance": scores * unit})
    return xreg_zero(found) if name == "XReg-zero" else found


def _tail(problem: Problem) -> TailClassifiers:
    fold = np.zeros(problem.X.shape[0], np.int32)
    return TailClassifiers().fit(TrainingSet(problem.X, problem.Y, fold).view())


# One parameter at a time away from the defaults.
PARAMETERS: dict[str, tuple[int, ...]] = {
    "n_trees": (1, 3, 5, 7),
    "beam": (5, 10, 20, 30),
    "max_leaf": (20, 50, 100, 200),
}
FACTORS = (1, 2, 4, 8)


def parameters(problem: Problem) -> list[Figures]:
    """Table 8, on a fifth of the training points: the test part is not for choices."""
    part = problem.held_out_part()
    suited = {"relevance": "graded"}
    if problem.spec.relevance == "inverse propensity":
        suited = {"relevance": "inverse-propensity", "propensity": problem.spec.propensity}
    tried = [(name, value) for name, values in PARAMETERS.items() for value in values]
    if problem.spec.labelwise:
        tried = [("factor", value) for value in FACTORS]
    rows = []
    for name, value in tried:
        model = XReg(**suited, **({} if name == "factor" else {name: value}))
        begun = time.process_time()
        model.fit(part.X, part.Y)
        trained = time.process_time()
        if name == "factor":
            found = model.shortlist_points(part.X_test, k=K, factor=value).transpose()
        else:
            found = model.shortlist(part.X_test, k=K)
        cost = {
            "train_s": trained - begun,
            "test_ms": 1000 * (time.process_time() - trained) / part.X_test.shape[0],
        }
        names = ["WP@5", "Tau@5", "XMAD@5"]
        if problem.spec.labelwise:
            names = ["WP-l@5", "Tau-l@5", "XMAD-l@5"]
        values = metrics.evaluate(part.Y_test, found, names, scale=problem.scale)
        rows.append({"parameter": name, "value": value, **values, **cost})
    return rows
