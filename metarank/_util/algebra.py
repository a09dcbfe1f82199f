"""Dense algebra of fits, in the core: the same bytes on every processor, where BLAS and LAPACK have many.

For matrices of some hundreds of columns; NumPy's are faster on large ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from metarank import _core

# Steps that L-BFGS remembers, and points that a search along one of them looks at.
_REMEMBERED = 10
_MOST_TRIALS = 20
# Of the Wolfe conditions: how much a step must gain, and how flat the loss must be where it ends.
_LEAST_GAIN, _FLAT = 1e-3, 0.9

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


def _plain(A: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(A, np.float64)


def gram(A: np.ndarray, weight: np.ndarray | None = None, n_jobs: int = 1) -> np.ndarray:
    """``A' diag(weight) A``.

    Examples
    --------
    >>> gram(np.array([[1, 2], [3, 4]]), weight=np.array([1, 0]))
    array([[1., 2.],
           [2., 4.]])
    """
    return _core.weighted_gram(_plain(A), np.ones(len(A)) if weight is None else _plain(weight), n_jobs)


def times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """``A x``."""
    return _core.times(_plain(A), _plain(x))


def transposed_times(A: np.ndarray, v: np.ndarray) -> np.ndarray:
    """``A' v``."""
    return _core.transposed_times(_plain(A), _plain(v))


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """``a'b``."""
    return _core.inner_product(_plain(a), _plain(b))


def upper_factor(M: np.ndarray) -> np.ndarray:
    """R, upper triangular with ``R'R = M``.

    Raises
    ------
    ValueError
        If M is not positive definite.

    Examples
    --------
    >>> upper_factor(np.array([[4, 2], [2, 2]]))
    array([[2., 1.],
           [0., 1.]])
    """
    return _core.upper_factor(_plain(M))


def solve_upper(R: np.ndarray, b: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """The x of ``R x = b``, R upper triangular; with `transposed`, of ``R'x = b``."""
    return _core.solve_upper(_plain(R), _plain(b), transposed)


def solve_positive(M: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The x of ``M x = b``, M positive definite."""
    R = upper_factor(M)
    return solve_upper(R, solve_upper(R, b, transposed=True))


@dataclass
class Minimum:
    """Where a minimisation ended, and after how many steps."""

    x: np.ndarray
    loss: float
    steps: int


def minimum(
    objective: Objective,
    start: np.ndarray,
    *,
    most_steps: int,
    flat: float,
    least_gain: float,
    after: Callable[[np.ndarray], Any] | None = None,
) -> Minimum:
    """The minimum of a smooth convex function by L-BFGS (Nocedal and Wright 2006, algorithms 3.5 and 7.4).

    Parameters
    ----------
    objective : function of x (d,)
        Gives its value and its gradient.
    start : float64 array (d,)
    most_steps : int
    flat : float
        It ends where no derivative is greater.
    least_gain : float
        It ends where a step gains no greater share of the loss, or of 1 where that is more.
    after : function of x, optional
        Called after each step; StopIteration ends the search there.

    Examples
    --------
    >>> found = minimum(lambda x: (float((x - 3) @ (x - 3)), 2 * (x - 3)), np.zeros(2),
    ...                 most_steps=9, flat=1e-9, least_gain=0)
    >>> found.x, found.steps
    (array([3., 3.]), 2)
    """
    x = start.astype(np.float64)
    loss, gradient = objective(x)
    moved: list[np.ndarray] = []
    turned: list[np.ndarray] = []
    steps = 0
    while steps < most_steps and np.abs(gradient).max(initial=0.0) > flat:
        direction = -_times_inverse_curvature(gradient, moved, turned)
        slope = dot(gradient, direction)
        if not slope < 0:  # rounding has the last word
            moved, turned = [], []
            direction, slope = -gradient, -dot(gradient, gradient)
        first = 1.0 if moved else min(1.0, 1 / np.sqrt(-slope))
        step = _step(objective, x, direction, loss, slope, first)
        if step is None:
            if not moved:
                break
            moved, turned = [], []
            continue
        size, new_loss, new_gradient = step
        steps += 1
        moved.append(size * direction)
        turned.append(new_gradient - gradient)
        if not dot(moved[-1], turned[-1]) > 1e-16 * dot(turned[-1], turned[-1]):
            del moved[-1], turned[-1]
        del moved[:-_REMEMBERED], turned[:-_REMEMBERED]
        gained = loss - new_loss
        x, loss, gradient = x + size * direction, new_loss, new_gradient
        if after is not None:
            try:
                after(x)
            except StopIteration:
                break
        if gained <= least_gain * max(abs(loss), abs(loss + gained), 1.0):
            break
    return Minimum(x, loss, steps)


def _times_inverse_curvature(
    gradient: np.ndarray, moved: list[np.ndarray], turned: list[np.ndarray]
) -> np.ndarray:
    """The gradient times the inverse of the curvature that the last steps met."""
    out = gradient.copy()
    shares = []
    for s, y in zip(reversed(moved), reversed(turned)):
        shares.append(dot(s, out) / dot(s, y))
        out -= shares[-1] * y
    if moved:
        out *= dot(moved[-1], turned[-1]) / dot(turned[-1], turned[-1])
    for s, y, share in zip(moved, turned, reversed(shares)):
        out += (share - dot(y, out) / dot(s, y)) * s
    return out


def _step(
    objective: Objective, x: np.ndarray, direction: np.ndarray, loss: float, slope: float, size: float
) -> tuple[float, float, np.ndarray] | None:
    """A step that meets the strong Wolfe conditions, or at least gains; None where none does."""
    low = (0.0, loss, slope)  # size, loss and slope of the best end of the bracket; then of the other
    high: tuple[float, float, float] | None = None
    best: tuple[float, float, np.ndarray] | None = None
    for _ in range(_MOST_TRIALS):
        value, gradient = objective(x + size * direction)
        along = dot(gradient, direction)
        if np.isfinite(value) and value < (loss if best is None else best[1]):
            best = (size, value, gradient)
        if not value <= loss + _LEAST_GAIN * size * slope or value >= low[1]:
            high = (size, value, along)
        elif abs(along) <= -_FLAT * slope:
            return size, value, gradient
        else:
            if (high is None and along >= 0) or (high is not None and along * (high[0] - low[0]) >= 0):
                high = low
            low = (size, value, along)
        if high is None:
            size *= 4
        else:
            size = _between(low, high)
            if not abs(high[0] - low[0]) > 1e-12 * max(high[0], low[0]):
                break
    return best


def _between(low: tuple[float, float, float], high: tuple[float, float, float]) -> float:
    """Where the cubic through both ends is least, kept away from them."""
    width = high[0] - low[0]
    middle = low[0] + 0.5 * width
    if not np.isfinite(high[1]) or not np.isfinite(high[2]):
        return low[0] + 0.1 * width
    bend = low[2] + high[2] - 3 * (low[1] - high[1]) / (low[0] - high[0])
    square = bend * bend - low[2] * high[2]
    if not square >= 0:
        return middle
    root = float(np.copysign(np.sqrt(square), width))
    under = high[2] - low[2] + 2 * root
    at = high[0] - width * (high[2] + root - bend) / under if under else middle
    nearest, farthest = sorted((low[0] + 0.1 * width, low[0] + 0.9 * width))
    return float(min(max(at, nearest), farthest)) if np.isfinite(at) else middle
