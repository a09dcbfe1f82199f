"""`run_processes`: the service in several processes, which share a socket and what the model's files map.

uvicorn's own `Multiprocess` says nothing when all of its processes answer, waits for them without end when it
stops, leaves them behind when it is killed, and lets a terminal's Ctrl-C reach them while they still import.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from metarank._util.parameters import check_integer
from metarank.apps.serve.hosts import local_names
from metarank.apps.serve.options import ServeOptions

logger = logging.getLogger("metarank.serve")

# More are a typing error: each takes about 200 MiB of its own, and needs a core to be of use.
_MOST = 256
# Seconds between looks at signals, and before a process that ended is replaced.
_LOOK = 0.2
_PAUSE = 1.0
# By which prometheus_client lets processes count together; read when it is imported.
_SHARED_METRICS = "PROMETHEUS_MULTIPROC_DIR"


def run_processes(
    load: Callable[[], object],
    processes: int,
    options: ServeOptions | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_hosts: Collection[str] = (),
    name: str = "model",
    announce: Callable[[str], None] = print,
) -> None:
    """Serve a model from several processes until SIGTERM or Ctrl-C; requests in flight finish as in `run`.

    A process that dies is replaced. If this process is killed, the others end too.

    Parameters
    ----------
    load : callable
        Returns the model. Each process calls it, so it must be a module's function (or a `partial` of one).
    processes : int
        In [1, 256].
    options : ServeOptions, optional
        The limits of each process.
    host, port, allowed_hosts, name, announce : as for `metarank.apps.serve.run.run`

    Raises
    ------
    ValueError
        If the service cannot listen at `host` and `port`, or a process ends before it can answer.
    """
    from metarank.apps.serve.run import listen, url_of

    check_processes(processes)
    options = options or ServeOptions()
    with (
        contextlib.closing(listen(host, port)) as listener,
        tempfile.TemporaryDirectory(prefix="metarank-serve-") as metrics,
    ):
        hosts = local_names((host, *allowed_hosts), listener)
        service = _Service(_Served(load, listener, options, hosts, name, metrics))
        with handling_signals(service.told_to_stop):
            try:
                service.start(processes)
                if not service.stopping:
                    announce(url_of(listener))
                    service.watch()
            finally:
                service.stop()


def check_processes(processes: object) -> None:
    """Raise unless `processes` is an integer in [1, 256]."""
    check_integer("processes", processes, 1, _MOST)


class _Served(NamedTuple):
    """What each process serves, and where; `metrics` is the folder in which they count together."""

    load: Callable[[], object]
    listener: socket.socket
    options: ServeOptions
    hosts: frozenset[str] | None
    name: str
    metrics: str


class _Service:
    """The processes; `alive` is a pipe whose other end each of them watches."""

    def __init__(self, served: _Served) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._watched, self._alive = self._context.Pipe(duplex=False)
        self._served = served
        self._patience = served.options.stop_timeout + 5
        self._processes: list[BaseProcess] = []
        self.stopping = False

    def told_to_stop(self, *_: object) -> None:
        """A signal came."""
        self.stopping = True

    def start(self, processes: int) -> None:
        """Start so many, and wait until all of them answer."""
        begun = []
        for _ in range(processes):
            if self.stopping:
                break
            process, ready = self._begin()
            self._processes.append(process)  # at once, so that `stop` ends it whatever comes next
            begun.append((process, ready))
        for process, ready in begun:
            while not self.stopping:
                found = connection.wait([ready, process.sentinel], _LOOK)
                if ready in found and _is_told(ready):
                    break
                if process.sentinel in found and not self.stopping:
                    raise ValueError("processes: one ended before it could answer; its message is above")
            ready.close()

    def watch(self) -> None:
        """Replace processes that end, until told to stop."""
        while not self.stopping:
            connection.wait([process.sentinel for process in self._processes], _LOOK)
            for i, process in enumerate(self._processes):
                if process.is_alive() or self.stopping:
                    continue
                logger.error("process %s ended with code %s and is replaced", process.pid, process.exitcode)
                self._forget(process)
                time.sleep(_PAUSE)
                self._processes[i], ready = self._begin()
                ready.close()

    def stop(self) -> None:
        """End all of them, after the requests they are at."""
        self.stopping = True
        for process in self._processes:
            if process.is_alive():
                process.terminate()
        last = time.monotonic() + self._patience
        for process in self._processes:
            process.join(max(0.0, last - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        self._alive.close()
        self._watched.close()

    def _begin(self) -> tuple[BaseProcess, Connection]:
        ready, told = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_serve, args=(self._served, self._watched, told))
        with _holding_back_ctrl_c():
            process.start()
        told.close()
        return process, ready

    def _forget(self, process: BaseProcess) -> None:
        """Its gauges no longer count."""
        for path in Path(self._served.metrics).glob(f"gauge_live*_{process.pid}.db"):
            path.unlink(missing_ok=True)


def _is_told(ready: Connection) -> bool:
    try:
        return bool(ready.recv())
    except EOFError:
        return False


@contextlib.contextmanager
def handling_signals(to: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM go to a handler inside the block, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, to) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _holding_back_ctrl_c() -> Iterator[None]:
    """A process started here does not see Ctrl-C until it says so; this one sees it as soon as this ends."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # else the first start would run it, which lets SIGINT through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(served: _Served, alive: Connection, told: Connection) -> None:
    """One process. A terminal's Ctrl-C reaches it too, but it is the first process that says when to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which also drops one held back during the imports
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    os.environ[_SHARED_METRICS] = served.metrics
    logging.basicConfig(format="%(asctime)s %(levelname)s %(process)d %(message)s", level=logging.WARNING)
    threading.Thread(target=_end_with, args=(alive,), daemon=True).start()
    from metarank.apps.serve.run import answer_on
    from metarank.model.estimator import MetaRanker

    model = served.load()
    assert isinstance(model, MetaRanker)

    def announce(_: str) -> None:
        # Nobody listens where this process replaces another.
        with contextlib.suppress(OSError):
            told.send(True)
        told.close()

    answer_on(served.listener, model, served.options, served.hosts, name=served.name, announce=announce)


def _end_with(alive: Connection) -> None:
    """End this process once the first one is gone."""
    with contextlib.suppress(OSError, EOFError):
        alive.recv()
    os.kill(os.getpid(), signal.SIGTERM)
