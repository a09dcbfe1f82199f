"""What clients may do to a service: each attack costs it little, ends, and leaves others their answers."""

from __future__ import annotations

import itertools
import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

import makers
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from services import LONG, serving

from metarank import MetaRanker
from metarank.apps.serve.answers import Answerer, Call
from metarank.serve import ServeOptions

MIB = 1 << 20
POST = b"POST /rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
LABELS = 1200


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=LONG)


def post(url: str, fields: Any) -> tuple[int, dict, str | None]:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname, parts.port, timeout=LONG)
    try:
        connection.request("POST", "/rank", json.dumps(fields), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read()), reply.headers["Retry-After"]
    finally:
        connection.close()


def until_answered(url: str) -> None:
    """Others have their answers, though a busy machine may take longer for one than the service waits."""
    for _ in range(LONG):
        with suppress(OSError, HTTPException):  # cut off, as this client was slow itself
            status = post(url, {"instance": "sea"})[0]
            if status == 200:
                return
            assert status in (408, 503)
    raise AssertionError("no answer")


def counts(url: str) -> dict[str, float]:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname, parts.port, timeout=LONG)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    found = re.findall(r'^metarank_(\w+)(?:\{reason="([^"]*)"\})? (\S+)$', text, re.MULTILINE)
    return {" ".join(filter(None, (name, reason))): float(value) for name, reason, value in found}


def until(url: str, name: str, value: float) -> None:
    """Wait for a count; what only grows may be beyond it, where the machine is busy."""
    seen = {}
    for _ in range(LONG * 50):
        with suppress(OSError, HTTPException):  # as in `until_answered`
            seen = counts(url)
            found = seen.get(name, 0)
            if found == value or (found > value and "_total" in name):
                return
        time.sleep(0.02)
    raise AssertionError(f"{name} is not {value}: {seen}")


def sent_until_closed(client: socket.socket, parts: Iterator[bytes], pause: float) -> tuple[int, bytes]:
    """How many bytes could be sent before the other side closed, and what it said."""
    sent, said = 0, b""
    client.settimeout(LONG)
    stop = threading.Event()

    def send() -> None:
        nonlocal sent
        try:
            for part in parts:
                client.sendall(part)
                sent += len(part)
                if stop.wait(pause):
                    return
        except OSError:
            pass

    sender = threading.Thread(target=send)
    sender.start()
    try:
        while part := client.recv(1 << 16):
            said += part
    except ConnectionError:
        pass
    finally:
        stop.set()
        client.close()
        sender.join()
    return sent, said


# --- connections --------------------------------------------------------------------------

DRIP = 0.05
ENDLESS: dict[str, tuple[bytes, bytes, float]] = {
    "a header": (b"GET /health HTTP/1.1\r\nX: ", b"a" * 65536, 0),
    "headers": (b"GET /health HTTP/1.1\r\n", b"X-More: of this\r\n" * 4096, 0),
    "an address": (b"GET /", b"a" * 65536, 0),
    "a method": (b"GET" * 10_000, b"X" * 65536, 0),
    "empty lines": (b"", b"\r\n" * 32768, 0),
    "trailers": (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-More: of this\r\n" * 4096, 0),
    "a trailer": (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"a" * 65536, 0),
    "a chunk's extension": (POST + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a" * 65536, 0),
    "headers, slowly": (b"GET /health HTTP/1.1\r\n", b"X: 1\r\n", DRIP),
    "empty lines, slowly": (b"", b"\r\n", DRIP),
    "a second head, slowly": (b"GET /health HTTP/1.1\r\n\r\n", b"G", DRIP),
    "a body that was refused": (b"POST /no HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", b"a", DRIP),
    "a body": (POST + b"Content-Length: 999999\r\n\r\n", b" ", DRIP),
    "requests": (b"", b"GET /health HTTP/1.1\r\n\r\n" * 1000, 0),
}


@contextmanager
def hasty() -> Iterator[str]:
    """A service whose clients must be quick."""
    times = {"timeout": 1.0, "head_timeout": 1.0, "idle_timeout": 1.0}
    with serving(makers.fitted("texts"), **times) as (url, _):
        yield url


def test_what_does_not_end_is_ended():
    """However clients go on, all at once, each is cut off, and has not been read for long."""

    def attack(first: bytes, more: bytes, pause: float) -> tuple[int, bytes]:
        parts = itertools.chain([first], itertools.repeat(more, 50_000))
        return sent_until_closed(connected(url), parts, pause)

    with hasty() as url, ThreadPoolExecutor(len(ENDLESS)) as pool:
        attacks = {name: pool.submit(attack, *parts) for name, parts in ENDLESS.items()}
        until_answered(url)
        for name, ended in attacks.items():
            sent, said = ended.result()
            # What was under way when it was cut off lies in the buffers of the sockets.
            assert sent < 32 * MIB, f"{name}: of gigabytes"
            statuses = {int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", said)}
            assert statuses <= {200, 400, 404, 408, 431}, (name, said[:500])
        until_answered(url)


# What is sent, the status of the reply, and for what the connection is counted as closed.
LEFT: list[tuple[bytes, int | None, str]] = [
    (b"", None, "no request"),
    (b"GET /health HT", 408, "slow head"),
    (b"GET /health HTTP/1.1\r\nHost: localhost\r\n", 408, "slow head"),
    (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "idle"),
    (POST + b"Content-Length: 9\r\n\r\n{", 408, "slow body"),
    (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 431, "large head"),
    (b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 431, "large head"),
    (b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 4_000 + b"\r\n", 431, "large head"),
    (b"nonsense\r\n\r\n", 400, "malformed"),
]


def test_a_connection_that_is_left_is_closed_and_counted():
    def left(sent: bytes, status: int | None) -> list[bytes]:
        """The statuses of all replies; a client that was too slow itself, and got none, tries again."""
        found: list[bytes] = []
        for _ in range(LONG):
            found = re.findall(rb"HTTP/1\.1 (\d+)", sent_until_closed(connected(url), iter([sent]), 0)[1])
            if status is None or found:
                break
        return found

    with hasty() as url, ThreadPoolExecutor(len(LEFT)) as pool:
        ends = [pool.submit(left, sent, status) for sent, status, _ in LEFT]
        for (sent, status, _), ended in zip(LEFT, ends):
            assert ended.result() == ([] if status is None else [str(status).encode()]), sent[:50]
        for reason, times in Counter(reason for _, _, reason in LEFT).items():
            until(url, f"closed_total {reason}", times)


def test_a_head_of_just_the_size_is_read():
    line, end = b"GET /health HTTP/1.1\r\n", b"\r\n\r\n"
    with serving(makers.fitted("texts"), max_head=200) as (url, _):
        for size, status in ((100, b"200"), (1000, b"431")):
            for parts in (1, 7):  # as it comes in one piece, and in several
                head = line + b"X: " + b"a" * size + end
                step = -(-len(head) // parts)
                with connected(url) as client:
                    with suppress(ConnectionError):  # once it is refused
                        for first in range(0, len(head), step):
                            client.sendall(head[first : first + step])
                            time.sleep(0.01)
                    assert client.makefile("rb").readline().split()[1] == status


def whole_reply(client: socket.socket) -> bytes:
    """What a connection that is kept brings."""
    client.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
    said = b""
    while not said.endswith(b"}"):
        part = client.recv(1000)
        if not part:
            return b""
        said += part
    return said


def test_idle_connections_make_room():
    """They fill no service, however long they may be kept: that which waits longest goes, new ones first."""
    with serving(makers.fitted("texts"), connections=20, head_timeout=LONG, idle_timeout=LONG) as (url, _):
        used = connected(url)
        assert whole_reply(used)
        idle = [connected(url) for _ in range(60)]
        for one in idle[::2]:
            with suppress(ConnectionError):  # it may have gone already
                one.sendall(b"GET /hea")
        assert post(url, {"instance": "sea"})[0] == 200
        assert counts(url)["closed_total room"] >= 40
        for one in idle[:40]:
            with suppress(ConnectionResetError):  # what it had sent was not read before the close
                assert one.recv(100) == b""
        assert post(url, {"instance": "sea"})[0] == 200
        assert whole_reply(used), "whoever had an answer is kept the longest"
        for one in (used, *idle):
            one.close()


def test_more_requests_at_a_time_than_allowed_get_503():
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    def post_until_taken(url: str) -> int:
        """What asks for the state of the service takes a place too, which a post may have found taken."""
        for _ in range(LONG * 50):
            with suppress(OSError, HTTPException):  # as in `until_answered`
                if (status := post(url, SMALL)[0]) != 503:
                    return status
            time.sleep(0.02)
        raise AssertionError("no place was free")

    with gated(connections=3) as (gate, url, _, pool):
        asked = [pool.submit(post_until_taken, url) for _ in range(3)]
        reply = b""
        for _ in range(LONG * 50):  # until all three have come
            _, reply = sent_until_closed(connected(url), iter([head]), 0)
            if reply.startswith(b"HTTP/1.1 503"):
                break
            time.sleep(0.02)
        assert b"retry-after: 1\r\n" in reply
        assert b"too many requests are on their way" in reply
        gate.go.release(100)
        assert [one.result() for one in asked] == [200] * 3
        until_answered(url)
        assert counts(url)["refused_total connections"] >= 1


def test_a_reply_that_is_not_taken_is_dropped():
    model = makers.fitted("many labels")
    body = json.dumps({"instances": [{"1": 1.0}] * 256, "k": 300}).encode()
    request = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with serving(model, idle_timeout=0.5, timeout=LONG, stop_timeout=LONG) as (url, _):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        parts = urlsplit(url)
        client.connect((parts.hostname, parts.port))
        client.sendall(request * 6)
        until(url, "closed_total reply not taken", 1)
        until(url, "held_bytes", 0)
        client.close()


# --- large requests -----------------------------------------------------------------------


class Gate:
    """A model that ranks as it is let to, and tells of how many rows it was asked."""

    def __init__(self, model: MetaRanker) -> None:
        self._model = model
        self.asked: list[int] = []
        self.entered = threading.Semaphore(0)
        self.go = threading.Semaphore(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def rank(self, X: Any, **kwargs: Any) -> Any:
        self.asked.append(len(X) if isinstance(X, list) else X.shape[0])
        self.entered.release()
        assert self.go.acquire(timeout=LONG)
        return self._model.rank(X, **kwargs)

    def let(self, times: int = 1) -> None:
        """Let so many calls pass; what comes next is waited for."""
        for _ in range(times):
            self.go.release()
            assert self.entered.acquire(timeout=LONG)


TEXT = "sea sun bread code"
# Of three labels: two instances a step, and five steps.
STEPS = {"step_pairs": 6, "threads": 1, "timeout": LONG, "stop_timeout": LONG}
LARGE = {"instances": [TEXT] * 10, "k": 3}
SMALL = {"instance": TEXT, "k": 1}


@contextmanager
def gated(**options: float) -> Iterator[tuple[Gate, str, Any, ThreadPoolExecutor]]:
    gate = Gate(makers.fitted("texts"))
    with ThreadPoolExecutor(16) as pool, serving(gate, **STEPS | options) as (url, stop):
        try:
            yield gate, url, stop, pool
        finally:
            gate.go.release(1000)


@pytest.mark.parametrize("step_pairs", [1, 1000])
@pytest.mark.parametrize("name", ["texts", "many labels"])
def test_steps_do_not_change_a_byte(name, step_pairs):
    model = makers.fitted(name)
    dataset = makers.MAKERS[name]()
    rows = dataset.texts or [dict(zip(map(str, r.indices.tolist()), r.data.tolist())) for r in dataset.X]
    bodies = [
        {"instances": list(rows[:9]), "k": 5},
        {"instances": list(rows[:9]), "k": 400, "probabilities": True, "optimize": "micro-f1"},
        {"instances": list(rows[:3]), "exclude": [[0], [1, 2], []], "propensity_weight": 2.0},
        {"instances": list(rows[:3]), "allowed": [2, 0]},
        {"instance": rows[0]},
    ]
    calls = [Call("rank", json.dumps(body).encode()) for body in bodies]
    calls.append(Call("explain", json.dumps({"instance": rows[0], "k": 3}).encode()))
    answerer = Answerer(model, ServeOptions(step_pairs=step_pairs))
    for call in calls:
        (found,) = [reply for reply in answerer.steps(answerer.read(call)) if not isinstance(reply, int)]
        content = json.loads(found.body)
        assert found.status == 200
        assert found.body == json.dumps(content).encode()
        assert found == Answerer(model, ServeOptions(step_pairs=10**9)).answer_one(call)
    ranking = model.rank(dataset.texts[:9] if dataset.texts else dataset.X[:9], k=5)
    (reply,) = [reply for reply in answerer.steps(answerer.read(calls[0])) if not isinstance(reply, int)]
    shown = [[(e["label"], e["score"]) for e in row] for row in json.loads(reply.body)["rankings"]]
    assert shown == list(ranking)


def test_small_requests_have_their_turn_between_the_steps_of_large_ones():
    with gated() as (gate, url, _, pool):
        large = pool.submit(post, url, LARGE)
        assert gate.entered.acquire(timeout=LONG)
        small = pool.submit(post, url, SMALL)
        until(url, "waiting_requests", 1)
        gate.let()
        assert gate.asked == [2, 1], "a step, and then whoever came"
        gate.let(4)
        assert gate.asked == [2, 1, 2, 2, 2, 2]
        gate.go.release()
        assert small.result()[0] == large.result()[0] == 200
        expected = [[e["label"] for e in row] for row in large.result()[1]["rankings"]]
        assert expected == makers.fitted("texts").rank([TEXT] * 10, k=3).labels.tolist()
        assert counts(url)["waiting_pairs"] == 0


def test_of_large_requests_that_with_the_least_left_goes_first():
    with gated() as (gate, url, _, pool):
        longer = pool.submit(post, url, LARGE)
        assert gate.entered.acquire(timeout=LONG)
        shorter = pool.submit(post, url, {"instances": [TEXT] * 3, "k": 3})
        until(url, "waiting_requests", 1)
        gate.let(3)
        assert gate.asked == [2, 2, 1, 2]
        gate.let(3)
        gate.go.release()
        assert [shorter.result()[0], longer.result()[0]] == [200, 200]


def test_the_queue_is_bounded_in_pairs():
    """Large requests beyond that are told when to come again; small ones have their answers."""
    with gated(queue_pairs=40) as (gate, url, _, pool):
        first = pool.submit(post, url, LARGE)
        assert gate.entered.acquire(timeout=LONG)
        burst = [pool.submit(post, url, LARGE) for _ in range(4)]
        small = pool.submit(post, url, SMALL)
        until(url, "waiting_requests", 5)
        assert counts(url)["waiting_pairs"] == 30
        gate.go.release(6)
        for status, reply, retry_after in (one.result() for one in burst):
            assert status == 429
            assert re.fullmatch(r"\d+ pairs of instances and labels are waiting already", reply["error"])
            assert int(retry_after) >= 1
        assert small.result()[0] == first.result()[0] == 200
        assert counts(url)["waiting_pairs"] == 0
        gate.go.release(5)
        assert post(url, LARGE)[0] == 200


@pytest.mark.parametrize("way", ["leaves", "is late"])
def test_whoever_does_not_wait_any_more_costs_one_step_at_most(way):
    with gated(**({} if way == "leaves" else {"timeout": 0.5})) as (gate, url, _, _):
        body = json.dumps(LARGE).encode()
        entered, last = False, time.monotonic() + LONG
        while not entered and time.monotonic() < last:
            with connected(url) as client:
                client.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                if way == "is late":
                    assert client.makefile("rb").readline().startswith(b"HTTP/1.1 503")
                # Where the machine is busy, it may have been late before any step: once more.
                entered = gate.entered.acquire(timeout=0.1 if way == "is late" else LONG)
        assert entered
        if way == "leaves":
            until(url, "refused_total left", 1)
        gate.go.release(1)
        until(url, "working_requests", 0)
        until(url, "waiting_pairs", 0)
        assert gate.asked == [2]


def test_a_stop_does_not_wait_for_the_end_of_large_requests():
    with gated(stop_timeout=0.2) as (gate, url, stop, pool):
        asked = [pool.submit(post, url, LARGE) for _ in range(3)]
        until(url, "working_requests", 1)
        until(url, "waiting_requests", 2)
        stopped = pool.submit(stop)
        for status, reply, _ in (one.result() for one in asked):
            assert (status, reply) == (503, {"error": "the server is stopping"})
        gate.go.release(1)
        stopped.result()
        assert gate.asked == [2], "the step that was under way, of the five"


@pytest.mark.parametrize(
    ("options", "fields", "status", "said"),
    [
        (
            {"max_pairs": 20},
            LARGE,
            422,
            "instances must hold at most 6 instances where 3 labels are compared for each, got 10",
        ),
        ({"max_pairs": 1}, SMALL, 200, None),
        ({"max_pairs": 1}, {"instances": [TEXT]}, 200, None),
        ({"max_batch": 5, "max_pairs": 20}, LARGE, 422, "instances must hold at most 5 instances, got 10"),
        ({"queue_pairs": 1}, LARGE, 200, None),
        ({"queue_bytes": 1}, SMALL, 200, None),
        ({"queue_bytes": 1, "max_body": MIB}, {"instances": ["sea " * 4000] * 8}, 200, None),
    ],
)
def test_limits_of_one_request(options, fields, status, said):
    """What one request asks beyond the limit of all is answered where nobody else asks."""
    with serving(makers.fitted("texts"), step_pairs=6, **options) as (url, _):
        found, reply, _ = post(url, fields)
        assert found == status
        assert reply.get("error") == said


def test_the_bytes_of_all_requests_are_bounded():
    """Bodies and replies of more than 64 KiB share them; what is smaller is always taken."""
    fields = {"instances": ["sea " * 4000] * 8}
    with gated(queue_bytes=100_000) as (gate, url, _, pool):
        first = pool.submit(post, url, fields)
        assert gate.entered.acquire(timeout=LONG)
        assert counts(url)["held_bytes"] > 60_000
        refused = [pool.submit(post, url, fields) for _ in range(2)]
        for status, reply, retry_after in (one.result() for one in refused):
            assert (status, retry_after) == (429, "1")
            assert reply == {"error": "too many bytes are waiting already"}
        small = pool.submit(post, url, SMALL)
        until(url, "waiting_requests", 1)
        gate.go.release(100)
        assert small.result()[0] == first.result()[0] == 200
        until(url, "held_bytes", 0)
        assert counts(url)["refused_total bytes"] == 2


def test_a_burst_is_answered_or_refused_and_leaves_nothing():
    """Sixty-four of the largest requests at once, on more labels than one step has room for."""
    fields = {"instances": [{"1": 1.0}] * 256, "k": 300, "probabilities": True}
    small = {"instance": {"1": 1.0}, "k": 3}
    with (
        serving(makers.fitted("many labels"), queue_pairs=1 << 17, timeout=LONG) as (url, _),
        ThreadPoolExecutor(64) as pool,
    ):
        burst = [pool.submit(post, url, fields) for _ in range(64)]
        assert {post(url, small)[0] for _ in range(20)} == {200}
        # That some are refused is shown where the model waits for the test, above.
        assert {200} <= {one.result()[0] for one in burst} <= {200, 429}
        for name in ("waiting_pairs", "held_bytes", "waiting_requests"):
            until(url, name, 0)
