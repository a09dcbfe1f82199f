"""A model behind its service: requests of one row at a steady rate, and the memory it takes."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
from clocks import memory

from metarank import MetaRanker
from systems.few_rows import served

REQUESTS, RATE, WARM_UP = 1000, 50.0, 20


def steadily(model: MetaRanker, rows: sp.csr_matrix) -> dict[str, float]:
    """Milliseconds from when a request was due to its answer; MiB that the service holds, and its peak."""
    took = []
    with served(model) as (ask, process):
        for i in range(WARM_UP):
            ask(rows[-1 - i])
        started = time.perf_counter()
        for i in range(REQUESTS):
            due = started + i / RATE
            time.sleep(max(0.0, due - time.perf_counter()))
            ask(rows[i])
            took.append(1000 * (time.perf_counter() - due))
        resident = {"resident MiB": memory("VmRSS", process), "peak MiB": memory("VmHWM", process)}
    p50, p99 = np.quantile(took, (0.5, 0.99)).tolist()
    return {"p50 ms": p50, "p99 ms": p99, **resident}
