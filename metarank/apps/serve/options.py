"""`ServeOptions`: the limits of a service. `Access`: who may ask, and where."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

# More threads are a typing error, and more than some systems give a process.
_MOST_THREADS = 256
# Seconds. Nothing can be answered sooner, and timers take no value far beyond the last.
_TIMES = 0.001, 86_400.0


def _limit(default: float, help: str) -> Any:
    """A field with what the command line says of it."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class ServeOptions:
    """Limits of a service.

    A pair is an instance and a label. A request compares its instances with the labels that the model
    considers for each of them, at least k.

    Attributes
    ----------
    max_batch : int
        Most instances in one request.
    max_body : int
        Most bytes in one request.
    max_text : int
        Most characters in one text.
    max_k : int
        Most labels returned for an instance.
    max_explain : int
        Most labels explained by one request.
    max_pairs : int
        Most pairs compared by one request. A single instance is always accepted.
    max_head : int
        Most bytes of a request line and its headers. A longer head gets 431.
    queue : int
        Most requests that wait; one more gets 429. Large requests have a queue of the same length. A request
        is large if it has more than `step_pairs` pairs or 64 KiB.
    queue_pairs : int
        Most pairs of all unanswered large requests; a request beyond them gets 429.
    queue_bytes : int
        Most bytes of all requests and replies in memory, not counting the first 64 KiB of each. A request
        beyond them gets 429, a reply 503.
    step_pairs : int
        Pairs that a thread compares before it lets other requests take a turn, and checks whether the client
        still waits.
    connections : int
        Most requests at a time; one more gets 503. Also the most open connections: where more arrive, the
        connection that has been idle longest is closed.
    threads : int
        Threads that call the model, at most 256.
    timeout : float
        Seconds from the start of a request to its answer, from 0.001 to 86,400. A later answer is 503, or 408
        if the body has not arrived.
    head_timeout : float
        Seconds for a request line and its headers to arrive. Then the connection is closed.
    idle_timeout : float
        Seconds for which a connection stays open after a reply, and for a client to take a MiB of a reply.
    stop_timeout : float
        Seconds for requests in flight to finish once the service is told to stop. The rest get 503.

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


# Of an Authorization header, as RFC 6750 has it; and what a browser sends as Origin.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[^/\s]+")
_ROOT = re.compile(r"(/[^/\s?#]+)*")


@dataclass(frozen=True)
class Access:
    """Who may ask a service, where it stands, and whether requests are noted.

    Attributes
    ----------
    hosts : frozenset of str or None
        Names that a request's Host header may hold, in lower case and without a port. Any other name gets
        421. None for every name. /health and /ready are answered under every name.
    token : str or None
        A request must carry it as ``Authorization: Bearer TOKEN``, or gets 401. /health, /ready and the page
        at / need none; the page asks for it, and sends it along.
    origins : tuple of str
        Origins whose web pages may ask (CORS), such as "https://labels.example"; "*" for all.
    root_path : str
        Path at which a proxy offers the service, such as "/labels", whether or not the proxy cuts it off.
    access_log : bool
        Write a line of JSON for every request to standard output.

    Raises
    ------
    ValueError
        If the token has characters that no header can carry, or an origin or the path is none.

    Examples
    --------
    >>> Access(root_path="labels")
    Traceback (most recent call last):
    ValueError: root_path must be empty or start with / and not end with it, got 'labels'
    """

    hosts: frozenset[str] | None = None
    token: str | None = field(default=None, repr=False)
    origins: tuple[str, ...] = ()
    root_path: str = ""
    access_log: bool = False

    def __post_init__(self) -> None:
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            raise ValueError("token must be letters, digits and -._~+/ without blanks")
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"cors must be * or an origin such as https://labels.example, got {origin!r}"
                )
        if not _ROOT.fullmatch(self.root_path):
            raise ValueError(
                f"root_path must be empty or start with / and not end with it, got {self.root_path!r}"
            )
