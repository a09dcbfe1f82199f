"""What becomes of 50 ordinary requests a second beside clients that mean harm, and of the server's memory?

python experiments/serve/attacks.py --before PATH/TO/ANOTHER/metarank [--seconds 10] [--model DIR]

Trains a model of 1,000 labels, starts the server anew for each attack, and writes attacks.md: in its rows
"before" the server of another installation, in its rows "after" that of this one, in turn in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import attack_tables
import psutil
from watched_server import serving

from metarank.data import make_extreme, write_xc

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

HERE = Path(__file__).parent
RATE = 50
# Seconds that a server has to end after SIGTERM before it is killed, and between looks at its memory.
PATIENCE = 150
LOOK = 0.05
# The server's --connections in the attack that takes them.
CONNECTIONS = 20
HEADERS = 600 << 20
FEATURES = 1000
# The largest request that the defaults allow, in 2 KB.
LARGEST = {"instances": [{"1": 1}] * 256, "k": 1000, "probabilities": True}

Attack = Callable[[str, int, Counter], Awaitable[None]]


async def burst(host: str, port: int, seen: Counter) -> None:
    """64 clients, each of which asks for as much as it may, again a second after each answer."""
    body = json.dumps(LARGEST).encode()
    head = f"POST /rank HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    async def one() -> None:
        while True:
            with suppress(OSError, IndexError):
                reader, writer = await asyncio.open_connection(host, port)
                writer.write(request)
                reply = await reader.read()
                seen[f"got {int(reply.split(maxsplit=2)[1])}"] += 1
                writer.close()
            await asyncio.sleep(1)

    await asyncio.gather(*(one() for _ in range(64)))


async def idle(host: str, port: int, seen: Counter, each: int = CONNECTIONS) -> None:
    """Connections without a request, and as many with half a head, opened again when they are closed."""

    async def one(start: bytes) -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(host, port)
                seen["opened"] += 1
                writer.write(start)
                await reader.read()
                seen["closed by the server"] += 1
                writer.close()
            await asyncio.sleep(0.1)

    half = f"GET /health HTTP/1.1\r\nHost: {host}\r\nX-Half: ".encode()
    await asyncio.gather(*(one(start) for start in [b"", half] * each))


async def headers(host: str, port: int, seen: Counter) -> None:
    """Heads that do not end, 600 MiB in all, over four connections; another begins where one is closed."""
    part = b"a" * 65536

    async def one() -> None:
        while seen["MiB sent"] < HEADERS >> 20:
            with suppress(OSError):
                _, writer = await asyncio.open_connection(host, port)
                seen["connections"] += 1
                writer.write(f"GET /health HTTP/1.1\r\nHost: {host}\r\nX-Long: ".encode())
                while seen["MiB sent"] < HEADERS >> 20:
                    for _ in range(16):
                        writer.write(part)
                        await writer.drain()
                    seen["MiB sent"] += 1
            await asyncio.sleep(0.1)
        await asyncio.sleep(3600)

    await asyncio.gather(*(one() for _ in range(4)))


async def nothing(host: str, port: int, seen: Counter) -> None:
    """For comparison."""
    await asyncio.sleep(3600)


# With options of the server, and the most connections of ordinary clients.
ATTACKS: dict[str, tuple[Attack, list[str], int]] = {
    "none": (nothing, [], 64),
    "burst": (burst, [], 64),
    "idle sockets": (idle, ["--connections", str(CONNECTIONS)], 8),
    "headers": (headers, [], 64),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", help="the metarank command of another installation")
    parser.add_argument("--seconds", type=float, default=10, help="of each attack")
    parser.add_argument("--rows", type=int, default=400, help="that the model is trained on")
    parser.add_argument("--model", type=Path, help="a model trained by this command before")
    add_options(parser, HERE / "attacks.md")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("seconds", "rows"))
    ours = str(Path(sys.executable).with_name("metarank"))
    servers = {**({"before": options.before} if options.before else {}), "after": ours}
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or trained(Path(folder), next(iter(servers.values())), options.rows)
        queries = expected(model, ours)
        same = all(expected(model, command) == queries for command in servers.values())
        asked = Path(folder) / "queries.json"
        asked.write_text(json.dumps(queries))
        for attack in ATTACKS:
            for name, command in servers.items():
                print(f"{attack}, {name}", file=sys.stderr)
                found = asyncio.run(attacked(model, command, attack, asked, options.seconds))
                runs.append({"attack": attack, "server": name, **found})
    whole.write(attack_tables.write(runs, options, same))
    return 0


def trained(folder: Path, command: str, rows: int) -> Path:
    """A model of 1,000 labels, which the older of the installations writes so that both can read it."""
    print("training", file=sys.stderr)
    dataset = make_extreme(rows, FEATURES, 1000, labels_per_row=3, nnz_per_row=20, seed=0)
    write_xc(folder / "train.txt", dataset)
    arguments = ["train", str(folder / "train.txt"), "--model", str(folder / "model"), "--quiet"]
    settings = ["--effort", "low", "--ranker", "logistic"]
    subprocess.run([command, *arguments, *settings], check=True, stdout=sys.stderr)
    return folder / "model"


def expected(model: Path, command: str) -> list[tuple[str, str]]:
    """Ordinary requests, with the replies of a server that has nothing else to do."""
    out = []
    with serving(model, command=command) as server:
        for i in range(100):
            asked = json.dumps({"instance": {str(i * j % FEATURES): 1.0 for j in range(1, 20)}, "k": 10})
            kind = {"Content-Type": "application/json"}
            with urlopen(Request(f"{server.url}rank", asked.encode(), kind)) as reply:
                out.append((asked, reply.read().decode()))
    return out


async def attacked(model: Path, command: str, attack: str, queries: Path, seconds: float) -> dict:
    """What ordinary clients saw beside an attack, what the attack brought, and how the server ended."""
    act, settings, clients = ATTACKS[attack]
    seen: Counter[str] = Counter()
    busy = os.getloadavg()[0]
    with serving(model, *settings, command=command) as server:
        process = server.processes[0]
        parts = urlsplit(server.url)
        before = process.memory_info().rss
        attacking = asyncio.create_task(act(parts.hostname, parts.port, seen))
        peak = asyncio.create_task(most_memory(process))
        await asyncio.sleep(1)
        load = [sys.executable, str(HERE / "open_load.py"), server.url, str(queries), "--rate", str(RATE)]
        load += ["--seconds", str(seconds), "--connections", str(clients)]
        loading = await asyncio.create_subprocess_exec(*load, stdout=subprocess.PIPE)
        said, _ = await loading.communicate()
        start = time.perf_counter()
        process.terminate()
        ended = await asyncio.to_thread(has_ended, process)
        took = time.perf_counter() - start
        for task in (attacking, peak):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await attacking
        most = await peak
    return {
        **json.loads(said),
        "attackers": dict(seen),
        "idle": before / 2**20,
        "peak": most / 2**20,
        "end": took if ended else None,
        "load": busy,
    }


async def most_memory(process: psutil.Process) -> int:
    """Of a process, until it ends or this is cancelled."""
    most = 0
    with suppress(asyncio.CancelledError, psutil.Error):
        while True:
            most = max(most, process.memory_info().rss)
            await asyncio.sleep(LOOK)
    return most


def has_ended(process: psutil.Process) -> bool:
    with suppress(psutil.TimeoutExpired):
        process.wait(PATIENCE)
        return True
    process.kill()
    return False


if __name__ == "__main__":
    sys.exit(main())
