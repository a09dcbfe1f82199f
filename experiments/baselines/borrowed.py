"""What this study has in common with `xreg`: sets, kept runs, tables."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "xreg"))

from problems import SEED, SETS, Problem, load_problem
from sections import bullets, number, table
from study import Figures, Study, digest_of_sources, log
from systems import Clock, Outcome, Settings, System, rescored

PAPER = Path(__file__).resolve().parent.parent / "xreg" / "paper.json"

__all__ = [
    "PAPER",
    "SEED",
    "SETS",
    "Clock",
    "Figures",
    "Outcome",
    "Problem",
    "Settings",
    "Study",
    "System",
    "bullets",
    "digest_of_sources",
    "load_problem",
    "log",
    "number",
    "rescored",
    "table",
]
