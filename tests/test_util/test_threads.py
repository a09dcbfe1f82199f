"""The limits on threads."""

from __future__ import annotations

import linecache
import os
import signal
import subprocess
import sys
import threading
import time

import faiss  # noqa: F401  # brings a BLAS whose limit is each thread's own
import numpy as np
import pytest
from syscalls import in_child
from threadpoolctl import threadpool_info, threadpool_limits

from metarank._util import threads as _threads
from metarank._util.threads import in_threads, resolve_n_jobs, single_threaded_blas


def blas_threads() -> set[int]:
    np.ones((2, 2)) @ np.ones((2, 2))
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("left_free", [0, 1, 2, 10_000])
def test_negative_n_jobs_leave_cores_free_as_in_joblib(left_free):
    assert resolve_n_jobs(-1 - left_free) == max(1, _threads.available_cores() - left_free)


@pytest.mark.parametrize("n_jobs", [0, True, 1.5, "2"])
def test_other_n_jobs_are_refused(n_jobs):
    with pytest.raises((TypeError, ValueError), match=r"n_jobs must be .*, got "):
        resolve_n_jobs(n_jobs)


def test_one_thread_of_openmp_beside_another_runtime_on_macos(monkeypatch):
    for library in ("lightgbm", "torch"):
        monkeypatch.delitem(sys.modules, library, raising=False)
    assert _threads.openmp_threads(3, "lightgbm") == 3
    monkeypatch.setattr(sys, "platform", "darwin")
    assert [_threads.openmp_threads(3, library) for library in ("faiss", "lightgbm")] == [3, 1]


def test_limit_of_blas_holds_until_its_last_user_is_done():
    """Two threads whose use overlaps: the first to leave must not lift the limit of the other."""
    entered, left = threading.Event(), threading.Event()

    def first() -> None:
        with single_threaded_blas():
            entered.set()
            assert second_inside.wait(300)
        left.set()

    second_inside = threading.Event()
    with threadpool_limits(limits=3, user_api="blas"):
        thread = threading.Thread(target=first)
        thread.start()
        assert entered.wait(300)
        with single_threaded_blas():
            second_inside.set()
            assert left.wait(300)
            assert blas_threads() == {1}
        thread.join()
        assert blas_threads() == {3}


def test_an_interrupt_at_any_line_lifts_the_limit():
    """Ctrl-C while the limit is taken or lifted: of what was limited, nothing stays so."""
    functions = (_threads._BlasLimit.enter, _threads._BlasLimit.exit, _threads._set_shared)
    codes = {function.__code__ for function in functions}

    def interrupted_at(moment: int) -> bool:
        left = moment

        def trace(frame, event, argument):
            nonlocal left
            if frame.f_code in codes and event == "line":
                # Python itself never interrupts between the body of a `with` and the release of its lock.
                line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
                if not line.lstrip().startswith("with "):
                    left -= 1
                    if left == 0:
                        raise KeyboardInterrupt
            return trace if frame.f_code in codes else None

        sys.settrace(trace)
        try:
            with single_threaded_blas():
                pass
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False

    with threadpool_limits(limits=3, user_api="blas"):
        moment = 1
        while interrupted_at(moment):
            assert blas_threads() == {3}
            moment += 1
        assert moment > 20
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {3}


INTERRUPTED = """
import random, signal, sys, threading, time
from metarank._util.threads import in_threads

armed = []
def press(*_):
    if armed:
        armed.clear()
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, press)
sys.setswitchinterval(1e-6)
moments, n_interrupted = random.Random(0), 0
while n_interrupted < 500:
    try:
        armed.append(True)
        signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-6, 1e-3))
        assert list(in_threads(int, range(8), n_jobs=4)) == list(range(8))
        armed.clear()  # beyond the block nothing catches it
    except KeyboardInterrupt:
        n_interrupted += 1
signal.setitimer(signal.ITIMER_REAL, 0)
armed.clear()
while threading.active_count() > 1:
    time.sleep(0.001)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_interrupts_of_parallel_tasks_leave_no_lock_held():
    """In a process of its own, since a lock that is held would stop it for ever."""
    run = subprocess.run([sys.executable, "-c", INTERRUPTED], timeout=60, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_parallel_tasks_give_results_and_errors_in_order():
    def inverse(x: int) -> float:
        time.sleep(0.001 * (x % 3))
        return 1 / (x - 5) + sum(in_threads(abs, [x, -x], n_jobs=2))

    results = in_threads(inverse, range(20), n_jobs=3)
    assert [next(results) for _ in range(5)] == [1 / (x - 5) + 2 * x for x in range(5)]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert next(results, "ended") == "ended"
    assert list(in_threads(pow, [2, 3], [3], n_jobs=2)) == [8]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_beside_a_thread_that_takes_the_limit():
    """A lock that another thread held is free in the child, and its limit does not outlive the fork."""
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with single_threaded_blas(), _threads._blas_limit.lock:
            held.set()
            assert release.wait(300)

    with threadpool_limits(limits=3, user_api="blas"):
        thread = threading.Thread(target=hold)
        thread.start()
        assert held.wait(300)

        def use() -> None:
            with single_threaded_blas():
                assert blas_threads() == {1}
            assert blas_threads() == {3}

        child = in_child(use)
        release.set()
        thread.join()
        assert child.error() == ""
        assert blas_threads() == {3}
