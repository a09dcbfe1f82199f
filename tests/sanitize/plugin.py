"""For `pytest -p sanitize.plugin`: tests meet the sanitized core; what they call of it is written down."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from sanitize.calls import Calls
from sanitize.core import import_core

_calls = Calls(import_core(), least_threads=3)
_outcomes: Counter[str] = Counter()


def pytest_runtest_logreport(report: Any) -> None:
    if report.when == "call" or report.outcome != "passed":
        _outcomes[report.outcome] += 1


def pytest_sessionfinish() -> None:
    found = {
        "outcomes": dict(_outcomes),
        "entry_points": _calls.names,
        "called": sorted(_calls.called),
        "threaded": sorted(_calls.threaded),
        "with_threads": sorted(_calls.with_threads),
    }
    Path(os.environ["METARANK_SANITIZE_COUNTS"]).write_text(json.dumps(found))
