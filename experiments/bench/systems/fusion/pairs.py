"""Features of pairs: queries and documents of MQ2008, each with documents of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from clocks import cpu_seconds
from mq2008 import PARTS

import metarank
from metarank import MetaRanker, metrics
from systems.fusion.rivals import lambdarank, row_of, with_values

METRICS = ("nDCG@10", "MAP", "P@1")
# BM25 of the whole document, from 0 (LETOR 4.0); it is the source of candidates.
BM25 = 24


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.seed = metarank.__version__, params["random_state"]

    def read(self, folder: Path) -> None:
        with np.load(folder / "rows.npz") as file:
            X, grades, queries, part = (file[name] for name in ("X", "grades", "queries", "part"))
        # Within queries in an order of chance: ties are ranked by it, and that of the files may tell.
        order = np.lexsort((np.random.default_rng(self.seed).random(len(X)), queries, part))
        self.X, self.grades, queries = X[order], grades[order], queries[order]
        first = np.flatnonzero(np.append(True, np.diff(queries) != 0))
        self.part, self.indptr = part[order][first], np.append(first, len(X))

    def matrix(self, values: np.ndarray) -> sp.csr_matrix:
        """CSR (queries, documents) with a value for each pair, zeros too."""
        n = len(values)
        return sp.csr_matrix((values.astype(np.float32), np.arange(n), self.indptr), (len(self.part), n))

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Means over the parts, each tested once by fits on the four others."""
        self.read(folder)
        self.Y, self.columns = self.matrix(self.grades), [self.matrix(column) for column in self.X.T]
        ways = {"BM25": self.bm25, "LightGBM LambdaRank": self.lightgbm, "metarank": self.metarank}
        rows: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
        for tested in range(PARTS):
            for name, way in ways.items():
                before = cpu_seconds()
                scores = way(tested)
                spent = cpu_seconds() - before
                values = metrics.evaluate(self.Y[self.part == tested], scores, list(METRICS))
                rows[name].append({**values, "CPU s": spent})
        mean = {name: {k: float(np.mean([row[k] for row in of])) for k in of[0]} for name, of in rows.items()}
        return {"rows": mean, "queries": len(self.part)}, {}

    def bm25(self, tested: int) -> sp.csr_matrix:
        found = self.columns[BM25][self.part == tested]
        return with_values(found, found.data + 1)

    def lightgbm(self, tested: int) -> sp.csr_matrix:
        query = row_of(self.Y)
        part = self.part[query]
        seen, judged = part != tested, part == (tested + PARTS - 1) % PARTS
        learned = lambdarank(
            self.X[seen], self.grades[seen], query[seen], judged[seen], self.X[~seen], self.seed
        )
        return with_values(self.Y[self.part == tested], learned - learned.min() + 1)

    def metarank(self, tested: int) -> Any:
        def evidence(rows: np.ndarray) -> dict[str, Any]:
            described = {f"feature {j + 1}": column[rows] for j, column in enumerate(self.columns)}
            return {"candidates": {"BM25": self.columns[BM25][rows]}, "pair_features": described}

        seen = self.part != tested
        model = MetaRanker(n_jobs=1, random_state=self.seed).fit(None, self.Y[seen], **evidence(seen))
        return model.rank(None, k=int(np.diff(self.indptr).max()), **evidence(~seen)).to_csr()
