"""`connection_class`: limits on what a client does before and after its request, in time and in size.

uvicorn alone reads a head of any length for any time, restarts its timer of idle connections with every byte,
and waits for ever for a client that does not take its reply.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from metarank.apps.serve.metrics import ServiceMetrics
from metarank.apps.serve.options import ServeOptions

# Requests that a client may send before the first of them is answered.
_MOST_AHEAD = 16
# Connections beyond `connections` that may send a request, so that they get 503 rather than no reply.
_MOST_OVER = 32


class _Ended(Exception):
    """This connection is not read any more."""


def connection_class(options: ServeOptions, counter: ServiceMetrics) -> type[asyncio.Protocol]:
    """The class of the connections of one service, for `uvicorn.Config(http=...)`.

    - A head may take `head_timeout` seconds, from the opening of the connection or from its first byte, and
      `max_head` bytes. A longer head gets 431, a late one 408 if some of it has arrived; then the connection
      is closed. Trailers, and framing between two parts of a body, may take `max_head` bytes too.
    - After a reply a connection stays open for `idle_timeout` seconds. The rest of a request that has its
      reply must arrive within `head_timeout`.
    - If a client takes nothing of a reply for `idle_timeout` seconds, the connection is dropped.
    - Beyond `connections` requests at a time, a request gets 503. Beyond as many open connections, the one
      that has waited longest without a request is closed, those that never had one first.
    """
    shared = {"options": options, "counter": counter, "busy": set(), "moments": itertools.count()}
    return type("Connection", (_Connection,), shared)


class _Connection(HttpToolsProtocol):
    options: ClassVar[ServeOptions]
    counter: ClassVar[ServiceMetrics]
    # Connections with a request whose head is there and whose reply is not yet written.
    busy: ClassVar[set[_Connection]]
    # Finer than the clock of the event loop.
    moments: ClassVar[Iterator[int]]

    _clock: asyncio.TimerHandle | None = None  # of a head, or of the rest of an answered request
    _stalled: asyncio.TimerHandle | None = None
    _in_body = False
    _unread = 0  # bytes since the last one of a body, or of a request
    _head = 0
    _too_long = _ended = False
    served = 0
    since = 0

    # --- the connection --------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = next(self.moments)
        self._start_clock()
        limit, busy = self.options.connections, len(self.busy)
        most = max(limit - busy, min(limit, _MOST_OVER))
        if len(self.connections) - busy > most:
            self._make_room(most)

    def _make_room(self, most: int) -> None:
        others: set[Any] = self.connections - self.busy - {self}
        waiting = [one for one in others if not one.transport.is_closing()]
        if len(waiting) >= most:
            min(waiting, key=lambda one: (one.served > 0, one.since)).end("room")

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._stop_clock()
        self._stop_stalled()
        self.busy.discard(self)
        super().connection_lost(exc)

    def end(self, reason: str) -> None:
        """Close the connection, and count why."""
        if self._ended:
            return
        self._ended = True
        self._stop_clock()
        self.counter.closed(reason)
        self._close()

    def _refuse(self, status: bytes, message: str, reason: str) -> None:
        """Say why, between two replies, and close."""
        if self._ended:
            return
        if not self._has_request:
            body = json.dumps({"error": message}).encode()
            head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
            self.transport.write(head % (status, len(body)) + b"connection: close\r\n\r\n" + body)
            self.counter.refused(reason)
        self._ended = True
        self._stop_clock()
        self.counter.closed(reason)
        self._close()

    def _close(self) -> None:
        """Close, once the client has taken what is written, which it must do in time."""
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self.pause_writing()

    @property
    def _has_request(self) -> bool:
        """Whether a reply is being made or written."""
        return self.cycle is not None and not self.cycle.response_complete

    # --- what arrives ----------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        self._unread += len(data)
        super().data_received(data)
        if self._ended or self.transport.is_closing():
            return
        if self._unread > self.options.max_head:
            self._refuse_head()
        elif self._clock is None and not self._in_body and not self._has_request:
            self._start_clock()

    def on_message_begin(self) -> None:
        self._head = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._grow(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._grow(len(name) + len(value) + 4)  # ": " and the line's end
        super().on_header(name, value)

    def _grow(self, size: int) -> None:
        self._head += size
        if self._head > self.options.max_head:
            self._too_long = True
            raise _Ended

    def on_headers_complete(self) -> None:
        self._stop_clock()
        self._in_body, self._unread = True, 0
        if len(self.pipeline) >= _MOST_AHEAD:
            raise _Ended
        full = len(self.busy) >= self.options.connections and self not in self.busy
        self.app = self._unavailable if full else self.config.loaded_app
        self.busy.add(self)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body, self._unread = False, 0
        self._stop_clock()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if self._too_long:
            self._refuse_head()
        else:
            self._refuse(b"400 Bad Request", "this is no HTTP request", "malformed")

    def _refuse_head(self) -> None:
        self._refuse(
            b"431 Request Header Fields Too Large",
            f"the request line and headers must have at most {self.options.max_head} bytes",
            "large head",
        )

    async def _unavailable(self, scope: Any, receive: Any, send: Callable[[Any], Any]) -> None:
        body = b'{"error": "too many requests are on their way"}'
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"retry-after", b"1"),
            (b"connection", b"close"),
        ]
        self.counter.refused("connections")
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    # --- replies, and after them -----------------------------------------------------

    def on_response_complete(self) -> None:
        self.served += 1
        if not self.pipeline:
            self.busy.discard(self)
            self.since = next(self.moments)
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()
        elif self._in_body:
            self._start_clock()

    def timeout_keep_alive_handler(self) -> None:
        if not self.transport.is_closing():
            self.end("slow body" if self._in_body else "idle")

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.options.idle_timeout, self._give_up_reply)

    def resume_writing(self) -> None:
        self._stop_stalled()
        super().resume_writing()

    def _give_up_reply(self) -> None:
        if not self._ended:
            self._ended = True
            self.counter.closed("reply not taken")
        self.transport.abort()

    # --- clocks ----------------------------------------------------------------------

    def _start_clock(self) -> None:
        self._stop_clock()
        self._clock = self.loop.call_later(self.options.head_timeout, self._too_slow)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _stop_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _too_slow(self) -> None:
        self._clock = None
        if self._in_body:  # of a request that has its reply
            self.end("slow body")
        elif self._unread:
            message = f"the request line and headers did not arrive within {self.options.head_timeout:g} s"
            self._refuse(b"408 Request Timeout", message, "slow head")
        else:
            self.end("no request")
