"""The register of classes that a saved model may contain."""

from __future__ import annotations

import importlib
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


def class_of(name: str) -> type:
    """The registered class of this name; ModelError for an unknown name."""
    if ("", name) in _REGISTERED:
        return _REGISTERED["", name]
    if name in SAVED:
        cls: type = getattr(importlib.import_module(SAVED[name]), name)
        return cls
    raise ModelError(
        f"the model holds an object of class {name!r}, which is not known here: import the module "
        "that defines it and mark the class with metarank.persist.register first"
    )
