"""What this study has in common with `shortlist_speed`: sets on disk, peers, runs, each a process."""

from __future__ import annotations

import sys
from pathlib import Path

_SPEED = Path(__file__).resolve().parent.parent / "shortlist_speed"
sys.path += [str(_SPEED), str(_SPEED.parent)]

import environments
from accuracy import TAIL, tail_recall
from datasets import Prepared, prepare
from list_quality import F1, best_f1
from runs import Figures, Laboratory, Run, digest_of_sources, log, version_of
from settings import PEERS, REFERENCE, SEED, SINGLES, K, Setting
