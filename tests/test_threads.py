"""The limits on threads."""

from __future__ import annotations

import threading

import faiss  # noqa: F401  # brings a BLAS whose limit is each thread's own
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from metarank._threads import single_threaded_blas


def blas_threads() -> set[int]:
    np.ones((2, 2)) @ np.ones((2, 2))
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_limit_of_blas_holds_until_its_last_user_is_done():
    """Two threads whose use overlaps: the first to leave must not lift the limit of the other."""
    entered, left = threading.Event(), threading.Event()

    def first() -> None:
        with single_threaded_blas():
            entered.set()
            assert second_inside.wait(10)
        left.set()

    second_inside = threading.Event()
    with threadpool_limits(limits=3, user_api="blas"):
        thread = threading.Thread(target=first)
        thread.start()
        assert entered.wait(10)
        with single_threaded_blas():
            second_inside.set()
            assert left.wait(10)
            assert blas_threads() == {1}
        thread.join()
        assert blas_threads() == {3}
