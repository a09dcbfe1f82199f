"""`workers`: threads for independent parts of torch's work, with one thread of torch's own in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")


class Map(Protocol):
    """The results of a function for each item, in the order of the items."""

    def __call__(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]: ...


@contextmanager
def workers(n_jobs: int) -> Iterator[Map]:
    """A map over `n_jobs` threads.

    Inside the block torch uses one thread of its own, since the way it splits a sum depends on their
    number; the number is restored afterwards.

    Examples
    --------
    >>> with workers(2) as run:
    ...     run(abs, [-1, 2])
    [1, 2]
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if n_jobs == 1:
            yield _map_here
            return
        with ThreadPoolExecutor(n_jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:

            def run(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
                return list(pool.map(function, items))

            yield run
    finally:
        torch.set_num_threads(before)


def _map_here(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]
