"""Thousands of labels: the pipeline, with and without names, beside trees, one-vs-all and shortlisters."""

from __future__ import annotations

import design
import judging
import page_parts
from declared import Lines, Measure, Study, System

prose = page_parts.prose_of(globals())

SETS = (
    "CiteULike-t-tags",
    "LLMs4Subjects-dev-en",
    "Wikispeedia-Links",
    "LastFM-ArtistTags",
    "MovieLens-small-users",
    "pydocs",
)

TREES = (
    System("omikuji, 3 trees", "omikuji", {"n_trees": 3}, "omikuji", kept=True),
    System(
        "napkinXC, 3 trees",
        "napkinxc",
        {"ensemble": 3, "loss": "l2", "liblinear_c": 1.0, "tree_search_type": "beam"},
        "napkinxc",
        kept=True,
    ),
    System("PECOS, 3 trees", "pecos", {"n_trees": 3, "nr_splits": 16}, "pecos", kept=True),
    # The fast one, which always runs again.
    System("PECOS, 1 tree", "pecos", {"n_trees": 1, "nr_splits": 16}, "pecos"),
)
FLAT = System("PECOS, one-vs-all", "pecos", {"n_trees": 0}, "pecos", kept=True)
OUR_TREES = (
    System("Parabel", "shortlister", {"estimator": "Parabel"}),
    System("Parabel, beam 20", "shortlister", {"estimator": "Parabel", "beam": 20}),
    System("Parabel, 1 tree", "shortlister", {"estimator": "Parabel", "n_trees": 1}),
)
SHORTLISTERS = (
    *OUR_TREES,
    System("XReg", "shortlister", {"estimator": "XReg"}),
    System("PfastreXML", "shortlister", {"estimator": "PfastreXML"}),
    System("OneVsAll", "shortlister", {"estimator": "OneVsAll"}),
    System("OneVsAll, ridge", "shortlister", {"estimator": "OneVsAll", "loss": "ridge"}),
    System("NeighborShortlister", "shortlister", {"estimator": "NeighborShortlister"}),
)
NO_NAMES = System("metarank, no label names", "pipeline", {"names": False, "weights": ["auto"]})
WITH_NAMES = System("metarank", "pipeline", {"weights": ["auto"]})

METRICS = ("P@1", "P@5", "nDCG@5", "PSP@1", "PSP@5", judging.TAIL, "R@100", "C@5", *judging.F1)
BEHIND = (
    "Where a peer is ahead of metarank, which reads no label names either here; P@1, nDCG@5, PSP@5 and F1."
)


def page(lines: Lines) -> str:
    parts = ["# Thousands of labels", page_parts.HOW, prose("LISTS")]
    parts += ["## In short", prose("IN_SHORT"), in_short(lines)]
    parts += ["## Label trees alone", prose("ALONE"), trees_alone(lines)]
    parts += ["## Where peers are ahead", BEHIND, behind(lines)]
    for name, described in lines.sets.items():
        parts += [f"## {name}", page_parts.sizes(described), page_parts.systems_table(lines, name, METRICS)]
    return "\n\n".join(parts)


def figures(lines: Lines, dataset: str, system: System) -> dict[str, float]:
    """Quality and costs of a system's main lists; none where it failed or was not run."""
    return page_parts.medians(lines, dataset).get(system.name, {})


def in_short(lines: Lines) -> str:
    shown = (TREES[2].name, FLAT.name, NO_NAMES.name, WITH_NAMES.name, f"{WITH_NAMES.name}, weight auto")
    rows = []
    for name, described in lines.sets.items():
        row, of_set = [f"{name} ({described['L']:,})"], page_parts.medians(lines, name)
        for system in shown:
            found = of_set.get(system, {})
            quality = " / ".join(f"{100 * found[metric]:.1f}" for metric in ("nDCG@5", "PSP@5") if found)
            row.append(f"{quality}, {page_parts.cost(found, 'train_s')} s" if found else "–")
        rows.append(row)
    return page_parts.table(["set (labels)", *shown], rows)


_QUALITY = ("P@5", "PSP@5", "R@100")
_COSTS = {"training": "train_s", "batch": "batch_ms", "single": "single_ms", "model": "model_mib"}


def trees_alone(lines: Lines) -> str:
    rows = []
    for name in lines.sets:
        for peer in TREES:
            theirs = figures(lines, name, peer)
            duels = [(s.name, found) for s in OUR_TREES if theirs and (found := figures(lines, name, s))]
            if not duels:
                continue

            def shortfall(duel: tuple[str, dict], theirs: dict = theirs) -> float:
                quality = sum(max(0.0, theirs[key] - duel[1][key]) for key in _QUALITY)
                return quality or -sum(duel[1][key] <= theirs[key] for key in _COSTS.values())

            ours, found = min(duels, key=shortfall)
            gains = [found[key] - theirs[key] for key in _QUALITY]
            shares = [found[key] / theirs[key] for key in _COSTS.values()]
            rows.append(
                [
                    name,
                    peer.name,
                    ours,
                    *(f"{100 * gain:+.1f}" for gain in gains),
                    *(f"{share:.2f}" for share in shares),
                    "yes" if min(gains) >= 0 and max(shares) <= 1 else "no",
                ]
            )
    return page_parts.table(["set", "peer", "ours", *_QUALITY, *_COSTS, "no worse, cheaper"], rows)


def behind(lines: Lines) -> str:
    told = []
    for name in lines.sets:
        ours = figures(lines, name, NO_NAMES)
        for peer in (*TREES, FLAT):
            theirs = figures(lines, name, peer)
            ahead = [
                f"{metric} ({100 * theirs[metric]:.1f}, metarank {100 * ours[metric]:.1f})"
                for metric in ("P@1", "nDCG@5", "PSP@5", *judging.F1)
                if ours and theirs and theirs[metric] > ours[metric]
            ]
            told += [f"- {name}: {peer.name} in {', '.join(ahead)}"] if ahead else []
    return "\n".join(told) or "Nowhere."


STUDY = Study("thousands", SETS, (*TREES, FLAT, *SHORTLISTERS, NO_NAMES, WITH_NAMES), judging.of_lists, page)


def long_page(lines: Lines) -> str:
    return "\n\n".join(["# Thousands of labels", *design.sections(lines)])


LARGE = Study(
    "thousands_large",
    design.SETS,
    design.SYSTEMS,
    judging.of_lists,
    long_page,
    Measure(limit=3000),
    seeds=3,
    large=True,
)
