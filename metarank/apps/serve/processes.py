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
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from metarank._util.parameters import check_integer
from metarank.apps.serve.options import Access, ServeOptions
from metarank.apps.serve.reload import Loaded, Reloader, controlled

logger: logging.Logger = logging.getLogger("metarank.serve")

# More are a typing error: each takes about 200 MiB of its own, and needs a core to be of use.
_MOST = 256
# Seconds between looks at signals, and before a process that ended is replaced.
_LOOK = 0.2
_PAUSE = 1.0
# Seconds that a process has to load a model anew.
_RELOAD = 600
# By which prometheus_client lets processes count together; read when it is imported.
_SHARED_METRICS = "PROMETHEUS_MULTIPROC_DIR"


def run_processes(
    load: Callable[[], Loaded],
    processes: int,
    options: ServeOptions | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    access: Access | None = None,
    name: str = "model",
    admin_socket: str | None = None,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve a model from several processes until SIGTERM or Ctrl-C; requests in flight finish as in `run`.

    A process that dies is replaced. If this process is killed, the others end too.

    Parameters
    ----------
    load : callable
        Returns a `Loaded`. Each process calls it, so it must be a module's function (or a `partial` of one).
    processes : int
        In [1, 256].
    options : ServeOptions, optional
        The limits of each process.
    host, port, access, name, admin_socket, announce : as for `metarank.apps.serve.run.run`

    Raises
    ------
    ValueError
        If the service cannot listen at `host` and `port`, or a process ends before it can answer.
    """
    from metarank.apps.serve.run import access_at, listen, url_of

    check_processes(processes)
    options = options or ServeOptions()
    with (
        contextlib.closing(listen(host, port)) as listener,
        tempfile.TemporaryDirectory(prefix="metarank-serve-") as metrics,
        controlled(admin_socket) as control,
    ):
        access = access_at(listener, host, access)
        service = _Service(_Served(load, listener, options, access, name, metrics))
        with handling_signals(service.told_to_stop):
            try:
                service.start(processes)
                if not service.stopping:
                    control.start(service.reload)
                    announce(url_of(listener))
                    service.watch()
            finally:
                service.stop()


def check_processes(processes: object) -> None:
    """Raise unless `processes` is an integer in [1, 256]."""
    check_integer("processes", processes, 1, _MOST)


class _Served(NamedTuple):
    """What each process serves, and where; `metrics` is the folder in which they count together."""

    load: Callable[[], Loaded]
    listener: socket.socket
    options: ServeOptions
    access: Access
    name: str
    metrics: str


class _Child(NamedTuple):
    """A process that answers, and the pipe by which it is told what to do; it ends when the pipe does."""

    process: BaseProcess
    pipe: Connection


class _Service:
    """The processes."""

    def __init__(self, served: _Served) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._served = served
        self._patience = served.options.stop_timeout + 5
        self._children: list[_Child] = []
        self._lock = threading.Lock()  # of who replaces processes or their model
        self._orders = 0
        self.stopping = False

    def told_to_stop(self, *_: object) -> None:
        """A signal came."""
        self.stopping = True

    def start(self, processes: int) -> None:
        """Start so many, and wait until all of them answer."""
        for _ in range(processes):
            if self.stopping:
                break
            self._children.append(self._begin())  # at once, so that `stop` ends it whatever comes next
        for child in self._children:
            while not self.stopping:
                found = connection.wait([child.pipe, child.process.sentinel], _LOOK)
                if child.pipe in found and _received(child.pipe) is not None:
                    break
                if child.process.sentinel in found and not self.stopping:
                    raise ValueError("processes: one ended before it could answer; its message is above")

    def watch(self) -> None:
        """Replace processes that end, until told to stop."""
        while not self.stopping:
            connection.wait([child.process.sentinel for child in self._children], _LOOK)
            if not self._lock.acquire(timeout=_LOOK):
                continue
            try:
                for i, (process, _) in enumerate(self._children):
                    if process.is_alive() or self.stopping:
                        continue
                    said = "process %s ended with code %s and is replaced"
                    logger.error(said, process.pid, process.exitcode)
                    self._forget(self._children[i])
                    time.sleep(_PAUSE)
                    self._children[i] = self._begin()
            finally:
                self._lock.release()

    def reload(self) -> str:
        """Have all processes answer by the model that is in its folder now, or none; its digest.

        Raises
        ------
        ValueError
            If one of them cannot, or does not find the same model as the others.
        """
        with self._lock:
            try:
                digests = set(self._ordered("prepare"))
                if len(digests) > 1:
                    raise ValueError("the model's folder was replaced while it was read: try again")
            except BaseException:
                self._order("drop")
                raise
            self._ordered("use")
            return digests.pop()

    def _ordered(self, what: str) -> list[str]:
        """What each process says once it has done it; one that ends will load the model as it is replaced."""
        waiting = self._order(what)
        said: list[str] = []
        last = time.monotonic() + _RELOAD
        while waiting:
            if self.stopping:
                raise ValueError("the service is stopping")
            if time.monotonic() > last:
                raise ValueError(f"a process has not loaded the model within {_RELOAD} s")
            for pipe in connection.wait(waiting, _LOOK):
                assert isinstance(pipe, Connection)
                reply = _received(pipe)
                if reply is None:
                    waiting.remove(pipe)
                elif reply.number == self._orders:  # else an answer that nobody waits for any more
                    waiting.remove(pipe)
                    if reply.error is not None:
                        raise ValueError(reply.error)
                    said.append(reply.digest)
        if not said:
            raise ValueError("no process is left: they are being replaced")
        return said

    def _order(self, what: str) -> list[Connection]:
        """Tell all processes; returns the pipes of those that are there to hear it."""
        self._orders += 1
        told = []
        for child in self._children:
            with contextlib.suppress(OSError):
                child.pipe.send((self._orders, what))
                told.append(child.pipe)
        return told

    def stop(self) -> None:
        """End all of them, after the requests they are at."""
        self.stopping = True
        for process, _ in self._children:
            if process.is_alive():
                process.terminate()
        last = time.monotonic() + self._patience
        for process, pipe in self._children:
            process.join(max(0.0, last - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
            pipe.close()

    def _begin(self) -> _Child:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(self._served, theirs))
        with _holding_back_signals():
            process.start()
        theirs.close()
        return _Child(process, ours)

    def _forget(self, child: _Child) -> None:
        """Its gauges no longer count."""
        child.pipe.close()
        for path in Path(self._served.metrics).glob(f"gauge_live*_{child.process.pid}.db"):
            path.unlink(missing_ok=True)


class _Reply(NamedTuple):
    """What a process says of the order of a number; 0 where it has none and can answer."""

    number: int
    digest: str = ""
    error: str | None = None


def _received(pipe: Connection) -> _Reply | None:
    """What a process said; None if it has ended."""
    try:
        return pipe.recv()
    except (EOFError, OSError):
        return None


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
def _holding_back_signals() -> Iterator[None]:
    """A process started here does not see what a terminal sends until it says so; this one sees it after."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # else the first start would run it, which lets SIGINT through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _of_a_terminal())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _of_a_terminal() -> list[signal.Signals]:
    return [signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


def _serve(served: _Served, pipe: Connection) -> None:
    """One process. A terminal's signals reach it too, but it is the first process that says what to do."""
    for number in _of_a_terminal():
        signal.signal(number, signal.SIG_IGN)  # which also drops one held back during the imports
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _of_a_terminal())
    os.environ[_SHARED_METRICS] = served.metrics
    logging.basicConfig(format="%(asctime)s %(levelname)s %(process)d %(message)s", level=logging.WARNING)
    begun: Future[Reloader] = Future()
    threading.Thread(target=_obey, args=(pipe, begun), daemon=True).start()
    from metarank.apps.serve.run import answer_on

    def started(reloader: Reloader) -> None:
        with contextlib.suppress(OSError):  # the first process is gone, and this one will be
            pipe.send(_Reply(0))
        begun.set_result(reloader)

    answer_on(served.listener, served.load, served.options, served.access, name=served.name, started=started)


def _obey(pipe: Connection, begun: Future[Reloader]) -> None:
    """Do what the first process says, and end this one once that is gone."""
    with contextlib.suppress(OSError, EOFError):
        while True:
            number, what = pipe.recv()
            reloader = begun.result()
            try:
                reply = _Reply(number, digest=getattr(reloader, what)() or "")
            except Exception as error:
                reply = _Reply(number, error=f"{error}" or type(error).__name__)
            pipe.send(reply)
    os.kill(os.getpid(), signal.SIGTERM)
