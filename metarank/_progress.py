"""Progress of long work: the library reports, whoever is at the terminal listens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

logger = logging.getLogger("metarank")

Listener = Callable[[str, float], None]
_listener: ContextVar[Listener | None] = ContextVar("metarank_progress", default=None)


def report(stage: str, done: float) -> None:
    """Say that `stage` is reached and the share `done` in [0, 1] of the whole work lies behind."""
    logger.info("%3.0f %% %s", 100 * done, stage)
    listener = _listener.get()
    if listener is not None:
        listener(stage, done)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener(stage, done)` at every report inside the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
