"""What share of metarank the tests went through, by line and by branch, and where they leave most out."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import coverage

_WORST = 10


def main() -> None:
    """Print the shares by `.coverage`, which `pytest --cov` writes; before, the files that leave most out."""
    measured = coverage.Coverage()
    measured.load()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "coverage.json"
        measured.json_report(outfile=str(place))
        found = json.loads(place.read_text())
    worst = sorted(found["files"].items(), key=lambda file: -file[1]["summary"]["missing_lines"])
    for name, file in worst[:_WORST]:
        counts = file["summary"]
        print(f"left out: {counts['missing_lines']:4d} of {counts['num_statements']:4d} lines of {name}")
    total = found["totals"]
    lines = total["covered_lines"] / total["num_statements"]
    branches = total["covered_branches"] / total["num_branches"]
    print(f"covered: {100 * lines:.2f} % of lines, {100 * branches:.2f} % of branches")


if __name__ == "__main__":
    main()
