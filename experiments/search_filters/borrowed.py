"""What this study has in common with `shortlist_speed`: clocks, the peer's environment, its runs."""

from __future__ import annotations

import sys
from pathlib import Path

_SPEED = Path(__file__).resolve().parent.parent / "shortlist_speed"
sys.path += [str(_SPEED), str(_SPEED.parent), str(_SPEED.parent / "bench")]

import environments
from datasets import Prepared
from measure import clocked, memory, start_of_peak, yardstick
from runs import Laboratory, Run, digest_of_sources, log, version_of
from settings import Setting
from systems.forms import top_of_rows
