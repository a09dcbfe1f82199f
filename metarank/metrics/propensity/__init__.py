"""Propensities of labels: the probability that a relevant label was recorded.

- `curve`: the propensity model of Jain et al. (2016), eq. 1, and its presets.
- `points`: estimated propensities, and the curve fitted to them.
"""

from metarank.metrics.propensity.curve import PRESETS, counts_of_weights, inv_propensity
from metarank.metrics.propensity.points import PropensityBins, PropensityFit, PropensityPoints, fit_propensity

__all__ = [
    "PRESETS",
    "PropensityBins",
    "PropensityFit",
    "PropensityPoints",
    "counts_of_weights",
    "fit_propensity",
    "inv_propensity",
]
