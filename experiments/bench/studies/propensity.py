"""Propensities: the tables and Fig. 4 of Jain et al. (2016), with their rivals, tuned with the same care."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import claims
import judging
import numpy as np
import page_parts
import scipy.sparse as sp
import sets
from claims import NONE, Above, InOrder
from declared import Figures, Lines, Measure, Study, System
from made_sets import unit

from metarank import metrics
from metarank.metrics.propensity import inv_propensity

prose = page_parts.prose_of(globals())

BIBTEX = "bibtex-unit"
SETS = (
    BIBTEX,
    "pydocs",
    "LLMs4Subjects-dev-en",
    "LastFM-ArtistTags",
    "Wikispeedia-Links",
    "CiteULike-t-tags",
)
KS = (1, 3, 5)
METRICS = tuple(f"{name}@{k}" for name in ("P", "nDCG", "PSP", "PSnDCG", "C") for k in KS)
PAPER = json.loads(Path(__file__).with_name("bibtex_2020.json").read_text())
AUTHORS = json.loads(Path(__file__).with_name("fastxml_authors.json").read_text())
FIFTHS = 5


def _own(name: str, estimator: str, sets: tuple[str, ...] = ("*",), **params: Any) -> System:
    return System(name, "shortlister", {"estimator": estimator, **params}, sets=sets)


TREES = ("FastXML", "PfastXML")
PUBLISHED, TUNED = "PfastreXML, as published", "PfastreXML, tuned"
ONE_VS_ALL, RIDGE = "OneVsAll", "OneVsAll, ridge"
_AS_PRINTED = {"alpha": 0.8, "gamma": 30.0, "unit_means": False, "max_terms": None}
# 1-vs-all-LS and DiSMEC keep all weights, as published but for DiSMEC's below 0.01.
_LEAST_SQUARES = {"loss": "ridge", "weights_per_label": None, "intercept_scaling": 0.0}
_ALL = (
    _own("FastXML", "FastXML", relevance="binary"),
    _own("PfastXML", "PfastXML"),
    _own(PUBLISHED, "PfastreXML", **_AS_PRINTED),
    _own(TUNED, "PfastreXML"),
    _own("Parabel", "Parabel"),
    _own(ONE_VS_ALL, "OneVsAll"),
    # All its weights take much memory on larger sets.
    _own("1-vs-all-LS", "OneVsAll", (BIBTEX, "pydocs"), **_LEAST_SQUARES),
)
# What takes long on some sets, for the long study.
_LONG = (
    _own("Parabel, Bonsai's trees", "Parabel", branching=100, balanced=False),
    System("Popularity", "rival", {"estimator": "Popularity"}),
    System("ProXML", "rival", {"estimator": "ProXML"}, sets=SETS[:4]),
)
OF_PAPER = {name: name for name in ("SLEEC", "LEML", "WSABIE", "CPLST")}
OF_PAPER |= {"CS": "CompressedSensing", "ML-CSSP": "CSSP"}
PEERS = (
    System("omikuji, 3 trees", "omikuji", {"n_trees": 3}, "omikuji", ("[!b]*",), kept=True),
    System("PECOS, 3 trees", "pecos", {"n_trees": 3, "nr_splits": 16}, "pecos", ("[!b]*",)),
)


def _systems(ridge: tuple[str, ...], rivals: tuple[str, ...]) -> tuple[System, ...]:
    """The rows of both studies, where the ridge over all labels and rivals are run."""
    names = {**OF_PAPER, "AnnexML": "AnnexML", "LPSR": "LPSR"}.items()
    small = (System(name, "rival", {"estimator": kind}, sets=rivals) for name, kind in names)
    dismec = _own("DiSMEC, no weight dropped", "OneVsAll", rivals, weights_per_label=None)
    return (*_ALL, _own(RIDGE, "OneVsAll", ridge, loss="ridge"), dismec, *small, *PEERS)


def judge(folder: Path, answers: Path) -> dict[str, Figures]:
    """METRICS, and what fifths of the labels, rarest first, add to PSP@5."""
    Y, Y_test = sets.matrix(folder, "Y"), sets.matrix(folder, "Y_test")
    weights = inv_propensity(Y)
    with np.load(answers) as file:
        ranking = judging.ranking_of(dict(file), "", Y.shape[1], sets.excluded(folder))
    values = metrics.evaluate(Y_test, ranking, METRICS, inv_propensity=weights, n_jobs=1)
    added = contributions(Y, Y_test, ranking.labels, weights)
    values |= {f"fifth {i}": value for i, value in enumerate(added)}
    return {"": {name: float(value) for name, value in values.items()}}


def fifths(Y: sp.csr_matrix, Y_test: sp.csr_matrix) -> np.ndarray:
    """The fifth of each label with a training and a test row, by its training rows, 0 the rarest; -1 else.

    Labels of equal counts stay together, so that fifths differ in size and some may be empty.
    """
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    there = (counts > 0) & (np.bincount(Y_test.indices, minlength=len(counts)) > 0)
    edges = np.quantile(counts[there], np.arange(1, FIFTHS) / FIFTHS, method="inverted_cdf")
    return np.where(there, np.searchsorted(np.unique(edges), counts), -1)


def contributions(
    Y: sp.csr_matrix, Y_test: sp.csr_matrix, listed: np.ndarray, weights: np.ndarray, k: int = 5
) -> np.ndarray:
    """What the labels of each fifth add to PSP@k, of lists (n, at least k), padded with -1."""
    first = listed[:, :k]
    row = np.broadcast_to(np.arange(len(first))[:, None], first.shape)[first >= 0]
    label = first[first >= 0]
    hit = label[np.asarray(Y_test[row, label]).ravel() > 0]
    best = sum(-np.sort(-weights[of_row.indices])[:k].sum() for of_row in Y_test)
    # A label with a hit has a test row, and was listed for its training rows.
    of_hit = fifths(Y, Y_test)[hit]
    return np.bincount(of_hit[of_hit >= 0], weights[hit][of_hit >= 0], minlength=FIFTHS) / best


def page(lines: Lines) -> str:
    values = {name: page_parts.medians(lines, name) for name in lines.sets}
    parts = ["# Propensities: the tables of Jain et al. (2016)", prose("INTRODUCTION")]
    parts += ["## In short", prose("IN_SHORT"), claims.table(CLAIMS, values)]
    for name, described in lines.sets.items():
        costs = ("train s", "batch ms")
        parts += [f"## {name}", page_parts.sizes(described)]
        parts += [page_parts.systems_table(lines, name, METRICS, costs), page_parts.chosen(lines, name)]
    if BIBTEX in values:
        parts += ["## bibtex: beside the figures of Prabhu et al. (2020)", BESIDE, beside(values[BIBTEX])]
    parts += ["## Where PSP@5 comes from, by label frequency (Fig. 4)"]
    parts += [prose("FIGURE_4"), figure_4(lines, values)]
    parts += ["## Beside the authors' program", prose("BESIDE_AUTHORS"), beside_authors(values)]
    return "\n\n".join(filter(None, parts))


BESIDE = "[The paper's figures.] Its rows of PfastreXML and DiSMEC are the authors' programs."


PSP, COVERAGE = (tuple(f"{name}@{k}" for k in KS) for name in ("PSP", "C"))
CLAIMS = (
    *(InOrder(f"FastXML < PfastXML < {row}", (*TREES, row), PSP) for row in (PUBLISHED, TUNED)),
    *(Above(f"{row}, above {', '.join(OF_PAPER)}", row, (*OF_PAPER,), PSP) for row in (PUBLISHED, TUNED)),
    *(Above(f"{row}, above one-vs-all", row, (ONE_VS_ALL,), PSP[2:]) for row in (PUBLISHED, TUNED)),
    Above(f"{TUNED}, above the ridge", TUNED, (RIDGE,), PSP[2:]),
    Above(f"{TUNED}, above label trees", TUNED, ("Parabel", *(peer.name for peer in PEERS)), PSP[:1]),
    Above(f"{TUNED}, above FastXML in coverage C@k", TUNED, TREES[:1], COVERAGE),
    Above(f"{TUNED}, above Parabel in plain P@1", TUNED, ("Parabel",), ("P@1",)),
)


def beside(values: Mapping[str, Figures]) -> str:
    printed = {PUBLISHED: "PfastreXML", TUNED: "PfastreXML"}
    rows = []
    for system, quality in values.items():
        figures = PAPER.get(printed.get(system, system.partition(",")[0]))
        if figures:
            pairs = [(100 * quality[f"PSP@{k}"], figures[PAPER["columns"].index(f"PSP@{k}")]) for k in KS]
            rows.append([system, *(f"{ours:.2f} [{theirs:.2f}]" for ours, theirs in pairs)])
    return page_parts.table(["", *(f"PSP@{k}" for k in KS)], rows)


def figure_4(lines: Lines, values: Mapping[str, Mapping[str, Figures]]) -> str:
    rows = []
    for dataset, of_set in values.items():
        Y, Y_test = (sets.matrix(lines.data / dataset, name) for name in ("Y", "Y_test"))
        counts, of_label = np.bincount(Y.indices, minlength=Y.shape[1]), fifths(Y, Y_test)
        sizes = [counts[of_label == i] for i in range(FIFTHS)]
        told = [f"{len(c):,} of {c.min():,} to {c.max():,}" if len(c) else NONE for c in sizes]
        rows.append([dataset, "labels, training rows of each", *told, ""])
        for system in (*TREES, PUBLISHED, TUNED):
            if system in of_set:
                quality = of_set[system]
                added = [f"{100 * quality[f'fifth {i}']:.2f}" for i in range(FIFTHS)]
                rows.append(["", system, *added, f"{100 * quality['PSP@5']:.2f}"])
    return page_parts.table(["set", "", "rarest fifth", "2", "3", "4", "most frequent", "PSP@5"], rows)


def beside_authors(values: Mapping[str, Mapping[str, Figures]]) -> str:
    rows = []
    for dataset, printed in AUTHORS.items():
        for system in TREES:
            if system in values.get(dataset, {}):
                ours = [100 * values[dataset][system][column] for column in AUTHORS["columns"]]
                cells = [f"{a:.1f} [{b:.1f}] {a - b:+.1f}" for a, b in zip(ours, printed[system])]
                rows.append([dataset, system, *cells])
    head = ["ours [theirs] difference", "", *AUTHORS["columns"]]
    return page_parts.table(head, rows) if rows else "Its sets are not in this run."


_MADE = {BIBTEX: unit("bibtex")}
STUDY = Study("propensity", SETS, _systems(SETS[:-1], SETS[:3]), judge, page, Measure(singles=5), _MADE)
LARGE = Study(
    "propensity_large",
    SETS,
    (*_systems(("*",), ("*",)), *_LONG),
    judge,
    page,
    Measure(singles=5, limit=3600),
    _MADE,
    seeds=3,
    large=True,
)
