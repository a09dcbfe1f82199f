"""Features of pairs: queries and documents of MQ2008, each with documents of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from clocks import cpu_seconds
from mq2008 import N_FEATURES, PARTS

import metarank
from metarank import MetaRanker, metrics
from systems.fusion.rivals import lambdarank, row_of

METRICS = ("nDCG@10", "MAP", "P@1")
# BM25 of the whole document, from 0 (LETOR 4.0); it is the source of candidates.
BM25 = 24


class Pairs:
    """Queries with their documents, whose numbers begin at `first`, as matrices (queries, documents)."""

    def __init__(
        self, X: np.ndarray, grades: np.ndarray, query: np.ndarray, first: int, n: int, seed: int
    ) -> None:
        # In an order of chance: that of the files may tell, and ties are ranked by it.
        order = np.lexsort((np.random.default_rng([seed, first]).random(len(query)), query))
        self.X, self.grades, self.first, self.n = X[order], grades[order], first, n
        self.sizes = np.unique(query, return_counts=True)[1]

    def matrix(self, values: np.ndarray) -> sp.csr_matrix:
        """CSR (queries, documents) with a value for each pair, zeros too."""
        n, indptr = len(self.grades), np.concatenate([[0], np.cumsum(self.sizes)])
        entries = np.asarray(values, np.float32), np.arange(self.first, self.first + n), indptr
        return sp.csr_matrix(entries, (len(self.sizes), self.n))

    @property
    def Y(self) -> sp.csr_matrix:
        out = self.matrix(self.grades)
        out.eliminate_zeros()
        return out

    def evidence(self) -> dict[str, Any]:
        """What metarank is given."""
        columns = {f"feature {j + 1}": self.matrix(self.X[:, j]) for j in range(N_FEATURES)}
        return {"candidates": {"BM25": self.matrix(self.X[:, BM25])}, "pair_features": columns}


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.seed = metarank.__version__, params["random_state"]

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Means over the parts, each tested once by fits on the four others."""
        with np.load(folder / "rows.npz") as file:
            X, grades, queries, part = (file[name] for name in ("X", "grades", "queries", "part"))
        rows: dict[str, list[dict[str, float]]] = {}
        for tested in range(PARTS):
            # The last part comes last, which judges the rounds of LightGBM.
            of = [np.flatnonzero(part == (tested + i) % PARTS) for i in range(PARTS)]
            number = np.unique(queries, return_inverse=True)[1]
            learned = np.concatenate(of[1:])
            # Queries in the order of their parts.
            query = number[learned] + 10_000 * ((part[learned] - tested) % PARTS)
            train = Pairs(X[learned], grades[learned], query, 0, len(X), self.seed)
            test = Pairs(X[of[0]], grades[of[0]], number[of[0]], len(learned), len(X), self.seed)
            judged = np.arange(len(learned)) >= len(learned) - len(of[-1])
            ways: dict[str, Callable[[], sp.csr_matrix]] = {
                "BM25": partial(test.matrix, test.X[:, BM25] + 1),
                "LightGBM LambdaRank": partial(self.lightgbm, train, judged, test),
                "metarank": partial(self.metarank, train, test),
            }
            for name, way in ways.items():
                before = cpu_seconds()
                scores = way()
                spent = cpu_seconds() - before
                values = metrics.evaluate(test.Y, scores, list(METRICS))
                rows.setdefault(name, []).append({**values, "CPU s": spent})
        means = {
            name: {key: float(np.mean([v[key] for v in of])) for key in of[0]} for name, of in rows.items()
        }
        return {"rows": means}, {}

    def lightgbm(self, train: Pairs, judged: np.ndarray, test: Pairs) -> sp.csr_matrix:
        query = row_of(train.matrix(train.grades))
        scores = lambdarank(train.X, train.grades, query, judged, test.X, self.seed)
        return test.matrix(scores - scores.min() + 1)

    def metarank(self, train: Pairs, test: Pairs) -> sp.csr_matrix:
        model = MetaRanker(n_jobs=1, random_state=self.seed).fit(None, train.Y, **train.evidence())
        return model.rank(None, k=int(test.sizes.max()), **test.evidence()).to_csr()
