"""Which proposers, which ranker: parts of the pipeline in turn, by held-out rows and by the test part."""

from __future__ import annotations

import statistics
from dataclasses import replace

import page_parts
from declared import Lines, System

prose = page_parts.prose_of(globals())

SETS = ("CiteULike-t-tags", "LLMs4Subjects-dev-en", "Wikispeedia-Links", "LastFM-ArtistTags", "pydocs")
HELD_OUT = "held-out nDCG@5"


def _pipeline(name: str, **params: object) -> System:
    return System(name, "pipeline", {"names": False, **params}, sets=SETS)


AUTO = _pipeline("auto")
PROPOSERS = (
    _pipeline("Parabel", shortlister="parabel"),
    # Inverse propensities, by the greatest of all labels; by a label's own they are all 1, as labels are.
    _pipeline("XReg, one maximum", shortlister={"XReg": {"relevance": "inverse-propensity"}}),
    _pipeline("XReg, a maximum a label", shortlister="xreg"),
    _pipeline(
        "XReg-t",
        shortlister={"XReg": {"relevance": "inverse-propensity", "normalize": "label", "tail": "auto"}},
    ),
    _pipeline("PfastreXML", shortlister="pfastrexml"),
    _pipeline("neighbours", shortlister="neighbors"),
    _pipeline("names", shortlister="names", names=True),
    _pipeline("auto, with names", names=True),
)
RANKERS = (
    _pipeline("LambdaRank", ranker="lambdarank"),
    _pipeline("listwise", ranker="listwise"),
    _pipeline("pointwise", ranker="pointwise"),
    _pipeline("ensemble", ranker="ensemble"),
)
# Raw distances to rows of every label take hours where labels have many rows.
FIRST = replace(
    _pipeline("as first written", shortlister="pfastrexml", features="yang2012", ranker="lambdarank"),
    sets=("LLMs4Subjects-dev-en", "Wikispeedia-Links", "pydocs"),
    seeds=1,
)
SYSTEMS = (AUTO, *PROPOSERS, *RANKERS, FIRST)


def sections(lines: Lines) -> list[str]:
    seeds = len({line["seed"] for line in lines})
    parts = ["## Which proposers, which ranker?", prose("INTRODUCTION", seeds=seeds)]
    parts += ["## Proposers", summary(lines, (AUTO, *PROPOSERS, FIRST))]
    parts += ["## Rankers", summary(lines, (AUTO, *RANKERS))]
    return parts


def of_seeds(lines: Lines, dataset: str, system: System, metric: str) -> list[float]:
    found = [line for line in lines.of(dataset, system.name) if "failed" not in line]
    if metric == HELD_OUT:
        return [line["held_out"]["nDCG@5"] for line in found]
    return [line["quality"][""][metric] for line in found]


def summary(lines: Lines, systems: tuple[System, ...]) -> str:
    """What each gains over `auto` in nDCG@5, by held-out rows and by the test part."""

    def gains(system: System, metric: str) -> list[str]:
        told, every = [], []
        for name in there:
            pair = [of_seeds(lines, name, each, metric) for each in (system, AUTO)]
            if all(pair):
                every.append(statistics.median(pair[0]) - statistics.median(pair[1]))
            told.append(f"{100 * every[-1]:+.1f}" if all(pair) else "–")
        mean = f"{100 * statistics.mean(every):+.1f}" if len(every) == len(there) else "–"
        return [*told, mean]

    there = [name for name in lines.sets if name in SETS]
    rows = [
        [
            system.name,
            *(f"{held} / {test}" for held, test in zip(gains(system, HELD_OUT), gains(system, "nDCG@5"))),
        ]
        for system in systems
        if system is not AUTO
    ]
    head = ["nDCG@5 against auto, held-out / test", *there, "mean"]
    return page_parts.table(head, rows)
