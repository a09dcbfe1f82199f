"""Approximate indexes beside the exact search: recall, time to build and to ask, from which size they pay."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from ivf_pq import IvfPqIndex

from metarank import _core
from metarank.scorers.neighbors.training_rows import DenseRows
from metarank.types.dense_index import HnswIndex

D = 64
K = 30  # neighbours, of NeighborShortlister's defaults
N_QUERIES = 1_000
SIZES = (25_000, 50_000, 100_000, 200_000)
# What is looked at of each index, the defaults among it.
SETTINGS: dict[str, tuple[Any, str, tuple[int, ...]]] = {
    "flat": (None, "", (0,)),
    "hnsw": (HnswIndex, "BREADTH", (64, 128, 256)),
    "ivfpq": (IvfPqIndex, "LISTS_READ", (16, 64, 128)),
}

Figures = dict[str, Any]


def clustered_rows(n: int, d: int = D, seed: int = 0) -> np.ndarray:
    """n rows of unit length around n / 100 centres of which 16 numbers are free, in much noise."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(1, n // 100), 16)) @ rng.normal(size=(16, d)) / 4
    rows = centres[rng.integers(0, len(centres), n)] + rng.normal(size=(n, d))
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def measure(n: int, n_queries: int = N_QUERIES) -> list[Figures]:
    """Figures of every index over n rows, one thread; a fifth of the rows is held out of the search."""
    X = clustered_rows(n + n_queries)
    rows, Q = DenseRows(X[:n]), X[n:]
    voters = np.flatnonzero(np.arange(n) % 5 != 0).astype(np.int32)
    truth, _ = rows.nearest(Q, voters, K, "l2", 1)
    out: list[Figures] = []
    for kind, (cls, name, values) in SETTINGS.items():
        start = time.process_time()
        index = cls(rows.X) if cls else None
        build = time.process_time() - start if cls else 0.0
        size = _index_bytes(kind, n, index)
        restore = _seconds(lambda: cls(rows.X, index.arrays())) if cls else 0.0  # noqa: B023
        for value in values:
            default = getattr(cls, name) if cls else 0
            if cls:
                setattr(cls, name, value)
            try:
                figures = _asked(rows, Q, voters, index, truth)
            finally:
                if cls:
                    setattr(cls, name, default)
            figures |= {"n": n, "index": kind, "setting": value, "default": value == default}
            out.append(figures | {"build": build, "restore": restore, "bytes": size})
    return out


def _asked(rows: DenseRows, Q: np.ndarray, voters: np.ndarray, index: Any, truth: np.ndarray) -> Figures:
    """Recall of the true neighbours, milliseconds a row in a batch and alone; in the latter all rows vote."""
    every = np.arange(len(rows.X), dtype=np.int32)

    def search(some: np.ndarray, among: np.ndarray = voters) -> np.ndarray:
        if index is None:
            return rows.nearest(some, among, K, "l2", 1)[0]
        within = None
        if len(among) < len(rows.X):
            within = np.zeros(len(rows.X), bool)
            within[among] = True
        proposed = index.propose(some, K, within, 1)
        return _core.nearest_proposed_dense(rows.X, some, proposed, K, 1)[0]

    found = search(Q)
    hits = sum(len(np.intersect1d(a, b)) for a, b in zip(found, truth))
    alone = [_seconds(lambda: search(Q[i : i + 1], every)) for i in range(min(100, len(Q)))]  # noqa: B023
    return {
        "recall": hits / truth.size,
        "batch": 1e3 * _seconds(lambda: search(Q)) / len(Q),
        "alone": 1e3 * float(np.median(alone)),
    }


def _index_bytes(kind: str, n: int, index: Any) -> int:
    """Memory of an index over n rows, about; of the flat one that of the rows themselves."""
    if kind == "hnsw":
        return n * (4 * D + 4 * (2 * HnswIndex.LINKS + 1) + 12)
    if kind == "ivfpq":
        n_codes = -(-D // IvfPqIndex.FEATURES_PER_CODE)
        return n * (2 * n_codes + 12) + len(index.arrays()["centroids"]) * (4 * D + 1024 * n_codes)
    return 4 * n * D


def _seconds(work: Callable[[], object]) -> float:
    """CPU seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start
