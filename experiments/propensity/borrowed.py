"""What this study has in common with `xreg` and `shortlist_speed`: sets, systems, kept runs, tables."""

from __future__ import annotations

import sys
from pathlib import Path

_EXPERIMENTS = Path(__file__).resolve().parent.parent
sys.path += [str(_EXPERIMENTS / "xreg"), str(_EXPERIMENTS / "shortlist_speed"), str(_EXPERIMENTS)]

from datasets import prepare
from problems import SEED, SETS, Problem, SetSpec, load_problem, make_problem
from sections import bullets, number, table, verdict
from study import Figures, Study, digest_of_sources, log
from systems import (
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
