"""Costs of pairs, the explicit bound of Theorem C.1, and Table 3's row of the loan looked into.

python experiments/aggregation/revisited.py [--out revisited.md] [--only bound] [--quick]

Each chapter is kept in cache/ when it is done; --only runs some and takes the others from there.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE))

from chapters import add_chapter_options, write_page  # noqa: E402

sys.path.append(str(_HERE.parent))
from whole_page import add_options  # noqa: E402

CHAPTERS = ("pair_costs", "costs_banking", "bound", "loan_row", "skews")
TITLES = {
    "costs_banking": "Costs of pairs on the banking set",
    "loan_row": "The row of the loan (Table 3)",
    "skews": "Why the order turns between 20 and 80 %",
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, _HERE / "revisited.md")
    add_chapter_options(parser, CHAPTERS)
    title = "Aggregation revisited: costs of pairs, the explicit bound, Table 3"
    write_page(parser, arguments, CHAPTERS, TITLES, title, "revisited_findings.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
