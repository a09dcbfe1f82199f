"""`Workers`: a bounded queue of requests and the threads that answer them."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from metarank.serve.answers import Call, Reply, reply_to
from metarank.serve.errors import Refused
from metarank.serve.options import ServeOptions

logger = logging.getLogger("metarank.serve")

# What a thread takes at once from those that wait: enough for the model's batches to pay, and few enough that
# none waits long for the others. A request of many instances goes alone.
MAX_TOGETHER = 32
MAX_BYTES_TOGETHER = 64 << 10
# Weight of the latest batch in the running mean of seconds a request.
_NEWEST = 0.1

Answer: TypeAlias = Callable[[Sequence[Call]], Iterator[tuple[int, Reply]]]


@dataclass(eq=False)
class _Waiting:
    call: Call
    future: asyncio.Future[Reply]
    deadline: float
    since: float = field(default_factory=time.monotonic)


class Workers:
    """Answers calls on threads of their own, those that wait together in one go.

    There is no pause to fill a batch: a free thread takes what waits; batches grow with the load alone.

    Parameters
    ----------
    answer : callable
        Takes calls, and gives (position, reply) of each.
    options : ServeOptions
        `queue`, `threads` and `timeout`.
    observe : callable (stage, seconds), optional
        Told how long each request waited, and was worked on with those it was taken with: "wait", "answer".
    count : callable (number of requests), optional
        Told how many were taken at once.
    """

    def __init__(
        self,
        answer: Answer,
        options: ServeOptions,
        observe: Callable[[str, float], None] | None = None,
        count: Callable[[int], None] | None = None,
    ) -> None:
        self._answer = answer
        self.options = options
        self._observe = observe or (lambda stage, seconds: None)
        self._count = count or (lambda requests: None)
        self._queue: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open = False
        self._working = 0
        self._seconds = 0.0

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    @property
    def working(self) -> int:
        """Requests that threads have taken."""
        return self._working

    @property
    def is_open(self) -> bool:
        """Whether calls are taken."""
        return self._open

    def start(self) -> None:
        """Start the threads, which hand replies to the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._open = True
        self._threads = [
            threading.Thread(target=self._work, name=f"metarank-{i}", daemon=True)
            for i in range(self.options.threads)
        ]
        for thread in self._threads:
            thread.start()

    async def stop(self) -> None:
        """Take no more calls, answer those that wait, and end the threads."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    async def submit(self, call: Call, started: float) -> Reply:
        """The reply to a call; `started`, of `time.monotonic`, is when its request came in.

        Raises
        ------
        Refused
            429 where the queue is full; 503 where no more is taken, or the answer is not there in time.
        """
        assert self._loop is not None
        deadline = started + self.options.timeout
        waiting = _Waiting(call, self._loop.create_future(), deadline)
        with self._changed:
            if not self._open:
                raise Refused(503, "the server is stopping", retry_after=1, reason="stopping")
            if len(self._queue) >= self.options.queue:
                raise Refused(
                    429,
                    f"{self.options.queue} requests are waiting already",
                    retry_after=self._retry_after(),
                    reason="queue",
                )
            self._queue.append(waiting)
            self._changed.notify()
        # A timer of its own: `asyncio.timeout` costs a task switch more.
        timer = self._loop.call_later(deadline - time.monotonic(), _give_up, waiting, self.options.timeout)
        try:
            return await waiting.future
        finally:
            timer.cancel()

    def _retry_after(self) -> int:
        """Whole seconds after which the queue will have been worked off."""
        return max(1, math.ceil(self._seconds * len(self._queue)))

    def _work(self) -> None:
        """A thread: take what waits, answer it, until the end."""
        while True:
            with self._changed:
                while not self._queue:
                    if not self._open:
                        return
                    self._changed.wait()
                taken = self._take()
                self._working += len(taken)
            try:
                self._process(taken)
            finally:
                with self._changed:
                    self._working -= len(taken)

    def _take(self) -> list[_Waiting]:
        taken = [self._queue.popleft()]
        size = len(taken[0].call.body)
        while self._queue and len(taken) < MAX_TOGETHER:
            size += len(self._queue[0].call.body)
            if size > MAX_BYTES_TOGETHER:
                break
            taken.append(self._queue.popleft())
        return taken

    def _process(self, taken: list[_Waiting]) -> None:
        assert self._loop is not None
        start = time.monotonic()
        for one in taken:
            self._observe("wait", start - one.since)
        # Whoever has left, or will have got another answer by now, costs no more work.
        live = [one for one in taken if not one.future.done() and one.deadline > start]
        if not live:
            return
        self._count(len(live))
        replies: list[tuple[_Waiting, Reply]] = []
        try:
            for i, reply in self._answer([one.call for one in live]):
                replies.append((live[i], reply))
        except Exception:  # a fault beyond those that become replies; the thread lives on
            logger.exception("a batch of %d requests failed", len(live))
            known = {id(one) for one, _ in replies}
            fault = reply_to(Refused(500, "internal fault; the server's log tells more", reason="fault"))
            replies += [(one, fault) for one in live if id(one) not in known]
        finally:
            self._loop.call_soon_threadsafe(_deliver, replies)
            took = time.monotonic() - start
            for _ in live:
                self._observe("answer", took)
            self._seconds += _NEWEST * (took / len(live) / self.options.threads - self._seconds)


def _deliver(replies: list[tuple[_Waiting, Reply]]) -> None:
    for one, reply in replies:
        if not one.future.done():
            one.future.set_result(reply)


def _give_up(waiting: _Waiting, timeout: float) -> None:
    if not waiting.future.done():
        waiting.future.set_exception(
            Refused(503, f"no answer within {timeout:g} s", retry_after=1, reason="timeout")
        )
