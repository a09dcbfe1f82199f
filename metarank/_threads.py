"""`n_jobs` is one budget for every stage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral


def available_cores() -> int:
    """Cores this process may use (its CPU affinity), at least 1."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # macOS, Windows
        return max(1, os.cpu_count() or 1)


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Number of threads for `n_jobs`: None and -1 mean all cores the process may use.

    Raises
    ------
    TypeError, ValueError
        If `n_jobs` is not None, -1 or a positive integer.

    Examples
    --------
    >>> resolve_n_jobs(3)
    3
    >>> resolve_n_jobs(None) == available_cores()
    True
    """
    if (
        type(n_jobs) is int and n_jobs > 0
    ):  # the many calls of ranking one row: no walk through abstract classes
        return n_jobs
    if n_jobs is None:
        return available_cores()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs must be None, -1 or a positive integer, got {n_jobs!r}")
    if n_jobs == -1:
        return available_cores()
    if n_jobs < 1:
        raise ValueError(f"n_jobs must be None, -1 or a positive integer, got {n_jobs!r}")
    return int(n_jobs)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS at one thread: the order of their sums depends on the number of threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
