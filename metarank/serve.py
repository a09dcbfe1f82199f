"""The public interface of the service (extra ``serve``); see `metarank.apps.serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metarank._util.extra import require_extra

if TYPE_CHECKING:
    from metarank.apps.serve.app import create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> Any:
    """`create_app` is imported when it is asked for, as it needs the extra."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_extra("serve", "fastapi", "uvicorn", "prometheus_client")
    from metarank.apps.serve.app import create_app

    return create_app
