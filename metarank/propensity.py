"""The public door to propensities of labels; see `metarank.metrics.propensity`."""

from metarank.metrics.propensity import (
    PRESETS,
    PropensityBins,
    PropensityFit,
    PropensityPoints,
    fit_propensity,
    inv_propensity,
    label_weights,
    plot_propensities,
    propensities_from_hierarchy,
    propensities_from_substitutes,
    propensities_from_symmetry,
)

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
