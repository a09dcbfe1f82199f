"""Thousands of labels: the pipeline, with and without names, beside trees, one-vs-all and shortlisters."""

from __future__ import annotations

import judging
import page_parts
from declared import Lines, Study, System

SETS = (
    "pydocs",
    "LLMs4Subjects-dev-en",
    "LastFM-ArtistTags",
    "MovieLens-small-users",
    "Wikispeedia-Links",
    "CiteULike-t-tags",
)
# Its one-vs-all takes minutes of training there.
_FEW = ("pydocs", "LLMs*", "LastFM*", "MovieLens*", "Wiki*")

PEERS = (
    # The fast one, which always runs again.
    System("PECOS, 1 tree", "pecos", {"n_trees": 1, "nr_splits": 16}, "pecos"),
    System("PECOS, 3 trees", "pecos", {"n_trees": 3, "nr_splits": 16}, "pecos", kept=True),
    System("PECOS, one-vs-all", "pecos", {"n_trees": 0}, "pecos", kept=True),
    System("omikuji, 3 trees", "omikuji", {"n_trees": 3}, "omikuji", kept=True),
    System(
        "napkinXC, 3 trees",
        "napkinxc",
        {"ensemble": 3, "loss": "l2", "liblinear_c": 1.0, "tree_search_type": "beam"},
        "napkinxc",
        kept=True,
    ),
)
SHORTLISTERS = (
    System("Parabel", "shortlister", {"estimator": "Parabel"}),
    System("Parabel, 1 tree", "shortlister", {"estimator": "Parabel", "n_trees": 1}),
    System("XReg", "shortlister", {"estimator": "XReg"}),
    System("PfastreXML", "shortlister", {"estimator": "PfastreXML"}),
    System("OneVsAll", "shortlister", {"estimator": "OneVsAll"}),
    System("OneVsAll, ridge", "shortlister", {"estimator": "OneVsAll", "loss": "ridge"}),
    System("NeighborShortlister", "shortlister", {"estimator": "NeighborShortlister"}),
)
PIPELINE = (
    System("metarank, no label names", "pipeline", {"names": False, "weights": [0.0]}),
    System("metarank", "pipeline", {"weights": [0.0]}),
)

METRICS = ("P@1", "P@5", "nDCG@5", "PSP@1", "PSP@5", judging.TAIL, "R@100", "C@5", *judging.F1)


def page(lines: Lines) -> str:
    parts = [
        "# Thousands of labels",
        page_parts.HOW,
        "Lists of the best 100 labels, in per cent; propensities are those of the training part. *tail "
        "R@5*: share of all test labels with 1 to 5 training rows that are among the first five. *C@5*: "
        "distinct labels in all first fives, of as many as there could be. *F1* of metarank is that of "
        "the label sets it cuts; all others, and lists of another weight, have the best threshold that "
        "there is for the test labels, which flatters them. *weight 0.0*: ranked by probability, without "
        "the boost of rare labels, from the same training.",
    ]
    for name, described in lines.sets.items():
        parts += [f"## {name}", page_parts.sizes(described), page_parts.systems_table(lines, name, METRICS)]
    return "\n\n".join(parts)


STUDY = Study("thousands", SETS, (*PEERS, *SHORTLISTERS, *PIPELINE), judging.of_lists, page)
