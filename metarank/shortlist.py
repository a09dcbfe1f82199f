"""The scorers that propose labels and also work alone, and label hierarchies."""

from metarank.scorers.linear.one_vs_all import OneVsAll
from metarank.scorers.names.words import NameScorer as NameShortlister
from metarank.scorers.names.words import SpellingScorer as SpellingShortlister
from metarank.scorers.neighbors.voting import NeighborShortlister
from metarank.scorers.trees.hierarchy import Hierarchy
from metarank.scorers.trees.instance_tree import FastXML, PfastXML
from metarank.scorers.trees.parabel import Parabel
from metarank.scorers.trees.pfastrexml import PfastreXML
from metarank.scorers.trees.xreg import XReg

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
