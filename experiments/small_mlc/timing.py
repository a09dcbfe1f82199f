"""Work in CPU seconds, which a busy machine changes little; latency in wall milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np
import scipy.sparse as sp
from datasets import Problem

from metarank.scorers.neighbors.voting import LabelNeighbors
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet

LATENCY_ROWS = 200


class Stopwatch:
    """CPU and wall seconds of a ``with`` block, all threads of the process counted."""

    cpu: float
    wall: float

    def __enter__(self) -> Stopwatch:
        self._cpu, self._wall = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: Any, traceback: TracebackType | None) -> None:
        self.cpu, self.wall = time.process_time() - self._cpu, time.perf_counter() - self._wall


def latency(answer: Callable[[Any], Any], X: np.ndarray | sp.csr_matrix) -> dict[str, float]:
    """Milliseconds: the median of one row over up to 200 rows, and a row's share of a batch (median of 3)."""
    rows = [X[i : i + 1] for i in range(min(LATENCY_ROWS, X.shape[0]))]
    answer(rows[0])
    single = []
    for row in rows:
        start = time.perf_counter()
        answer(row)
        single.append(time.perf_counter() - start)
    batch = []
    for _ in range(3):
        with Stopwatch() as watch:
            answer(X)
        batch.append(watch.wall)
    return {
        "single_ms": 1000 * float(np.median(single)),
        "batch_ms_per_row": 1000 * float(np.median(batch)) / X.shape[0],
    }


def seconds_of_all_neighbors(problem: Problem) -> dict[str, float]:
    """CPU seconds for the 10 exact nearest training points of every label under L2, L1 and cosine.

    Of every training and every test row, in one batch, on one thread, the index included (Table 2).
    """
    Y = sp.csr_matrix(problem.Y.astype(np.float32))
    seconds = []
    for _ in range(3):
        with Stopwatch() as watch:
            view = TrainingSet(problem.scaled, Y, np.zeros(len(problem.Y), np.int32)).view()
            near = LabelNeighbors(columns="raw").fit(view)
            for X in (problem.scaled, problem.scaled_test):
                near.score(X, Candidates.all_labels(X.shape[0], Y.shape[1]))
        seconds.append(watch.cpu)
    return {"cpu_s": float(np.median(seconds))}
