"""attacks.md: ordinary requests beside attacks."""

from __future__ import annotations

import argparse

import numpy as np
from serve_tables import machine, table

_COLUMNS = ["attack", "server", "sent", "answered", "429", "503", "other", "wrong", "p50 ms", "p99 ms"]
_COLUMNS += ["max ms", "MiB at first", "MiB at most", "s to end"]
_ATTACKS = {
    "none": "ordinary requests alone.",
    "burst": "64 clients send 256 instances with `k` 1000 and probabilities, 2.6 KB, and again a second "
    "after each answer.",
    "idle sockets": "40 connections to a server with `--connections 20`, every other one with half a head, "
    "opened again as soon as one is closed.",
    "headers": "600 MiB of headers over four connections, another as soon as one is closed.",
}


def write(runs: list[dict], options: argparse.Namespace, same: bool) -> str:
    """The page."""
    loads = [run["load"] for run in runs]
    told = "are the same" if same else "**differ**"
    parts = [
        "# serve, attacked",
        "50 requests a second, at random (Poisson) times, for the 10 best labels of one instance by a model "
        f"of 1,000 labels, all compared, {options.seconds:g} s beside each attack, from another process "
        "on the same machine, over at most 64 connections (8 beside idle sockets). Other work kept the "
        f"machine busy: its load average was {min(loads):.0f} to {max(loads):.0f} when a row was begun. "
        "A request's latency counts from the time it was due, and is that of the answered ones. At the end "
        "the server gets SIGTERM, while the attack goes on.",
        *(
            [
                "Before: the server without budgets, steps and limits of connections. After: with their "
                "defaults."
            ]
            if any(run["server"] == "before" for run in runs)
            else []
        ),
        "## Ordinary requests",
        table(_COLUMNS, [_row(run) for run in runs]),
        f"Replies to ordinary requests without an attack {told}, byte for byte, from each server; a wrong "
        "reply is another one.",
        "## Attacks",
        "\n".join(f"- {name}: {meaning}" for name, meaning in _ATTACKS.items()),
        table(
            ["attack", "server", "what attackers saw"],
            [[run["attack"], run["server"], _said(run["attackers"])] for run in runs],
        ),
        machine(),
    ]
    return "\n\n".join(parts) + "\n"


def _row(run: dict) -> list[str]:
    outcomes = dict(run["outcomes"])
    answered = outcomes.pop("200", 0)
    refused = [outcomes.pop(status, 0) for status in ("429", "503")]
    other = sum(outcomes.values())
    return [
        run["attack"],
        run["server"],
        *map(str, (answered + sum(refused) + other, answered, *refused, other, run["wrong"])),
        *(f"{1e3 * np.percentile(run['latency'], q):.0f}" if run["latency"] else "–" for q in (50, 99, 100)),
        f"{run['idle']:.0f}",
        f"{run['peak']:.0f}",
        "killed" if run["end"] is None else f"{run['end']:.1f}",
    ]


def _said(seen: dict[str, int]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in sorted(seen.items())) or "–"
