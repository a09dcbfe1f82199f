"""Extreme regression: the tables of Prabhu et al. (2020), metarank and peers, on public sets.

python experiments/shortlist_speed/environments.py    (once: the peers, from the package index)
python experiments/xreg/run.py [--sets bibtex,LastFM-ArtistTags-graded] [--again "XReg;XReg-t"] [--kept]

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

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ablations import filtering_and_reranking, parameters  # noqa: E402
from curves import draw_curves, with_zero  # noqa: E402
from problems import SETS, load_problem  # noqa: E402
from sections import Results, write  # noqa: E402
from study import Study, log  # noqa: E402
from systems import Settings, systems_for  # noqa: E402
from whole_page import WholePage, add_options  # noqa: E402

_HERE = Path(__file__).parent
_SPEED_CACHE = _HERE.parent / "shortlist_speed" / "cache"
# Small enough for several fits more; the paper has EURLex-4K and Wiki10-31K here, and its movies.
_RERANKING = (
    *("bibtex", "LLMs4Subjects-dev-en", "LastFM-ArtistTags", "LastFM-ArtistTags-graded"),
    *("MovieLens-small-users", "EURLex-4K", "Wiki10-31K"),
)
_PARAMETERS = (
    "bibtex",
    "LLMs4Subjects-dev-en",
    "LastFM-ArtistTags-graded",
    "MovieLens-small-users",
    "EURLex-4K",
)
_CURVES = ("LLMs4Subjects-dev-en", "LastFM-ArtistTags-graded", "MovieLens-small-users", "EURLex-4K")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help=f"among {', '.join(SETS)}")
    parser.add_argument("--only", default="", help="run these alone, separated by semicolons")
    parser.add_argument("--again", default="", help="systems to run even where a run is kept")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, run nothing")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of what is kept")
    parser.add_argument("--peers-cache", type=Path, default=_SPEED_CACHE, help="that of shortlist_speed")
    parser.add_argument("--environments", type=Path, default=_SPEED_CACHE / "environments")
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    names = options.sets.split(",")
    if unknown := set(names) - set(SETS):
        parser.error(f"--sets must be among {', '.join(SETS)}, got {', '.join(sorted(unknown))}")
    whole = WholePage(options, parser, ("sets",))
    settings = Settings(options.environments, options.peers_cache, options.kept)
    only, again = (tuple(filter(None, given.split(";"))) for given in (options.only, options.again))
    study = Study(options.cache, settings, only, again)

    results, panels = Results(), {}
    for name in names:
        try:
            problem = load_problem(SETS[name])
        except FileNotFoundError as error:
            log(f"{name} is left out: {error}")
            continue
        results.problems[name] = problem
        systems = {system.name: system for system in systems_for(problem.spec)}
        results.figures[name] = {s: study.figures(problem, system) for s, system in systems.items()}
        if name in _RERANKING:
            of_set = study.rows(problem, "reranking", filtering_and_reranking)
            results.rows.setdefault("reranking", {})[name] = of_set
        if name in _PARAMETERS:
            of_set = study.rows(problem, "parameters", parameters)
            results.rows.setdefault("parameters", {})[name] = of_set
        if name in _CURVES:
            pointwise = {
                "XReg": "XReg, pointwise" if problem.spec.labelwise else "XReg",
                "Parabel": "Parabel",
            }
            outcomes = {s: study.predictions(problem, systems[row]) for s, row in pointwise.items()}
            found = {s: outcome.found for s, outcome in outcomes.items() if outcome is not None}
            if found:
                panels[name] = (problem.Y_test, with_zero(found))
    figure = draw_curves(panels, whole.folder / "precision_recall.svg")
    whole.write(write(results, None if figure is None else figure.name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
