"""Propensities of labels: the probability that a relevant label was recorded.

- `curve`: the propensity model of Jain et al. (2016), eq. 1, and its presets.
- `weights`: weights of labels by that model, or by the popular heuristics.
- `points`: estimated propensities, and the curve fitted to them.
"""

from metarank.metrics.propensity.curve import PRESETS, inv_propensity
from metarank.metrics.propensity.points import (
    PropensityBins,
    PropensityFit,
    PropensityPoints,
    fit_propensity,
)
from metarank.metrics.propensity.weights import label_weights

__all__ = [
    "PRESETS",
    "PropensityBins",
    "PropensityFit",
    "PropensityPoints",
    "fit_propensity",
    "inv_propensity",
    "label_weights",
]
