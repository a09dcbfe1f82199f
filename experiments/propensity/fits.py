"""How well eq. 1 fits estimated propensities, beside its presets, a constant and a curve with a free C."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from borrowed import SEED, Figures
from curves_drawing import plot_propensities
from points import PropensityPoints, fit_propensity
from relations import Relation
from scipy.optimize import least_squares

from metarank.metrics.propensity import PRESETS, inv_propensity

RESAMPLES = 40
LEAST_TO_DRAW = 40
BIN = 20
_LOG_BOUNDS = np.log([[1e-3, 1e-3, 1e-6], [10.0, 1e4, 1e6]])


def described(relation: Relation) -> Figures:
    """The fit of a relation with what it varies by, and the errors of all curves."""
    points, weight = relation.points, _weight(relation.points, relation.weighted)
    once = points.counts == 1
    out: Figures = {
        "labels": len(points),
        "n_points": points.n_points,
        "most": int(points.counts.max()),
        "once": int(once.sum()),
        "of_once": float(np.average(points.propensities[once], weights=weight[once])) if once.any() else None,
        "at_one": 1 / math.log(points.n_points),
    }
    if len(np.unique(points.counts[points.counts != 1])) < 3:
        return out
    fit = fit_propensity(points.counts, points.propensities, points.n_points, sample_weight=weight)
    out |= {"a": fit.a, "b": fit.b, "at_bound": fit.at_bound, "resampled": _resampled(points, weight)}
    n = points.n_points
    curves: dict[str, np.ndarray] = {"fit": 1 / inv_propensity(points.counts, fit.a, fit.b, n_points=n)}
    a, b, c = free_fit(points, weight)
    curves["free"] = 1 / (1 + c * (points.counts + b) ** -a)
    out["free"] = [a, b, c]
    for name, (a, b) in PRESETS.items():
        curves[name] = 1 / inv_propensity(points.counts, a, b, n_points=n)
    curves["constant"] = np.full(len(points), np.average(points.propensities, weights=weight))
    out["errors"] = {name: _error(points, curve, weight) for name, curve in curves.items()}
    if relation.masked is not None and len(relation.masked) > 2:
        out["masked"] = _of_masked(relation.masked, relation.weighted)
    return out


def free_fit(points: PropensityPoints, weight: np.ndarray) -> tuple[float, float, float]:
    """a, b and C of ``p = 1 / (1 + C (N_l + b)^-a)``, C not bound to log N: least squares."""
    x, p, s = points.counts, points.propensities, np.sqrt(weight / weight.sum())

    def residuals(logs: np.ndarray) -> np.ndarray:
        a, b, c = np.exp(logs)
        return s * (1 / (1 + c * (x + b) ** -a) - p)

    starts = [np.log([a, b, c]) for a in (0.3, 1.0) for b in (0.3, 5.0) for c in (1.0, 10.0)]
    found = [least_squares(residuals, start, bounds=tuple(_LOG_BOUNDS)) for start in starts]
    a, b, c = np.exp(min(found, key=lambda solution: solution.cost).x)
    return float(a), float(b), float(c)


def _weight(points: PropensityPoints, weighted: bool) -> np.ndarray:
    return points.possible.astype(np.float64) if weighted else np.ones(len(points))


def _resampled(points: PropensityPoints, weight: np.ndarray) -> dict[str, Any]:
    """5 % and 95 % of a and b over labels drawn with replacement, and how often the fit is at its bound."""
    rng, fits = np.random.default_rng(SEED), []
    for _ in range(RESAMPLES):
        # A label drawn three times counts three times.
        times = np.bincount(rng.integers(len(points), size=len(points)), minlength=len(points))
        if len(np.unique(points.counts[(times * weight > 0) & (points.counts != 1)])) > 1:
            drawn = {"sample_weight": times * weight}
            fits.append(fit_propensity(points.counts, points.propensities, points.n_points, **drawn))
    ranges = {p: np.quantile([getattr(fit, p) for fit in fits], (0.05, 0.95)).tolist() for p in ("a", "b")}
    return ranges | {"at_bound": sum(fit.at_bound for fit in fits), "fits": len(fits)}


def drawn(relation: Relation, picture: Path) -> bool:
    """Fig. 2, where labels are enough for it."""
    points = relation.points
    if len(points) < LEAST_TO_DRAW:
        return False
    fit = fit_propensity(
        points.counts,
        points.propensities,
        points.n_points,
        sample_weight=_weight(points, relation.weighted),
    )
    size = BIN if len(points) >= 5 * BIN else -(-len(points) // 5)
    picture.write_text(plot_propensities(points, fit, labels_per_bin=size) + "\n")
    return True


def _error(points: PropensityPoints, curve: np.ndarray, weight: np.ndarray) -> float:
    """Root mean square over the bins of Fig. 2, labels of similar counts, of mean propensity less mean curve.

    Of few labels there are five bins.
    """
    order = np.argsort(points.counts, kind="stable")
    bins = np.array_split(order, max(5, round(len(order) / BIN)))
    squares = [
        np.average(points.propensities[b] - curve[b], weights=weight[b]) ** 2 for b in bins if weight[b].any()
    ]
    return math.sqrt(float(np.mean(squares)))


def _of_masked(points: PropensityPoints, weighted: bool) -> Figures:
    weight, once = _weight(points, weighted), points.counts == 1
    fit = fit_propensity(points.counts, points.propensities, points.n_points, sample_weight=weight)
    of_once = float(np.average(points.propensities[once], weights=weight[once])) if once.any() else None
    right = 1 / inv_propensity(points.counts, *PRESETS["default"], n_points=points.n_points)
    return {
        "a": fit.a,
        "b": fit.b,
        "at_bound": fit.at_bound,
        "of_once": of_once,
        "bias": float(np.average(points.propensities - right, weights=weight)),
    }
