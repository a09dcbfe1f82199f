"""A trained model as an HTTP service (extra ``serve``): `metarank serve MODEL`.

A request's way: `app` reads and admits it, `workers` keeps it in a bounded queue until a thread is free,
`answers` reads it by `schema` and `instances`, asks the model for all that wait at once, and writes the
reply. `run` is the process around them, `processes` several of them, `page` what a person sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metarank.apps.serve.options import Access, ServeOptions

if TYPE_CHECKING:
    from metarank.apps.serve.app import create_app

__all__ = ["Access", "ServeOptions", "create_app"]


def __getattr__(name: str) -> Any:
    """`create_app` is imported when it is asked for, as it needs the extra."""
    if name != "create_app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from metarank._util.extra import require_extra

    require_extra("serve", "fastapi", "uvicorn", "prometheus_client")
    from metarank.apps.serve.app import create_app

    return create_app
