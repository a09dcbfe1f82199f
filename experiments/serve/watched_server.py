"""A server under watch: CPU seconds of its event loop and of its other threads, and its own counts."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import psutil

_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


class Server:
    """A running `metarank serve`, of one process or several."""

    def __init__(self, process: subprocess.Popen, url: str) -> None:
        self.url, self.port, self.process = url, urlsplit(url).port, process
        first = psutil.Process(process.pid)
        self.processes = [first, *first.children(recursive=True)]

    def cpu(self) -> dict[str, float]:
        """CPU seconds so far of the event loops (the main threads) and of the threads beside them."""
        out = {"loop": 0.0, "workers": 0.0}
        for process in self.processes:
            for thread in process.threads():
                part = "loop" if thread.id == process.pid else "workers"
                out[part] += thread.user_time + thread.system_time
        return out

    def counts(self) -> dict[str, float]:
        """The samples of /metrics by name and labels."""
        with urlopen(f"{self.url}metrics") as reply:
            lines = reply.read().decode().splitlines()
        found = [match.groups() for line in lines if (match := _SAMPLE.match(line))]
        return {name + (f"{{{labels}}}" if labels else ""): float(value) for name, labels, value in found}

    def memory(self) -> float:
        """MiB, a page that processes share counted once."""
        return sum(process.memory_full_info().pss for process in self.processes) / 2**20


@contextmanager
def serving(model: Path, *options: str, command: str | None = None) -> Iterator[Server]:
    """`metarank serve`, here or of another installation's `command`, on a port that is free."""
    start = [sys.executable, "-m", "metarank"] if command is None else [command]
    arguments = ["serve", str(model), "--port", "0", *options]
    process = subprocess.Popen([*start, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        said = process.stdout.readline()
        found = re.search(r"http://\S+", said)
        if found is None:
            raise RuntimeError(f"the server did not start: {said!r}")
        yield Server(process, found[0])
    finally:
        process.terminate()
        process.wait(timeout=30)
