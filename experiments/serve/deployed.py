"""Two processes behind nginx, with the file that docs/deployment.md prints: reloads and attacks under load.

python experiments/serve/deployed.py [--seconds 10] [--model DIR]

Sends 200 requests a second through nginx while the model is replaced by another and back, again and again,
and then beside clients that mean harm, and writes deployed.md. Needs nginx.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import Request, urlopen

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import attacks
import numpy as np
from watched_server import serving

from metarank import MetaRanker
from metarank.data import make_extreme
from metarank.persist import read_manifest

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "deployment.md"
HOST = "labels.example.org"
RATE = 200
# Sockets of those that hold them open, as many MiB of a body as is asked for, and seconds between reloads.
SOCKETS = 560
OVERSIZED = 64
EVERY = 2.0
# Seconds that nginx has to begin, and to end.
PATIENCE = 30


@contextmanager
def nginx(port: int) -> Iterator[int]:
    """nginx as the page has it, before the service at `port`; yields its own port."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if found is None:
        raise FileNotFoundError("nginx is not installed")
    (own,) = re.findall(r"^```nginx\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        front = free.getsockname()[1]
    here = {"127.0.0.1:8000;": f"127.0.0.1:{port};", "listen 80;": f"listen 127.0.0.1:{front};"}
    for printed, ours in here.items():
        assert own.count(printed) == 1
        own = own.replace(printed, ours)
    with tempfile.TemporaryDirectory(prefix="metarank-nginx-") as folder:
        os.chmod(folder, 0o755)
        user = "user root;\n" if hasattr(os, "geteuid") and os.geteuid() == 0 else ""
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        kept = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        whole = (
            f"{user}pid {folder}/pid; error_log {folder}/error.log; daemon off; worker_processes 1;\n"
            f"events {{ worker_connections 768; }}\nhttp {{ access_log off;\n{kept}\n{own}}}\n"
        )
        (Path(folder) / "nginx.conf").write_text(whole)
        command = [found, "-p", folder, "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            last = time.monotonic() + PATIENCE
            while not _answers(front):
                if process.poll() is not None or time.monotonic() > last:
                    raise RuntimeError(f"nginx did not start: {(Path(folder) / 'error.log').read_text()}")
                time.sleep(0.05)
            yield front
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            process.kill()
            process.communicate()


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


async def oversized(host: str, port: int, seen: Counter) -> None:
    """Bodies of 64 MiB, announced or in chunks, eight at a time, again when they are refused."""
    part = b"a" * 65536

    async def one(announced: bool) -> None:
        kind = f"Content-Length: {OVERSIZED << 20}" if announced else "Transfer-Encoding: chunked"
        head = (
            f"POST /labels/rank HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{kind}\r\n\r\n"
        )
        while True:
            with suppress(OSError, IndexError):
                reader, writer = await asyncio.open_connection(host, port)
                seen["sent"] += 1
                writer.write(head.encode())
                with suppress(OSError):
                    for _ in range(OVERSIZED << 4):
                        writer.write(part if announced else b"10000\r\n%b\r\n" % part)
                        await writer.drain()
                        if reader.at_eof():
                            break
                reply = await reader.read()
                seen[f"got {int(reply.split(maxsplit=2)[1])}"] += 1
                writer.close()
            await asyncio.sleep(0.1)

    await asyncio.gather(*(one(i % 2 == 0) for i in range(8)))


async def sockets(host: str, port: int, seen: Counter) -> None:
    """560 connections, every other one with half a head, opened again when they are closed."""
    await attacks.idle(host, port, seen, SOCKETS // 2)


ATTACKS: dict[str, attacks.Attack] = {
    "none": attacks.nothing,
    "idle sockets": sockets,
    "endless heads": attacks.headers,
    "oversized bodies": oversized,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10, help="of each attack; twice that of reloads")
    add_options(parser, HERE / "deployed.md")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("seconds",))
    with tempfile.TemporaryDirectory() as folder:
        runs = measured(Path(folder), options.seconds)
    whole.write(page(runs, options.seconds))
    return 0


def measured(folder: Path, seconds: float) -> list[dict]:
    """What came of each attack at nginx and at the service, and of reloads."""
    for seed in range(2):
        data = make_extreme(400, 1000, 100, labels_per_row=3, nnz_per_row=20, seed=seed)
        MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(data).save(folder / str(seed) / "model")
    current = folder / "current"
    os.symlink("0/model", current)
    runs = []
    settings = ["--processes", "2", "--root-path", "/labels"]
    with serving(current, *settings) as server, nginx(server.port) as front:
        url = f"http://127.0.0.1:{front}/labels/"
        rows = [{str(i * j % 1000): 1.0 for j in range(1, 20)} for i in range(100)]
        bodies = [json.dumps({"instance": row}) for row in rows]
        replies = []
        for seed in (1, 0):
            asyncio.run(reloaded(current, seed, url, server.process))
            replies.append([answer(url, body) for body in bodies])
        both = [(body, list(pair)) for body, pair in zip(bodies, zip(*replies))]
        first = list(zip(bodies, replies[1]))

        async def run(queries: list, beside, seconds: float) -> tuple[dict, Counter]:
            seen: Counter[str] = Counter()
            working = asyncio.create_task(beside(seen))
            with tempfile.NamedTemporaryFile("w", suffix=".json") as asked:
                json.dump(queries, asked)
                asked.flush()
                command = [sys.executable, str(HERE / "open_load.py"), url, asked.name, "--rate", str(RATE)]
                command += ["--seconds", str(seconds), "--connections", "64"]
                load = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
                said, _ = await load.communicate()
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working
            return json.loads(said), seen

        async def reloading(seen: Counter) -> None:
            while True:
                await asyncio.sleep(EVERY)
                seed = (seen["reloads"] + 1) % 2
                await reloaded(current, seed, url, server.process)
                seen["reloads"] += 1

        found, seen = asyncio.run(run(both, reloading, 2 * seconds))
        runs.append({"name": "reloads", "where": "", **found, "seen": seen})
        asyncio.run(reloaded(current, 0, url, server.process))
        for name, act in ATTACKS.items():
            for where, port in (("nginx", front), ("the service", server.port)):
                if name == "none" and port != front:
                    continue
                print(f"{name}, at {where}", file=sys.stderr)

                async def attack(seen: Counter, act=act, port=port) -> None:
                    await act("127.0.0.1", port, seen)

                found, seen = asyncio.run(run(first, attack, seconds))
                runs.append({"name": name, "where": where if name != "none" else "", **found, "seen": seen})
    return runs


async def reloaded(current: Path, seed: int, url: str, process: subprocess.Popen) -> None:
    """Lead the link to a model, tell the service, and wait until both processes answer by it."""
    digest = read_manifest(current.parent / str(seed) / "model")["digest"]
    os.symlink(f"{seed}/model", current.with_name("next"))
    os.replace(current.with_name("next"), current)
    process.send_signal(signal.SIGHUP)
    alike = 0
    while alike < 10:  # of two processes in turn or by chance
        await asyncio.sleep(0.05)
        with urlopen(f"{url}ready") as reply:
            alike = alike + 1 if json.loads(reply.read())["digest"] == digest else 0


def answer(url: str, body: str) -> str:
    with urlopen(Request(f"{url}rank", body.encode(), {"Content-Type": "application/json"})) as reply:
        return reply.read().decode()


HEAD = """\
# serve, deployed

Two processes behind nginx with the file of [deployment.md](../../docs/deployment.md), {rate} requests a
second at random (Poisson) times for the 10 best of 100 labels, over at most 64 connections, from another
process on the same machine, which had other work; {seconds:g} s beside each attack, {twice:g} s beside
reloads. A request's latency counts from the time it was due. A wrong reply has other bytes than that of
the model (beside reloads, of one of both models) to the same request alone.

| beside | at | sent | answered | refused | failed | wrong | p50 ms | p99 ms | max ms | what the others saw |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
FOOT = """
- reloads: a link is led to another model and SIGHUP sent, {every:g} s after the last reload was done.
- idle sockets: {sockets} connections, every other one with half a head, opened again once closed.
- endless heads: 600 MiB of headers over four connections, another once one is closed.
- oversized bodies: eight at a time of {oversized} MiB, every other one in chunks, again once refused.
"""


def page(runs: list[dict], seconds: float) -> str:
    rows = []
    for run in runs:
        outcomes = Counter(run["outcomes"])
        answered = outcomes.pop("200", 0)
        refused = sum(n for what, n in outcomes.items() if what.isdigit())
        failed = sum(outcomes.values()) - refused
        times = ["–"] * 3
        if answered:
            times = [f"{1000 * v:.0f}" for v in np.quantile(run["latency"], [0.5, 0.99, 1])]
        seen = ", ".join(f"{what}: {n:,}" for what, n in sorted(run["seen"].items())) or "–"
        counts = [answered + refused + failed, answered, refused, failed, run["wrong"]]
        cells = [run["name"], run["where"] or "–", *counts, *times, seen]
        rows.append(f"| {' | '.join(map(str, cells))} |\n")
    head = HEAD.format(rate=RATE, seconds=seconds, twice=2 * seconds)
    return head + "".join(rows) + FOOT.format(every=EVERY, sockets=SOCKETS, oversized=OVERSIZED)


if __name__ == "__main__":
    sys.exit(main())
