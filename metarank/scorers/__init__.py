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

from metarank._util.lazy import imported_when_used
from metarank._util.registry import SOURCES

if TYPE_CHECKING:
    from metarank.scorers.base import LabelScorer
    from metarank.scorers.classical.boosted_trees import BoostedTrees
    from metarank.scorers.classical.forest import ExtraTrees
    from metarank.scorers.classical.kernel_ridge import KernelRidge
    from metarank.scorers.classical.kernel_svm import KernelSVM
    from metarank.scorers.linear.linear_svm import LinearClassifier
    from metarank.scorers.linear.one_vs_all import OneVsAll
    from metarank.scorers.names.name_embedder import NameEmbedder
    from metarank.scorers.names.words import NameScorer, SpellingScorer
    from metarank.scorers.neighbors.centroids import Centroids
    from metarank.scorers.neighbors.prior import LabelPrior
    from metarank.scorers.neighbors.voting import LabelNeighbors, NeighborShortlister
    from metarank.scorers.trees.instance_tree import FastXML, PfastXML
    from metarank.scorers.trees.parabel import Parabel
    from metarank.scorers.trees.pfastrexml import PfastreXML
    from metarank.scorers.trees.tail import TailClassifiers
    from metarank.scorers.trees.xreg import XReg

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
