"""The rows of the tables: systems that list the best points of each label, and how lists are judged."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank import MetaRanker, metrics
from metarank.shortlist import OneVsAll, XReg
from metarank.types.candidates import Candidates
from metarank.types.ranking import Ranking

sys.path.append(str(Path(__file__).resolve().parent.parent / "xreg"))
from problems import Problem
from systems import Settings, label_tree

K = 5
METRICS = ("WP@1", "WP@5", "nDCG@5", "C@5")
LISTED, FOUND = "C-l@5", "labels found"


class Lists(NamedTuple):
    """The best points of each label, what `choices_` says of them, and CPU seconds."""

    points: Ranking
    choices: list[str]
    seconds: float


Row = Callable[[Problem, int], Lists]


def tree(**params: Any) -> Row:
    """A row of `experiments/xreg`: lists of 100 labels a point, or with `labelwise` points for each label."""

    def row(problem: Problem, seed: int) -> Lists:
        start = time.process_time()
        found = label_tree(problem, params | {"random_state": seed}, Settings(Path(), Path())).found
        return Lists(by_label(found), [], time.process_time() - start)

    return row


def with_regression() -> list[Any]:
    """Neighbours and label trees that know relevant and irrelevant, and what regresses on grades."""
    return [
        "neighbors",
        "parabel",
        XReg(normalize="auto"),
        XReg(normalize="auto", branching=2),
        OneVsAll(loss="ridge", relevance="graded"),
    ]


def pipeline(*, labelwise: bool, regresses: bool) -> Row:
    """What one labelwise model ranks, or the probabilities of the same model."""

    def row(problem: Problem, seed: int) -> Lists:
        model, seconds = fitted(problem, seed, regresses)
        start = time.process_time()
        if not labelwise:
            model = copy(model)
            model.fitted_ = replace(model.fitted_, point_ranker=None)
        found = model.rank_points(problem.X_test, K)
        return Lists(found, model.choices_, seconds + time.process_time() - start)

    return row


_models: dict[tuple[str, int, bool], tuple[MetaRanker, float]] = {}


def fitted(problem: Problem, seed: int, regresses: bool) -> tuple[MetaRanker, float]:
    """A labelwise model, and the CPU seconds of its fit."""
    key = problem.checksum, seed, regresses
    if key not in _models:
        start = time.process_time()
        own = {"shortlister": with_regression()} if regresses else {}
        model = MetaRanker(n_jobs=1, random_state=seed, labelwise=True, **own).fit(problem.X, problem.Y)
        _models[key] = model, time.process_time() - start
    return _models[key]


_GRADED = {"estimator": "XReg", "relevance": "graded"}
TREES: dict[str, Row] = {
    "Parabel, pointwise": tree(estimator="Parabel"),
    "Parabel, labelwise": tree(estimator="Parabel", labelwise=True),
    "XReg, pointwise": tree(**_GRADED),
    "XReg, labelwise": tree(**_GRADED, labelwise=True),
    "XReg, own maxima, pointwise": tree(**_GRADED, normalize="label"),
    "XReg, own maxima, labelwise": tree(**_GRADED, normalize="label", labelwise=True),
    "XReg, two-way, pointwise": tree(**_GRADED, branching=2),
    "XReg, two-way, labelwise": tree(**_GRADED, branching=2, labelwise=True),
    "XReg, own maxima, two-way, labelwise": tree(**_GRADED, normalize="label", branching=2, labelwise=True),
    "XReg-t, pointwise": tree(**_GRADED, tail="auto"),
    "XReg-t, labelwise": tree(**_GRADED, tail="auto", labelwise=True),
    "XReg-t, own maxima, labelwise": tree(**_GRADED, tail="auto", normalize="label", labelwise=True),
}
LABELWISE = {
    "MetaRanker, labelwise": pipeline(labelwise=True, regresses=False),
    "MetaRanker with regression, labelwise": pipeline(labelwise=True, regresses=True),
}
POINTWISE = {
    "MetaRanker, pointwise": pipeline(labelwise=False, regresses=False),
    "MetaRanker with regression, pointwise": pipeline(labelwise=False, regresses=True),
}
ROWS: dict[str, Row] = TREES | POINTWISE | LABELWISE


def by_label(found: Candidates) -> Ranking:
    """The K best points of each label among the pairs that were found."""
    return Ranking.from_scores(found.transpose(), K)


def judged(problem: Problem, points: Ranking) -> dict[str, float]:
    """The metrics of METRICS with labels in the place of rows, and the share of the labels with a relevant
    test point that list one among their first K."""
    Y = sp.csr_matrix(problem.Y_test.T)
    values = dict(metrics.evaluate(Y, points, METRICS))
    label, place = np.nonzero(points.labels >= 0)
    row = points.labels[label, place]
    relevant = np.asarray(problem.Y_test[row, label]).ravel() > 0
    hits = sp.csr_matrix((np.ones(relevant.sum(), np.int8), (row[relevant], label[relevant])), Y.shape[::-1])
    has = np.diff(Y.indptr) > 0
    values[FOUND] = metrics.evaluate(problem.Y_test[:, has], None, ["LabelCoverage"], Y_pred=hits[:, has])[
        "LabelCoverage"
    ]
    return values


def gains(problem: Problem, points: Ranking, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each label the relevance of its first k points, and the greatest possible."""
    Y = sp.csr_matrix(problem.Y_test.T)
    listed = points.labels[:, :k]
    label = np.repeat(np.arange(len(listed)), listed.shape[1])
    own = np.where(listed.ravel() >= 0, np.asarray(Y[label, np.maximum(listed.ravel(), 0)]).ravel(), 0)
    best = np.array([np.sort(Y.data[a:b])[::-1][:k].sum() for a, b in zip(Y.indptr, Y.indptr[1:])])
    return own.reshape(listed.shape).sum(axis=1), best
