"""experiments/serve: the load counts what comes back, and the page tells it."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import makers
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from services import LONG, served

FOLDER = Path(__file__).parents[2] / "experiments" / "serve"
sys.path.insert(0, str(FOLDER))

import attack_tables  # noqa: E402
import attacks  # noqa: E402
import open_load  # noqa: E402
import serve_tables  # noqa: E402

sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def url():
    with served("texts") as found:
        yield found


def pair(text: str) -> tuple[str, str]:
    model = makers.fitted("texts")
    row = next(iter(model.rank([text], k=2)))
    entries = [{"label": v, "name": model.label_names_[v], "score": s} for v, s in row]
    return json.dumps({"instance": text, "k": 2}), json.dumps(
        {"rankings": [entries], "without_evidence": [False]}
    )


@pytest.mark.parametrize("even", [True, False])
def test_the_load_counts_replies_and_the_page_tells_them(url, even):
    right, other = pair("sea sun"), pair("flour")
    queries = [right, (right[0], other[1]), ("{}", "")]
    seen = asyncio.run(open_load.send(url, queries, rate=150, seconds=0.4, connections=4, even=even))
    assert seen["outcomes"] == {"200": 40, "422": 20}
    assert seen["wrong"] == 20
    assert len(seen["latency"]) == 40
    assert min(seen["latency"]) > 0
    assert min(seen["lag"]) >= 0
    run = {
        **seen,
        "server": "1x1",
        "memory": 100.0,
        "rate": 150.0,
        "server_cpu": {"loop": 0.1, "workers": 0.2},
        "counts": {},
    }
    options = argparse.Namespace(even=even, seconds=0.4, connections=4)
    page = serve_tables.write([run], options)
    assert "No rate was held" in page
    fine = {**run, "wrong": 0, "outcomes": {"200": 40}, "latency": [0.01] * 40}
    assert "**150 a second** (1x1, p99 10.0, 10.0 ms)" in serve_tables.write([fine, fine], options)
    assert "No rate was held" in serve_tables.write([run, fine], options), "once is not held"


def test_latency_counts_from_the_time_a_request_was_due():
    """A server that answers one request in 50 ms, asked every 10 ms over one connection: waits add up."""

    async def slow(reader, writer):
        while await reader.readuntil(b"\r\n\r\n"):
            await reader.readexactly(2)
            await asyncio.sleep(0.05)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async def measured():
        server = await asyncio.start_server(slow, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        found = await open_load.send(
            f"http://127.0.0.1:{port}/", [("{}", "ok")], rate=100, seconds=0.1, connections=1, even=True
        )
        server.close()
        return found

    seen = asyncio.run(measured())
    assert seen["wrong"] == 0
    assert seen["latency"] == sorted(seen["latency"])
    assert seen["latency"][-1] > 10 * 0.05 - 0.1


def test_attackers_see_their_end_and_the_page_tells_it(url):
    """Each attack goes on until it is told to end; the page has a row for each."""
    parts = urlsplit(url)
    runs = []
    for name, (act, _, _) in attacks.ATTACKS.items():
        seen: Counter[str] = Counter()

        async def attacked(act=act, seen=seen):
            task = asyncio.create_task(act(parts.hostname, parts.port, seen))
            for _ in range(LONG * 50):
                await asyncio.sleep(0.02)
                if seen or act is attacks.nothing:
                    break
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(attacked())
        assert bool(seen) == (name != "none")
        outcomes = {"200": 9, "503": 1}
        figures = {"outcomes": outcomes, "latency": [0.01] * 9, "wrong": 0, "idle": 100.0, "peak": 120.0}
        runs.append(
            {"attack": name, "server": "after", "attackers": seen, "end": None, "load": 1.0, **figures}
        )
    page = attack_tables.write(runs, argparse.Namespace(seconds=10.0), True)
    for name in attacks.ATTACKS:
        assert f"| {name} | after | 10 | 9 | 0 | 1 | 0 | 0 | 10 | 10 | 10 | 100 | 120 | killed |" in page
    assert "are the same, byte for byte" in page
