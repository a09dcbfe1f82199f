"""Modules of the package: names that are imported on first use, and the line outside that called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def imported_when_used(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are imported when first used.

    Parameters
    ----------
    package : str
    home : dict of name to the module that defines it, or to the module of that name itself

    Examples
    --------
    >>> imported_when_used("metarank", {"Ranking": "metarank.types.ranking"})("Ranking").__name__
    'Ranking'
    """

    def find(name: str) -> Any:
        if name in home:
            module = importlib.import_module(home[name])
            return module if home[name] == f"{package}.{name}" else getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


def outside() -> int:
    """The `stacklevel` by which a warning of the caller shows the line outside the package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("metarank"):
        level, frame = level + 1, frame.f_back
    return level
