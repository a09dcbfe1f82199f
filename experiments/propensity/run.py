"""Propensities: the tables and figures of Jain et al. (2016), metarank and peers, on public sets.

python experiments/shortlist_speed/environments.py    (once: the peers, from the package index)
python experiments/propensity/run.py [--sets bibtex,pydocs] [--kept]

What is kept is not run again, so that an interrupted study goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# Times are those of one thread.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from borrowed import SPEED_CACHE, Problem, Settings, Study, log  # noqa: E402
from chapters import TREES, Results, write  # noqa: E402
from collection import REFERENCE, SETS, load  # noqa: E402
from contenders import contenders, judge, other_seeds  # noqa: E402
from tail_gain import contributions, describe_bins  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options  # noqa: E402

_HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help=f"among {', '.join(SETS)}")
    parser.add_argument("--only", default="", help="run these systems alone, separated by semicolons")
    parser.add_argument("--again", default="", help="systems to run even where a run is kept")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, run nothing")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of what is kept")
    parser.add_argument("--peers-cache", type=Path, default=SPEED_CACHE, help="that of shortlist_speed")
    parser.add_argument("--environments", type=Path, default=SPEED_CACHE / "environments")
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    names = options.sets.split(",")
    if unknown := set(names) - set(SETS):
        parser.error(f"{', '.join(sorted(unknown))}: not among {', '.join(SETS)}")
    whole = WholePage(options, parser, ("sets",))
    settings = Settings(options.environments, options.peers_cache, options.kept)
    only, again = (tuple(filter(None, given.split(";"))) for given in (options.only, options.again))
    study = Study(options.cache, settings, only, again, judge)

    results = Results()
    for name in names:
        try:
            problem = load(name, options.peers_cache)
        except FileNotFoundError as error:
            log(f"{name} is left out: {error}")
            continue
        results.problems[name] = problem
        _tables(study, results, problem)
    whole.write(write(results))
    return 0


def _tables(study: Study, results: Results, problem: Problem) -> None:
    """The rows of Tables 3 and 4, and what Fig. 4 asks of their lists."""
    systems = {system.name: system for system in contenders(problem.spec)}
    results.figures[problem.name] = {s: study.figures(problem, system) for s, system in systems.items()}
    if problem.name == REFERENCE:
        results.seeds = study.rows(problem, "seeds", other_seeds)
        return
    outcomes = {name: study.predictions(problem, systems[name]) for name in TREES}
    added = {name: contributions(problem, made.found) for name, made in outcomes.items() if made is not None}
    if added:
        results.bins[problem.name] = (describe_bins(problem), added)


if __name__ == "__main__":
    sys.exit(main())
