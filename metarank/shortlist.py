"""The scorers that can propose candidate labels."""

from metarank.scorers.names import NameScorer as NameShortlister
from metarank.scorers.neighbors import NeighborShortlister

__all__ = ["NameShortlister", "NeighborShortlister"]
