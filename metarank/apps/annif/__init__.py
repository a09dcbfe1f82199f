"""metarank within Annif: the backends `metarank` and `metarank_ensemble` (extra ``annif``).

A stock Annif knows only the backends of its own register. `register` adds those of metarank to it;
``metarank annif ...`` is Annif's command line with them, its web page and REST API included.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

# What each backend type of `projects.cfg` is: module and class, imported when a project asks for it.
BACKENDS = {
    "metarank": ("metarank.apps.annif.backend", "MetarankBackend"),
    "metarank_ensemble": ("metarank.apps.annif.ensemble", "MetarankEnsembleBackend"),
}


def metarank() -> type:
    """The class of the backend `metarank`, for an entry point."""
    return _class_of("metarank")


def metarank_ensemble() -> type:
    """The class of the backend `metarank_ensemble`, for an entry point."""
    return _class_of("metarank_ensemble")


def register() -> None:
    """Make the backends known to Annif in this process; again does no harm.

    Annif finds them by `annif.backend.get_backend`, and this module as ``annif.backend.metarank``,
    where its own backends have theirs.

    Raises
    ------
    ImportError
        If Annif is not installed. The message says what to install.
    """
    _annif().backend._backend_fns |= {"metarank": metarank, "metarank_ensemble": metarank_ensemble}
    sys.modules.setdefault("annif.backend.metarank", sys.modules[__name__])


def main(arguments: list[str], name: str = "metarank annif") -> int:
    """Annif's command line with metarank's backends; returns its exit code.

    Raises
    ------
    ImportError
        As `register`.
    """
    register()
    cli = import_module("annif.cli").cli
    try:
        cli.main(args=arguments, prog_name=name)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def __getattr__(name: str) -> type:
    """`MetarankBackend` and `MetarankEnsembleBackend`, which need Annif, once they are asked for."""
    for backend, (_, attribute) in BACKENDS.items():
        if attribute == name:
            return _class_of(backend)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _class_of(name: str) -> type:
    module, attribute = BACKENDS[name]
    return getattr(import_module(module), attribute)


def _annif() -> Any:
    try:
        import_module("annif.backend")
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "annif":
            raise
        raise ImportError(
            "Annif is not installed here; pip install 'metarank-ltr[annif]' in an environment of its own"
        ) from None
    return import_module("annif")
