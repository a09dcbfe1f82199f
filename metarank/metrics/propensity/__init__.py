"""Propensities of labels: the probability that a relevant label was recorded.

- `curve`: the propensity model of Jain et al. (2016), eq. 1, and its presets.
- `weights`: weights of labels by that model, or by the popular heuristics.
- `estimate`: propensities of single labels, from a hierarchy, from substitutes, from symmetric relations.
- `points`: estimated propensities, and the curve fitted to them.
- `drawing`: a drawing of both, as SVG.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metarank._util.lazy import imported_when_used
from metarank.metrics.propensity.curve import PRESETS, inv_propensity

if TYPE_CHECKING:
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

# The curve is needed by every model; the rest is imported when first used.
_HOME = {
    "PropensityBins": "metarank.metrics.propensity.points",
    "PropensityFit": "metarank.metrics.propensity.points",
    "PropensityPoints": "metarank.metrics.propensity.points",
    "fit_propensity": "metarank.metrics.propensity.points",
    "label_weights": "metarank.metrics.propensity.weights",
    "plot_propensities": "metarank.metrics.propensity.drawing",
    "propensities_from_hierarchy": "metarank.metrics.propensity.estimate",
    "propensities_from_substitutes": "metarank.metrics.propensity.estimate",
    "propensities_from_symmetry": "metarank.metrics.propensity.estimate",
}


__getattr__ = imported_when_used(__name__, _HOME)
