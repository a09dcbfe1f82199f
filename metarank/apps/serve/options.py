"""`ServeOptions`: what a service accepts, and how much of it at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

# More is a slip of the hand, and past what a system gives a process at some point.
_MOST_THREADS = 256
# Seconds: before the first nothing can be answered, and clocks take none far beyond the last.
_TIMES = 0.001, 86_400.0


def _limit(default: float, help: str) -> Any:
    """A field with what the command line says of it."""
    return field(default=default, metadata={"help": help})


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
    max_pairs : int
        Pairs of an instance and a label that one request may have compared: its instances times the labels
        that the model compares for each, which are at least k. A single instance is always taken.
    max_head : int
        Bytes of a request line and its headers, else 431.
    queue : int
        Requests that may wait; one more is answered by 429. As many more may wait that are large: of more
        than `step_pairs` pairs, or of more than 64 KiB.
    queue_pairs : int
        Pairs of all large requests that are not answered yet; what would go beyond is answered by 429.
    queue_bytes : int
        Bytes of all requests and replies that the service holds, less the first 64 KiB of each; what would go
        beyond is answered by 429, a reply by 503.
    step_pairs : int
        Pairs that a thread has compared before it looks whether a request is still waited for, and at others:
        large requests are answered in steps, and others take turns with them.
    connections : int
        Requests that may be on their way at a time; one more is answered by 503. As many connections may be
        open. Where more want to be, that which has waited longest without a request is closed.
    threads : int
        Threads that ask the model, at most 256.
    timeout : float
        Seconds from the start of a request to its answer, from a thousandth to a day, else 503 (408 where its
        body has not arrived).
    head_timeout : float
        Seconds in which a request line and its headers must be there, else the connection is closed.
    idle_timeout : float
        Seconds for which a connection is kept after a reply, and in which a client must take a MiB of one.
    stop_timeout : float
        Seconds that requests have to be answered once the service is told to stop; 503 for what is left then.

    Raises
    ------
    ValueError, TypeError
        If a limit is not positive, `threads` above 256, or a time out of the range of `timeout`.

    Examples
    --------
    >>> ServeOptions(queue=0)
    Traceback (most recent call last):
    ValueError: queue must be a positive integer, got 0
    """

    max_batch: int = _limit(256, "instances of a request")
    max_body: int = _limit(1 << 20, "bytes of a request")
    max_text: int = _limit(20_000, "characters of a text")
    max_k: int = _limit(1_000, "labels of an instance")
    max_explain: int = _limit(10, "labels explained by a request")
    max_pairs: int = _limit(1 << 18, "pairs of a request: its instances by the labels compared for each")
    max_head: int = _limit(16 << 10, "bytes of a request line and headers; more gets 431")
    queue: int = _limit(128, "requests that may wait; one more gets 429")
    queue_pairs: int = _limit(1 << 20, "pairs of all large requests not answered yet; more gets 429")
    queue_bytes: int = _limit(
        256 << 20, "bytes of requests and replies, less the first 64 KiB of each; more gets 429"
    )
    step_pairs: int = _limit(1 << 11, "pairs compared before a large request lets others have a turn")
    connections: int = _limit(
        512, "requests on their way, 503 for more; and open connections, the longest idle goes"
    )
    threads: int = _limit(2, "threads that ask the model")
    timeout: float = _limit(10.0, "time for an answer, else 503")
    head_timeout: float = _limit(10.0, "time for a request line and headers, else the connection is closed")
    idle_timeout: float = _limit(
        15.0, "time a connection is kept after a reply, and for a client to take a MiB of one"
    )
    stop_timeout: float = _limit(10.0, "time for requests in flight after SIGTERM or Ctrl-C, then 503")

    def __post_init__(self) -> None:
        for name in (limit.name for limit in fields(self)):
            value: Any = getattr(self, name)
            whole = not name.endswith("timeout")
            rule = f"{name} must be a positive {'integer' if whole else 'number'}, got {value!r}"
            if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
                raise TypeError(rule)
            if not (math.isfinite(value) and float(value) > 0):
                raise ValueError(rule)
            if not whole and not _TIMES[0] <= float(value) <= _TIMES[1]:
                raise ValueError(f"{name} must be from {_TIMES[0]:g} to {_TIMES[1]:g} seconds, got {value!r}")
        if self.threads > _MOST_THREADS:
            raise ValueError(f"threads must be at most {_MOST_THREADS}, got {self.threads}")
