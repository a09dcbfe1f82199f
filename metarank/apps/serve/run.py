"""`run`: the service on a socket, until a signal stops it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import socket
import sys
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import uvicorn
from fastapi import FastAPI

from metarank.apps.serve.app import create_app
from metarank.apps.serve.connections import connection_class
from metarank.apps.serve.hosts import local_names
from metarank.apps.serve.options import Access, ServeOptions
from metarank.apps.serve.processes import handling_signals
from metarank.apps.serve.reload import Loaded, Reloader, controlled
from metarank.model.estimator import MetaRanker

# Connections that may wait to be accepted.
_BACKLOG = 1024
# Seconds after which a thread lets others run. By Python's default, 0.005, the event loop would wait so long
# for each of its turns while a thread describes pairs.
_SWITCH = 0.0005


class Server(uvicorn.Server):
    """A uvicorn server that announces when it is ready, and does not raise the signal that stops it again.

    `stop_timeout` seconds after the signal, requests in flight get 503, and work on them ends with its step.
    """

    def __init__(self, app: FastAPI, options: ServeOptions, announce: Callable[[], None]) -> None:
        super().__init__(configured(app, options))
        self._give_up = app.state.service.workers.give_up
        self._patience = options.stop_timeout
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(self._patience, self._give_up)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        with handling_signals(self.handle_exit):
            yield


def run(
    load: Callable[[], Loaded],
    options: ServeOptions | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    access: Access | None = None,
    name: str = "model",
    admin_socket: str | None = None,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve a model until SIGTERM or Ctrl-C. Requests in flight have `stop_timeout` seconds to finish.

    After SIGHUP, or POST /admin/reload to `admin_socket`, the model is loaded anew. The one before answers
    until the new one is loaded and tried, and on where that fails.

    Parameters
    ----------
    load : callable
        Returns a `Loaded`. The model's ``n_jobs`` should be 1: the service has threads of its own.
    options : ServeOptions, optional
    host : str
        Address to listen at. Only this machine sees the default.
    port : int
        0 for any free port.
    access : Access, optional
        At a loopback address, a Host header may hold `host` and the names of this machine besides
        ``access.hosts``, such as the public name that a proxy passes on; "*" there is any name.
    name : str
        The model's name.
    admin_socket : str, optional
        Path of a unix socket, which the service makes and only its user may use.
    announce : callable (str)
        Called with the URL once requests are answered.

    Raises
    ------
    ValueError
        If the service cannot listen at `host` and `port` or at `admin_socket`.
    """
    with contextlib.closing(listen(host, port)) as listener, controlled(admin_socket) as control:
        access = access_at(listener, host, access)

        def started(reloader: Reloader) -> None:
            control.start(reloader.reload)
            announce(url_of(listener))

        answer_on(listener, load, options or ServeOptions(), access, name=name, started=started)


def access_at(listener: socket.socket, host: str, access: Access | None) -> Access:
    """Who may ask at a listening socket, by the names of the machine too."""
    access = access or Access()
    return replace(access, hosts=local_names((host, *(access.hosts or ())), listener))


def answer_on(
    listener: socket.socket,
    load: Callable[[], Loaded],
    options: ServeOptions,
    access: Access,
    *,
    name: str,
    started: Callable[[Reloader], None],
) -> None:
    """`run` on a listening socket, which other processes may share."""
    loaded = load()
    app = create_app(loaded.model, options, name=name, digest=loaded.digest, access=access)
    warm_up(loaded.model)
    del loaded  # which may be replaced
    reloader = Reloader(load, app.state.service)
    # These objects stay: the garbage collector need not visit them during a request.
    gc.collect()
    gc.freeze()
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    try:
        Server(app, options, lambda: started(reloader)).run([listener])
    finally:
        sys.setswitchinterval(before)
        gc.unfreeze()


def configured(app: FastAPI, options: ServeOptions) -> uvicorn.Config:
    """uvicorn's settings for an application of `create_app`."""
    return uvicorn.Config(
        app,
        http=connection_class(options, app.state.service.metrics),
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_keep_alive=options.idle_timeout,  # type: ignore[arg-type]
        timeout_graceful_shutdown=math.ceil(options.stop_timeout) + 1,
    )


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises
    ------
    ValueError
        If the address does not exist or is taken.

    Examples
    --------
    >>> with listen("127.0.0.1", 0) as found:
    ...     url_of(found).startswith("http://127.0.0.1:")
    True
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        raise ValueError(f"port must be an integer in [0, 65535], got {port!r}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        # With its protocol named, as `socket.create_server` does not: only then does asyncio switch off
        # Nagle's algorithm, by which the body of a reply would wait 40 ms for the client to confirm its head.
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except BaseException:
            listener.close()
            raise
        return listener
    except (OSError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise ValueError(f"cannot listen at host {host!r}, port {port}: {said}") from None


def url_of(listener: socket.socket) -> str:
    """The URL of the address at which a socket listens."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def warm_up(model: MetaRanker) -> None:
    """Rank and explain once: this builds the indexes that the first request would wait for."""
    fitted = model.fitted_
    label = np.setdiff1d(np.arange(fitted.n_labels), fitted.removed)[:1]
    one = sp.csr_matrix((np.ones(len(label)), ([0] * len(label), label)), shape=(1, fitted.n_labels))
    given: dict[str, Any] = {
        "candidates": dict.fromkeys(fitted.given_sources, one) or None,
        "pair_features": dict.fromkeys(fitted.given_features, one) or None,
    }
    x = model.encoder_.example()
    for best in model.rank(x, k=1, **given).labels[0]:
        if best >= 0:
            model.explain(x, int(best), **given)
