"""A new model in place of the one that answers, which answers on until the new one is loaded and tried.

`Reloader` does it in one process, `Control` is asked for it from outside: by SIGHUP, or by POST /admin/reload
on a unix socket, which file permissions guard rather than a port that every user and web page reaches.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import signal
import socket
import socketserver
import stat
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from metarank.apps.serve.app import Service
    from metarank.model.estimator import MetaRanker

logger: logging.Logger = logging.getLogger("metarank.serve")

# Seconds that a client of the socket has for each of its reads, and bytes of a body, which says nothing.
_PATIENCE = 10
_MOST_BODY = 1 << 16


class Loaded(NamedTuple):
    """A model, with the digest of its folder."""

    model: MetaRanker
    digest: str


class Reloader:
    """Loads the model of one process anew; `prepare`, then `use` or `drop`.

    Parameters
    ----------
    load : callable
        Returns a `Loaded`.
    service : Service
        Has the model that answers.
    """

    def __init__(self, load: Callable[[], Loaded], service: Service) -> None:
        self._load, self._service = load, service
        self._next: Any = None

    def prepare(self) -> str:
        """Load a model and try it; returns its digest. Raises whatever keeps it from answering."""
        from metarank.apps.serve.run import warm_up

        loaded = self._load()
        warm_up(loaded.model)
        self._next = self._service.answerer(loaded.model), loaded.digest
        return loaded.digest

    def use(self) -> str:
        """What is asked from now on is answered by the model that was prepared; returns its digest."""
        answerer, digest = self._next
        self._service.use(answerer, digest)
        self.drop()
        gc.unfreeze()  # the objects of the model before, which the garbage collector was not to visit
        gc.collect()
        gc.freeze()
        return digest

    def drop(self) -> None:
        """Forget what was prepared."""
        self._next = None

    def reload(self) -> str:
        """Both at once."""
        self.prepare()
        return self.use()


class Control:
    """Reloads when it is asked to, one time after the other, and tells what came of it; see `controlled`."""

    def __init__(self, server: socketserver.BaseServer | None) -> None:
        self._server = server
        self._hung_up: SimpleQueue[None] = SimpleQueue()
        self._reload: Callable[[], str] | None = None
        self._lock = threading.Lock()

    def start(self, reload: Callable[[], str]) -> None:
        """From now on do what is asked, and was asked before, by `reload`."""
        self._reload = reload
        threading.Thread(target=self._obey_signals, daemon=True).start()
        if self._server is not None:
            threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Take no more requests."""
        if self._server is not None:
            if self._reload is not None:
                self._server.shutdown()
            self._server.server_close()

    def hang_up(self, *_: object) -> None:
        """SIGHUP came."""
        self._hung_up.put(None)  # which a handler of signals may do, as it takes no lock

    def ask(self) -> tuple[int, dict[str, str]]:
        """Reload; returns the status and what is said of it."""
        assert self._reload is not None
        with self._lock:
            try:
                digest = self._reload()
            except Exception as error:
                said = " ".join(str(error).split()) or type(error).__name__
                logger.error("the model was not reloaded, the one before answers: %s", said)
                return 422, {"error": said}
            logger.info("the model was reloaded, its digest is %s", digest)
            return 200, {"status": "reloaded", "digest": digest}

    def _obey_signals(self) -> None:
        while True:
            self._hung_up.get()
            with contextlib.suppress(Exception):
                while True:  # several at once are one
                    self._hung_up.get_nowait()
            self.ask()


@contextlib.contextmanager
def controlled(path: str | None) -> Iterator[Control]:
    """What SIGHUP and requests to a unix socket at `path` ask is done by the `Control` once it is started.

    Raises
    ------
    ValueError
        If the system has no unix sockets, or none can be had at `path`.
    """
    server = None if path is None else _listening(path)
    control = Control(server)
    if server is not None:
        server.RequestHandlerClass = type("_Handler", (_Handler,), {"control": control})
    before = None
    is_ours = hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread()
    if is_ours:
        before = signal.signal(signal.SIGHUP, control.hang_up)
    try:
        yield control
    finally:
        if is_ours:
            signal.signal(signal.SIGHUP, before)
        control.stop()
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _listening(path: str) -> socketserver.BaseServer:
    """A server on a unix socket that only its owner may use."""
    try:
        if not hasattr(socketserver, "ThreadingUnixStreamServer"):
            raise OSError("this system has no unix sockets")
        if os.path.lexists(path) and stat.S_ISSOCK(os.lstat(path).st_mode):
            with socket.socket(socket.AF_UNIX) as other, contextlib.suppress(TimeoutError):
                other.settimeout(_PATIENCE)
                try:
                    other.connect(path)
                except ConnectionRefusedError:
                    os.unlink(path)  # of a service that was killed
        before = os.umask(0o177)
        try:
            server = socketserver.ThreadingUnixStreamServer(path, _Handler)
        finally:
            os.umask(before)
    except OSError as error:
        said = error.strerror or error
        raise ValueError(f"cannot listen at admin_socket {path!r}: {said}") from None
    server.daemon_threads = True
    return server


class _Handler(BaseHTTPRequestHandler):
    control: Control
    timeout = _PATIENCE

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if length.isdigit():
            self.rfile.read(min(int(length), _MOST_BODY))
        status, said = self.control.ask() if self.path == "/admin/reload" else (404, {"error": "Not Found"})
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what comes of it is logged."""
