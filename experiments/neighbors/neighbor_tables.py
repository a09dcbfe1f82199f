"""results.md: the tables of indexes and of votes, and how they were made."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from indexes import N_QUERIES, D, K
from indexes import Figures as IndexFigures
from votes import CUTS, MOST_ROWS, N_FOLDS, TAIL
from votes import Figures as VoteFigures

import metarank

NAMES = {"flat": "flat", "hnsw": "HNSW", "ivfpq": "IVF-PQ"}
PARAMETERS = {"flat": "", "hnsw": "breadth", "ivfpq": "lists read"}


def write(indexes: Sequence[IndexFigures], votes: dict[str, tuple[int, int, list[VoteFigures]]]) -> str:
    """The whole page; `votes` has rows, labels and figures of each set."""
    parts = [
        "# Neighbours: approximate indexes, and votes for rare labels",
        Path(__file__).with_name("findings.md").read_text().strip(),
    ]
    if indexes:
        parts += ["## Indexes over dense rows", _INDEX_LEGEND, _indexes(indexes)]
    if votes:
        parts += ["## Votes by inverse propensity", _VOTE_LEGEND]
        for name, (n, n_labels, figures) in votes.items():
            parts += [f"{name}: {n:,} rows, {n_labels:,} labels.", _votes(figures)]
    parts += ["## How it was made", _provenance()]
    return "\n\n".join(parts) + "\n"


_INDEX_LEGEND = f"""Rows of {D} features around n / 100 centres, {N_QUERIES:,} queries of the same kind,
{K} neighbours; one thread, CPU time. *recall*: share of the true neighbours found with a fifth of the rows
held out of the search, as in leave-fold-out training; *batch*: all queries asked at once, ms a query;
*alone*: one query at a time, all rows voting, median ms; *build*, *load*: seconds to build the index and to
take it up from a saved model; *index*: memory beside the rows; *fit*: seconds to build and to ask about
every row once. Defaults in bold."""

_VOTE_LEGEND = f"""Leave-fold-out shortlists ({N_FOLDS} folds) of at most {MOST_ROWS:,} training rows.
*R@k*: share of the relevant pairs among the first k labels, in per cent; *tail*: of those whose label has at
most {TAIL} training points, the row's own among them. *half of each*: the union of the first k / 2 of both
kinds of votes."""


def _indexes(figures: Sequence[IndexFigures]) -> str:
    head = ["rows", "index", "setting", "recall", "batch", "alone", "build", "load", "index, MiB", "fit"]
    return _table(head, [_index_row(f) for f in figures])


def _index_row(f: IndexFigures) -> list[str]:
    name = f"**{NAMES[f['index']]}**" if f["default"] else NAMES[f["index"]]
    return [
        f"{f['n']:,}",
        name,
        f"{PARAMETERS[f['index']]} {f['setting']}" if f["index"] != "flat" else "",
        f"{f['recall']:.3f}",
        f"{f['batch']:.2f}",
        f"{f['alone']:.2f}",
        f"{f['build']:.1f}",
        f"{f['restore']:.2f}",
        f"{f['bytes'] / 2**20:.0f}",
        f"{f['build'] + f['n'] * f['batch'] / 1e3:.0f}",
    ]


def _votes(figures: Sequence[VoteFigures]) -> str:
    head = ["neighbours", "votes", *(f"{name}@{k}" for k in CUTS for name in ("R", "tail R"))]
    return _table(
        head,
        [
            [
                str(f["neighbours"]),
                f["votes"],
                *(f"{100 * share:.1f}" for pair in f["recall"] for share in pair),
            ]
            for f in figures
        ],
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _provenance() -> str:
    return (
        f"- {platform.machine()}, {os.cpu_count()} cores shared with other work, Python "
        f"{platform.python_version()}, faiss {version('faiss-cpu')}, metarank {metarank.__version__}\n"
        "- seed 0 (rows made, fold map, rows chosen)\n"
        "- the findings on top are written by hand, in findings.md"
    )
