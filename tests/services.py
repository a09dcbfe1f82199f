"""A service in a thread of the tests' own process, and `metarank serve` as a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import makers
import uvicorn

from metarank import MetaRanker
from metarank.serve import create_app

# Seconds for what must come to pass at some time, however busy the machine is; nothing is measured.
LONG = 300


@contextmanager
def served(model: str | MetaRanker, name: str | None = None, **options: Any) -> Iterator[str]:
    """The address of a service of a model; a maker's model has a name in need of escaping."""
    if isinstance(model, str):
        model, name = makers.fitted(model), f"the <b>{model}</b> model"
    app = create_app(model, name=name, **options)
    server = uvicorn.Server(uvicorn.Config(app, timeout_keep_alive=LONG, log_level="error"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(LONG)
            assert not thread.is_alive()


@contextmanager
def serving(folder: Path, *options: object) -> Iterator[tuple[subprocess.Popen, int]]:
    """A process, and its port, once it is ready; ended with all its children."""
    patient = ["--timeout-keep-alive", LONG, "--timeout-graceful-shutdown", LONG]
    command = [sys.executable, "-m", "metarank", "serve", str(folder), "--port", "0"]
    command += map(str, [*patient, *options])
    log = folder.parent / "serve.log"
    with open(log, "w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
    try:
        port = 0

        def is_ready() -> bool:
            nonlocal port
            assert process.poll() is None, log.read_text()
            named = re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text())
            port = int(named[1]) if named else 0
            with contextlib.suppress(ConnectionRefusedError):
                return port > 0 and asked(port, "/ready")[0] == 200
            return False

        until(is_ready)
        yield process, port
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(LONG)


def asked(port: int, path: str, fields: dict | None = None, **headers: str) -> tuple[int, bytes]:
    """The status and the body of a reply, over a connection of its own."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=LONG)) as connection:
        body = None if fields is None else json.dumps(fields)
        headers = {"Content-Type": "application/json", **headers}
        connection.request("GET" if body is None else "POST", path, body, headers)
        reply = connection.getresponse()
        return reply.status, reply.read()


def until(holds: Callable[[], bool]) -> None:
    last = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < last, "it does not come to hold"
        time.sleep(0.05)
