"""`ServeOptions`: what a service accepts, and how much of it at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

# More is a slip of the hand, and past what a system gives a process at some point.
_MOST_THREADS = 256
# Seconds: before the first nothing can be answered, and clocks take none far beyond the last.
_TIMES = 0.001, 86_400.0


@dataclass(frozen=True)
class ServeOptions:
    """Limits of a service.

    Attributes
    ----------
    max_batch : int
        Instances of one request.
    max_body : int
        Bytes of one request.
    max_text : int
        Characters of one text.
    max_k : int
        Labels of one instance that may be asked for.
    max_explain : int
        Labels that one request may have explained.
    queue : int
        Requests that may wait; one more is answered by 429.
    connections : int
        Connections that may be open at a time; requests of one more are answered by 503. Bodies that arrive
        take at most ``connections * max_body`` bytes.
    threads : int
        Threads that ask the model, at most 256.
    timeout : float
        Seconds from the start of a request to its answer, from a thousandth to a day, else 503 (408 where its
        body has not arrived).

    Raises
    ------
    ValueError, TypeError
        If a limit is not positive, `threads` above 256, or `timeout` out of its range.

    Examples
    --------
    >>> ServeOptions(queue=0)
    Traceback (most recent call last):
    ValueError: queue must be a positive integer, got 0
    """

    max_batch: int = 256
    max_body: int = 1 << 20
    max_text: int = 20_000
    max_k: int = 1_000
    max_explain: int = 10
    queue: int = 128
    connections: int = 512
    threads: int = 2
    timeout: float = 10.0

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value: Any = getattr(self, name)
            whole = name != "timeout"
            rule = f"{name} must be a positive {'integer' if whole else 'number'}, got {value!r}"
            if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
                raise TypeError(rule)
            if not (math.isfinite(value) and float(value) > 0):
                raise ValueError(rule)
        if not _TIMES[0] <= self.timeout <= _TIMES[1]:
            raise ValueError(
                f"timeout must be from {_TIMES[0]:g} to {_TIMES[1]:g} seconds, got {self.timeout!r}"
            )
        if self.threads > _MOST_THREADS:
            raise ValueError(f"threads must be at most {_MOST_THREADS}, got {self.threads}")
