"""What pages are made of: tables of lines, and how they were made."""

from __future__ import annotations

import math
import os
import platform
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from declared import Figures, Lines

PACKAGES = ("numpy", "scipy", "scikit-learn", "lightgbm", "faiss-cpu")
COSTS = {
    "train s": "train_s",
    "memory MiB": "memory_mib",
    "model MiB": "model_mib",
    "batch ms": "batch_ms",
    "single ms": "single_ms",
}
TIMES = ("train_s", "batch_ms", "single_ms", "single_wall_ms")


def prose_of(names: Mapping[str, Any]) -> Callable[..., str]:
    """The texts under "# NAME" in the file beside a module; braces hold its `names`, or given values."""
    _, *parts = re.split(r"^# (\w+)\n", Path(names["__file__"]).with_suffix(".txt").read_text(), flags=re.M)
    texts = dict(zip(parts[::2], parts[1::2]))

    def prose(name: str, **values: Any) -> str:
        paragraphs = (" ".join(lines.split("\n")) for lines in texts[name].strip().split("\n\n"))
        return "\n\n".join(paragraphs).format(**{**names, **values})

    return prose


prose = prose_of(globals())
CLOCKS = prose("CLOCKS")
HOW = prose("HOW")


def table(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}"


def medians(lines: Lines, dataset: str) -> dict[str, Figures]:
    """Quality and costs of each system on a set, of its other lists as "SYSTEM, NAME"; medians over seeds.

    "earlier": whether the times are those of an earlier run.
    """
    found: dict[str, list[Figures]] = {}
    for line in lines:
        if line["set"] == dataset and "failed" not in line:
            costs = {key: value for key, value in scaled(line, lines).items() if key in COSTS.values()}
            for name, quality in line["quality"].items():
                figures = {**costs, **quality, "earlier": bool(line.get("from_file"))}
                found.setdefault(f"{line['system']}{f', {name}' if name else ''}", []).append(figures)
    return {
        row: {key: statistics.median(each[key] for each in of_row) for key in of_row[0]}
        for row, of_row in found.items()
    }


def failures(lines: Lines, dataset: str) -> str:
    """Why systems are not in the tables of a set; nothing where all are."""
    told = [
        f"{line['system']}: {line['failed']}" for line in lines if line["set"] == dataset and "failed" in line
    ]
    return f"Not here: {'; '.join(told)}." if told else ""


def chosen(lines: Lines, dataset: str) -> str:
    """What systems have chosen on held-out training rows, each with its first seed."""
    told = {}
    for line in lines:
        if line["set"] == dataset and line.get("chosen"):
            values = ", ".join(f"{name} {value:g}" for name, value in line["chosen"].items())
            told.setdefault(line["system"], f"{line['system']}: {values}")
    return f"Chosen on held-out training rows: {'; '.join(told.values())}." if told else ""


def systems_table(
    lines: Lines, dataset: str, metrics: Sequence[str], costs: Sequence[str] = tuple(COSTS)
) -> str:
    """Quality in per cent and costs of every list of a set; medians over seeds; the best is bold."""
    values = medians(lines, dataset)
    failed = [
        [f"{line['system']}: {line['failed']}", *[""] * (len(metrics) + len(costs))]
        for line in lines
        if line["set"] == dataset and "failed" in line
    ]
    rows = []
    for name, row in values.items():
        quality = []
        for metric in metrics:
            is_best = row[metric] == max(other[metric] for other in values.values())
            shown = f"{100 * row[metric]:.1f}"
            quality.append("–" if math.isnan(row[metric]) else f"**{shown}**" if is_best else shown)
        rows.append([name, *quality, *(cost(row, COSTS[each]) for each in costs)])
    return table(["", *metrics, *costs], rows + failed)


def cost(figures: Figures, key: str) -> str:
    """A time or size as tables show it."""
    return f"{'~' if figures['earlier'] and key in TIMES else ''}{number(figures[key])}"


def scaled(line: Figures, lines: Lines) -> Figures:
    """A line with the times that it would have had on the machine, and beside the load, of this run."""
    if not line.get("from_file"):
        return line
    now = statistics.median(
        each["yardstick_s"] for each in lines if "yardstick_s" in each and not each.get("from_file")
    )
    return {**line, **{key: line[key] * now / line["yardstick_s"] for key in TIMES if key in line}}


def sizes(described: Figures) -> str:
    return (
        f"{described['n']:,.0f} training and {described['n_test']:,.0f} test rows, "
        f"{described['D']:,.0f} features ({described['nnz_per_row']:.0f} non-zeros a row), "
        f"{described['L']:,.0f} labels ({described['labels_per_row']:.1f} a row)."
    )


def provenance(lines: Lines, commit: str, command: str) -> str:
    made = sorted({line["made"] for line in lines if not line.get("from_file")})
    seeds = sorted({line["seed"] for line in lines})
    versions = {f"{line['peer']} {line['version']}" for line in lines if "version" in line and line["peer"]}
    yardsticks = [line["yardstick_s"] for line in lines if "yardstick_s" in line]
    days = " to ".join(dict.fromkeys([made[0], made[-1]])) if made else "lines of peers alone"
    seeds_told = ", ".join(map(str, seeds))
    least, most = f"{min(yardsticks):.2f}", f"{max(yardsticks):.2f}"
    told = [
        f"metarank at {commit[:12]}{' with changes' * ('-' in commit)}, {days}, `{command}`",
        f"{cpu_model()}, {os.cpu_count()} cores, Python {platform.python_version()}, seeds {seeds_told}",
        ", ".join(f"{package} {version(package)}" for package in PACKAGES),
        *sorted(versions),
        f"the fixed piece of work took {least} to {most} CPU s in {len(yardsticks)} cells",
        *(f"sha256 of {name}: {found['checksum']}" for name, found in lines.sets.items()),
    ]
    return "\n".join(f"- {line}" for line in told)


def cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
