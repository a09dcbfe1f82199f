"""Candidates of others: fused, described by features of pairs, re-ranked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import mq2008
from declared import Figures, Lines, Study, System
from page_parts import number, prose_of, table
from sets import DATA
from systems.fusion import pairs, reranking, yso

prose = prose_of(globals())

YSO, MQ2008 = "yso-en", "MQ2008"
RERANKED = ("LLMs4Subjects-dev-en", "CiteULike-t-tags")
# Six fits each: those of the peers on CiteULike-t-tags would take as long as all else.
PEERS = {"omikuji": {"n_trees": 3}, "PECOS": {"n_trees": 1, "nr_splits": 16}}
RETRIEVERS = (
    System("inverted index", "fusion.reranking", {"retriever": "inverted index"}, sets=RERANKED),
    *(
        System(name, "fusion.reranking", {"retriever": name.lower(), "settings": settings}, sets=RERANKED[:1])
        for name, settings in PEERS.items()
    ),
)
FUSION_METRICS = ("nDCG@10", "nDCG@1000", "F1@5")
PUBLISHED = {
    "published: neural ensemble of three sources": "annif nn ensemble (3 sources)",
    "published: best of each column, three sources": "best of the scoreboard, column by column (3 sources)",
}
COLUMNS = "; ".join(reranking.COLUMNS)


def percent(values: Mapping[str, float], names: Sequence[str]) -> list[str]:
    return [f"{100 * values[name]:.1f}" if name in values else "-" for name in names]


Rows = list[list[str]]


def fused(line: Figures, lines: Lines) -> Rows:
    published = lines.sets[YSO]["published"]
    rows = [[shown, *percent(published[name], FUSION_METRICS), "-"] for shown, name in PUBLISHED.items()]
    for name, values in line["rows"].items():
        cost = number(values["CPU s"]) if "CPU s" in values else "-"
        rows.append([name, *percent(values, FUSION_METRICS), cost])
    return rows


def described(line: Figures, lines: Lines) -> Rows:
    return [[name, *percent(v, pairs.METRICS), f"{v['CPU s']:.1f}"] for name, v in line["rows"].items()]


def reranked(line: Figures, lines: Lines) -> Rows:
    """Before and after by metarank with its cost, and after by LightGBM with its own."""
    before, ours, theirs = (percent(line["rows"][name], reranking.METRICS) for name in reranking.ROWS)
    spent, *costs = (line["rows"][name]["CPU s"] for name in reranking.ROWS)
    changed = [f"{b} -> {a}" for b, a in zip(before, ours)]
    by_cost = [f"{cost / spent:.1f}" for cost in costs]
    return [[f"{line['set']}, {line['system']}", *changed, by_cost[0], *theirs, by_cost[1]]]


_CHANGED = (*reranking.METRICS, "cost")
_RERANKED = ["set, retriever", *_CHANGED, *(f"LightGBM {name}" for name in _CHANGED)]
CHAPTERS: tuple[tuple[str, Sequence[str], str, list[str], Callable[[Figures, Lines], Rows]], ...] = (
    ("Fusion on yso-en", (YSO,), "FUSED", ["system", *FUSION_METRICS, "CPU s"], fused),
    ("Features of pairs: MQ2008", (MQ2008,), "PAIRS", ["system", *pairs.METRICS, "CPU s"], described),
    ("Re-ranking", RERANKED, "RERANKING", _RERANKED, reranked),
)


def page(lines: Lines) -> str:
    parts = ["# Candidates of others", prose("INTRODUCTION")]
    for title, names, text, head, rows in CHAPTERS:
        there = [line for line in lines if line["set"] in names]
        done = [line for line in there if "failed" not in line]
        failed = [f"{line['set']}, {line['system']}: {line['failed']}" for line in there if "failed" in line]
        body = [row for line in done for row in rows(line, lines)]
        body += [[why, *[""] * (len(head) - 1)] for why in failed]
        parts += [f"## {title}", prose(text, **done[0]) if done else "", table(head, body)] if there else []
    return "\n\n".join(parts)


STUDY = Study(
    "fusion",
    (YSO, MQ2008, *RERANKED),
    (
        System("fusion", "fusion.yso", sets=(YSO,)),
        System("pairs", "fusion.pairs", sets=(MQ2008,)),
        *RETRIEVERS,
    ),
    None,
    page,
    make={YSO: lambda folder: yso.make(DATA, folder), MQ2008: mq2008.make},
)
