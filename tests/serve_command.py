"""`metarank serve` as a process of its own, and what tests ask of it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import psutil
from services import LONG, PATIENT

JSON = {"Content-Type": "application/json"}


@contextmanager
def starting(folder: Path, *options: object) -> Iterator[subprocess.Popen]:
    patient = [f"--{name.replace('_', '-')}={value}" for name, value in PATIENT.items()]
    command = [sys.executable, "-m", "metarank", "serve", str(folder), "--port", "0", *patient]
    command += map(str, options)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, start_new_session=True, **pipes)
    try:
        yield process
    finally:
        # All of them: a process of its own that lived on would keep the pipes open, and this waiting.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=LONG)


@contextmanager
def serving(folder: Path, *options: object) -> Iterator[tuple[subprocess.Popen, int]]:
    with starting(folder, *options) as process:
        waiting = threading.Timer(LONG, process.kill)
        waiting.start()
        said = process.stdout.readline()
        waiting.cancel()
        found = re.fullmatch(r"topics is served at http://127\.0\.0\.1:(\d+)/ \(Ctrl-C stops\)\n", said)
        if not found:
            process.kill()
        assert found, said + process.communicate(timeout=LONG)[1]
        yield process, int(found[1])


def post(port: int, fields: dict, path: str = "/rank") -> tuple[int, dict]:
    connection = HTTPConnection("127.0.0.1", port, timeout=LONG)
    try:
        connection.request("POST", path, json.dumps(fields), JSON)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def children(process: subprocess.Popen) -> list[int]:
    """The processes that answer; multiprocessing starts others of its own beside them."""
    found = []
    for child in psutil.Process(process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if any("spawn_main" in word for word in child.cmdline()):
                found.append(child.pid)
    return found


def counted(port: int, name: str) -> float:
    """A line of /metrics, of all processes."""
    connection = HTTPConnection("127.0.0.1", port, timeout=LONG)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def until(holds: Callable[[], bool]) -> None:
    last = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < last, "it does not come to hold"
        time.sleep(0.05)
