"""results.md: rates and latencies, and the parts of a request's time."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import numpy as np

_PACKAGES = ("fastapi", "uvicorn", "httptools", "uvloop", "numpy", "scipy", "lightgbm")
_RATES = ["server", "due /s", "sent /s", "answered /s", "p50 ms", "p90 ms", "p99 ms", "max ms", "429", "503"]
_RATES += ["other", "wrong", "server CPU", "generator CPU", "sent late, p99 ms", "MiB"]
_PARTS = ["server", "due /s", "latency", "outside", "HTTP", "waiting", "answering", "requests a batch"]
_PARTS += ["read", "model", "write", "loop CPU", "thread CPU"]
_GOAL = "500 requests a second with a p99 below 20 ms"


def write(runs: list[dict], options: argparse.Namespace) -> str:
    """The page."""
    arrivals = "even" if options.even else "random (Poisson)"
    parts = [
        "# serve",
        f"Requests for the 10 best labels of one text of pydocs' test part (1,901 labels), at {arrivals} "
        f"times, {options.seconds:g} s a rate, from a second process on the same machine over at most "
        f"{options.connections} connections. A request's latency counts from the time it was due. "
        f"Aim: {_GOAL}.",
        _verdict(runs),
        "## Rates",
        table(_RATES, [_rate(run) for run in runs]),
        "A server is processes x threads of each. CPU in cores. A wrong reply is one of other bytes than "
        "`MetaRanker.rank` gives for the text alone. MiB: a page that processes share is counted once.",
        "## Where the time goes",
        table(_PARTS, [_parts(run) for run in runs]),
        "Milliseconds, means. A request takes its time outside the server (the generator, sockets, "
        "the event loop before it comes to the request), in HTTP code, waiting in the queue, and being "
        "answered together with those it was taken with. `read`, `model` and `write` are parts of answering, "
        "and CPU is that of the event loop and of the answering threads: all five by request, each batch "
        "shared out.",
        machine(),
    ]
    return "\n\n".join(parts) + "\n"


def _verdict(runs: list[dict]) -> str:
    """The greatest rate that a server held in each of its runs at that rate."""
    by_rate: dict[tuple[float, str], list[dict]] = {}
    for run in runs:
        by_rate.setdefault((run["rate"], run["server"]), []).append(run)
    held = [key for key, own in by_rate.items() if all(map(_holds, own))]
    if not held:
        return "No rate was held with every reply right and a p99 below 20 ms."
    rate, server = max(held)
    p99 = ", ".join(f"{_percentile(run, 99):.1f}" for run in by_rate[rate, server])
    return (
        f"The greatest rate with every reply right and a p99 below 20 ms: **{rate:g} a second** "
        f"({server}, p99 {p99} ms)."
    )


def _holds(run: dict) -> bool:
    return _lost(run) == 0 and run["wrong"] == 0 and _percentile(run, 99) < 20


def _lost(run: dict) -> int:
    return sum(count for outcome, count in run["outcomes"].items() if outcome != "200")


def _percentile(run: dict, q: float) -> float:
    return float(np.percentile(run["latency"], q) * 1e3) if run["latency"] else float("nan")


def _rate(run: dict) -> list[str]:
    outcomes = dict(run["outcomes"])
    outcomes.pop("200", None)
    refused = [str(outcomes.pop(status, 0)) for status in ("429", "503")]
    return [
        run["server"],
        f"{run['rate']:g}",
        f"{run['offered']:.0f}",
        f"{run['achieved']:.0f}",
        *(f"{_percentile(run, q):.1f}" for q in (50, 90, 99, 100)),
        *refused,
        str(sum(outcomes.values())),
        str(run["wrong"]),
        f"{sum(run['server_cpu'].values()) / run['seconds']:.2f}",
        f"{run['cpu'] / run['seconds']:.2f}",
        f"{1e3 * np.percentile(run['lag'], 99):.1f}",
        f"{run['memory']:.0f}",
    ]


def _parts(run: dict) -> list[str]:
    counts = run["counts"]
    answered = max(1, len(run["latency"]))

    def total(stage: str) -> float:
        return 1e3 * counts.get(f'metarank_stage_seconds_sum{{stage="{stage}"}}', 0)

    def mean(stage: str) -> float:
        return total(stage) / max(1, counts.get(f'metarank_stage_seconds_count{{stage="{stage}"}}', 0))

    # By those that were answered: a refusal takes no time to speak of.
    taken = max(1, counts.get('metarank_stage_seconds_count{stage="answer"}', 0))
    inside = 1e3 * counts.get('metarank_request_seconds_sum{path="/rank"}', 0) / taken
    latency = 1e3 * float(np.mean(run["latency"])) if run["latency"] else float("nan")
    wait, answer = mean("wait"), mean("answer")
    batches = max(1, counts.get("metarank_batch_requests_count", 0))
    values = [
        latency,
        latency - inside,
        inside - wait - answer,
        wait,
        answer,
        counts.get("metarank_batch_requests_sum", 0) / batches,
        *(total(stage) / answered for stage in ("read", "model", "write")),
        *(1e3 * run["server_cpu"][part] / answered for part in ("loop", "workers")),
    ]
    return [run["server"], f"{run['rate']:g}", *(f"{value:.2f}" for value in values)]


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine() -> str:
    """What it was measured on."""
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()}, {cores} cores, Python {sys.version.split()[0]}, {', '.join(found)}."
