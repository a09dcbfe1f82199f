"""Dask clusters for tests: small, silent, on this machine."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


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
