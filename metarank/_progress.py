"""Progress of long work and what was chosen on the way: the library reports, whoever cares listens."""

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


_notes: ContextVar[list[str] | None] = ContextVar("metarank_notes", default=None)


def note(text: str) -> None:
    """Say what was chosen, and why: to the log and to whoever keeps notes."""
    logger.info("%s", text)
    kept = _notes.get()
    if kept is not None:
        kept.append(text)


@contextmanager
def taking_notes() -> Iterator[list[str]]:
    """The list to which every `note` inside the block is added."""
    kept: list[str] = []
    token = _notes.set(kept)
    try:
        yield kept
    finally:
        _notes.reset(token)
