"""results.md: findings, what was to be shown, tables, and how they were made."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from borrowed import digest_of_sources, version_of
from cells import Figures, packages
from claims import claims_of
from contenders import ALL, BILSTM, ENCODERS, FEW_ROWS, FEWER, FOUR, Contender
from pages import bullets, cpu_model, number, table
from parts import HEAD_SHARE
from worth import TABLE_1, TABLE_2, UNSEEN_RECALL

_HERE = Path(__file__).resolve().parent
_COSTS = ("train_cpu_s", "batch_ms", "single_ms", "model_mib", "peak_mib")
_COST_HEAD = ("train s", "batch ms", "single ms", "model MiB", "memory MiB")
_VERDICTS = {True: "**holds**", False: "**does not hold**", None: "undecided"}
_OF_LABELS = ("labels", "labels a row", "head", "tail", "without a training row", "share of head")


@dataclass
class Measured:
    """What there is of a set: figures and values of each contender, an entry a seed."""

    name: str
    checksum: str
    statistics: dict[str, float]
    of_unseen: tuple[int, int]
    figures: dict[str, list[Figures]] = field(default_factory=dict)
    values: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    unseen: dict[str, list[float]] = field(default_factory=dict)

    def add(self, contender: Contender, figures: Figures, values: dict[str, float]) -> None:
        self.figures.setdefault(contender.name, []).append(figures)
        self.values.setdefault(contender.name, []).append(values)

    def of(self, contender: str, column: str) -> np.ndarray:
        """A column by seed."""
        return np.array([values[column] for values in self.values[contender]])


def write(sets: Sequence[Measured], split_seed: int) -> str:
    """The whole page, of whatever there is."""
    findings = _HERE / "findings.md"
    parts = ["# Search filters: labels with names"]
    parts += [findings.read_text().strip()] if findings.exists() else []
    claims = {
        measured.name: claims_of(
            measured.values, measured.unseen, UNSEEN_RECALL / measured.statistics["labels"]
        )
        for measured in sets
    }
    every = [holds for of_set in claims.values() for _, holds in of_set]
    told = f"Of {len(every)} claims, {every.count(True)} hold and {every.count(False)} do not"
    parts += [
        "## What was to be shown",
        f"{told}; {every.count(None)} have a single seed, which decides nothing.",
    ]
    for name, of_set in claims.items():
        if of_set:
            lines = (f"{told}: {_VERDICTS[holds]}" for told, holds in of_set)
            parts += [f"### {name}", bullets(lines)]
    parts += ["## The sets", _sets(sets), _how_read()]
    for measured in sets:
        if measured.values:
            parts += [f"## {measured.name}", *_tables(measured)]
    parts += _unseen(sets)
    parts += ["## How it was made", _provenance(sets, split_seed)]
    return "\n\n".join(parts) + "\n"


def _how_read() -> str:
    return (
        "Parts are 8 : 1 : 1 by a hash of the text, lower-cased and its blanks evened out: no text is in two "
        "parts, and texts of the validation and test part are distinct, with the labels of all their copies. "
        f"*Head*: the most frequent labels that make up {100 * HEAD_SHARE:.0f} % of the occurrences in the "
        "training part; *tail*: all others. LLMs4Subjects-dev-en: titles without abstracts; pydocs: no "
        "document is its own label. In the tables, *coverage* is the share of all labels that are ever "
        "predicted for a test row, *F1 head* and *F1 tail* mean F1 over labels of equal weight that have a "
        "test row, after one threshold for all pairs, of greatest micro-F1 on the validation part. Mean ± "
        "standard deviation over seeds (*n*); accuracy is in per cent, and the best mean of a column is bold."
    )


def _sets(sets: Sequence[Measured]) -> str:
    names = [name for name in (sets[0].statistics if sets else {}) if name not in _OF_LABELS]
    rows = []
    for measured in sets:
        s = measured.statistics
        cells = [_count(s[name]) for name in (*names, *_OF_LABELS[:-1])]
        rows.append([measured.name, *cells, f"{100 * s['share of head']:.1f}"])
    return table(["set", *names, *_OF_LABELS[:-1], "% head"], rows)


def _tables(measured: Measured) -> list[str]:
    """Tables 1 and 2, encoders, and costs of a set."""
    elsewhere = {c.name for c in (*BILSTM, *ENCODERS, *FEWER)}
    shown = [c.name for c in ALL if c.name in measured.values and c.name not in elsewhere]
    parts = [_accuracy(measured, shown)]
    four = [contender.name for contender in FOUR if contender.name in measured.values]
    if four:
        columns = tuple(f"{name} at .5" for name in TABLE_2)
        parts += ["Cut at a probability of one half instead, without a choice:"]
        parts += [_comparison(measured, four, columns)]
    encoders = [c.name for c in ENCODERS if c.name in measured.values]
    if encoders:
        parts += ["LALE with other encoders (above it reads bags of words):"]
        parts += [_comparison(measured, ["LALE", *encoders], (*TABLE_1, *TABLE_2))]
    paper = [c.name for c in BILSTM if c.name in measured.values]
    if paper:
        parts += ["With the paper's encoder and sizes, a BiLSTM and vectors of 256:"]
        parts += [_comparison(measured, paper, (*TABLE_1, *TABLE_2))]
    for rows in FEW_ROWS:
        few = [c.name for c in FEWER if c.rows == rows and c.name in measured.values]
        if few:
            parts += [f"Learned from {rows:,} titles of the training part:"]
            parts += [_comparison(measured, few, (*TABLE_1, *TABLE_2))]
    return [*parts, "Costs, medians over seeds:", _costs(measured)]


def _accuracy(measured: Measured, shown: list[str]) -> str:
    return _comparison(measured, shown, (*TABLE_1, *TABLE_2))


def _comparison(measured: Measured, shown: list[str], columns: Sequence[str]) -> str:
    # In tenths of a per cent, as they are printed.
    means = {(name, c): round(1000 * np.mean(measured.of(name, c))) for name in shown for c in columns}
    best = {column: max(means[name, column] for name in shown) for column in columns}
    rows = []
    for name in shown:
        row = [name, str(len(measured.values[name]))]
        for column in columns:
            told = with_deviation(measured.of(name, column))
            row.append(f"**{told}**" if means[name, column] == best[column] else told)
        rows.append(row)
    return table(["", "n", *columns], rows)


def _costs(measured: Measured) -> str:
    rows = []
    for contender in ALL:
        if contender.name not in measured.figures:
            continue
        figures = measured.figures[contender.name]
        n = figures[0]["n_parameters"]
        medians = [number(float(np.median([f[cost] for f in figures]))) for cost in _COSTS]
        yardstick = float(np.median([f["yardstick_cpu_s"] for f in figures]))
        rows.append([contender.name, f"{n / 1e6:.2f}" if n else "", *medians, f"{yardstick:.2f}"])
    return table(["", "M parameters", *_COST_HEAD, "yardstick"], rows) + (
        "\n\n*train*: CPU seconds; *batch*: CPU milliseconds a test text, all in one call; *single*: median "
        "wall milliseconds of calls with one text; *memory*: growth of the peak while training; *yardstick*: "
        "CPU seconds of a fixed piece of work just before, which other processes on the machine lengthen."
    )


def _unseen(sets: Sequence[Measured]) -> list[str]:
    if not any(measured.unseen for measured in sets):
        return []
    names = [c.name for c in ALL if any(c.name in measured.unseen for measured in sets)]
    rows = []
    for measured in sets:
        told = [
            f"{with_deviation(np.array(measured.unseen[name]))} ({len(measured.unseen[name])})"
            if name in measured.unseen
            else ""
            for name in names
        ]
        rows.append([measured.name, *map(_count, measured.of_unseen), *told, "0"])
    text = (
        "A tenth of the labels with enough test rows (three, or fewer where few labels have), chosen by a "
        "hash of their names, is taken from the training and validation part; models then learn of them by "
        "name alone, after the fit or, where the head says so, as labels without a row in it. Share of all "
        f"pairs of a test row and one of these labels that are among the first {UNSEEN_RECALL} of *all* "
        "labels, in per cent (seeds). ID-only, trees and the pipeline without names cannot rank such a label."
    )
    return ["## Labels never seen", text, table(["set", "labels", "pairs", *names, "without names"], rows)]


def _provenance(sets: Sequence[Measured], split_seed: int) -> str:
    every = [figures for measured in sets for of_row in measured.figures.values() for figures in of_row]
    lines = [
        f"{cpu_model()}, {os.cpu_count()} cores, one thread a cell, Python {platform.python_version()}",
        ", ".join(f"{name} {version}" for name, version in packages().items()),
        f"metarank {version_of('metarank')}, omikuji {version_of('omikuji')}",
        f"split seed {split_seed}; cells: {len(every)}",
    ]
    states = sorted({figures["sources"][:16] for figures in every if "sources" in figures})
    lines += [
        f"sha256 of metarank's sources now: {digest_of_sources()[:16]}; of the cells: {', '.join(states)}"
    ]
    if every:
        yardsticks = [figures["yardstick_cpu_s"] for figures in every]
        low, middle, high = min(yardsticks), float(np.median(yardsticks)), max(yardsticks)
        lines.append(f"yardstick {low:.2f} to {high:.2f} CPU s (median {middle:.2f})")
    lines += [f"sha256 of {measured.name}: {measured.checksum}" for measured in sets]
    return bullets(lines)


def with_deviation(values: np.ndarray) -> str:
    """Per cent: mean and sample deviation, the mean alone of a single value."""
    mean = f"{100 * np.mean(values):.1f}"
    return f"{mean} ± {100 * np.std(values, ddof=1):.1f}" if len(values) > 1 else mean


def _count(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.1f}"
