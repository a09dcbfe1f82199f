"""What this study has in common with `xreg`: sets, kept runs, tables."""

from __future__ import annotations

import sys
from pathlib import Path

_EXPERIMENTS = Path(__file__).resolve().parent.parent
sys.path += [str(_EXPERIMENTS / "xreg"), str(_EXPERIMENTS)]

from problems import SEED, SETS, Problem, load_problem
from sections import bullets, number, table
from study import Figures, Study, digest_of_sources, log
from systems import Clock, Outcome, Settings, System, rescored

PAPER = _EXPERIMENTS / "xreg" / "paper.json"
