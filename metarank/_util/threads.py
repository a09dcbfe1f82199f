"""`n_jobs` is one budget for every stage.

`threadpoolctl.threadpool_limits` is not enough where threads overlap: the first one to leave lifts the limit
of the others, or, by newer versions, all but one ask in vain. Sums then differ in their last bits.
"""

from __future__ import annotations

import logging
import math
import os
import sys
from _thread import start_new_thread
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral
from queue import SimpleQueue
from threading import Lock, Thread, get_ident
from typing import Any, TypeVar

from metarank._util.cgroup import cpu_limit

logger: logging.Logger = logging.getLogger("metarank.threads")

T = TypeVar("T")


# Threads that one call, or the `n_jobs` of a saved model, may ask for.
MOST_THREADS = 1024
# Numbers that a task reads for each of its threads; see `threads_for`.
WORK_OF_A_THREAD = 1 << 19
# What uses OpenMP, and which of it brings a runtime of its own.
_OPENMP_OWNERS = {"faiss", "lightgbm", "torch"}
_OPENMP_USERS = {"sklearn", *_OPENMP_OWNERS}
# Of the flags of a process in /proc: forked, and no other program started since.
_FORKED = 0x40


def available_cores() -> int:
    """Cores this process may use, by its affinity and its control group's quota (rounded up); at least 1."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        cores = os.cpu_count() or 1
    quota = cpu_limit()
    return max(1, cores if quota is None else min(cores, math.ceil(quota)))


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Number of threads for `n_jobs`: None and -1 mean all cores of `available_cores`, -2 all but one, -3 all
    but two and so on, as in joblib, and at least one.

    Raises
    ------
    TypeError, ValueError
        If `n_jobs` is neither None nor an integer, or 0, or above 1,024.

    Examples
    --------
    >>> resolve_n_jobs(3)
    3
    >>> resolve_n_jobs(None) == resolve_n_jobs(-1) == available_cores()
    True
    >>> resolve_n_jobs(-2) == max(1, available_cores() - 1)
    True
    """
    # The many calls of ranking one row: no walk through abstract classes.
    if type(n_jobs) is int and 0 < n_jobs <= MOST_THREADS:
        return n_jobs
    if n_jobs is None:
        return available_cores()
    rule = f"n_jobs must be None, a positive integer, or negative to leave cores free, got {n_jobs!r}"
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(rule)
    if n_jobs == 0:
        raise ValueError(rule)
    if n_jobs > MOST_THREADS:
        raise ValueError(f"n_jobs must be at most {MOST_THREADS}, got {n_jobs!r:.80}")
    return int(n_jobs) if n_jobs > 0 else max(1, available_cores() + 1 + int(n_jobs))


def threads_for(work: int, n_jobs: int) -> int:
    """Threads of a task that reads `work` numbers, such as pairs x columns, at most `n_jobs`.

    One for each `WORK_OF_A_THREAD` numbers: by the amount of work and never by a clock, so that two runs on
    the same data do the same. It is for tasks in many steps, at the end of which all threads wait for the
    last, as LightGBM's in every leaf. Where other programs use the cores too, that costs more than it brings
    until the steps are long. A round of 15 leaves by two threads on two busy cores took, of the time by one:

    * 2.6 times for 40,000 values, 1.7 for 200,000, 1.1 for 800,000, 1.0 for 2 to 6 and .75 for 18 million;
    * 5 to 38 times for 200,000 where waiting threads spin, as they do unless OMP_WAIT_POLICY is "passive".

    Folds side by side and loops of the compiled core wait once, at their end. Two threads took about as long
    as one there, from 100 rows on, so they have all that `n_jobs` allows.

    Examples
    --------
    >>> [threads_for(work, 8) for work in (0, 1_000_000, 2_000_000, 50_000_000)]
    [1, 1, 3, 8]
    >>> threads_for(50_000_000, 2)
    2
    """
    return max(1, min(n_jobs, work // WORK_OF_A_THREAD))


def in_threads(task: Callable[..., T], *items: Iterable[Any], n_jobs: int) -> Iterator[T]:
    """What `task` gives for each item, in their order, by at most `n_jobs` threads; by this one if by one.

    An interrupt within a lock that is written in Python (`Future.result`, `Thread.start`) holds it for ever.
    So the calling thread, which interrupts reach, waits by the queue alone; another one starts the workers.

    Examples
    --------
    >>> list(in_threads(pow, [2, 3, 4], [1, 2, 3], n_jobs=2))
    [2, 9, 64]
    """
    if n_jobs <= 1:
        yield from map(task, *items)
        return
    all_arguments = list(enumerate(zip(*items)))
    waiting = iter(all_arguments)
    done: SimpleQueue[tuple[int, tuple[Any, BaseException | None]]] = SimpleQueue()
    ended: SimpleQueue[None] = SimpleQueue()
    started: list[bool] = []
    stopped: list[bool] = []

    def begin() -> None:
        for _ in all_arguments[:n_jobs]:
            started.append(True)
            thread = Thread(target=work, daemon=False)  # by default it would ask what this thread is
            try:
                (work if stopped else thread.start)()
            except RuntimeError:  # the system has no more threads
                work()

    def work() -> None:
        for i, arguments in waiting:
            if stopped:
                break
            try:
                done.put((i, (task(*arguments), None)))
            except BaseException as error:
                done.put((i, (None, error)))
        ended.put(None)

    try:
        start_new_thread(begin, ())
        outcomes: dict[int, tuple[Any, BaseException | None]] = {}
        for i in range(len(all_arguments)):
            while i not in outcomes:
                outcomes.update([done.get()])
            result, error = outcomes.pop(i)
            if error is not None:
                raise error
            yield result
    finally:
        stopped.append(True)
        for _ in tuple(started):  # one that starts later sees that it is to stop
            ended.get()


class _Fork:
    """Whether this process was forked from one that may have had threads of OpenMP.

    They are not there after a fork, but the runtime that GCC brings waits for them: for ever.
    """

    def __init__(self) -> None:
        self.lost_threads = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.happened)
        if _is_forked():
            self.happened()

    def happened(self) -> None:
        self.lost_threads = self.lost_threads or not _OPENMP_USERS.isdisjoint(sys.modules)


def _is_forked() -> bool:
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as f:
            return bool(int(f.read().rpartition(")")[2].split()[6]) & _FORKED)
    except (OSError, ValueError, IndexError):
        return False


_fork = _Fork()


def openmp_threads(n_jobs: int, library: str) -> int:
    """Threads that `library` (faiss, lightgbm or torch), which uses OpenMP, may use of `n_jobs`.

    One in a process that was forked after such a library was loaded, since more would wait for threads that
    did not come along; processes that are spawned have all their threads. One on macOS, too, where another of
    faiss, LightGBM and torch is loaded: each brings a runtime of its own, and threads of the later one would
    read the data of the first one and crash. Results do not depend on it.

    Examples
    --------
    >>> openmp_threads(1, "faiss")
    1
    """
    beside = sys.platform == "darwin" and _OPENMP_OWNERS & sys.modules.keys() - {library}
    if n_jobs > 1 and (_fork.lost_threads or beside):
        logger.info("OpenMP is held at one thread in a forked process, and beside another runtime on macOS")
        return 1
    return n_jobs


class _BlasUser:
    """One use of the limit, by the thread that made it."""

    def __init__(self) -> None:
        self.thread = get_ident()
        self.own: list[tuple[Any, int]] = []  # libraries, with the threads that they had in this thread


class _BlasLimit:
    """One thread for BLAS in this process, as long as any of its threads asks for it.

    A library that works by OpenMP has a limit for each thread of this process, which each sets for itself.
    What is to be undone is written down before it is done, so that an interrupt at any moment loses nothing.
    """

    def __init__(self) -> None:
        self.users: set[_BlasUser] = set()
        self.shared: dict[str, tuple[Any, int]] = {}  # by file, with the threads that it had
        self.lock = Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def enter(self, user: _BlasUser) -> None:
        from threadpoolctl import ThreadpoolController

        with self.lock:
            self.users.add(user)
            for library in ThreadpoolController().select(user_api="blas").lib_controllers:
                if getattr(library, "threading_layer", None) == "openmp":
                    user.own.append((library, library.num_threads))
                    library.set_num_threads(1)
                else:
                    self.shared.setdefault(library.filepath, (library, library.num_threads))
                    _set_shared(library, 1)

    def exit(self, user: _BlasUser) -> None:
        """By the same thread as `enter`; may be called again if it was interrupted."""
        with self.lock:
            for library, n_threads in reversed(user.own):
                library.set_num_threads(n_threads)
            self.users.discard(user)
            if not self.users:
                for library, n_threads in self.shared.values():
                    _set_shared(library, n_threads)
                self.shared.clear()

    def _forked(self) -> None:
        """The other threads, one of which may have held the lock, are not in this process."""
        self.lock = Lock()
        self.users = {user for user in self.users if user.thread == get_ident()}


def _set_shared(library: Any, n_threads: int) -> None:
    _free_control()
    library.set_num_threads(n_threads)
    _free_control()


def _free_control() -> None:
    """Newer versions of threadpoolctl let one thread alone change what is the whole process's: no longer."""
    import threadpoolctl

    clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


_blas_limit = _BlasLimit()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS at one thread, because the order of its sums depends on the number of threads.

    The limit holds for the process. It is lifted when the last thread that asked for it is done.
    """
    user = _BlasUser()
    try:
        _blas_limit.enter(user)
        yield
    finally:
        try:
            _blas_limit.exit(user)
        except KeyboardInterrupt:
            _blas_limit.exit(user)
            raise
