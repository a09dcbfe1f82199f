"""Is this metarank as good, and as quick, as that of another checkout?

python experiments/before_after/run.py --before CHECKOUT [--seeds 3] [--sets emotions,scene]

A run of some sets or seeds writes to `build/before_after.md`.

CHECKOUT is a folder with another state of metarank whose core is built there (`metarank/_core*.so`). Both run
in turn, cell by cell, in processes of their own, one thread each, with the libraries of this Python.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import lightgbm
import numpy as np

_HERE = Path(__file__).parent
ROOT = _HERE.parents[1]
SETS = (
    "emotions",
    "scene",
    "yeast",
    "bibtex",
    "CiteULike-t-tags",
    "LLMs4Subjects-dev-en",
    "cooking",
    "MQ2008",
)
COSTS = {"fit": "fit, CPU s", "batch": "batch, CPU s", "single": "one row, CPU ms"}
Cell = dict[str, Any]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=Path, required=True, help="a checkout whose core is built")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="-1: any")
    options = parser.parse_args(arguments)
    data = Path(os.environ.get("METARANK_DATA", ROOT.parent / "shared" / "data")).resolve()
    states = {"before": options.before.resolve(), "now": ROOT}
    cells: dict[str, dict[str, list[Cell]]] = {}
    for name in options.sets.split(","):
        cells[name] = {state: [] for state in states}
        for seed in range(options.seeds):
            for state in list(states) if seed % 2 == 0 else list(states)[::-1]:
                cells[name][state].append(measured(states[state], data, name, seed, options.core))
                print(name, seed, state, round(cells[name][state][-1]["fit"], 1), flush=True)
    whole = all(getattr(options, name) == parser.get_default(name) for name in ("seeds", "sets"))
    page = _HERE / "results.md" if whole else ROOT / "build" / "before_after.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text(text(cells, states, data, options.seeds))
    print(f"written: {page}", file=sys.stderr)
    return 0


def measured(checkout: Path, data: Path, name: str, seed: int, core: int) -> Cell:
    """What one process found."""
    environment = os.environ | {
        "PYTHONPATH": str(checkout),
        "OMP_WAIT_POLICY": "passive",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, str(_HERE / "one.py"), str(data), name, str(seed)]
    if core >= 0:
        command = ["taskset", "-c", str(core), *command]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=_HERE)
    if run.returncode:
        raise RuntimeError(f"{name}, seed {seed}, {checkout}: {run.stderr[-2000:]}")
    found: Cell = json.loads(run.stdout.splitlines()[-1])
    return found


def text(cells: dict[str, dict[str, list[Cell]]], states: dict[str, Path], data: Path, seeds: int) -> str:
    """The page."""
    lines = [
        "# Before and after",
        "",
        f"Written by `python experiments/before_after/run.py --before CHECKOUT`. Medians of {seeds} seeds,",
        f"both states in turn, one thread. Before: commit {commit(states['before'])}; now: "
        f"{commit(states['now'])}. Python {platform.python_version()}, NumPy {np.__version__},",
        f"LightGBM {lightgbm.__version__}. Other work may have run on the second core: quote ratios.",
        "A ratio is the median of those of the seeds, each measured one state after the other.",
        "Metrics in per cent. A difference is now - before; the spread is that of the seeds of before.",
        "",
        "## Cost",
        "",
        "| set | answers of the same bytes | "
        + " | ".join(f"{cost}: before | now | ratio" for cost in COSTS.values())
        + " |",
        "| --- | --- |" + " --- | --- | --- |" * len(COSTS),
    ]
    for name, by_state in cells.items():
        same = sum(a["digest"] == b["digest"] for a, b in zip(by_state["before"], by_state["now"]))
        row = [name, f"{same} of {seeds}"]
        for cost in COSTS:
            before, now = ([cell[cost] for cell in by_state[state]] for state in states)
            if not all(before):
                row += ["-"] * 3
                continue
            scale = 1000 if cost == "single" else 1
            ratio = median(new / old for old, new in zip(before, now))
            row += [f"{median(before) * scale:.3g}", f"{median(now) * scale:.3g}", f"{ratio:.3f}"]
        lines.append("| " + " | ".join(row) + " |")
    lines += [
        "",
        "## Quality",
        "",
        "| set | metric | before | now | difference | spread |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, by_state in cells.items():
        for metric in by_state["before"][0]["quality"]:
            values = {state: [100 * cell["quality"][metric] for cell in by_state[state]] for state in states}
            before, now = median(values["before"]), median(values["now"])
            spread = max(values["before"]) - min(values["before"])
            lines.append(
                f"| {name} | {metric} | {before:.2f} | {now:.2f} | {now - before:+.2f} | {spread:.2f} |"
            )
    lines += ["", "## Data", "", "| file | sha256 |", "| --- | --- |"]
    for path in sorted(files_of(data, list(cells))):
        lines.append(f"| {path.relative_to(data)} | {hashlib.sha256(path.read_bytes()).hexdigest()[:16]} |")
    return "\n".join(lines) + "\n"


def files_of(data: Path, names: list[str]) -> list[Path]:
    """The files that the sets are read from."""
    found: list[Path] = []
    for name in names:
        folder = {"cooking": "text/cooking_stackexchange", "MQ2008": "ltr/mq2008"}.get(name)
        where = data / folder if folder else next(data.glob(f"*/{name}"))
        found += [path for path in where.iterdir() if path.is_file() and path.suffix in (".gz", ".xz")]
    return found


def commit(checkout: Path) -> str:
    """The commit of a checkout, and whether anything in its package differs from it."""
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True
    )
    changed = subprocess.run(
        ["git", "status", "--porcelain", "metarank"], cwd=checkout, capture_output=True, text=True, check=True
    )
    return head.stdout.strip() + (" with changes" if changed.stdout.strip() else "")


if __name__ == "__main__":
    sys.exit(main())
