"""The matrices of a set; predictions in the systems' forms as one: labels and scores (n, k), best first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp


class OfMatrices:
    """What systems have in common that take the matrices of a set as they are, and rows likewise."""

    def read(self, folder: Path) -> None:
        self.X, self.Y = (sp.load_npz(folder / f"{name}.npz").tocsr() for name in ("X", "Y"))

    def prepare(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return X


def top_of_rows(indptr: np.ndarray, labels: np.ndarray, scores: np.ndarray, k: int) -> tuple:
    """The k best of each row of pairs in CSR order; ties to the smaller label, padding -1 and -inf."""
    n = len(indptr) - 1
    row = np.repeat(np.arange(n), np.diff(indptr))
    order = np.lexsort((labels, -scores.astype(np.float64), row))
    place = np.arange(len(labels)) - np.repeat(indptr[:-1], np.diff(indptr))
    kept = place < k
    out_labels = np.full((n, k), -1, np.int32)
    out_scores = np.full((n, k), -np.inf, np.float32)
    out_labels[row[kept], place[kept]] = labels[order][kept]
    out_scores[row[kept], place[kept]] = scores[order][kept]
    return out_labels, out_scores


def top_of_csr(scores: sp.csr_matrix, k: int) -> tuple:
    return top_of_rows(scores.indptr.astype(np.int64), scores.indices, scores.data, k)


def top_of_lists(rows: Sequence[Sequence[tuple[int, float]]], k: int) -> tuple:
    """Of one list of (label, score) a row."""
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    pairs = np.array([pair for row in rows for pair in row], dtype=np.float64).reshape(-1, 2)
    return top_of_rows(indptr, pairs[:, 0].astype(np.int32), pairs[:, 1].astype(np.float32), k)
