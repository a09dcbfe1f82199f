"""`LabelIndex`: labels with great inner products, found by a FAISS graph over their vectors."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from metarank.types.candidates import Candidates
from metarank.types.dense_index import faiss_threads

# Links a label, and labels looked at while the graph is built.
_LINKS = 32
_BUILD_WIDTH = 80


class LabelIndex:
    """An HNSW graph (Malkov and Yashunin, 2020) for inner products with bias.

    The graph needs distances. With ``f' = [f, b, sqrt(M^2 - |f|^2 - b^2)]``, M the greatest length of any
    [f, b], and ``q' = [q, 1, 0]``, ``|q' - f'|^2 = |q|^2 + 1 + M^2 - 2 (q . f + b)``: the nearest labels are
    those with the greatest scores (Bachrach et al., 2014). Built by one thread: the order in which labels are
    linked decides the graph.

    Parameters
    ----------
    vectors : float32 array (L, E)
    bias : float32 array (L,)
    """

    def __init__(self, vectors: np.ndarray, bias: np.ndarray) -> None:
        self.n_labels: int = len(vectors)
        extended = np.column_stack([vectors, bias]).astype(np.float64)
        square = (extended**2).sum(axis=1)
        points = np.column_stack([extended, np.sqrt(square.max() - square)]).astype(np.float32)
        faiss: Any = importlib.import_module("faiss")
        self._index = faiss.IndexHNSWFlat(points.shape[1], _LINKS)
        self._index.hnsw.efConstruction = _BUILD_WIDTH
        with faiss_threads(1):
            self._index.add(points)

    def propose(self, queries: np.ndarray, k: int, n_jobs: int) -> Candidates:
        """About k labels for each query, without scores; all labels where there are no more than k."""
        if k >= self.n_labels:
            return Candidates.all_labels(len(queries), self.n_labels)
        faiss: Any = importlib.import_module("faiss")
        width = faiss.SearchParametersHNSW(efSearch=2 * k)
        extended = np.column_stack([queries, np.ones(len(queries)), np.zeros(len(queries))])
        with faiss_threads(n_jobs):
            _, ids = self._index.search(extended.astype(np.float32), k, params=width)
        ids.sort(axis=1)
        found = ids >= 0
        indptr = np.concatenate([[0], np.cumsum(found.sum(axis=1))])
        return Candidates(indptr, ids[found], self.n_labels)
