"""CPU time and memory of a process, and the time of one row: NumPy and SciPy alone are needed."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

WARM_UP = 20


def cpu_seconds() -> float:
    """CPU time of this process, all its threads, and the children it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def clocked(work: Callable[[], object]) -> float:
    """CPU seconds of `work`."""
    before = cpu_seconds()
    work()
    return cpu_seconds() - before


def yardstick() -> None:
    """The same work in every cell: its time shows how much other processes, or another machine, slow it."""
    # Random access to memory: the caches and the bus are what processes on other cores take away.
    places = np.random.default_rng(0).permutation(1 << 22)
    for _ in range(8):
        places = places[places]


def start_of_peak() -> float:
    """Memory in use now, in MiB; the peak is counted from here on."""
    # Not getrusage's maximum, which begins with that of the process that started this one.
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def memory(which: str, process: int | str = "self") -> float:
    """A line of a process's status in MiB: VmRSS is in use now, VmHWM the peak."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(status[which].split()[0]) / 1024


def one_by_one(system: Any, X: sp.csr_matrix, k: int, n: int, seconds: float = 10.0) -> tuple[float, float]:
    """Median wall and CPU milliseconds of answering one row a call, after a warm-up, in about `seconds`."""
    wall, cpu = [], []
    started = time.perf_counter()
    for i in range(WARM_UP + n):
        row = system.prepare(X[i % X.shape[0]])
        w, c = time.perf_counter(), time.process_time()
        system.predict(row, k)
        wall.append(time.perf_counter() - w)
        cpu.append(time.process_time() - c)
        if len(wall) > 2 * WARM_UP and time.perf_counter() - started > seconds:
            break
    return 1000 * float(np.median(wall[WARM_UP:])), 1000 * float(np.median(cpu[WARM_UP:]))
