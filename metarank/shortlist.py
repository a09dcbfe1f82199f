"""The scorers that can propose candidate labels, and the label hierarchies some of them take."""

from metarank.scorers.hierarchy import Hierarchy
from metarank.scorers.instance_tree import FastXML, PfastXML
from metarank.scorers.names import NameScorer as NameShortlister
from metarank.scorers.names import SpellingScorer as SpellingShortlister
from metarank.scorers.neighbors import NeighborShortlister
from metarank.scorers.one_vs_all import OneVsAll
from metarank.scorers.parabel import Parabel
from metarank.scorers.pfastrexml import PfastreXML
from metarank.scorers.xreg import XReg

__all__ = [
    "FastXML",
    "Hierarchy",
    "NameShortlister",
    "NeighborShortlister",
    "OneVsAll",
    "Parabel",
    "PfastXML",
    "PfastreXML",
    "SpellingShortlister",
    "XReg",
]
