"""The whole of metarank behind its service: requests of one row at a steady rate, and the memory it takes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from clocks import memory

from systems import pipeline
from systems.few_rows import served

REQUESTS, RATE, WARM_UP = 1000, 50.0, 20


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.pipeline = pipeline.System(params, threads)
        self.version = self.pipeline.version

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        self.pipeline.read(folder)
        self.pipeline.train()
        del self.pipeline.train_set, self.pipeline.exclude
        rows, took = sp.load_npz(folder / "X_test.npz"), []
        with served(self.pipeline.model) as (ask, process):
            del self.pipeline.model
            for i in range(WARM_UP):
                ask(rows[-1 - i])
            started = time.perf_counter()
            for i in range(REQUESTS):
                due = started + i / RATE
                time.sleep(max(0.0, due - time.perf_counter()))
                ask(rows[i])
                took.append(1000 * (time.perf_counter() - due))
            resident = {which: memory(which, process) for which in ("VmRSS", "VmHWM")}
        p50, p99 = np.quantile(took, (0.5, 0.99))
        return {"served": {"p50 ms": p50, "p99 ms": p99, **resident}}, {"took": np.array(took)}
