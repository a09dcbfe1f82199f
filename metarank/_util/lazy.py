"""What is built, or imported, on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):
    """A property that is computed on first use and kept, once however many threads ask at the same time.

    `functools.cached_property` promises the last only before Python 3.12.

    Examples
    --------
    >>> class Rows:
    ...     @lazy
    ...     def index(self):
    ...         print("built")
    ...         return [1, 2]
    >>> rows = Rows()
    >>> rows.index is rows.index
    built
    True
    """

    def __init__(self, build: Callable[[Any], T]) -> None:
        self._build = build
        self._lock = RLock()
        self.__doc__ = build.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> lazy[T]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> T | lazy[T]:
        if instance is None:
            return self
        kept = instance.__dict__  # which Python looks into first from now on
        if self._name not in kept:
            with self._lock:
                if self._name not in kept:
                    kept[self._name] = self._build(instance)
        value: T = kept[self._name]
        return value


def imported_when_used(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are imported when first used.

    Parameters
    ----------
    package : str
    home : dict of name to the module that defines it

    Examples
    --------
    >>> imported_when_used("metarank", {"Ranking": "metarank.types.ranking"})("Ranking").__name__
    'Ranking'
    """

    def find(name: str) -> Any:
        if name in home:
            return getattr(importlib.import_module(home[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
