"""What this study has in common with `shortlist_speed`: sets on disk, peers, runs, each a process."""

from __future__ import annotations

import sys
from pathlib import Path

_SPEED = Path(__file__).resolve().parent.parent / "shortlist_speed"
sys.path.append(str(_SPEED))

import environments  # noqa: E402
from accuracy import TAIL, tail_recall  # noqa: E402
from datasets import Prepared, prepare  # noqa: E402
from runs import Figures, Laboratory, Run, digest_of_sources, log, version_of  # noqa: E402
from settings import PEERS, REFERENCE, SEED, SINGLES, K, Setting  # noqa: E402

__all__ = [
    "PEERS",
    "REFERENCE",
    "SEED",
    "SINGLES",
    "TAIL",
    "Figures",
    "K",
    "Laboratory",
    "Prepared",
    "Run",
    "Setting",
    "digest_of_sources",
    "environments",
    "log",
    "prepare",
    "tail_recall",
    "version_of",
]
