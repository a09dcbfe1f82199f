"""Points of several objectives: the Pareto front, its hypervolume and its knee."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metarank.types.checks import check_numbers


def non_dominated(points: Any, tolerance: float = 0.0) -> NDArray[np.bool_]:
    """Points that no other point dominates: the Pareto front (Definition 3.1).

    Parameters
    ----------
    points : float array (n, K)
        A row per point, a column per objective; greater is better.
    tolerance : float
        As in `dominates`: a point is dominated if another is nowhere worse by more than the tolerance, and
        somewhere better by more than it.

    Returns
    -------
    bool array (n,)
        Equal points get the same answer. With tolerance 0 at least one point of n >= 1 is on the front.
        With a positive tolerance dominance may have cycles, and every point may be dominated.

    Raises
    ------
    ValueError
        Points that are not two-dimensional, without an objective or not finite; a negative tolerance.

    Examples
    --------
    >>> non_dominated([[0.9, 0.5], [0.8, 0.6], [0.7, 0.6]])
    array([ True,  True, False])
    """
    values = check_numbers(points, "points", n_dims=2)
    if isinstance(tolerance, bool) or not tolerance >= 0:
        raise ValueError(f"tolerance must be >= 0, got {tolerance!r}")
    return _non_dominated(values, float(tolerance))


def _non_dominated(values: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
    out = np.ones(len(values), bool)
    for i, point in enumerate(values):
        no_worse = values[(values >= point - tolerance).all(axis=1)]
        out[i] = not (no_worse > point + tolerance).any()
    return out


def hypervolume(points: Any, reference: Any) -> float:
    """Volume that the points dominate, above a reference point: one number for a whole front.

    The value is exact: a sweep for K = 2; beyond, slices along one objective after the other, n^(K - 2) of
    them at worst.

    Parameters
    ----------
    points : float array (n, K)
        Greater is better. Dominated points and copies add nothing, nor do points that do not exceed the
        reference in every objective.
    reference : float array (K,) or float
        The corner from which the volume is measured. Use the same one for fronts that you compare.

    Returns
    -------
    float
        The same bytes in any order of the points; 0 without a point above the reference.

    Raises
    ------
    ValueError
        Points as in `non_dominated`; a reference of another length, or not finite.

    Examples
    --------
    >>> hypervolume([[2.0, 1.0], [1.0, 2.0]], [0.0, 0.0])
    3.0
    >>> hypervolume([[1.0, 1.0, 2.0], [2.0, 1.0, 1.0]], 0.0)
    3.0
    """
    values = check_numbers(points, "points", n_dims=2)
    n_objectives = values.shape[1]
    one = np.ndim(reference) == 0
    corner = check_numbers([reference] * n_objectives if one else reference, "reference", n_objectives)
    above = values[(values > corner).all(axis=1)] - corner
    return _volume(np.unique(above, axis=0))


def _volume(points: np.ndarray) -> float:
    """Volume that positive points dominate above 0."""
    if len(points) == 0:
        return 0.0
    n_objectives = points.shape[1]
    if n_objectives == 1:
        return float(points.max())
    if n_objectives == 2:
        x, y = points[np.lexsort((points[:, 1], -points[:, 0]))].T
        height = np.maximum.accumulate(np.concatenate([[0.0], y]))
        return float((x * np.diff(height)).sum())
    points = points[_non_dominated(points)]
    levels = np.unique(points[:, -1])[::-1]
    total = 0.0
    for level, below in zip(levels, [*levels[1:], 0.0]):
        total += (level - below) * _volume(points[points[:, -1] >= level, :-1])
    return float(total)


def knee(points: Any) -> int:
    """Index of the knee: beyond it a gain in one objective costs much of the others.

    Each objective is scaled so that the worst non-dominated point (the nadir) is 0 and the best (the ideal)
    is 1. The knee is the non-dominated point of the greatest sum; of two objectives it is the farthest one
    above the line through the extremes.

    Parameters
    ----------
    points : float array (n, K)
        Greater is better; n >= 1.

    Returns
    -------
    int
        A row of `points`. Ties go to the first.

    Raises
    ------
    ValueError
        Points as in `non_dominated`, or none.

    Examples
    --------
    >>> knee([[1.0, 0.0], [0.9, 0.7], [0.5, 0.8], [0.0, 1.0], [0.2, 0.2]])
    1
    """
    values = check_numbers(points, "points", n_dims=2)
    if len(values) == 0:
        raise ValueError("points must hold at least one point, got none")
    front = np.flatnonzero(_non_dominated(values))
    nadir, ideal = values[front].min(axis=0), values[front].max(axis=0)
    # An objective in which all points agree takes no part. If one varies, so does another.
    varied = ideal > nadir
    if not varied.any():
        return int(front[0])
    scaled = (values[front] - nadir)[:, varied] / (ideal - nadir)[varied]
    height = scaled.sum(axis=1)
    # Heights that are equal but for rounding are equal.
    return int(front[np.argmax(np.round(height, 12))])
