"""What a cluster logs while it is being ended is not said: connections break then, as they must."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin

# Whose loggers have handlers of their own.
_LOGGERS = ("asyncio", "distributed", "tornado", "bokeh")


class WhileRunning(logging.Filter):
    """Passes what Dask logs for as long as a file is there, which all processes of this machine see go."""

    def __init__(self, flag: str) -> None:
        super().__init__()
        self.flag = flag

    def filter(self, record: logging.LogRecord) -> bool:
        return record.name.partition(".")[0] not in _LOGGERS or os.path.exists(self.flag)

    def handlers(self) -> list[logging.Handler]:
        """Of this process, those that write what Dask logs; loggers with none write to the last resort."""
        names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _LOGGERS]
        found = [handler for name in ("", *names) for handler in logging.getLogger(name).handlers]
        return [*found, *([logging.lastResort] if logging.lastResort is not None else [])]


class QuietEnd(WorkerPlugin):
    """Has a worker process, and each that takes its place, log for as long as the run lasts."""

    name = "metarank-quiet-end"

    def __init__(self, flag: str) -> None:
        self.flag = flag

    def setup(self, worker: Any) -> None:
        """Called in each worker that joins."""
        told = WhileRunning(self.flag)
        for handler in told.handlers():
            handler.addFilter(told)


@contextmanager
def quiet_end() -> Iterator[str]:
    """Gives the path of a file for the block to remove when the run is being ended.

    From there on nothing that Dask logs is said, in this process and in those with a `QuietEnd`.
    """
    handle, flag = tempfile.mkstemp(prefix="metarank-running-")
    os.close(handle)
    told = WhileRunning(flag)
    handlers = told.handlers()
    for handler in handlers:
        handler.addFilter(told)
    try:
        yield flag
    finally:
        for handler in handlers:
            handler.removeFilter(told)
        with suppress(OSError):
            os.unlink(flag)
