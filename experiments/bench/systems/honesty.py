"""What a model says of itself, and what the test rows show: quality, label sets of a promise, probabilities.

`kind` is "metarank", "logistic" or "lightgbm", the last two a classifier for each label with its defaults,
whose probabilities are judged alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from lightgbm import LGBMClassifier
from sets import excluded, matrix
from sklearn.linear_model import LogisticRegression

import metarank
from metarank import metrics
from metarank.model.fitted import SETS
from systems import pipeline

WISHES = ("recall>=0.7", "recall>=0.9", "precision>=0.6", "precision>=0.8")
TOP, BINS = 5, 10
COSTS = (0.25, 1, 4, 16)


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version = metarank.__version__
        self.kind, self.seed = params["kind"], params["random_state"]

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        X, Y, X_test, Y_test = (matrix(folder, name) for name in ("X", "Y", "X_test", "Y_test"))
        exclude = excluded(folder)
        exclude = sp.csr_matrix(Y_test.shape, dtype=np.float32) if exclude is None else exclude
        if self.kind == "metarank":
            system = pipeline.System({"random_state": self.seed}, 1)
            system.read(folder)
            system.train()
            figures = told(system.model, X_test, Y_test, {"exclude": exclude})
            figures["labels_a_row"] = [part.nnz / part.shape[0] for part in (Y, Y_test)]
            probabilities = system.model.predict_proba(X_test, exclude=exclude)
        else:
            figures, probabilities = {}, one_vs_rest(self.kind, X, Y.toarray() > 0, X_test)
        p, relevant = most_probable(probabilities, Y_test, exclude)
        return figures | {"bins": reliability(p, relevant)}, {"probabilities": p, "relevant": relevant}


def told(model: metarank.MetaRanker, X: sp.csr_matrix, Y: sp.csr_matrix, limits: dict) -> dict[str, Any]:
    """`quality`: by metric what was promised and what is true, each (value, low, high); `guarantees`: by wish
    what is attained, its standard error and the labels of a row, or why nothing is promised."""
    ranking, quality = model.rank(X, k=model.n_labels_, **limits), {}
    # A label without a test row has an F1 of 0, whatever the model does.
    lacking = {"macro-F1"} if (Y.getnnz(axis=0) == 0).any() else set()
    for name in (name for name in model.held_out_quality_ if name not in lacking):
        cut = next((cut for cut, metric in SETS.items() if metric == name), None)
        kept = None if cut is None else model.predict(X, optimize=cut, **limits)
        true = metrics.bootstrap(Y, None if cut else ranking, [name], Y_pred=kept)[name]
        quality[name] = [list(model.held_out_quality_[name]), list(true)]
    guarantees: dict[str, Any] = {}
    for name in WISHES:
        try:
            found = model.predict(X, optimize=name, **limits)
        except ValueError as error:
            guarantees[name] = str(error).rpartition("; ")[2]
            continue
        rows = metrics.per_row(Y, None, f"example-{name.partition('>')[0]}", Y_pred=found)
        rows = rows[~np.isnan(rows)]
        error = float(np.std(rows) / np.sqrt(max(1, len(rows)))) if len(rows) else 0.0
        attained = float(rows.mean()) if len(rows) else 0.0
        guarantees[name] = [attained, error, found.nnz / found.shape[0]]
    return {"quality_told": quality, "guarantees": guarantees} | decisions(model, X, Y, limits)


def decisions(model: metarank.MetaRanker, X: sp.csr_matrix, Y: sp.csr_matrix, limits: dict) -> dict[str, Any]:
    """`costs`: by what a missed label costs beside a wrong one, a row's cost by the cut, by the best single
    cut of the test rows, and with no label at all; `rows`: of tenths of the rows, the surest first, the F1
    that was expected and the true one."""
    probabilities = sp.csr_matrix(model.predict_proba(X, **limits))
    relevant, n = sp.csr_matrix(Y > 0, dtype=np.float32), X.shape[0]
    of_pair = np.asarray(relevant[probabilities.nonzero()]).ravel() > 0
    p = np.asarray(probabilities[probabilities.nonzero()]).ravel()
    order = np.argsort(-p, kind="stable")
    hits, wrong = (np.append(0, np.cumsum(of[order])) for of in (of_pair, ~of_pair))
    costs = {}
    for missed in COSTS:
        kept = model.predict(X, optimize={"false_positive": 1, "false_negative": missed}, **limits)
        right = relevant.multiply(kept).nnz
        own = kept.nnz - right + missed * (relevant.nnz - right)
        best = (wrong + missed * (relevant.nnz - hits)).min()
        costs[str(missed)] = [float(of) / n for of in (own, best, missed * relevant.nnz)]
    kept, quality = model.predict(X, return_quality=True, **limits)
    right = np.asarray(relevant.multiply(kept).sum(axis=1)).ravel()
    true = 2 * right / np.maximum(np.diff(kept.indptr) + np.diff(relevant.indptr), 1)
    tenths = np.array_split(np.argsort(-quality["f1"], kind="stable"), BINS)
    rows = [[float(of[tenth].mean()) for of in (quality["f1"], true)] for tenth in tenths]
    return {"costs": costs, "rows": rows}


def one_vs_rest(kind: str, X: sp.csr_matrix, Y: np.ndarray, X_test: sp.csr_matrix) -> np.ndarray:
    """Probabilities (n, L); of labels that all or no training rows have, their share."""
    if X.nnz > 0.5 * X.shape[0] * X.shape[1]:
        X, X_test = X.toarray(), X_test.toarray()
    out = np.tile(Y.mean(axis=0), (X_test.shape[0], 1))
    for j in np.flatnonzero((out[0] > 0) & (out[0] < 1)):
        model = (
            LGBMClassifier(n_jobs=1, verbose=-1) if kind == "lightgbm" else LogisticRegression(max_iter=1000)
        )
        out[:, j] = model.fit(X, Y[:, j]).predict_proba(X_test)[:, 1]
    return out


def most_probable(
    probabilities: np.ndarray | sp.csr_matrix, Y: sp.csr_matrix, exclude: sp.csr_matrix
) -> tuple[np.ndarray, np.ndarray]:
    """The five greatest probabilities of each row, and whether the label is relevant, (n, 5)."""
    dense = probabilities.toarray() if sp.issparse(probabilities) else probabilities
    dense = np.where(exclude.toarray() > 0, 0.0, dense)
    best = np.argsort(-dense, axis=1, kind="stable")[:, :TOP]
    return np.take_along_axis(dense, best, 1), np.take_along_axis(Y.toarray() > 0, best, 1)


def reliability(p: np.ndarray, relevant: np.ndarray) -> list[list[float]]:
    """Of ten bins of probability: pairs, mean probability, relevant share; without the empty ones' means."""
    place = np.minimum((p.ravel() * BINS).astype(int), BINS - 1)
    n = np.bincount(place, minlength=BINS)
    sums = [np.bincount(place, weights=values.ravel(), minlength=BINS) for values in (p, relevant)]
    return [[int(n[b]), *(float(values[b] / max(1, n[b])) for values in sums)] for b in range(BINS)]
