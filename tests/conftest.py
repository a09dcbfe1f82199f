"""Before anything brings an OpenMP runtime: its idle threads must sleep, not spin."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_terminal_summary(terminalreporter):
    """Sums of what tests count by `record_property`, such as processes killed."""
    sums = {}
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            sums[name] = sums.get(name, 0) + value
    if sums:
        terminalreporter.write_line(", ".join(f"{value} {name}" for name, value in sorted(sums.items())))
