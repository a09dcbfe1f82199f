"""The public door to the service (extra ``serve``); see `metarank.apps.serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metarank._util.lazy import imported_when_used
from metarank.apps.serve import Access, ServeOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from metarank.apps.serve import create_app

__all__ = ["Access", "ServeOptions", "create_app"]

__getattr__: Callable[[str], Any] = imported_when_used("metarank.apps", {"create_app": "metarank.apps.serve"})
