"""`Workers`: bounded queues of requests and the threads that answer them."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from metarank.apps.serve.answers import Answerer, Asked, Call, Observer, Reply, fault_reply, reply_to
from metarank.apps.serve.budget import Budget, Share
from metarank.apps.serve.errors import Refused
from metarank.apps.serve.options import ServeOptions

logger: logging.Logger = logging.getLogger("metarank.serve")

# Waiting requests that a thread takes at once: enough for batches to pay, and few enough that none waits long
# for the others.
MAX_TOGETHER = 32
MAX_BYTES_TOGETHER = 16 << 10
# A longer body, in bytes, counts as large before it is read.
LARGE_BODY = 64 << 10
# Steps that small requests taken at once may be worth.
STEPS_TOGETHER = 4
# For _ATTENTIVE seconds after a small request, no large request takes a step beside small ones: the threads
# would wait for each other at every switch. After _LONGEST seconds without a step one takes it all the same.
_ATTENTIVE = 1.0
_LONGEST = 0.25
# Weight of the latest batch in the running means of seconds a request and a pair.
_NEWEST = 0.1
# Seconds until the service checks whether a client is still there. Most have their reply by then.
_LOOK = 0.2
# Seconds for a thread to end once nobody waits for its result.
_LAST = 10.0

Receive = Callable[[], Awaitable[Any]]


@dataclass(eq=False)
class _Waiting:
    call: Call
    future: asyncio.Future[Reply]
    deadline: float
    share: Share
    since: float = field(default_factory=time.monotonic)
    # Of a request that has been read: what it asks, and who answers. Of a large one its steps, the pairs it
    # has of the budget and those that are left to compare, the bytes of its reply so far, and the seconds it
    # took.
    asked: Asked | None = None
    answering: Answerer | None = None
    steps: Iterator[Reply | int] | None = None
    pairs: int = 0
    left: int = 0
    made: int = 0
    worked: float = 0.0
    is_counted: bool = False

    def is_wanted(self, now: float) -> bool:
        """Whether anybody waits for the reply."""
        return not self.future.done() and self.deadline > now


class Workers:
    """Answers calls on its own threads: waiting small requests together, large ones in steps.

    A free thread takes what waits. It does not wait to fill a batch, so batches grow only with the load.
    Where small and large requests wait, threads alternate between them, so neither waits for more than a step
    of the others. While small requests arrive, large ones are worked on only between them. The large request
    with the least work left goes first. Between steps, requests whose clients have left are dropped.

    Parameters
    ----------
    answering : Answerer
        Reads calls and answers them. Where the attribute is set anew, what has been read is still answered by
        the one that read it.
    options : ServeOptions
    observe : callable (stage, seconds)
        Called with the time that each request waited ("wait") and was worked on with others ("answer").
    count : callable (number of requests)
        Called with the number of requests taken at once.
    """

    def __init__(
        self,
        answering: Answerer,
        options: ServeOptions,
        observe: Observer,
        count: Callable[[int], None],
    ) -> None:
        self.answering = answering
        self.options = options
        self._observe, self._count = observe, count
        self._small: deque[_Waiting] = deque()
        self._large: list[_Waiting] = []
        self._large_next = False
        self._stepping = 0
        self._last_small = self._last_step = -math.inf
        self._all: set[_Waiting] = set()
        self._pairs = Budget(options.queue_pairs)
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open = False
        self._working = 0
        self._seconds = 0.0
        self._pace = 0.0

    @property
    def waiting(self) -> int:
        """Requests in the queues."""
        return len(self._small) + len(self._large)

    @property
    def working(self) -> int:
        """Requests that threads have taken."""
        return self._working

    @property
    def pairs(self) -> int:
        """Pairs of the large requests that are not answered yet."""
        return self._pairs.used

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
        """Refuse new calls, answer waiting ones for up to `stop_timeout` seconds, then end the threads."""
        assert self._loop is not None
        with self._changed:
            self._open = False
            self._changed.notify_all()
        timer = self._loop.call_later(self.options.stop_timeout, self.give_up)
        last = time.monotonic() + self.options.stop_timeout + _LAST
        for thread in self._threads:
            await asyncio.to_thread(thread.join, max(0.0, last - time.monotonic()))
        timer.cancel()
        if any(thread.is_alive() for thread in self._threads):
            logger.error("a step of a request has not ended %g s after the service was to stop", _LAST)

    def give_up(self) -> None:
        """Answer all waiting calls with 503. Threads finish their current step."""
        with self._changed:
            waiting = list(self._all)
        for one in waiting:
            _refuse(one, _stopping())

    async def submit(self, call: Call, started: float, share: Share, receive: Receive | None = None) -> Reply:
        """The reply to a call.

        Parameters
        ----------
        call : Call
        started : float
            When the request came in, by `time.monotonic`.
        share : Share
            Counts the bytes of the request once it is read, and of its reply.
        receive : callable, optional
            ASGI's receive, which tells when the client has left; work on the call then ends.

        Raises
        ------
        Refused
            429 if a queue is full; 503 if the service is stopping or the answer is late.
        """
        assert self._loop is not None
        deadline = started + self.options.timeout
        waiting = _Waiting(call, self._loop.create_future(), deadline, share)
        with self._changed:
            if not self._open:
                raise _stopping()
            if len(call.body) > LARGE_BODY:
                self._check_large()
                waiting.left = len(call.body)  # for want of something better, until it is read
                self._large.append(waiting)
            else:
                if len(self._small) >= self.options.queue:
                    raise self._full(f"{self.options.queue} requests are waiting already")
                self._small.append(waiting)
            self._all.add(waiting)
            self._changed.notify()
        # Timers of its own: `asyncio.timeout` costs a task switch more.
        late = Refused(503, f"no answer within {self.options.timeout:g} s", retry_after=1, reason="timeout")
        timer = self._loop.call_later(deadline - time.monotonic(), _refuse, waiting, late)
        watch: list[asyncio.Task[None]] = []
        looking = None
        if receive is not None:
            looking = self._loop.call_later(_LOOK, _watch, waiting, receive, watch)
        try:
            return await waiting.future
        finally:
            self._all.discard(waiting)
            timer.cancel()
            if looking is not None:
                looking.cancel()
            for task in watch:
                task.cancel()

    def _full(self, message: str, seconds: float | None = None) -> Refused:
        """Too much waits; after whole seconds it will have been worked off."""
        seconds = self._seconds * len(self._small) if seconds is None else seconds
        return Refused(429, message, retry_after=max(1, math.ceil(seconds)), reason="queue")

    def _check_large(self) -> None:
        self._drop_unwanted()
        if len(self._large) >= self.options.queue:
            raise self._full(f"{self.options.queue} large requests are waiting already", self._backlog())

    def _backlog(self) -> float:
        """Seconds that the large requests will take."""
        return min(self._pace * self._pairs.used / self.options.threads, self.options.timeout)

    # --- what the threads do ---------------------------------------------------------

    def _work(self) -> None:
        """A thread: take what waits, answer it, until the end."""
        while True:
            with self._changed:
                self._drop_unwanted()
                while not self._small and not self._may_step():
                    if not self._open and not self._large:
                        return
                    # A large request that is kept waiting for small ones has its turn when there are none.
                    self._changed.wait(_LONGEST if self._large else None)
                taken, is_large = self._take()
                self._stepping += is_large
                self._working += len(taken)
            try:
                if is_large:
                    self._step(taken[0])
                else:
                    self._answer(taken)
            finally:
                with self._changed:
                    self._working -= len(taken)
                    if is_large:
                        self._stepping -= 1
                        self._last_step = time.monotonic()
                    if self._large:
                        self._changed.notify()

    def _may_step(self) -> bool:
        """Whether a large request may have a step: beside small ones only where none had one for long."""
        if not self._large:
            return False
        now = time.monotonic()
        if now - self._last_small > _ATTENTIVE:
            return True
        return not self._stepping and (not self._working or now - self._last_step > _LONGEST)

    def _take(self) -> tuple[list[_Waiting], bool]:
        if self._may_step() and (self._large_next or not self._small):
            self._large_next = False
            one = min(self._large, key=lambda one: one.left)
            self._large.remove(one)
            return [one], True
        self._large_next = True
        self._last_small = time.monotonic()
        taken = [self._small.popleft()]
        size = len(taken[0].call.body)
        while self._small and len(taken) < MAX_TOGETHER:
            size += len(self._small[0].call.body)
            if size > MAX_BYTES_TOGETHER:
                break
            taken.append(self._small.popleft())
        return taken, False

    def _drop_unwanted(self) -> None:
        """Drop large requests whose clients have left, with their places and pairs."""
        now = time.monotonic()
        unwanted = [one for one in self._large if not one.is_wanted(now)]
        for one in unwanted:
            self._large.remove(one)
            self._pairs.give(one.pairs)

    def _answer(self, taken: list[_Waiting]) -> None:
        """Answer requests together, as far as they are small and fit into one batch."""
        start = time.monotonic()
        for one in taken:
            if not one.is_counted:
                self._observe("wait", start - one.since)
                one.is_counted = True
        # A client that has left, or has another answer by now, costs no more work.
        live = [one for one in taken if one.is_wanted(start)]
        if not live:
            return
        now, later = self._sorted_out(live)
        if later:
            with self._changed:
                self._small.extendleft(reversed(later))
                self._changed.notify()
        if not now:
            return
        self._count(len(now))
        replies: list[tuple[_Waiting, Reply]] = []
        try:
            answering = now[0].answering
            assert answering is not None
            for i, reply in answering.together([one.asked for one in now if one.asked is not None]):
                replies.append((now[i], reply))
        except Exception as error:  # a fault beyond those that become replies; the thread lives on
            known = {id(one) for one, _ in replies}
            replies += [(one, fault_reply(error)) for one in now if id(one) not in known]
        finally:
            took = time.monotonic() - start
            self._deliver(replies, [took] * len(now))
            self._seconds += _NEWEST * (took / len(now) / self.options.threads - self._seconds)

    def _sorted_out(self, live: list[_Waiting]) -> tuple[list[_Waiting], list[_Waiting]]:
        """The requests to answer now, and those for later. Others are refused or become large ones."""
        now: list[_Waiting] = []
        later: list[_Waiting] = []
        pairs, most = 0, self.options.step_pairs
        for one in live:
            if one.asked is None and not self._read(one):
                continue
            assert one.asked is not None
            if one.asked.pairs > most:
                self._enlarge(one)
            elif now and (
                pairs + one.asked.pairs > STEPS_TOGETHER * most or one.answering is not now[0].answering
            ):
                later.append(one)
            else:
                pairs += one.asked.pairs
                now.append(one)
        return now, later

    def _read(self, one: _Waiting) -> bool:
        """Read a request. Returns False if it was refused."""
        start = time.monotonic()
        try:
            answering = self.answering
            asked = answering.read(one.call)
            if not one.share.take(asked.size):
                raise Refused(429, "too many bytes are waiting already", retry_after=1, reason="bytes")
        except Refused as refused:
            reply = reply_to(refused)
        except Exception as error:
            reply = fault_reply(error)
        else:
            one.asked, one.answering, one.left = asked, answering, asked.pairs
            return True
        self._deliver([(one, reply)], [time.monotonic() - start])
        return False

    def _enlarge(self, one: _Waiting) -> None:
        """Put a request that was read among the large ones, if there is room for its pairs."""
        assert one.asked is not None
        try:
            with self._changed:
                self._check_large()
                if not self._pairs.take(one.asked.pairs):
                    said = f"{self._pairs.used} pairs of instances and labels are waiting already"
                    raise self._full(said, self._backlog())
                one.pairs = one.asked.pairs
                self._large.append(one)
                self._changed.notify()
        except Refused as refused:
            self._deliver([(one, reply_to(refused))], [0.0])

    def _step(self, one: _Waiting) -> None:
        """A step of a large request: read it, or compare some more of its pairs."""
        start = time.monotonic()
        if not one.is_counted:
            self._observe("wait", start - one.since)
            one.is_counted = True
        if one.asked is None:
            if self._read(one):
                self._enlarge(one)
            return
        if one.steps is None:
            assert one.answering is not None
            one.steps = one.answering.steps(one.asked)
            self._count(1)
        try:
            found = next(one.steps)
            if isinstance(found, int):
                _hold(one, found)
        except Refused as refused:
            found = reply_to(refused)
        except Exception as error:
            found = fault_reply(error)
        took = time.monotonic() - start
        one.worked += took
        if isinstance(found, Reply):
            self._pairs.give(one.pairs)
            self._deliver([(one, found)], [one.worked])
            return
        done = min(one.left, self.options.step_pairs)
        self._pace += _NEWEST * (took / max(1, done) - self._pace)
        one.left -= done
        with self._changed:
            self._large.append(one)
            self._changed.notify()

    def _deliver(self, replies: list[tuple[_Waiting, Reply]], times: list[float]) -> None:
        assert self._loop is not None
        for seconds in times:
            self._observe("answer", seconds)
        for i, (one, reply) in enumerate(replies):
            try:
                _hold(one, len(reply.body))
            except Refused as refused:
                replies[i] = one, reply_to(refused)
        with suppress(RuntimeError):  # the loop is closed: it was not waited for
            self._loop.call_soon_threadsafe(_deliver, replies)


def _hold(one: _Waiting, made: int) -> None:
    """Count the bytes of a reply; 503 if there is no room for them."""
    if not one.share.take(made, before=one.made):
        raise Refused(503, "too many bytes of replies are held already", retry_after=1, reason="bytes")
    one.made = made


def _stopping() -> Refused:
    return Refused(503, "the server is stopping", retry_after=1, reason="stopping")


def _deliver(replies: list[tuple[_Waiting, Reply]]) -> None:
    for one, reply in replies:
        if not one.future.done():
            one.future.set_result(reply)


def _refuse(waiting: _Waiting, refused: Refused) -> None:
    if not waiting.future.done():
        waiting.future.set_exception(refused)


def _watch(waiting: _Waiting, receive: Receive, tasks: list[asyncio.Task[None]]) -> None:
    tasks.append(asyncio.ensure_future(_until_left(waiting, receive)))


async def _until_left(waiting: _Waiting, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    _refuse(waiting, Refused(400, "the client has left", reason="left"))
