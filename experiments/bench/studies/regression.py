"""Extreme regression: the tables of Prabhu et al. (2020), by points and by labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import claims
import numpy as np
import page_parts
import scipy.sparse as sp
import sets
from claims import NONE, Above, shown
from declared import Figures, Lines, Measure, Study, System
from made_sets import extreme_labelwise, graded, relevances, unit

from metarank import Candidates, metrics

prose = page_parts.prose_of(globals())

BIBTEX, LASTFM = "bibtex-unit", "LastFM-ArtistTags-graded"
MOVIES, MADE = "MovieLens-small-users-graded", "extreme-labelwise"
LABELWISE = (MOVIES, MADE)
SETS = (BIBTEX, "LLMs4Subjects-dev-en", LASTFM, MOVIES, MADE)
LARGE_SETS = ("LastFM-ArtistTags", "Wikispeedia-Links", "CiteULike-t-tags")
MAKE = {
    BIBTEX: unit("bibtex"),
    LASTFM: graded("LastFM-ArtistTags", logarithm=True),
    MOVIES: graded("MovieLens-small-users", labelwise=True),
    MADE: extreme_labelwise,
}
PAPER = json.loads(Path(__file__).with_name("bibtex_2020.json").read_text())

DIRECTED = (
    *(f"{name}@{k}" for name in ("WP", "Tau") for k in (1, 3, 5)),
    *("WN@5", "XMAD@5", "XRMSE@5", "WP-regret@5", "XMAD@10", "MAD"),
)


def _system(name: str, estimator: str = "XReg", sets: tuple[str, ...] = ("*",), **params: Any) -> System:
    return System(name, "regressor", {"estimator": estimator, **params}, sets=sets)


def _by_labels(
    name: str, estimator: str = "XReg", sets: tuple[str, ...] = LABELWISE, **params: Any
) -> System:
    return _system(f"{name}, labelwise", estimator, sets, labelwise=True, **params)


XREG, PRINTED, OWN, CHOSEN = "XReg", "XReg, eq. 5 as printed", "XReg, own maxima", "XReg, chosen maxima"
TAIL, CHOSEN_TAIL = "XReg-t", "XReg-t, chosen maxima"
RIDGE, HINGE = "1-vs-all ridge", "1-vs-all squared hinge"
_XREGS = {
    XREG: {},
    PRINTED: {"cost": "mean"},
    OWN: {"normalize": "label"},
    TAIL: {"tail": "auto"},
    CHOSEN: {"normalize": "auto"},
    CHOSEN_TAIL: {"normalize": "auto", "tail": "auto"},
}
_BY_POINTS = (BIBTEX, "LLMs4Subjects-dev-en", "LastFM*", *LARGE_SETS)
_FEW = (BIBTEX, "LLMs*", "LastFM*", MOVIES)
SHORT = "XReg, pointwise, 10 labels a row"
SYSTEMS = (
    _system("Parabel", "Parabel"),
    *(_system(name, sets=_BY_POINTS, **params) for name, params in _XREGS.items()),
    _system("PfastreXML", "PfastreXML", _FEW),
    _system(RIDGE, "OneVsAll", loss="ridge"),
    _system(HINGE, "OneVsAll"),
    _system("RankSVM, small", "RankingSVM", _FEW),
    _system("LEML, small", "LEML", _FEW),
    # Table 5.
    _system("Parabel, 10 labels a row", "Parabel", LABELWISE, length=10),
    _system(SHORT, sets=LABELWISE, length=10),
    _system("XReg, pointwise", sets=LABELWISE),
    _by_labels("Parabel", "Parabel"),
    *(
        _by_labels(name, **params)
        for name, params in _XREGS.items()
        if "normalize" not in params or name == OWN
    ),
    _by_labels("XReg of two-way trees", branching=2),
    *(_by_labels(f"XReg, F {F}", sets=(MOVIES,), factor=F) for F in (1, 8)),
)
PEERS = (
    System("omikuji, 3 trees", "omikuji", {"n_trees": 3}, "omikuji", ("LLMs*", *LARGE_SETS)),
    System("PECOS, one-vs-all", "pecos", {"n_trees": 0}, "pecos", ("LLMs*", *LARGE_SETS), kept=True),
)
RERANKED = tuple(
    System(f"Table 3: {name}", "reranking", {"estimator": name}, sets=(BIBTEX, "LLMs*", LASTFM))
    for name in ("Parabel", XREG)
)
# One parameter at a time away from the defaults: n_trees 3, beam 10, max_leaf 100.
PARAMETERS_ON = "LLMs4Subjects-dev-en"
PARAMETERS = tuple(
    _system(f"Table 8: {name} {value}", sets=(PARAMETERS_ON,), **{name: value})
    for name, values in {"n_trees": (1, 7), "beam": (5, 30), "max_leaf": (20, 200)}.items()
    for value in values
)


def judge(folder: Path, answers: Path) -> dict[str, Figures]:
    """All metrics of each list of a cell; on labelwise sets also of rows listed for labels ("-l")."""
    Y, Y_test = relevances(folder)
    scale = float(Y.data.max())
    names = [*DIRECTED, "AUPRC"]
    if sets.described(folder).get("labelwise"):
        names += [labelwise(name) for name in DIRECTED]
    with np.load(answers) as file:
        arrays = dict(file)
    out = {}
    for name in sorted({key.rpartition("/")[0] for key in arrays}):
        found = predicted(arrays, name, scale, Y.shape[1])
        values = metrics.evaluate(Y_test, found, names, scale=scale, n_jobs=1)
        out[name] = {metric: float(value) for metric, value in values.items()}
    return out


def predicted(arrays: Mapping[str, np.ndarray], name: str, scale: float, n_labels: int) -> Candidates:
    """Relevances: where a system knows relevant or not, its probability times the greatest relevance."""
    labels = arrays[f"{name}/labels"]
    if f"{name}/indptr" in arrays:
        known = arrays.get(f"{name}/relevance")
        values = known if known is not None else scale * arrays[f"{name}/probability"]
        scores = {"relevance": values.astype(np.float32)}
        return Candidates(arrays[f"{name}/indptr"], labels, n_labels, scores)
    listed = labels >= 0
    values = scale * np.clip(arrays[f"{name}/scores"][listed], 0, 1)
    pairs = (values.astype(np.float32), (np.nonzero(listed)[0], labels[listed]))
    return Candidates.from_csr(sp.csr_matrix(pairs, shape=(len(labels), n_labels)))


def labelwise(name: str) -> str:
    """The name of the same metric with rows and labels swapped: "WP@5" becomes "WP-l@5"."""
    stem, _, k = name.partition("@")
    return f"{stem}-l@{k}" if k else f"{stem}-l"


def page(lines: Lines) -> str:
    values = {name: page_parts.medians(lines, name) for name in lines.sets}
    parts = ["# Extreme regression: the tables of Prabhu et al. (2020)", prose("INTRODUCTION")]
    parts += ["## In short", prose("IN_SHORT"), claims.table(CLAIMS, values)]
    for name, described in lines.sets.items():
        parts += [
            f"## {name} (Tables 2, 4, 5, 7)",
            page_parts.sizes(described),
            set_table(values[name], name),
        ]
        parts += [page_parts.chosen(lines, name), page_parts.failures(lines, name)]
    if BIBTEX in values:
        parts += ["## bibtex: beside the paper's figures", prose("BESIDE"), beside(values[BIBTEX])]
    if reranked := table_3(lines, values):
        parts += ["## Filtering and re-ranking (Table 3)", prose("TABLE_3"), reranked]
    if rows := table_8(lines, values):
        parts += ["## Parameters (Table 8)", TABLE_8, rows]
    return "\n\n".join(filter(None, parts))


TABLE_8 = f"One parameter of XReg at a time away from its defaults, on {PARAMETERS_ON}."


_ALIKE = tuple(peer.name for peer in PEERS)
_LABELWISE = "XReg, labelwise"
CLAIMS = (
    Above("XReg above eq. 5 as printed", XREG, (PRINTED,), ("WP@5",)),
    Above("XReg above own maxima", XREG, (OWN,), ("WP@5",)),
    Above("XReg above Parabel", XREG, ("Parabel",), ("WP@5",)),
    Above("XReg above omikuji and PECOS", XREG, _ALIKE, ("WP@5",)),
    Above("XReg-t, chosen maxima, above omikuji and PECOS", CHOSEN_TAIL, _ALIKE, ("WP@5",)),
    Above("XReg-t above XReg", TAIL, (XREG,), ("WP@5",)),
    Above("XReg-t, chosen maxima, above the ridge", CHOSEN_TAIL, (RIDGE,), ("WP@5",)),
    Above("XReg's errors below Parabel's", XREG, ("Parabel",), ("XMAD@5", "XRMSE@5")),
    Above("XReg filters better than Parabel", XREG, ("Parabel",), ("AUPRC",)),
    Above("XReg, pointwise: errors below Parabel's", "XReg, pointwise", ("Parabel",), ("XMAD@5", "XRMSE@5")),
    Above("XReg, pointwise, filters better than Parabel", "XReg, pointwise", ("Parabel",), ("AUPRC",)),
    *(
        Above(f"{_LABELWISE}, above {told}", _LABELWISE, (other,), ("WP-l@5",))
        for told, other in (
            ("eq. 5 as printed", f"{PRINTED}, labelwise"),
            ("own maxima", f"{OWN}, labelwise"),
            ("its lists of 10 labels a row", SHORT),
            ("its lists of 100 labels a row", "XReg, pointwise"),
            ("Parabel's lists of 100 labels a row", "Parabel"),
            ("Parabel by Algorithm 1", "Parabel, labelwise"),
            ("the ridge", RIDGE),
        )
    ),
)


def set_table(of_set: Mapping[str, Figures], name: str) -> str:
    """Tables 2, 5 and 7, then Table 4: how closely errors bound the regret of the ranking."""
    columns = [*(labelwise(c) if name in LABELWISE else c for c in DIRECTED), "AUPRC"]
    rows = []
    for system, quality in of_set.items():
        if not system.startswith("Table "):
            no_unit = system.startswith("RankSVM")
            errors = [no_unit and c.startswith(("X", "MAD")) for c in columns]
            rows.append([system, *(NONE if e else shown(c, quality[c]) for c, e in zip(columns, errors))])
    return page_parts.table(["", *columns], rows)


def beside(of_set: Mapping[str, Figures]) -> str:
    printed = {RIDGE: "1-vs-all-LS", HINGE: "DiSMEC", PRINTED: XREG}
    rows = []
    for system, quality in of_set.items():
        figures = PAPER.get(printed.get(system, system.partition(", small")[0]))
        if figures:
            ours = [quality[column.replace("PSP", "WP")] for column in PAPER["columns"]]
            cells = []
            for column, own, theirs in zip(PAPER["columns"], ours, figures):
                is_error = column.startswith("X")
                told = NONE if is_error and system.startswith("RankSVM") else shown(column, own)
                cells.append(f"{told} [{theirs:{'.4f' if is_error else '.2f'}}]")
            rows.append([system, *cells])
    return page_parts.table(["", *PAPER["columns"]], rows)


def table_3(lines: Lines, values: Mapping[str, Mapping[str, Figures]]) -> str:
    rows = []
    for line in (line for line in lines if line.get("alphas") and line["seed"] == 0):
        of_set, system = values[line["set"]], line["system"]
        for name, zero, ranked in (("", "", ", re-ranked"), ("zero", ", zero", ", zero re-ranked")):
            plain, again = of_set[system + zero], of_set[system + ranked]
            figures = [shown(c, plain[c]) for c in ("AUPRC", "WP@5", "XMAD@5", "MAD")]
            alpha = f"{line['alphas'][name]:g}"
            who = line["params"]["estimator"] + zero
            rows.append([line["set"], who, *figures, shown("WP@5", again["WP@5"]), alpha])
    head = ["set", "lists of", "AUPRC", "WP@5", "XMAD@5", "MAD", "WP@5 re-ranked", "alpha"]
    return page_parts.table(head, rows) if rows else ""


def table_8(lines: Lines, values: Mapping[str, Mapping[str, Figures]]) -> str:
    rows = []
    for system in (XREG, *(system.name for system in PARAMETERS)):
        for line in [line for line in lines.of(PARAMETERS_ON, system) if "failed" not in line][:1]:
            cells = [shown(c, values[PARAMETERS_ON][system][c]) for c in ("WP@5", "Tau@5", "XMAD@5")]
            costs = [page_parts.number(line[cost]) for cost in ("train_s", "batch_ms", "model_mib")]
            rows.append([system.replace("Table 8: ", ""), *cells, *costs])
    head = ["", "WP@5", "Tau@5", "XMAD@5", "train s", "batch ms", "model MiB"]
    return page_parts.table(head, rows) if len(rows) > 1 else ""


_ALL = (*SYSTEMS, *PEERS, *RERANKED, *PARAMETERS)
STUDY = Study("regression", SETS, _ALL, judge, page, Measure(singles=5), MAKE)
LARGE = Study(
    "regression_large",
    LARGE_SETS,
    (*SYSTEMS, *PEERS, *RERANKED),
    judge,
    page,
    Measure(singles=5, limit=3600),
    seeds=3,
    large=True,
)
