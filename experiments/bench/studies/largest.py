"""Hundreds of thousands of labels, half a million rows: how time, memory, models and answers grow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import judging
import made_sets
import named_texts
import page_parts
from declared import Figures, Lines, Measure, Study, System

from studies.thousands import OUR_TREES, SHORTLISTERS, TREES

prose = page_parts.prose_of(globals())

MADE = {f"made-670K-{100 * share:.0f}%": share for share in (0.1, 0.3, 1.0)}
DEBIAN = ("Debian-depends-texts", "Debian-suggests-texts")
MEMORY = 20.0
METRICS = ("P@1", "P@5", "nDCG@5", "PSP@1", "PSP@5", judging.TAIL, *judging.F1)
SYSTEMS = (
    System("omikuji, 1 tree", "omikuji", {"n_trees": 1}, "omikuji"),  # which always runs again
    replace(TREES[3], kept=True),
    TREES[0],
    *OUR_TREES[::2],
    SHORTLISTERS[3],
    System("PfastreXML", "shortlister", {"estimator": "PfastreXML"}, sets=("*-10%", "Debian*")),
    System("metarank, no label names", "pipeline", {"names": False, "serve": True}),
    System("metarank, texts and names", "texts", sets=DEBIAN),
)


def made(share: float) -> Callable[[Path], Figures]:
    sizes = int(490_449 * share), int(135_909 * max(share, 0.2)), int(670_091 * share)
    return made_sets.extreme(*sizes, test_rows=5000, labels_per_row=5.45, exponent=0.5, nnz_per_row=75.7)


def page(lines: Lines) -> str:
    parts = ["# Hundreds of thousands of labels", page_parts.HOW, prose("ALIKE")]
    for name, described in lines.sets.items():
        table = page_parts.systems_table(lines, name, METRICS)
        parts += [f"## {name}", page_parts.sizes(described), table]
    served = {line["set"]: line["served"] for line in lines if "served" in line}
    rows = [[name, *map(page_parts.number, of.values())] for name, of in served.items()]
    return "\n\n".join(
        [*parts, "## Served", prose("SERVED"), page_parts.table(["", *next(iter(served.values()), ())], rows)]
    )


LARGE = Study(
    "largest",
    ("YSO-FinnaTitles-27K", *DEBIAN, *MADE),
    SYSTEMS,
    judging.of_lists,
    page,
    Measure(k=10, singles=200, limit=5400, memory_gib=MEMORY),
    make={name: made(share) for name, share in MADE.items()} | named_texts.makers(DEBIAN),
    large=True,
    alone=("made-670K-100%",),
)
