"""Sources of evidence: each describes pairs (instance, label) by named columns, and some propose labels.

- `LabelNeighbors`, `NeighborShortlister`, `Centroids`, `LabelPrior`, `TailClassifiers`: what the training
  rows of a label are like, and how many there are.
- `LinearClassifier`, `KernelRidge`, `KernelSVM`, `ExtraTrees`, `BoostedTrees`, `OneVsAll`: classifiers.
- `Parabel`, `XReg`, `FastXML`, `PfastXML`, `PfastreXML`: trees over very many labels.
- `NameScorer`, `SpellingScorer`, `NameEmbedder`: what the names of labels say.

One of your own is a subclass of `LabelScorer`. `MetaRanker(features=[...], shortlister=[...])` takes them by
name or as objects; those that propose are in `metarank.shortlist` too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metarank._lazy import imported_when_used
from metarank._registry import SOURCES

if TYPE_CHECKING:
    from metarank.scorers.base import LabelScorer
    from metarank.scorers.boosted import BoostedTrees
    from metarank.scorers.centroid import Centroids
    from metarank.scorers.forest import ExtraTrees
    from metarank.scorers.instance_tree import FastXML, PfastXML
    from metarank.scorers.kernel_ridge import KernelRidge
    from metarank.scorers.kernel_svm import KernelSVM
    from metarank.scorers.linear import LinearClassifier
    from metarank.scorers.name_embedder import NameEmbedder
    from metarank.scorers.names import NameScorer, SpellingScorer
    from metarank.scorers.neighbors import LabelNeighbors, NeighborShortlister
    from metarank.scorers.one_vs_all import OneVsAll
    from metarank.scorers.parabel import Parabel
    from metarank.scorers.pfastrexml import PfastreXML
    from metarank.scorers.prior import LabelPrior
    from metarank.scorers.tail import TailClassifiers
    from metarank.scorers.xreg import XReg

__all__ = [
    "BoostedTrees",
    "Centroids",
    "ExtraTrees",
    "FastXML",
    "KernelRidge",
    "KernelSVM",
    "LabelNeighbors",
    "LabelPrior",
    "LabelScorer",
    "LinearClassifier",
    "NameEmbedder",
    "NameScorer",
    "NeighborShortlister",
    "OneVsAll",
    "Parabel",
    "PfastXML",
    "PfastreXML",
    "SpellingScorer",
    "TailClassifiers",
    "XReg",
]

# Names are imported when first used: everything imports some module of this package.
_HOME = {entry.cls: entry.module for entry in SOURCES.values()} | {"LabelScorer": "metarank.scorers.base"}

__getattr__ = imported_when_used(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
