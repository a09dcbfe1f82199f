"""The sets of the study, small ones first, and the propensity curve that judges each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from borrowed_runs import REFERENCE, Prepared, log, prepare

from metarank.metrics.propensity import PRESETS, inv_propensity

LARGEST = "YSO-FinnaTitles-27K"
SETS = (
    "pydocs",
    "LLMs4Subjects-dev-en",
    "LastFM-ArtistTags",
    REFERENCE,
    "CiteULike-t-tags",
    "Wikispeedia-Links",
    LARGEST,
)
# Of the Extreme Classification repository, for whoever has the files.
REPOSITORY = ("EURLex-4K", "Wiki10-31K", "AmazonCat-13K", "WikiLSHTC-325K", "Amazon-670K")

# The presets of Jain et al. (2016) by the names that the repository's sets have; "default" for all others.
_CURVES = {"wikipedia": r"WikiLSHTC|Wikipedia|WikiTitles", "amazon": r"Amazon(?!Cat)"}


def curve_of(name: str) -> str:
    """The preset of a set."""
    return next((curve for curve, pattern in _CURVES.items() if re.search(pattern, name)), "default")


def weights(dataset: Prepared) -> np.ndarray:
    """1 / p of each label, from the training part."""
    return inv_propensity(dataset.matrix("Y"), *PRESETS[curve_of(dataset.name)])


def available(wanted: Iterable[str], cache: Path) -> Iterator[Prepared]:
    """The sets that can be had, by name or folder, the others left out with a message."""
    for name in wanted:
        try:
            yield prepare(Path(name) if Path(name).is_dir() else name, cache)
        except FileNotFoundError as error:
            log(f"{name} is left out: {error}")
