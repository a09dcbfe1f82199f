"""What every parameter of an estimator goes through: one rule each, refused before any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, TypeAlias, TypeVar, dataclass_transform

import numpy as np

_LARGEST = 2**31 - 1
# Where a seed is hashed, and not handed on.
LARGEST_SEED = 2**63 - 1
# The range of positive numbers, for `check_real`.
POSITIVE = 5e-324, float(np.finfo(np.float64).max)

# What a `random_state` may be; see `seed_of`.
RandomState: TypeAlias = "int | np.integer | np.random.RandomState | np.random.Generator | None"

C = TypeVar("C", bound=type)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def with_parameters(cls: C) -> C:
    """Makes an estimator of a class whose annotated attributes are its parameters.

    They are keyword only and stored as they are given, as scikit-learn wants it. A subclass inherits them,
    and may give them other defaults. What a fit learns is not annotated in the class, but where it is set.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> @with_parameters
    ... class Trees(BaseEstimator):
    ...     n_trees: int = 50
    ...     max_leaf: int = 10
    >>> @with_parameters
    ... class MoreTrees(Trees):
    ...     n_trees: int = 100
    >>> MoreTrees(max_leaf=5).get_params()
    {'max_leaf': 5, 'n_trees': 100}
    """
    return dataclass(kw_only=True, eq=False, repr=False)(cls)  # type: ignore[return-value]


def one_target(Y: Any, y: Any) -> Any:
    """What is learned, given as `Y` or by the name that scikit-learn has for it.

    Examples
    --------
    >>> one_target([[1]], None), one_target(None, [[1]])
    ([[1]], [[1]])
    """
    if Y is not None and y is not None:
        raise ValueError("Y and y are two names of one argument: pass one of them")
    return Y if y is None else y


def check_integer(name: str, value: Any, low: int, high: int = _LARGEST) -> None:
    """Refuses what is not an integer in [low, high]."""
    if type(value) is int and low <= value <= high:
        return
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if not low <= int(value) <= high:
        rule = f"between {low} and {high}"
        if high == _LARGEST and int(value) < low:
            rule = f"at least {low}"
        raise ValueError(f"{name} must be {rule}, got {value}")


def check_random_state(value: Any, most: int = _LARGEST) -> None:
    """Refuses what `seed_of` takes no seed from, and draws nothing."""
    if isinstance(value, (np.random.RandomState, np.random.Generator)) or value is None:
        return
    rule = f"random_state must be None, an integer from 0 to {most}, a RandomState or a Generator"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{rule}, got {value!r}")
    if not 0 <= int(value) <= most:
        raise ValueError(f"{rule}, got {value!r}")


def seed_of(random_state: Any, most: int = _LARGEST) -> int:
    """The seed that a `random_state` means: an integer itself, the next draw of a RandomState or Generator
    (which moves on), fresh entropy for None.

    Examples
    --------
    >>> seed_of(7)
    7
    >>> seed_of(np.random.RandomState(0)) == seed_of(np.random.RandomState(0))
    True
    """
    check_random_state(random_state, most)
    if random_state is None:
        random_state = np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31, dtype=np.int64))
    return int(random_state)


def check_real(name: str, value: Any, low: float, high: float, rule: str) -> None:
    """Refuses what is not a number in [low, high], in the words of `rule`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {rule}, got {value!r}")
    if not low <= float(value) <= high:
        raise ValueError(f"{name} must be {rule}, got {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Refuses what is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of the words allowed, or a ValueError that lists them."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")
    return value


def remembered(params: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Parameters that may be overwritten in place, by name, each with a copy."""
    kinds = (list, dict, np.ndarray)
    return {name: (value, deepcopy(value)) for name, value in params.items() if isinstance(value, kinds)}


def as_fitted(params: Mapping[str, Any], kept: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    """The parameters to be saved: what `remembered` has in place of what may have been overwritten since.

    A parameter that was set anew is another object, and stays.

    Examples
    --------
    >>> names = ["a"]
    >>> kept = remembered({"names": names})
    >>> names[0] = "b"
    >>> as_fitted({"names": names}, kept), as_fitted({"names": ["c"]}, kept)
    ({'names': ['a']}, {'names': ['c']})
    """
    return {k: kept[k][1] if k in kept and kept[k][0] is v else v for k, v in params.items()}
