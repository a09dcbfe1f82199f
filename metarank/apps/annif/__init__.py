"""metarank within Annif: the backend `metarank` (extra ``annif``).

A stock Annif knows only the backends of its own register. `register` adds that of metarank to it;
``metarank annif ...`` is Annif's command line with it, its web page and REST API included.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def metarank() -> type:
    """The class of the backend `metarank`, for an entry point."""
    from metarank.apps.annif.backend import MetarankBackend

    return MetarankBackend


def register() -> None:
    """Make the backend known to Annif in this process, for `annif.backend.get_backend`; again does no harm.

    Raises
    ------
    ImportError
        If Annif is not installed. The message says what to install.
    """
    try:
        backend: Any = import_module("annif.backend")
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "annif":
            raise
        raise ImportError(
            "Annif is not installed here; pip install 'metarank-ltr[annif]' in a separate environment"
        ) from None
    backend._backend_fns["metarank"] = metarank


def main(arguments: list[str], name: str = "metarank annif") -> int:
    """Annif's command line with metarank's backend; returns its exit code.

    Raises
    ------
    ImportError
        As `register`.
    """
    register()
    try:
        import_module("annif.cli").cli.main(args=arguments, prog_name=name)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
