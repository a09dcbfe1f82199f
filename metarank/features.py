"""The public door to meta-features: the table of the pairs, and the scaling of dense features."""

from metarank.data.scaling import FeatureTransform
from metarank.ranker.assemble import assemble
from metarank.types.feature_table import FeatureTable

__all__ = ["FeatureTable", "FeatureTransform", "assemble"]
