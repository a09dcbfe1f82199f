"""What a saved model, which is untrusted input, may contain: registered classes, and sizes within limits."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from metarank._util.registry import SAVED

# Registered classes by name.
_REGISTERED: dict[str, type] = {}

C = TypeVar("C", bound=type)


class ModelError(ValueError):
    """The folder is damaged, incomplete, or not a model."""


def register(cls: C) -> C:
    """Register a class with `get_state` and `from_state`: models may then contain its objects.

    Use it as a decorator of your scorers. Import the module that defines them before `metarank.load`.
    """
    home = SAVED.get(cls.__name__, getattr(_REGISTERED.get(cls.__name__), "__module__", ""))
    if home.startswith("metarank.") and home != cls.__module__:
        raise ValueError(f"a class to be saved must have a name of its own, {cls.__name__!r} is metarank's")
    _REGISTERED[cls.__name__] = cls
    return cls


def known_class(name: str) -> type | None:
    """The registered class of this name, if there is one."""
    if name not in _REGISTERED and name in SAVED:
        importlib.import_module(SAVED[name])
    return _REGISTERED.get(name)


def class_of(name: str) -> type:
    """The registered class of this name; ModelError for an unknown name."""
    cls = known_class(name)
    if cls is not None:
        return cls
    raise ModelError(
        f"the model holds an object of class {name!r}, which is not known here: import the module "
        "that defines it and mark the class with metarank.persist.register first"
    )


class Stored:
    """An object of a saved model that `make` makes of the sizes that are known by then.

    Whoever holds it knows the sizes that the two share; see `fields.Object`. Holders that know the same sizes
    share one object.
    """

    def __init__(self, cls: type, make: Callable[[dict[str, int]], Any]) -> None:
        self.cls = cls
        self.make = make
        self.made: dict[frozenset[tuple[str, int]], Any] = {}

    def read(self, sizes: dict[str, int]) -> Any:
        """The object; `sizes` are those known so far, by the names in its spec."""
        told = frozenset(sizes.items())
        if told not in self.made:
            self.made[told] = self.make(sizes)
        return self.made[told]


# --- sizes ----------------------------------------------------------------------

# The largest integer in a saved model.
MOST = 2**31 - 1
# The largest size that no array of a saved model confirms, unless `Limits` says otherwise. No fit exceeds it.
MOST_DECLARED = 1 << 24
# The limit on the sum of such sizes, as a multiple of the limit on one: some twenty parts have one.
TOGETHER = 32


@dataclass(frozen=True)
class Limits:
    """Limits on what a model folder may make the loading process allocate.

    Parameters
    ----------
    manifest_bytes : int
        Size of the manifest, most of which is decoded into Python objects.
    depth : int
        Nesting of lists, mappings and objects.
    files : int
        Number of files.
    declared : int
        Largest size that no array confirms, such as the number of features of sparse rows. The sum of all
        such sizes may be 32 times as large.

    Examples
    --------
    >>> Limits(depth=8).depth
    8
    """

    manifest_bytes: int = 1 << 24
    depth: int = 64
    files: int = 100_000
    declared: int = MOST_DECLARED

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{limit.name} must be a positive integer, got {value!r}")


LIMITS = Limits()


@dataclass
class _Allowance:
    """Sizes that no array confirms: the limit for each, and what is left of the limit for all."""

    each: int = MOST
    left: float = math.inf


_allowance: ContextVar[_Allowance] = ContextVar("_allowance", default=_Allowance())  # noqa: B039  # never less


def count_declared(size: int, what: str) -> None:
    """Count a size that no array confirms; ValueError if it is too large, or all together are."""
    allowed = _allowance.get()
    if size > allowed.each:
        raise ValueError(f"{what} must be at most {allowed.each} without an array of that size, got {size}")
    if size > allowed.left:
        raise ValueError(
            f"sizes without arrays are too large in sum: {what}, {size}, is more than the {allowed.left} "
            "left, see persist.Limits"
        )
    allowed.left -= size


@contextmanager
def declared_sizes_up_to(most: int, together: float = math.inf) -> Iterator[None]:
    """Limit the sizes that no array confirms, in `Declared` and `Csr`: each of them, and their sum."""
    token = _allowance.set(_Allowance(min(most, MOST), together))
    try:
        yield
    finally:
        _allowance.reset(token)
