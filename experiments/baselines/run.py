"""The baselines of Jain et al. (2016), Prabhu et al. (2020) and the paper on LALE, small, beside metarank's
own.

python experiments/baselines/run.py [--sets bibtex,LastFM-ArtistTags] [--again "SLEEC;WSABIE"] [--kept]

What is kept is not run again, so that an interrupted study goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

# Times are those of one thread.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from borrowed import SETS, Settings, Study, load_problem, log  # noqa: E402
from page import Results, write  # noqa: E402
from rows import balance, judge, systems, too_long  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options  # noqa: E402

_HERE = Path(__file__).parent
_SETS = ("bibtex", "LLMs4Subjects-dev-en", "LastFM-ArtistTags", "Wikispeedia-Links", "CiteULike-t-tags")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(_SETS), help=f"among {', '.join(_SETS)}")
    parser.add_argument("--only", default="", help="run these rows alone, separated by semicolons")
    parser.add_argument("--again", default="", help="rows to run even where a run is kept")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, run nothing")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of what is kept")
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    names = options.sets.split(",")
    if unknown := set(names) - set(_SETS):
        parser.error(f"--sets must be among {', '.join(_SETS)}, got {', '.join(sorted(unknown))}")
    whole = WholePage(options, parser, ("sets",))
    only, again = (tuple(filter(None, given.split(";"))) for given in (options.only, options.again))
    study = Study(options.cache, Settings(_HERE, _HERE, options.kept), only, again, judge)
    results = Results()
    for name in names:
        try:
            problem = load_problem(replace(SETS[name], relevance="binary"))
        except FileNotFoundError as error:
            log(f"{name} is left out: {error}")
            continue
        results.problems[name] = problem
        reasons = {row.name: too_long(problem, row.name) for row in systems()}
        results.figures[name] = {
            row.name: {"failed": reasons[row.name]} if reasons[row.name] else study.figures(problem, row)
            for row in systems()
        }
        results.balance[name] = study.rows(problem, "balance", balance)
    whole.write(write(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
