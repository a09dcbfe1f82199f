"""Propensities of labels: the probability that a relevant label was recorded.

- `curve`: the propensity model of Jain et al. (2016), eq. 1, and its presets.
- `weights`: weights of labels by that model, or by the popular heuristics.
- `estimate`: propensities of single labels, from a hierarchy, from substitutes, from symmetric relations.
- `points`: estimated propensities, and the curve fitted to them.
- `plot`: a drawing of both, as SVG.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metarank._lazy import imported_when_used
from metarank.propensity.curve import PRESETS, inv_propensity

if TYPE_CHECKING:
    from metarank.propensity.estimate import (
        propensities_from_hierarchy,
        propensities_from_substitutes,
        propensities_from_symmetry,
    )
    from metarank.propensity.plot import plot_propensities
    from metarank.propensity.points import PropensityBins, PropensityFit, PropensityPoints, fit_propensity
    from metarank.propensity.weights import label_weights

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
    "PropensityBins": "metarank.propensity.points",
    "PropensityFit": "metarank.propensity.points",
    "PropensityPoints": "metarank.propensity.points",
    "fit_propensity": "metarank.propensity.points",
    "label_weights": "metarank.propensity.weights",
    "plot_propensities": "metarank.propensity.plot",
    "propensities_from_hierarchy": "metarank.propensity.estimate",
    "propensities_from_substitutes": "metarank.propensity.estimate",
    "propensities_from_symmetry": "metarank.propensity.estimate",
}


__getattr__ = imported_when_used(__name__, _HOME)
