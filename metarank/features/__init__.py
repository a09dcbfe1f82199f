"""Meta-features: what describes a pair (instance, label).

Each block is one small `LabelScorer` with named output columns; `assemble`
stacks them, with their values standardised within the candidate list beside.
"""

from metarank.features.assemble import assemble
from metarank.features.table import FeatureTable
from metarank.features.transform import FeatureTransform

__all__ = ["FeatureTable", "FeatureTransform", "assemble"]
