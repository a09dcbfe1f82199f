"""Where a warning points: at the line that called the package."""

from __future__ import annotations

import sys


def outside() -> int:
    """The `stacklevel` by which a warning of the caller shows the line outside the package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("metarank"):
        level, frame = level + 1, frame.f_back
    return level
