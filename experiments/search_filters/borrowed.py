"""What this study has in common with `shortlist_speed`: clocks, the peer's environment, its runs."""

from __future__ import annotations

import sys
from pathlib import Path

_SPEED = Path(__file__).resolve().parent.parent / "shortlist_speed"
sys.path.append(str(_SPEED))

import environments  # noqa: E402
from adapters.forms import top_of_rows  # noqa: E402
from datasets import Prepared  # noqa: E402
from measure import clocked, memory, start_of_peak, yardstick  # noqa: E402
from runs import Laboratory, Run, digest_of_sources, log, version_of  # noqa: E402
from settings import Setting  # noqa: E402

__all__ = [
    "Laboratory",
    "Prepared",
    "Run",
    "Setting",
    "clocked",
    "digest_of_sources",
    "environments",
    "log",
    "memory",
    "start_of_peak",
    "top_of_rows",
    "version_of",
    "yardstick",
]
