"""Sources of evidence: each describes pairs (instance, label) by named columns, and some propose labels.

- `LabelNeighbors`, `NeighborShortlister`, `Centroids`, `LabelPrior`, `TailClassifiers`: the training
  rows of a label, and their number.
- `LinearClassifier`, `KernelRidge`, `KernelSVM`, `ExtraTrees`, `OneVsAll`: classifiers.
- `Parabel`, `XReg`, `FastXML`, `PfastXML`, `PfastreXML`: trees over very many labels.
- `NameScorer`, `SpellingScorer`: the names of labels; `NameMentions`: where a text mentions
  them; `NameRecord`: how reliable they are.
- `LabelVectorScorer`: vectors of labels; `TwoSided` learns to compare rows with them.

Your own source is a subclass of `LabelScorer`. `MetaRanker(features=[...], shortlister=[...])` takes sources
by name or as objects; those that also work alone are in `metarank.shortlist`. `metarank/_util/registry.py`
has the names for `shortlister=` and their classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metarank._util.modules import imported_when_used
from metarank._util.registry import SOURCES

if TYPE_CHECKING:  # what type checkers know by its class
    from collections.abc import Callable

    from metarank.scorers.base import LabelScorer as LabelScorer
    from metarank.scorers.classical.forest import ExtraTrees as ExtraTrees
    from metarank.scorers.classical.kernel_ridge import KernelRidge as KernelRidge
    from metarank.scorers.classical.kernel_svm import KernelSVM as KernelSVM
    from metarank.scorers.linear.linear_svm import LinearClassifier as LinearClassifier
    from metarank.scorers.linear.one_vs_all import OneVsAll as OneVsAll
    from metarank.scorers.names.given_vectors import LabelVectorScorer as LabelVectorScorer
    from metarank.scorers.names.mentions import NameMentions as NameMentions
    from metarank.scorers.names.record import NameRecord as NameRecord
    from metarank.scorers.names.two_sided import TwoSided as TwoSided
    from metarank.scorers.names.words import NameScorer as NameScorer
    from metarank.scorers.names.words import SpellingScorer as SpellingScorer
    from metarank.scorers.neighbors.centroids import Centroids as Centroids
    from metarank.scorers.neighbors.prior import LabelPrior as LabelPrior
    from metarank.scorers.neighbors.voting import LabelNeighbors as LabelNeighbors
    from metarank.scorers.neighbors.voting import NeighborShortlister as NeighborShortlister
    from metarank.scorers.trees.instance_tree import FastXML as FastXML
    from metarank.scorers.trees.instance_tree import PfastXML as PfastXML
    from metarank.scorers.trees.parabel import Parabel as Parabel
    from metarank.scorers.trees.pfastrexml import PfastreXML as PfastreXML
    from metarank.scorers.trees.tail import TailClassifiers as TailClassifiers
    from metarank.scorers.trees.xreg import XReg as XReg

# Names are imported when first used: everything imports some module of this package.
_HOME = {entry.cls: entry.module for entry in SOURCES.values()} | {"LabelScorer": "metarank.scorers.base"}

__all__ = sorted(_HOME)

__getattr__: Callable[[str], Any] = imported_when_used(__name__, _HOME)


def __dir__() -> list[str]:
    return __all__
