"""Tens of thousands of labels and half a million rows: the systems that are there for such sets."""

from __future__ import annotations

import judging
import page_parts
from declared import Lines, Measure, Study

from studies.thousands import METRICS, NO_NAMES, OUR_TREES, SHORTLISTERS, TREES, WITH_NAMES


def page(lines: Lines) -> str:
    parts = ["# The largest real set", page_parts.HOW]
    for name, described in lines.sets.items():
        table = page_parts.systems_table(lines, name, METRICS)
        parts += [f"## {name}", page_parts.sizes(described), table]
    return "\n\n".join(parts)


LARGE = Study(
    "largest",
    ("YSO-FinnaTitles-27K",),
    (*TREES[2:], *OUR_TREES, *SHORTLISTERS[3:4], NO_NAMES, WITH_NAMES),
    judging.of_lists,
    page,
    Measure(limit=3000),
    large=True,
)
