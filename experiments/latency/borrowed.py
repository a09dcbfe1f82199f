"""What this study has in common with others: sets on disk, peers, runs, judges and clocks."""

from __future__ import annotations

import sys
from pathlib import Path

_STUDIES = Path(__file__).resolve().parent.parent
sys.path += [str(_STUDIES / name) for name in ("extreme", "search_filters")]

from borrowed_runs import (  # noqa: E402
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
from contenders import PIPELINE, SHORTLISTERS, WITH_NAMES  # noqa: E402
from judging import Judge  # noqa: E402
from measure import clocked, yardstick  # noqa: E402
from report import bullets, cpu_model, number  # noqa: E402
from runs import THREAD_VARIABLES  # noqa: E402
from sets import available  # noqa: E402

sys.path.append(str(_STUDIES))
from whole_page import WholePage, add_options  # noqa: E402

__all__ = [
    "PEERS",
    "PIPELINE",
    "REFERENCE",
    "SHORTLISTERS",
    "SINGLES",
    "THREAD_VARIABLES",
    "WITH_NAMES",
    "Figures",
    "Judge",
    "Laboratory",
    "Prepared",
    "Run",
    "Setting",
    "WholePage",
    "add_options",
    "available",
    "bullets",
    "clocked",
    "cpu_model",
    "digest_of_sources",
    "environments",
    "log",
    "number",
    "version_of",
    "yardstick",
]
