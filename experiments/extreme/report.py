"""results.md: verdicts, tables and how they were made."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

from borrowed_runs import (
    SEED,
    SINGLES,
    Figures,
    K,
    Prepared,
    Setting,
    digest_of_sources,
    environments,
    version_of,
)
from contenders import group_of
from judging import COLUMNS
from pages import bullets, cpu_model, number
from sets import curve_of
from verdicts import Row, Verdict, verdicts

COSTS = ("train_cpu_s", "memory_mib", "model_mib", "batch_ms", "single_ms")
_HEAD = ("train s", "memory MiB", "model MiB", "batch ms", "single ms", "yardstick")
_PACKAGES = ("numpy", "scipy", "scikit-learn", "lightgbm")


@dataclass
class Measured:
    """What there is of a set: figures of the runs, and the values of their lists."""

    dataset: Prepared
    figures: dict[Setting, Figures] = field(default_factory=dict)
    values: dict[Setting, dict[str, float]] = field(default_factory=dict)

    def row(self, setting: Setting) -> Row:
        """One line of the table."""
        figures = self.figures[setting]
        memory = figures["peak_mib"] + figures["imports_mib"]
        return {**self.values[setting], **figures, "memory_mib": memory}

    def verdicts(self) -> list[Verdict]:
        groups: dict[str, dict[str, Row]] = {}
        for setting in self.values:
            groups.setdefault(group_of(setting), {})[str(setting)] = self.row(setting)
        return verdicts(self.dataset.name, groups)


def write(sets: Sequence[Measured]) -> str:
    """The whole page, of whatever was measured."""
    judged = {measured.dataset.name: measured.verdicts() for measured in sets}
    every = [verdict for of_set in judged.values() for verdict in of_set]
    parts = ["# The extreme pipeline and its peers", _introduction(), "## Verdicts"]
    parts.append(f"{sum(v.holds for v in every)} of {len(every)} claims hold.")
    parts += by_set(judged)
    return "\n\n".join([*parts, *chapters(sets)]) + "\n"


def by_set(judged: Mapping[str, Sequence[Verdict]]) -> list[str]:
    """The verdicts under the names of their sets."""
    return [
        part
        for name, of_set in judged.items()
        if of_set
        for part in (f"### {name}", bullets(map(_line, of_set)))
    ]


def chapters(sets: Sequence[Measured]) -> list[str]:
    """The table of each set, and how all was made."""
    parts = []
    for measured in sets:
        parts += [f"## {measured.dataset.name}", _sizes(measured.dataset), _table(measured)]
        parts += _failed(measured)
    return [*parts, "## How it was made", _provenance(sets)]


def _introduction() -> str:
    return (
        "Each contender runs in a process of its own, with one thread; peers have their best published "
        f"settings, metarank its defaults. All are judged by their lists of the best {K} labels of the "
        "test points. Accuracy is in per cent; propensities are those of the training part. *tail R@5*: "
        "share of all test labels with 1 to 5 training points that are among the first five. *C@5*: distinct "
        "labels in all first fives, of as many as there could be. *micro-, macro-, example-F1*: of the "
        "pipeline after the cut it learned for each in training; of all others after the best single score "
        "threshold, which is chosen on the test labels themselves and so flatters them. *train*: CPU seconds "
        "from data in memory to a model; *memory*: peak resident MiB of reading and training; *model*: MiB "
        "on disk; *batch*: CPU milliseconds a test point, all in one call; *single*: median wall "
        f"milliseconds of {SINGLES} calls with one point each. *yardstick*: CPU seconds of a fixed piece of "
        "work just before a run; other processes on the machine lengthen it, and all times with it."
    )


def _line(verdict: Verdict) -> str:
    holds = "**holds**" if verdict.holds else "**does not hold**"
    return f"{verdict.claim}: {holds} ({verdict.told})"


def _sizes(dataset: Prepared) -> str:
    s = dataset.sizes
    return (
        f"{s['n']:,.0f} training and {s['n_test']:,.0f} test points, {s['D']:,.0f} features "
        f"({s['nnz_per_row']:.0f} non-zeros a point), {s['L']:,.0f} labels "
        f"({s['labels_per_row']:.1f} a point); propensity curve: {curve_of(dataset.name)}."
    )


def _table(measured: Measured) -> str:
    rows = []
    for setting in measured.values:
        row = measured.row(setting)
        cells = [str(setting), *(f"{100 * row[column]:.1f}" for column in COLUMNS)]
        rows.append([*cells, *(number(row[cost]) for cost in COSTS), f"{row['yardstick_cpu_s']:.2f}"])
    head = ["contender", *COLUMNS, *_HEAD]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *rows))


def _failed(measured: Measured) -> list[str]:
    lines = [f"{s}: {f['failed']}" for s, f in measured.figures.items() if "failed" in f]
    return ["No figures:\n\n" + bullets(lines)] if lines else []


def _provenance(sets: Sequence[Measured]) -> str:
    done = [(m, s) for m in sets for s in m.values]
    systems = sorted({s.system for _, s in done} & set(environments.ENVIRONMENTS))
    lines = [
        f"{cpu_model()}, {os.cpu_count()} cores, Python {platform.python_version()}, seed {SEED}",
        ", ".join(f"{package} {version(package)}" for package in _PACKAGES),
        ", ".join([f"metarank {version_of('metarank')}", *(f"{s} {version_of(s)}" for s in systems)]),
        f"sha256 of metarank's sources: {digest_of_sources()}",
    ]
    yardsticks = [m.figures[s]["yardstick_cpu_s"] for m, s in done]
    if yardsticks:
        low, middle, high = min(yardsticks), statistics.median(yardsticks), max(yardsticks)
        lines.append(f"{len(done)} runs, yardstick {low:.2f} to {high:.2f} CPU s (median {middle:.2f})")
    now = digest_of_sources()
    older = [f"{s} on {m.dataset.name}" for m, s in done if m.figures[s].get("sources", now) != now]
    if older:
        lines.append(f"measured with another state of the sources: {', '.join(older)}")
    lines += [f"sha256 of {m.dataset.name} as text: {m.dataset.checksum}" for m in sets]
    return bullets(lines)
