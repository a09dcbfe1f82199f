"""Loss or label aggregation: the tables, figures and examples of the paper, on data, by theory and by force.

python experiments/aggregation/run.py [--out results.md] [--only banking,enumeration] [--quick]

Each chapter is kept in cache/ when it is done; --only runs some and takes the others from there.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# Before anything brings an OpenMP runtime: its idle threads must sleep, not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE))

from chapters import add_chapter_options, write_page  # noqa: E402

sys.path.append(str(_HERE.parent))
from whole_page import add_options  # noqa: E402

CHAPTERS = (
    "banking",
    "bayes_curves",
    "enumeration",
    "synthetic_training",
    "counterexample",
    "growth",
    "boosted_banking",
    "learned_scorers",
    "letor",
    "mslr",
    "helpsteer",
    "costs",
)
# Of chapters that are left out where their data is not there.
TITLES = {
    "banking": "Banking: Table 3 and Figure 3",
    "boosted_banking": "Banking with boosted trees",
    "letor": "MQ2008",
    "mslr": "MSLR-WEB30K (Table 4)",
    "helpsteer": "HelpSteer (Figure 4)",
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, _HERE / "results.md")
    add_chapter_options(parser, CHAPTERS)
    write_page(
        parser,
        arguments,
        CHAPTERS,
        TITLES,
        "Loss or label aggregation: several labels, one ranking",
        "findings.md",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
