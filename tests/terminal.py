"""Signals as in a terminal, however the tests were started.

A shell's job in the background is started with signals ignored, and so is what it starts.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_WANTED = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


def take_signals() -> dict[signal.Signals, object]:
    """Ctrl-C is a `KeyboardInterrupt` and SIGTERM ends the process; returns what was there before."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WANTED)
    return {number: signal.signal(number, handler) for number, handler in _WANTED.items()}


@contextmanager
def in_a_terminal() -> Iterator[None]:
    """`take_signals` inside the block, for this process and whatever it starts there."""
    before = take_signals()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Ctrl-C in the block after so many seconds of this process on the processor; 0: not at all."""
    before = signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
