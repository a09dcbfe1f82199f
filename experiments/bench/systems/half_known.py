"""Test rows of which half of the labels are known: nDCG@5 of the others, told of these or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sets import matrix

from metarank.metrics import evaluate
from systems import pipeline

DRAWS = 5


class System(pipeline.System):
    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        self.read(folder)
        self.train()
        X, Y = matrix(folder, "X_test"), matrix(folder, "Y_test") > 0
        values = []
        for draw in range(DRAWS):
            known, others = halves(Y, draw)
            rows = np.flatnonzero((known.getnnz(axis=1) > 0) & (others.getnnz(axis=1) > 0))
            told, true = known[rows], others[rows]
            ranked = (self.model.rank(X[rows], k=5, **{way: told}) for way in ("exclude", "known"))
            values.append([evaluate(true, of, ["nDCG@5"])["nDCG@5"] for of in ranked])
        return {"nDCG@5": np.transpose(values).tolist(), "rows": len(rows)}, {"values": np.array(values)}


def halves(Y: sp.csr_matrix, seed: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """A drawn half of the labels of each row, rounded down, and the rest."""
    row, rng = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr)), np.random.default_rng(seed)
    order = np.lexsort((rng.random(Y.nnz), row))
    place = np.empty(Y.nnz, np.int64)
    place[order] = np.arange(Y.nnz) - Y.indptr[:-1][row]
    first = place < np.diff(Y.indptr)[row] // 2
    return tuple(
        sp.csr_matrix((np.ones(of.sum(), np.float32), (row[of], Y.indices[of])), Y.shape)
        for of in (first, ~first)
    )
