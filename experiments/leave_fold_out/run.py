"""Leave-fold-out scores of label trees and of the ridge: what they cost, and what the ranker makes of them.

python experiments/leave_fold_out/run.py [--sets made] [--repetitions 1] [--kept]

Only the training parts of the sets are read; a fifth of each is held out to judge by. What is kept is not
measured again, so that an interrupted study goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from schemes import PLAIN, RIDGE, SCHEMES, SHARED
from summary import Study, write
from trial import MADE, Figures, Problem, alone, held_out, problem, ranker

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

_HERE = Path(__file__).parent
SETS = (MADE, "LLMs4Subjects-dev-en", "CiteULike-t-tags")
DEFAULT_FOLDS = 5  # of MetaRanker
# Numbers of folds whose cost is measured, and those a ranker learns with; 4 alone for the other schemes.
FOLDS = {PLAIN: (2, 4, DEFAULT_FOLDS, 8), SHARED: (2, 4, 8), RIDGE: (2, 4, 8)}
RANKER_FOLDS = (2, 4, 8)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help=f"among {', '.join(SETS)}")
    parser.add_argument("--parts", default="cost,ranker", help="among cost, ranker")
    parser.add_argument("--schemes", default=";".join(SCHEMES), help="measured now, separated by semicolons")
    parser.add_argument("--repetitions", type=int, default=3, help="of the costs")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, run nothing")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of what is kept")
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("sets", "parts"))
    studies = []
    for name in options.sets.split(","):
        try:
            of = problem(name)
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        kept = Kept(
            options.cache / f"{name}-{of.checksum[:12]}", [] if options.kept else options.schemes.split(";")
        )
        studies.append(study(of, kept, options.parts.split(","), options.repetitions))
    whole.write(write(studies))
    return 0


def study(of: Problem, kept: Kept, parts: list[str], repetitions: int) -> Study:
    """All figures of a set that are kept or made now. Repetitions of the costs come one after another."""
    out = Study(of.name, of.checksum, of.train, of.new)
    for repetition in range(repetitions if "cost" in parts else 0):
        for scheme, make in SCHEMES.items():
            for n_folds in FOLDS.get(scheme, (4,)):
                part = f"cost-{n_folds}-{repetition}"
                figures = kept.get(scheme, part, partial(held_out, make(), of, n_folds))
                if figures is not None:
                    out.costs.setdefault((scheme, n_folds), []).append(figures)
    for scheme, make in SCHEMES.items() if "ranker" in parts else ():
        if scheme in (PLAIN, RIDGE):
            figures = kept.get(scheme, "alone", partial(alone, make(), of))
            if figures is not None:
                out.alone[scheme] = figures
        for n_folds in RANKER_FOLDS if scheme in FOLDS else (4,):
            figures = kept.get(scheme, f"ranker-{n_folds}", partial(ranker, make(), of, n_folds))
            if figures is not None:
                out.rankers[scheme, n_folds] = figures
    return out


class Kept:
    """Figures in a folder, one JSON file each; what is not there is made for the schemes named alone."""

    def __init__(self, folder: Path, made_now: list[str]) -> None:
        self.folder = folder
        self.made_now = made_now

    def get(self, scheme: str, part: str, make: Callable[[], Figures]) -> Figures | None:
        file = self.folder / f"{part}-{scheme.replace(' ', '_').replace(',', '')}.json"
        if not file.is_file():
            if scheme not in self.made_now:
                return None
            print(f"{self.folder.name}: {scheme}, {part}", file=sys.stderr, flush=True)
            self.folder.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(make()) + "\n")
        figures: Figures = json.loads(file.read_text())
        return figures


if __name__ == "__main__":
    sys.exit(main())
