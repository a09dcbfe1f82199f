"""What a saved model, which is untrusted input, may contain: registered classes, and sizes within limits."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from metarank._util.registry import SAVED

# Classes by family and name. Objects name classes of family ""; tags select classes of the other families.
_REGISTERED: dict[tuple[str, str], type] = {}

C = TypeVar("C", bound=type)


class ModelError(ValueError):
    """The folder is damaged, incomplete, or not a model."""


def register(cls: C) -> C:
    """Register a class with `get_state` and `from_state`, so that models may contain its objects.

    Use it as a decorator on your own scorers. Import the module that defines them before `metarank.load`.
    """
    if cls.__name__ in SAVED and cls.__module__ != SAVED[cls.__name__]:
        raise ValueError(f"a class to be saved must have a name of its own, {cls.__name__!r} is metarank's")
    register_in_family("", cls.__name__, cls)
    return cls


def register_in_family(family: str, name: str, cls: type) -> None:
    """Register a class that a tag may select; see `Saved.tag`."""
    _REGISTERED[family, name] = cls


def class_in_family(family: str, name: Any, tag: str) -> Any:
    """The class of a family that a tag selects; ValueError for an unknown name."""
    if not isinstance(name, str) or (family, name) not in _REGISTERED:
        names = sorted(known for of, known in _REGISTERED if of == family)
        raise ValueError(f"{tag} of {family} must be one of {names}, got {name!r:.80}")
    return _REGISTERED[family, name]


def known_class(name: str) -> type | None:
    """The registered class of this name, if there is one."""
    if ("", name) in _REGISTERED:
        return _REGISTERED["", name]
    return getattr(importlib.import_module(SAVED[name]), name) if name in SAVED else None


def class_of(name: str) -> type:
    """The registered class of this name; ModelError for an unknown name."""
    cls = known_class(name)
    if cls is not None:
        return cls
    raise ModelError(
        f"the model holds an object of class {name!r}, which is not known here: import the module "
        "that defines it and mark the class with metarank.persist.register first"
    )


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
class Allowance:
    """Sizes that no array confirms: the limit for each, and what is left of the limit for all."""

    each: int = MOST
    left: int | None = None

    def take(self, size: int) -> None:
        """Count a declared size; ValueError if it exceeds what is left."""
        if self.left is not None:
            if size > self.left:
                raise ValueError(
                    f"sizes that no array bears out must not add up to so much: {size} is more than the "
                    f"{self.left} that are left, see persist.Limits"
                )
            self.left -= size


_allowance: ContextVar[Allowance] = ContextVar("_allowance", default=Allowance())  # noqa: B039  # never less


def allowance() -> Allowance:
    """The allowance of the model that is being loaded; unlimited elsewhere."""
    return _allowance.get()


@contextmanager
def declared_sizes_up_to(most: int, together: int | None = None) -> Iterator[None]:
    """Limit the sizes that no array confirms, in `Declared` and `Csr`: each of them, and their sum."""
    token = _allowance.set(Allowance(min(most, MOST), together))
    try:
        yield
    finally:
        _allowance.reset(token)
