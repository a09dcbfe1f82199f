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


@contextmanager
def as_part(stage: str, start: float, share: float) -> Iterator[None]:
    """Reports inside the block are of a part of the work, which fills `share` of the whole from `start` on.

    Listeners are told `stage` in place of the part's own stages.

    Examples
    --------
    >>> with listening(lambda stage, done: print(stage, done)):
    ...     with as_part("second of two", 0.5, 0.5):
    ...         report("boosting", 0.5)
    second of two 0.75
    """
    outer = _listener.get()

    def tell(_: str, done: float) -> None:
        if outer is not None:
            outer(stage, min(1.0, start + share * done))

    with listening(tell):
        yield


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
