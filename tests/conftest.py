"""Before anything brings an OpenMP runtime: its idle threads must sleep, not spin."""

import os
from collections import Counter
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import hypothesis
import pytest
from terminal import in_a_terminal
from tiers import CHECKS, is_slow

# The same examples in every run, however long one of them takes: what passes once passes again.
hypothesis.settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("steady")

# What tests import or start; there are no examples in it.
HERE = Path(__file__).parent
collect_ignore = ["fuzz", "sanitize", "golden"]
collect_ignore += [str(p.relative_to(HERE)) for p in HERE.rglob("*.py") if not p.name.startswith("test_")]


def pytest_ignore_collect(collection_path, config):
    """What would be left out in the end need not be imported."""
    wanted = config.option.markexpr
    if ("not check" in wanted and collection_path == CHECKS) or (
        "not slow" in wanted and is_slow(collection_path)
    ):
        return True
    return None


def pytest_collection_modifyitems(items):
    seen = Counter()
    for item in items:
        place = item.path, getattr(item, "originalname", None)
        seen[place] += 1
        kept = item.get_closest_marker("check_beyond")
        if CHECKS in item.path.parents or (kept is not None and seen[place] > kept.args[0]):
            item.add_marker(pytest.mark.check)
        if is_slow(item.path):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def signals():
    """Ctrl-C and SIGTERM act as in a terminal, here and in processes that the test starts."""
    with in_a_terminal():
        yield


def pytest_terminal_summary(terminalreporter):
    """Sums of what tests count by `record_property`, such as processes killed."""
    sums = {}
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            sums[name] = sums.get(name, 0) + value
    if sums:
        terminalreporter.write_line(", ".join(f"{value} {name}" for name, value in sorted(sums.items())))
