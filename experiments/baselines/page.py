"""The page: one table a set, beside the paper's figures, and label trees of groups that are balanced or
not."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np
from borrowed import PAPER, SEED, Figures, Problem, bullets, digest_of_sources, number, table
from rows import METRICS, SEEDS, TREES

import metarank

_FINDINGS = Path(__file__).with_name("findings.md")
_OF_PAPER = ("PSP@1", "PSP@3", "PSP@5")


@dataclass
class Results:
    """By set: the problem, the figures of each row, the figures of each setting and seed of trees."""

    problems: dict[str, Problem] = field(default_factory=dict)
    figures: dict[str, dict[str, Figures]] = field(default_factory=dict)
    balance: dict[str, list[Figures]] = field(default_factory=dict)


def write(results: Results) -> str:
    chapters = [
        "# Baselines of the papers",
        _FINDINGS.read_text().strip(),
        introduction(),
        *(set_table(results, name) for name in results.problems),
        balance_table(results),
        provenance(results),
    ]
    return "\n\n".join(filter(None, chapters)) + "\n"


def introduction() -> str:
    return (
        "Per cent; seconds are CPU time of training, on one thread. PSP by the propensities of Jain et al. "
        "(2016) with their defaults. All learn from binary relevance but the two regressions, 1-vs-all-LS "
        "and the ridge, whose targets are inverse propensities. The baselines are small versions; the files "
        "say what they leave out. Their settings are one for all sets, and not tuned. metarank's rows have "
        "their defaults, and all rows the seed 0. Left out: APLC-XLNet, which needs pretrained weights; "
        "LEML, LPSR, FastXML and RankSVM, which have rows in [propensity](../propensity/results.md) and "
        "[xreg](../xreg/results.md)."
    )


def set_table(results: Results, name: str) -> str:
    problem, figures = results.problems[name], results.figures[name]
    (n, d), L = problem.X.shape, problem.Y.shape[1]
    done = {row: found for row, found in figures.items() if "failed" not in found}
    lines = [
        [row, *(f"{100 * found['metrics'][m]:.2f}" for m in METRICS), number(found["train_s"])]
        for row, found in done.items()
    ]
    lines += [
        [f"paper: {row}", *(f"{theirs[m]:.2f}" if m in theirs else "-" for m in METRICS), "-"]
        for row, theirs in of_paper(name).items()
    ]
    text = (
        f"## {name}\n\n{n:,} training rows, {problem.X_test.shape[0]:,} test rows, {d:,} features, {L:,} "
        f"labels.\n\n{table(['row', *METRICS, 'train s'], lines)}"
    )
    missing = [f"{row}: {found['failed']}" for row, found in figures.items() if "failed" in found]
    return text + ("\n\n" + bullets(missing) if missing else "")


def of_paper(name: str) -> dict[str, dict[str, float]]:
    """PSP by row, in per cent, as Prabhu et al. (2020) print it for the rows that are here."""
    printed = json.loads(PAPER.read_text())
    rows = ("1-vs-all-LS", "DiSMEC", "ProXML", "Parabel", "PfastreXML")
    at = [printed["columns"].index(column) for column in _OF_PAPER]
    return {
        row: {column: printed[name][row][i] for column, i in zip(_OF_PAPER, at)}
        for row in rows
        if row in printed.get(name, {})
    }


def balance_table(results: Results) -> str:
    """Mean and range over seeds, and what the trees of Bonsai are ahead of the default, seed by seed."""
    columns = ("P@1", "P@5", "nDCG@5", "PSP@5")
    default, *_, bonsai = TREES
    lines, ahead = [], []
    for name, rows in results.balance.items():
        by = {
            trees: {c: 100 * np.array([row[c] for row in rows if row["trees"] == trees]) for c in columns}
            for trees in (TREES if rows else ())
        }
        for trees, values in by.items():
            cells = [f"{v.mean():.2f} ({v.min():.2f} to {v.max():.2f})" for v in values.values()]
            of_seed = [row for row in rows if row["trees"] == trees]
            costs = [number(float(np.median([row[c] for row in of_seed]))) for c in ("train_s", "test_ms")]
            lines.append([name, trees, *cells, *costs])
        if rows:
            more = by[bonsai]["nDCG@5"] - by[default]["nDCG@5"]
            ahead.append(
                f"{name}, nDCG@5 of Bonsai's trees above the default's: {more.mean():+.2f}, with "
                f"{(more > 0).sum()} of {SEEDS} seeds"
            )
    return (
        "## Balanced trees and those of Bonsai\n\n"
        f"`Parabel(n_trees=1)` with {SEEDS} seeds: mean and range; medians of CPU seconds of training and "
        "milliseconds a test row.\n\n"
        + table(["set", "trees", *columns, "train s", "test ms"], lines)
        + "\n\n"
        + bullets(ahead)
    )


def provenance(results: Results) -> str:
    now = digest_of_sources()
    lines = [
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, seed {SEED}",
        f"metarank {metarank.__version__}, "
        + ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn")),
        f"sha256 of metarank's sources: {now}",
        "the findings on top are written by hand, in findings.md",
    ]
    older = {
        f"{row} on {name}"
        for name, of_set in results.figures.items()
        for row, found in of_set.items()
        if found.get("sources", now) != now
    }
    if older:
        lines.append(f"measured with another state of the sources: {', '.join(sorted(older))}")
    lines += [f"sha256 of {name}: {problem.checksum}" for name, problem in results.problems.items()]
    return "## How it was made\n\n" + bullets(lines)
