"""`workers`: threads for independent parts of torch's work, with one thread of torch's own in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol, TypeVar

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
        with ThreadPoolExecutor(n_jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield lambda function, items: list(pool.map(function, items))
    finally:
        torch.set_num_threads(before)
