"""`Job`: what the tasks of one fit share on a worker: training set, threads, results kept for a restart."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

from metarank._util.threads import single_threaded_blas
from metarank.distributed.results import KeptResults
from metarank.distributed.workers import reason, task_threads
from metarank.types.view import TrainingSet

T = TypeVar("T")
logger: logging.Logger = logging.getLogger("metarank.distributed")

# The training set that tasks of this process work on, by its fingerprint: with it stays what is built from it
# once, such as the index of its rows.
_resident: dict[str, TrainingSet] = {}
# Why results of a fit could not be written, by the fingerprint too: told when the fit is over.
_missed: dict[str, list[str]] = {}
_lock = Lock()


@dataclass(frozen=True)
class Job:
    """One fit, as its tasks see it.

    Parameters
    ----------
    token : str
        Fingerprint of the training set.
    n_jobs : int or None
        Threads of a task. None and -1: one, and all of the worker's for a task that has nobody beside it.
    folder : str or None
        Where results are kept; client and workers all see it.
    """

    token: str
    n_jobs: int | None = None
    folder: str | None = None

    @contextmanager
    def at_work(self, data: TrainingSet | None, *, alone: bool = False) -> Iterator[tuple[Any, int]]:
        """(training set, threads) for a task. One training set stays with the process, until `release`."""
        if data is not None:
            with _lock:
                if self.token not in _resident:
                    _resident.clear()
                    _resident[self.token] = data
                data = _resident[self.token]
        with single_threaded_blas():
            yield data, task_threads(self.n_jobs, alone=alone)

    def result(
        self, data: TrainingSet | None, key: str, make: Callable[[Any, int], T], *, alone: bool = False
    ) -> T:
        """What a task gives: ``make(training set, threads)``, or what is kept of it under `key`."""
        with self.at_work(data, alone=alone) as (data, n_jobs):
            return self.remembered(key, lambda: make(data, n_jobs))

    def remembered(self, key: str | None, make: Callable[[], T]) -> T:
        """The result kept under `key`, or else made now, and kept where there is a folder for it."""
        if self.folder is None or key is None:
            return make()
        return KeptResults(self.folder, self._miss).get(key, make)

    def _miss(self, error: OSError) -> None:
        with _lock:
            _missed.setdefault(self.token, []).append(reason(error))


def release(token: str) -> list[str]:
    """Let go of the training set; called on every worker when a fit is over. Why results were not written."""
    with _lock:
        _resident.pop(token, None)
        return _missed.pop(token, [])
