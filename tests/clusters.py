"""Dask clusters for tests: small, silent, on this machine."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# What workers must have on their path to find the scorers of the tests by name.
HERE = Path(__file__).parent
PATHS = [str(HERE), str(HERE / "check"), *map(str, HERE.glob("test_*"))]


@contextmanager
def cluster(n_workers: int, *, processes: bool = False, **options: Any) -> Iterator[Any]:
    """A client of a cluster of so many workers, one thread each."""
    import dask
    from distributed import Client, LocalCluster

    quick = {"distributed.comm.timeouts.connect": "300s", "distributed.admin.tick.limit": "60s"}
    with (
        dask.config.set(quick),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=processes,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
            **options,
        ) as local,
        Client(local) as client,
    ):
        yield client


def digest(model: Any, folder: Path) -> str:
    """The digest of a saved model: equal ones are equal in every byte."""
    model.save(folder)
    return str(json.loads((folder / "manifest.json").read_text())["digest"])


def preloading() -> dict[str, Any]:
    """Workers find scorers of the tests by their names, as they are found in the tests' own process."""
    return {"processes": True, "preload": f"import sys; sys.path[:0] = {PATHS!r}"}


def kill_at(path: Path) -> threading.Thread:
    """Kill the worker that leaves its number at `path`, as soon as it does."""

    def wait() -> None:
        for _ in range(2400):
            if path.exists() and (pid := path.read_text()):
                os.kill(int(pid), signal.SIGKILL)
                return
            time.sleep(0.05)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread
