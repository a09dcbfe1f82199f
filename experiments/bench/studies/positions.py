"""Clicks under position bias: what of true relevance is learned from them?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import mq2008
import numpy as np
import page_parts
from declared import Figures, Lines, Measure, Study, System
from systems.clicks import ROUNDS, SEEDS, TREES

prose = page_parts.prose_of(globals())

ETAS = (0, 0.5, 1, 2)
KINDS = {
    "position": "looks at place p with probability p^-eta",
    "cascade": "looks further by these odds until a click",
}
ALIKE = {"n_rounds": ROUNDS, "params": TREES}
SYSTEMS = (
    *(
        System(f"{name}{told}", "clicks", {"learner": learner, "debiased": bool(told)}, peer)
        for learner, name, peer, own in (
            ("lightgbm", "LightGBM", None, ", `position`"),
            ("xgboost", "XGBoost", "xgboost", ", `lambdarank_unbiased`"),
        )
        for told in ("", own)
    ),
    System("metarank, without `position`", "clicks", {"learner": "metarank", **ALIKE}),
    System("metarank, trees as LightGBM's", "clicks", {"learner": "metarank", "debiased": True, **ALIKE}),
    System("metarank, defaults", "clicks", {"learner": "metarank", "debiased": True}),
    System("metarank, linear", "clicks", {"learner": "metarank", "debiased": True, "model": "linear"}),
)
TWO = tuple(
    System(
        f"{method} aggregation{', `position`' * debiased}",
        "clicks",
        {"learner": "metarank", "graded": True, "aggregation": method, "debiased": debiased},
        sets=("*-position-*-eta-1",),
    )
    for method in ("label", "loss")
    for debiased in (False, True)
)


def made(kind: str, times: int, eta: float) -> Callable[[Path], Figures]:
    def make(folder: Path) -> Figures:
        return mq2008.make(folder) | {"users": {"kind": kind, "times": times, "eta": eta}}

    return make


def sets(times: int) -> dict[str, Callable[[Path], Figures]]:
    return {f"clicks-{kind}-{times}-eta-{eta:g}": made(kind, times, eta) for kind in KINDS for eta in ETAS}


def page(times: int, lines: Lines) -> str:
    parts = ["# Clicks under position bias", prose("WHAT")]
    ran = {(line["system"], line["set"]): line for line in lines if "failed" not in line}
    systems = [s for s in SYSTEMS if any(system == s.name for system, _ in ran)]
    for kind, does in KINDS.items():
        names = [name for name in lines.sets if f"-{kind}-" in name]
        values = {
            s.name: [told["nDCG@10"] if (told := ran.get((s.name, name))) else [0.0] for name in names]
            for s in systems
        }
        best = np.max([[np.mean(of) for of in row] for row in values.values()], axis=0)
        rows = [[name, *map(_cell, row, best)] for name, row in values.items()]
        head = ["", *(f"eta {name.rpartition('-')[2]}" for name in names)]
        parts += [f"## Each query shown {times} times to a user who {does}", page_parts.table(head, rows)]
        parts += filter(None, (page_parts.failures(lines, name) for name in names))
    names = ("AUC of relevance", "AUC of clicks")
    rows = [
        [line["system"], *(_cell(line[n], 0) for n in names)] for line in ran.values() if names[1] in line
    ]
    parts += ["## Grades and clicks", prose("BOTH"), page_parts.table(["", *names], rows)] if rows else []
    return "\n\n".join(parts)


def _cell(values: list[float], best: float) -> str:
    if len(values) < SEEDS:
        return "–"
    shown = f"{100 * np.mean(values):.1f} ± {100 * np.std(values, ddof=1):.1f}"
    return f"**{shown}**" if np.mean(values) == best else shown


STUDY = Study(
    "positions",
    tuple(sets(20)),
    (*SYSTEMS, *TWO),
    None,
    partial(page, 20),
    Measure(limit=1800),
    make=sets(20),
)
LARGE = replace(
    STUDY,
    name="positions_large",
    sets=tuple(sets(100)),
    systems=(SYSTEMS[1], SYSTEMS[3], SYSTEMS[-2]),
    page=partial(page, 100),
    make=sets(100),
    large=True,
)
