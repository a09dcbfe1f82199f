"""What was set out to be shown, and whether the figures of a set show it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from borrowed_runs import F1, TAIL
from judging import RANKING
from sets import LARGEST

Row = Mapping[str, float]  # COLUMNS and costs of one contender
Rows = Mapping[str, Mapping[str, Row]]  # by group and contender

MAIN = ("nDCG@5", "PSP@5")
# How many times the best peer's figure is wanted.
TREE_RATIOS = {"nDCG@5": 1.04, "PSP@5": 1.20, TAIL: 2.0}
FLAT_RATIOS = {"nDCG@5": 1.03, "PSP@5": 1.10}
NAMES_SET, NAMES_RATIOS = "LLMs4Subjects-dev-en", {"nDCG@5": 1.20, "PSP@5": 1.30}

# Training may cost what one-vs-all costs, a quarter of it where that is much; a little is always allowed.
MUCH_S, LITTLE_S = 100.0, 30.0
SINGLE_MS, BATCH_MS = 1.0, 0.5
MEMORY_GIB = 12.0


@dataclass(frozen=True)
class Verdict:
    """A claim, whether it holds, and the figures it rests on."""

    claim: str
    holds: bool
    told: str


def verdicts(name: str, rows: Rows) -> list[Verdict]:
    """All claims on a set for which there are figures."""
    claims = {"pipeline": _of_pipeline, "names": _of_names, "over one": _over_one}
    return [
        replace(verdict, claim=f"{contender}: {verdict.claim}")
        for group, judge in claims.items()
        for contender, row in rows.get(group, {}).items()
        for verdict in judge(name, contender, row, rows)
    ]


def _of_pipeline(name: str, contender: str, row: Row, rows: Rows) -> Iterable[Verdict]:
    trees, flat = rows.get("tree", {}), rows.get("flat", {})
    if trees:
        yield from _ratios("the best tree peer's", row, trees, TREE_RATIOS)
    if flat:
        best = {metric: _best(flat, metric)[0] for metric in (*RANKING, TAIL, "C@5")}
        yield _above("no metric below one-vs-all", row, best, strict=False)
        yield from _ratios("one-vs-all's", row, flat, FLAT_RATIOS)
    peers = {**trees, **flat}
    if peers:
        yield _above("F1 above every peer's", row, {metric: _best(peers, metric)[0] for metric in F1})
    for other, alone in rows.get("alone", {}).items():
        yield _above(f"above {other}", row, alone, MAIN)
        every = {metric: alone[metric] for metric in (*RANKING, TAIL, "C@5")}
        yield _above(f"no metric below {other}", row, every, strict=False)
    yield from _costs(name, row, rows)


def _of_names(name: str, contender: str, row: Row, rows: Rows) -> Iterable[Verdict]:
    if name == NAMES_SET and rows.get("flat"):
        yield from _ratios("one-vs-all's", row, rows["flat"], NAMES_RATIOS)
    for other, without in rows.get("pipeline", {}).items():
        yield _above(f"above {other}", row, without, MAIN)
    yield from _costs(name, row, rows)


def _over_one(name: str, contender: str, row: Row, rows: Rows) -> Iterable[Verdict]:
    """Over one shortlister, whose name is at the end, as in "metaranker over XReg"."""
    _, _, shortlister = contender.rpartition(" ")
    for other, alone in rows.get("shortlister", {}).items():
        if other.endswith(f" {shortlister}"):
            yield _above(f"above {other} alone", row, alone, MAIN)


def _ratios(whose: str, row: Row, peers: Mapping[str, Row], wanted: Mapping[str, float]) -> Iterable[Verdict]:
    for metric, ratio in wanted.items():
        best, peer = _best(peers, metric)
        if math.isnan(best):  # no label of the test part is rare
            continue
        reached = f", {row[metric] / best:.2f} times" if best > 0 else ""
        told = f"{100 * row[metric]:.2f} against {100 * best:.2f} ({peer}){reached}"
        yield Verdict(f"{metric} at least {ratio:g} times {whose}", row[metric] >= ratio * best, told)


def _best(rows: Mapping[str, Row], metric: str) -> tuple[float, str]:
    """The greatest figure, and whose it is."""
    return max((row[metric], contender) for contender, row in rows.items())


def _above(
    claim: str, row: Row, other: Row, metrics: Iterable[str] | None = None, *, strict: bool = True
) -> Verdict:
    """Whether a row is above another in all of `metrics` (those of the other); not below, unless strict."""
    gains = {metric: row[metric] - other[metric] for metric in metrics or other}
    missed = {metric: gain for metric, gain in gains.items() if gain < 0 or (strict and gain == 0)}
    shown = missed or gains
    told = ", ".join(f"{metric} {100 * gain:+.2f}" for metric, gain in shown.items())
    return Verdict(claim, not missed, told)


def _costs(name: str, row: Row, rows: Rows) -> Iterable[Verdict]:
    if flat := rows.get("flat"):
        flat_s = min(peer["train_cpu_s"] for peer in flat.values())
        allowed = max(flat_s / 4 if flat_s > MUCH_S else flat_s, LITTLE_S)
        told = f"{row['train_cpu_s']:.1f} s, allowed {allowed:.1f} s (one-vs-all {flat_s:.1f} s)"
        yield Verdict("training within its share of one-vs-all", row["train_cpu_s"] <= allowed, told)
    holds = row["single_ms"] < SINGLE_MS and row["batch_ms"] < BATCH_MS
    told = f"{row['single_ms']:.2f} ms a single point (median), {row['batch_ms']:.2f} ms in a batch"
    yield Verdict(f"below {SINGLE_MS:g} ms a single point, {BATCH_MS:g} ms in a batch", holds, told)
    if name == LARGEST:
        gib = row["memory_mib"] / 1024
        yield Verdict(f"less than {MEMORY_GIB:g} GiB", gib < MEMORY_GIB, f"{gib:.1f} GiB")
