"""Send rank requests at a fixed rate, whatever comes back, and print what came back and when, as JSON.

python experiments/serve/open_load.py URL QUERIES --rate 500 --seconds 10

The load is open: a request leaves when its time has come, not when an earlier one is answered, and its
latency counts from that time, also where it had to wait for a connection. QUERIES is JSON, a list of
[request, reply] pairs, or [request, replies] where one of several is right; a reply of other bytes is counted
as wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter, deque
from pathlib import Path
from urllib.parse import urlsplit


class Connection(asyncio.Protocol):
    """A connection that is kept; one request at a time."""

    def __init__(self) -> None:
        self.buffer = b""
        self.reply: asyncio.Future | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport) -> None:
        self.transport = transport

    def send(self, request: bytes) -> asyncio.Future:
        if not self.is_open:  # nobody would tell of the end a second time
            raise ConnectionResetError("closed before the request")
        self.reply = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.reply

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, blank, body = self.buffer.partition(b"\r\n\r\n")
        if not blank or self.reply is None:
            return
        lines = head.lower().split(b"\r\n")
        length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
        if len(body) < length:
            return
        self.buffer = b""
        reply, self.reply = self.reply, None
        if b"connection: close" in lines:
            self.transport.close()
        if not reply.done():
            reply.set_result((int(head[9:12]), body[:length]))

    def connection_lost(self, error) -> None:
        if self.reply is not None and not self.reply.done():
            self.reply.set_exception(error or ConnectionResetError("closed without a reply"))

    @property
    def is_open(self) -> bool:
        return not self.transport.is_closing()


class Load:
    """Requests to one address over as many connections as are allowed, each as soon as one is free."""

    def __init__(self, url: str, connections: int) -> None:
        parts = urlsplit(url)
        self.host, self.port, self.path = parts.hostname, parts.port, f"{parts.path}rank"
        # In turn, as a load balancer uses them: each process behind the address has its share.
        self.free: deque[Connection] = deque()
        self.slots = asyncio.Semaphore(connections)
        self.latency: list[float] = []
        self.lag: list[float] = []
        self.outcomes: Counter[str] = Counter()
        self.wrong = 0

    def request(self, body: bytes) -> bytes:
        head = f"POST {self.path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    async def one(self, request: bytes, expected: set[bytes], due: float) -> None:
        async with self.slots:
            try:
                connection = await self._connection()
                self.lag.append(time.perf_counter() - due)
                status, body = await connection.send(request)
            except OSError as error:
                self.outcomes[type(error).__name__] += 1
                return
            self.outcomes[str(status)] += 1
            if status == 200:
                self.latency.append(time.perf_counter() - due)
                self.wrong += body not in expected
            if connection.is_open:
                self.free.append(connection)

    async def _connection(self) -> Connection:
        while self.free:
            if (found := self.free.popleft()).is_open:
                return found
        _, made = await asyncio.get_running_loop().create_connection(Connection, self.host, self.port)
        return made


async def send(url: str, queries: list, *, rate: float, seconds: float, connections: int, even: bool) -> dict:
    """Send `rate * seconds` requests, at even or random (Poisson) times, and say what became of them."""
    load = Load(url, connections)
    requests = []
    for body, reply in queries:
        right = [reply] if isinstance(reply, str) else reply
        requests.append((load.request(body.encode()), {own.encode() for own in right}))
    rng = random.Random(0)
    tasks = set()
    cpu, start = time.process_time(), time.perf_counter()
    due = start
    for i in range(round(rate * seconds)):
        due += 1 / rate if even else rng.expovariate(rate)
        if (pause := due - time.perf_counter()) > 0:
            await asyncio.sleep(pause)
        task = asyncio.create_task(load.one(*requests[i % len(requests)], due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    offered = time.perf_counter() - start
    await asyncio.gather(*tasks)
    took = time.perf_counter() - start
    return {
        "offered": round(rate * seconds) / offered,
        "achieved": load.outcomes["200"] / took,
        "outcomes": dict(load.outcomes),
        "wrong": load.wrong,
        "latency": load.latency,
        "lag": load.lag,
        "cpu": time.process_time() - cpu,
        "seconds": took,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("queries", type=Path)
    parser.add_argument("--rate", type=float, default=500, help="requests a second")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=256)
    parser.add_argument("--even", action="store_true", help="requests at even times (default: Poisson)")
    options = parser.parse_args()
    queries = json.loads(options.queries.read_text())
    work = send(
        options.url,
        queries,
        rate=options.rate,
        seconds=options.seconds,
        connections=options.connections,
        even=options.even,
    )
    print(json.dumps(asyncio.run(work)))


if __name__ == "__main__":
    main()
