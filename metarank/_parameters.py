"""What every parameter of an estimator goes through: one rule each, refused before any work."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

_LARGEST = 2**31 - 1


def one_target(Y: Any, y: Any) -> Any:
    """What is learned, given as `Y` or by the name that scikit-learn has for it.

    Examples
    --------
    >>> one_target([[1]], None), one_target(None, [[1]])
    ([[1]], [[1]])
    """
    if Y is not None and y is not None:
        raise ValueError("Y and y are two names of one argument: give one of them")
    return Y if y is None else y


def check_integer(name: str, value: Any, low: int, high: int = _LARGEST) -> None:
    """Refuses what is no integer in [low, high]."""
    if type(value) is int and low <= value <= high:
        return
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if not low <= int(value) <= high:
        rule = f"between {low} and {high}"
        if high == _LARGEST and int(value) < low:
            rule = f"at least {low}"
        raise ValueError(f"{name} must be {rule}, got {value}")


def check_real(name: str, value: Any, low: float, high: float, rule: str) -> None:
    """Refuses what is no number in [low, high], in the words of `rule`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {rule}, got {value!r}")
    if not low <= float(value) <= high:
        raise ValueError(f"{name} must be {rule}, got {value!r}")


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of the words allowed, or a ValueError that lists them."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")
    return value
