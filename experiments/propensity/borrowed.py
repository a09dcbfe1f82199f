"""What this study has in common with `xreg` and `shortlist_speed`: sets, systems, kept runs, tables."""

from __future__ import annotations

import sys
from pathlib import Path

_EXPERIMENTS = Path(__file__).resolve().parent.parent
sys.path += [str(_EXPERIMENTS / "xreg"), str(_EXPERIMENTS / "shortlist_speed")]

from datasets import prepare  # noqa: E402
from problems import SEED, SETS, Problem, SetSpec, load_problem, make_problem  # noqa: E402
from sections import bullets, number, table, verdict  # noqa: E402
from study import Figures, Study, digest_of_sources, log  # noqa: E402
from systems import (  # noqa: E402
    Clock,
    K,
    Outcome,
    Settings,
    System,
    label_tree,
    low_rank,
    one_vs_all,
    peer,
    rescored,
    size_mib,
)

SPEED_CACHE = _EXPERIMENTS / "shortlist_speed" / "cache"

__all__ = [
    "SEED",
    "SETS",
    "SPEED_CACHE",
    "Clock",
    "Figures",
    "K",
    "Outcome",
    "Problem",
    "SetSpec",
    "Settings",
    "Study",
    "System",
    "bullets",
    "digest_of_sources",
    "label_tree",
    "load_problem",
    "log",
    "low_rank",
    "make_problem",
    "number",
    "one_vs_all",
    "peer",
    "prepare",
    "rescored",
    "size_mib",
    "table",
    "verdict",
]
