"""What trees are trained on: relevances as asked for."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from metarank._util.elementary import exp
from metarank.metrics.propensity import PRESETS, inv_propensity
from metarank.types.view import TrainingView

RELEVANCES: Final = ("graded", "inverse-propensity", "binary")
# Log-probability of a label that is in no tree, or in which no tree believes.
FLOOR: Final = -80.0
LEAST: Final = float(exp(FLOOR))
# Of curves (a, b): weights stay within float32.
_STEEPEST, _LEAST_B, _MOST_B = 6.0, 1e-3, 1e4


def check_relevance(relevance: Any, propensity: Any) -> None:
    """ValueError unless both are among what `relevances` knows."""
    if relevance not in RELEVANCES:
        raise ValueError(f"relevance must be 'binary', 'graded' or 'inverse-propensity', got {relevance!r}")
    propensity_curve(propensity)


def relevances(view: TrainingView, relevance: str, propensity: Any) -> sp.csr_matrix:
    """The TrainingView's relevances, "graded" as they are, 1, or 1 / p_l; a copy."""
    Y = view.Y.copy()
    if relevance != "graded":
        Y.data = np.ones_like(Y.data)
    weight = relevance_weights(view, relevance, propensity)
    if weight is not None:
        Y.data = weight[Y.indices].astype(np.float32)
    return Y


def relevance_weights(view: TrainingView, relevance: str, propensity: Any) -> np.ndarray | None:
    """1 / p_l of the labels (L,) where relevance is by inverse propensity, else None."""
    if relevance != "inverse-propensity" or view.n_rows <= 2:  # fewer say nothing of propensities
        return None
    return inv_propensity(view.label_counts, *propensity_curve(propensity), n_points=view.n_rows)


def propensity_curve(propensity: Any) -> tuple[float, float]:
    """(a, b) of the propensity model, by preset or as given."""
    rule = f"propensity must be among {sorted(PRESETS)} or a pair (a, b), got {propensity!r}"
    if isinstance(propensity, str):
        if propensity not in PRESETS:
            raise ValueError(rule)
        return PRESETS[propensity]
    try:
        a, b = (float(v) for v in propensity)
    except (TypeError, ValueError):
        raise ValueError(rule) from None
    if not (0 < a <= _STEEPEST and _LEAST_B <= b <= _MOST_B):
        raise ValueError(
            f"propensity must be a pair (a, b) with 0 < a <= {_STEEPEST:g} and "
            f"{_LEAST_B:g} <= b <= {_MOST_B:g}, got {propensity!r}"
        )
    return a, b
