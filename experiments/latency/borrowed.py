"""What this study has in common with others: sets on disk, peers, runs, judges and clocks."""

from __future__ import annotations

import sys
from pathlib import Path

_STUDIES = Path(__file__).resolve().parent.parent
sys.path += [*(str(_STUDIES / name) for name in ("extreme", "search_filters")), str(_STUDIES)]

from borrowed_runs import (
    PEERS,
    REFERENCE,
    SINGLES,
    Figures,
    Laboratory,
    Prepared,
    Run,
    Setting,
    digest_of_sources,
    environments,
    log,
    version_of,
)
from contenders import PIPELINE, SHORTLISTERS, WITH_NAMES
from judging import Judge
from measure import clocked, yardstick
from report import bullets, cpu_model, number
from runs import THREAD_VARIABLES
from sets import available
from whole_page import WholePage, add_options
