"""Scores of two subject indexers become one ranking."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from clocks import cpu_seconds
from list_quality import F1_AT_5, f1_at_5

import metarank
from metarank import Candidates, MetaRanker, Ranking, metrics
from systems.fusion import rivals

SOURCES = ("bonsai", "mllm")
FOLDS, TOP = 5, 100


def make(data: Path, folder: Path) -> dict[str, Any]:
    found = data / "fusion" / "yso-en"
    listed = json.loads((found / "META.json").read_text())
    for path in found.glob("t*-*.npz"):
        shutil.copy(path, folder)
    digests = "".join(listed["files"][name]["sha256"] for name in sorted(listed["files"]))
    checksum = hashlib.sha256(digests.encode()).hexdigest()
    return {"checksum": checksum, "L": listed["n_labels"], "published": listed["published"]}


def quality(Y: sp.csr_matrix, scores: Ranking | sp.csr_matrix) -> dict[str, float]:
    """nDCG against all gold labels, and the mean F1 of the five best."""
    if not isinstance(scores, Ranking):
        scores = Ranking.from_scores(Candidates.from_csr(scores), 1000)
    return {**metrics.evaluate(Y, scores, ["nDCG@10", "nDCG@1000"]), F1_AT_5: f1_at_5(Y, scores)}


def columns(sources: list[sp.csr_matrix], pairs: sp.csr_matrix, counts: np.ndarray) -> np.ndarray:
    """Of each pair, by source: score, 1 / rank, share of the row's best score; in how many lists it is, and
    the logarithm of the label's training rows."""
    row, label = rivals.row_of(pairs), pairs.indices
    out = []
    for scores in sources:
        top = scores.max(axis=1).toarray().ravel()
        inverse = rivals.with_values(scores, 1 / rivals.ranks(scores))
        score = np.asarray(scores[row, label]).ravel()
        out += [score, np.asarray(inverse[row, label]).ravel(), score / np.maximum(top[row], 1e-9)]
    return np.column_stack([*out, sum(column > 0 for column in out[1::3]), np.log1p(counts)])


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.seed = metarank.__version__, params["random_state"]

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Quality of each source on both parts, and of each fusion with its CPU seconds."""

        def matrix(name: str) -> sp.csr_matrix:
            out = sp.csr_matrix(sp.load_npz(folder / f"{name}.npz"), dtype=np.float32)
            out.sum_duplicates()
            return out

        Y, Y_test = matrix("train-output"), matrix("test-output")
        train, test = ([matrix(f"{part}-{name}") for name in SOURCES] for part in ("train", "test"))
        rows = {name: quality(Y_test, scores) for name, scores in zip(SOURCES, test)}
        of_training = {name: quality(Y, scores)["nDCG@10"] for name, scores in zip(SOURCES, train)}
        weights = []

        def weighted() -> sp.csr_matrix:
            weights.append(rivals.best_weight(Y, *train))
            return rivals.weighted_mean(*test, weights[0])

        ways = {
            "reciprocal ranks, k = 60": lambda: rivals.reciprocal_ranks(test),
            "mean": lambda: rivals.weighted_mean(*test, 0.5),
            "weighted mean": weighted,
            "LightGBM LambdaRank": lambda: self.lightgbm(Y, train, test),
            "metarank": lambda: self.metarank(Y, train, test),
        }
        for name, way in ways.items():
            before = cpu_seconds()
            answer = way()
            rows[name] = {"CPU s": cpu_seconds() - before, **quality(Y_test, answer)}
        sizes = {"train": Y.shape[0], "test": Y_test.shape[0], "labels": Y.shape[1]}
        return {"rows": rows, "of training": of_training, "weight": weights[0], "sizes": sizes}, {}

    def lightgbm(
        self, Y: sp.csr_matrix, train: list[sp.csr_matrix], test: list[sp.csr_matrix]
    ) -> sp.csr_matrix:
        """Learned from the pairs that either source has among its best hundred."""
        first = [rivals.best(scores, TOP) for scores in train]
        pairs, new = (sp.csr_matrix(sum(sp.csr_matrix(s != 0) for s in part)) for part in (first, test))
        fold = np.random.default_rng(self.seed).integers(0, FOLDS, Y.shape[0])
        row = rivals.row_of(pairs)
        by_fold = np.array([np.asarray(Y[fold == f].sum(axis=0)).ravel() for f in range(FOLDS)])
        total = by_fold.sum(axis=0)
        # No row counts among its own label's rows.
        counts = total[pairs.indices] - by_fold[fold[row], pairs.indices]
        grades = np.asarray(Y[row, pairs.indices]).ravel()
        X, X_new = columns(train, pairs, counts), columns(test, new, total[new.indices])
        scores = rivals.lambdarank(X, grades, row, fold[row] == 0, X_new, self.seed)
        return rivals.with_values(new, scores - scores.min() + 1)

    def metarank(self, Y: sp.csr_matrix, train: list[sp.csr_matrix], test: list[sp.csr_matrix]) -> Ranking:
        model = MetaRanker(n_jobs=1, random_state=self.seed)
        model.fit(None, Y, candidates=dict(zip(SOURCES, train)))
        return model.rank(None, k=1000, candidates=dict(zip(SOURCES, test)))
