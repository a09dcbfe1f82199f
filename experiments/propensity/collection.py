"""The sets of the study: all labels alike, with the propensity curve that judges them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from borrowed import SETS as XREG_SETS
from borrowed import Problem, SetSpec, load_problem, make_problem, prepare

from metarank import Candidates, data
from metarank.data.dataset import Dataset
from metarank.data.pydocs import own_labels
from metarank.metrics.propensity import PRESETS, inv_propensity

REFERENCE = "synthetic-reference"
_REAL = (
    "LLMs4Subjects-dev-en",
    "CiteULike-t-tags",
    "bibtex",
    "LastFM-ArtistTags",
    "Wikispeedia-Links",
)
# Of the Extreme Classification repository, for whoever has the files; the paper's figures are known.
_REPOSITORY = ("EURLex-4K", "Wiki10-31K", "WikiLSHTC-325K", "Amazon-670K")
# Converted by shortlist_speed, not in $METARANK_DATA.
_PREPARED = ("pydocs", REFERENCE)

SETS = {
    spec.name: spec
    for spec in (
        *(replace(XREG_SETS[name], relevance="binary") for name in _REAL),
        *(SetSpec(name, name, "binary") for name in _PREPARED),
        *(replace(XREG_SETS[name], relevance="binary") for name in _REPOSITORY),
        SetSpec("AmazonCat-13K", "AmazonCat-13K", "binary"),
    )
}
NATURAL = ("LLMs4Subjects-dev-en", "CiteULike-t-tags", "LastFM-ArtistTags", "Wikispeedia-Links", "pydocs")


def load(name: str, peers_cache: Path) -> Problem:
    """A set of `SETS`.

    Raises
    ------
    FileNotFoundError
        If its source is not there.
    """
    spec = SETS[name]
    if name not in _PREPARED:
        return load_problem(spec)
    made = prepare(name, peers_cache)
    parts = [Dataset(made.matrix(f"X{part}"), made.matrix(f"Y{part}")) for part in ("", "_test")]
    return make_problem(spec, *parts)


def weights(problem: Problem) -> np.ndarray:
    """1 / p of each label, by the preset of the set and the training counts."""
    return inv_propensity(problem.Y, *PRESETS[problem.spec.propensity])


def allowed(problem: Problem, found: Candidates) -> Candidates:
    """What may be proposed: no document of pydocs is its own label, though none fits its text better."""
    if problem.name != "pydocs":
        return found
    own = own_labels(data.load_pydocs("test"))
    indptr = np.concatenate([[0], np.cumsum(own >= 0)])
    return found.without(Candidates(indptr, own[own >= 0], found.n_labels))
