"""What label names bring metarank: names, other names, descriptions, relations, stems, another language."""

from __future__ import annotations

import judging
import named_texts
import page_parts
from declared import Lines, Measure, Study, System

prose = page_parts.prose_of(globals())

SETS = (
    "fashion_styles-titles-3000",
    "cooking_stackexchange-titles-3000",
    "product_attribute_values-titles",
    "LLMs4Subjects-dev-en-titles",
    "pydocs-texts",
    "archaeology-titles-2000",
)
ENGLISH, FINNISH, PYDOCS = SETS[:4], SETS[5:], SETS[4:5]
METRICS = ("P@1", "nDCG@5", "PSP@5", judging.TAIL)
COSTS = ("train s", "memory MiB", "model MiB", "batch ms", "single ms")

_DESCRIBED = {"name": "name", "description": "text"}
_NAME = {"name": "name_fi"}
_OTHERS = {"alternative_names": ["others"]}
_RELATIONS = {"parents": "broader", "related": "related"}
_FOREIGN = {"alternative_names": ["name_en", "name_sv"]}


def _row(name: str, sets: tuple[str, ...] = SETS, **params: object) -> System:
    return System(name, "texts", {"language": None, **params}, sets=sets)


SYSTEMS = (
    _row("no names", names=False),
    _row("names", (*ENGLISH, *FINNISH)),
    # Those of pydocs have a line of text as well.
    _row("names", PYDOCS, table={"name": "name"}),
    _row("names, descriptions", PYDOCS, table=_DESCRIBED),
    _row("no names, stems", names=False, language="auto"),
    _row("names, stems", (*ENGLISH, *FINNISH), language="auto"),
    _row("names, descriptions, stems", PYDOCS, language="auto", table=_DESCRIBED),
    _row("names, other names", FINNISH, table={**_NAME, **_OTHERS}),
    _row("names, relations", FINNISH, table={**_NAME, **_RELATIONS}),
    _row("relations, no names", FINNISH, names=False, table={**_NAME, **_RELATIONS}),
    _row("names, other names, relations", FINNISH, table={**_NAME, **_OTHERS, **_RELATIONS}),
    _row(
        "names, other names, relations, stems",
        FINNISH,
        language="auto",
        table={**_NAME, **_OTHERS, **_RELATIONS},
    ),
    _row("English names alone", FINNISH, table={"name": "name_en"}),
    _row("names, also in English and Swedish", FINNISH, table={**_NAME, **_FOREIGN}),
)


def page(lines: Lines) -> str:
    parts = ["# What names of labels bring", prose("INTRODUCTION") + page_parts.CLOCKS]
    parts += ["## In short: the gain over no names", gains(lines)]
    for name, described in lines.sets.items():
        table = page_parts.systems_table(lines, name, METRICS, COSTS)
        judged = {**described, "n_test": described["n_valid"] + described["n_test"]}
        parts += [f"## {name}", page_parts.sizes(judged), table]
    return "\n\n".join(parts)


def gains(lines: Lines) -> str:
    """Points of each row over the first, by set."""
    rows = []
    for name in lines.sets:
        first = next((line for line in lines.of(name, "no names") if "failed" not in line), None)
        for system in dict.fromkeys(line["system"] for line in lines if line["set"] == name):
            line = lines.of(name, system)[0]
            if first and line is not first and "failed" not in line:
                pair = [of["quality"][""] for of in (first, line)]
                more = [f"{100 * (pair[1][metric] - pair[0][metric]):+.1f}" for metric in METRICS]
                times = page_parts.number(line["train_s"] / first["train_s"])
                rows.append([name, system, *more, times])
    return page_parts.table(["set", "", *METRICS, "times the training"], rows)


STUDY = Study(
    "names",
    SETS,
    SYSTEMS,
    judging.of_lists,
    page,
    Measure(singles=50, limit=600),
    make=named_texts.makers(SETS),
)
