"""Propensities of labels: the probability that a relevant label was recorded.

- `curve`: the propensity model of Jain et al. (2016), eq. 1, and its presets.
- `weights`: weights of labels by that model, or by the popular heuristics.
- `estimate`: propensities of single labels, from a hierarchy, from substitutes, from symmetric relations.
- `points`: estimated propensities, and the curve fitted to them.
- `drawing`: a drawing of both, as SVG.
"""

from metarank.metrics.propensity.curve import PRESETS, inv_propensity
from metarank.metrics.propensity.drawing import plot_propensities
from metarank.metrics.propensity.estimate import (
    propensities_from_hierarchy,
    propensities_from_substitutes,
    propensities_from_symmetry,
)
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
    "plot_propensities",
    "propensities_from_hierarchy",
    "propensities_from_substitutes",
    "propensities_from_symmetry",
]
