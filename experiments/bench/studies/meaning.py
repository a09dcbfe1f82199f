"""What pretrained vectors of texts and names bring, and what evidence of no worth costs."""

from __future__ import annotations

import math
from typing import Any

import corpora
import named_texts
import numpy as np
import page_parts
from declared import Lines, Measure, Study, System
from list_quality import F1_AT_5, TAIL
from systems.meaning import GIVEN, IDS, NOISE, RANDOM, SHUFFLED, STATIC, UNSEEN

prose = page_parts.prose_of(globals())

SUBJECTS, TIB = "LLMs4Subjects-dev-en-records", "tib_records_en-records"
SIZES = tuple(f"cooking_stackexchange-titles{size}" for size in ("-300", "-1000", "-3000", ""))
OTHERS = ("pydocs-texts", "fashion_styles-titles-3000", "product_attribute_values-titles")
HARMLESS = (SUBJECTS, "cooking_stackexchange-titles-3000", *OTHERS)
METRICS = ("P@1", "nDCG@5", "nDCG@10", F1_AT_5, "PSP@5", TAIL, UNSEEN)
COSTS = ("fit s", "row ms", "one row, ms")
WITHOUT, WITH, NAMELESS = "metarank", "metarank, MiniLM", "metarank, no names"
CASES = (RANDOM, SHUFFLED, STATIC, NOISE, GIVEN, IDS)
SEEDS = 3


def _row(name: str, sets: tuple[str, ...] = ("*",), seeds: int = 1, **params: Any) -> System:
    return System(name, "meaning", params, sets=sets, seeds=seeds)


SYSTEMS = (
    _row(WITHOUT, seeds=SEEDS),
    _row(WITH, encoder="MiniLM"),
    _row(f"{WITH}, weight auto", (SUBJECTS, TIB), encoder="MiniLM", propensity_weight="auto"),
    _row(f"{WITH}, no training rows", (SUBJECTS, TIB), encoder="MiniLM", rows=False),
    _row("vote of 40 neighbours", SIZES, way="vote"),
    _row("LinearSVC of words and letters", SIZES, way="svc"),
    _row("MiniLM, logistic regression", SIZES, way="logistic"),
    _row(NAMELESS, HARMLESS, SEEDS, names=False),
    *(_row(f"metarank, {case}", HARMLESS, SEEDS, case=case) for case in CASES),
)


def page(lines: Lines) -> str:
    parts = ["# Meaning: pretrained vectors", prose("INTRODUCTION")]
    shown = [system.name for system in SYSTEMS if not system.params.get("case") and system.name != NAMELESS]
    for name, described in lines.sets.items():
        rows = []
        for system in shown:
            if found := [line for line in lines.of(name, system) if "failed" not in line][:1]:
                of = found[0]["rows"]
                figures = [of.get(metric, math.nan) for metric in METRICS]
                quality = ["" if math.isnan(figure) else f"{100 * figure:.1f}" for figure in figures]
                rows.append([system, *quality, *(page_parts.number(of[c]) if c in of else "" for c in COSTS)])
        table = page_parts.table(["", *METRICS, *COSTS], rows)
        parts += [f"## {name}", f"{described['n']:,} rows, {described['L']:,} labels", table]
    return "\n\n".join([*parts, "## Nothing hurts", prose("HARM"), harm(lines)])


def harm(lines: Lines) -> str:
    rows = []
    for case in CASES:
        base = NAMELESS if case == IDS else WITHOUT
        gains = [_gain(lines, name, base, f"metarank, {case}") for name in HARMLESS]
        shown = [*gains, np.mean([gain for gain in gains if gain], axis=0)]
        rows.append([case, *("" if gain is None else f"{gain[0]:+.1f} / {gain[1]:+.1f}" for gain in shown)])
    return page_parts.table(["nDCG@5 / P@1", *HARMLESS, "mean"], rows)


def _gain(lines: Lines, name: str, base: str, system: str) -> list[float] | None:
    pairs = list(zip(lines.of(name, base), lines.of(name, system)))
    pairs = [pair for pair in pairs if not any("failed" in line for line in pair)]
    if not pairs:
        return None
    return [
        float(np.mean([100 * (b["rows"][metric] - a["rows"][metric]) for a, b in pairs]))
        for metric in ("nDCG@5", "P@1")
    ]


SETS = (SUBJECTS, TIB, *SIZES, *OTHERS)
STUDY = Study(
    "meaning",
    SETS,
    SYSTEMS,
    None,
    page,
    Measure(limit=3600),
    make={
        **named_texts.makers(SETS[2:]),
        SUBJECTS: lambda folder: corpora.write_texts(corpora.llms4subjects(), folder),
        TIB: lambda folder: corpora.write_texts(corpora.tib(), folder),
    },
    seeds=SEEDS,
    large=True,
)
