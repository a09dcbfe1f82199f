"""Propensities estimated on real relations, and claims of Jain et al. (2016) that run.py does not show.

python experiments/propensity/estimates.py [--parts relations,likelihood,lists,held-out] [--kept]

What is kept is not run again, so that an interrupted study goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

# Times are those of one thread.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from borrowed import SPEED_CACHE, Figures, Problem, Settings, Study, log  # noqa: E402
from chapters import PUBLISHED, TREES, Results, frequency, set_table  # noqa: E402
from collection import NATURAL, load  # noqa: E402
from contenders import contenders, judge  # noqa: E402
from drawings import contribution_figure  # noqa: E402
from estimates_page import (  # noqa: E402
    Made,
    held_out_chapter,
    likelihood_chapter,
    provenance,
    relations_chapter,
)
from fits import described, drawn  # noqa: E402
from held_out import by_alpha, lengths  # noqa: E402
from likelihood import both_solutions  # noqa: E402
from relations import relations  # noqa: E402
from tail_gain import contributions, describe_bins  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options  # noqa: E402

_HERE = Path(__file__).parent
_DATA = Path(os.environ.get("METARANK_DATA") or _HERE.parents[2] / "shared" / "data")
PARTS = ("relations", "likelihood", "lists", "held-out")
_SETS = ("bibtex", *NATURAL)
# The likelihood of all labels of the others takes more than some minutes.
_LIKELIHOOD = ("pydocs", "bibtex", "LLMs4Subjects-dev-en", "LastFM-ArtistTags")
_LARGE = ("CiteULike-t-tags", "Wikispeedia-Links")
_BASELINES = ("LPSR-like", "LEML-like")
_HELD_OUT = "LastFM-ArtistTags"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS), help=f"among {', '.join(PARTS)}")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, run nothing")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of what is kept")
    add_options(parser, _HERE / "estimates.md")
    options = parser.parse_args(arguments)
    parts = options.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"{', '.join(sorted(unknown))}: not among {', '.join(PARTS)}")
    whole = WholePage(options, parser, ("parts",))
    settings = Settings(SPEED_CACHE / "environments", SPEED_CACHE, options.kept)
    study = Study(options.cache, settings, judge=judge)

    problems = {problem.name: problem for problem in _problems()} if parts != ["relations"] else {}
    sections = ["# Propensities estimated, and what else Jain et al. (2016) claim"]
    sections.append((_HERE / "estimates_findings.md").read_text().strip())
    made = Made(problems)
    if "relations" in parts:
        for relation in relations(_DATA):
            made.relations[relation.name] = (relation, described(relation))
            picture = whole.folder / f"estimates-{relation.slug}.svg"
            if drawn(relation, picture):
                made.pictures[relation.name] = picture
            log(f"{relation.name:40} {len(relation.points)} labels")
        sections.append(relations_chapter(made))
    if "likelihood" in parts:
        made.solutions = _rows(study, problems, _LIKELIHOOD, "likelihood", both_solutions)
        sections.append(likelihood_chapter(made))
    if "lists" in parts:
        results = _lists(study, problems)
        picture = whole.folder / "contributions-at-1.svg"
        if results.bins:
            picture.write_text(contribution_figure(results.bins, 1))
            sections.append(frequency(results.bins, picture, 1))
        sections += [set_table(results, name) for name in results.tabled() if name in _LARGE]
        made.figures = results.figures
    if "held-out" in parts:
        made.alphas = _rows(study, problems, (_HELD_OUT,), "alphas", by_alpha).get(_HELD_OUT, [])
        made.lengths = _rows(study, problems, (_HELD_OUT,), "lengths", lengths).get(_HELD_OUT, [])
        sections.append(held_out_chapter(made))
    sections.append(provenance(made))
    whole.write("\n\n".join(section for section in sections if section) + "\n")
    return 0


def _problems() -> Iterable[Problem]:
    for name in _SETS:
        try:
            yield load(name, SPEED_CACHE)
        except FileNotFoundError as error:
            log(f"{name} is left out: {error}")


def _rows(
    study: Study,
    problems: dict[str, Problem],
    names: Sequence[str],
    part: str,
    make: Callable[[Problem], list[Figures]],
) -> dict[str, list[Figures]]:
    made = {name: study.rows(problems[name], part, make) for name in names if name in problems}
    return {name: rows for name, rows in made.items() if rows}


def _lists(study: Study, problems: dict[str, Problem]) -> Results:
    """Whose labels are right at the first place, and the rows of Tables 3 and 4 that were missing."""
    results = Results(dict(problems))
    for name, problem in problems.items():
        systems = {system.name: system for system in contenders(problem.spec)}
        wanted = (*(_BASELINES if name in _LARGE else ()), *TREES[:2], PUBLISHED, TREES[2])
        results.figures[name] = {s: study.figures(problem, systems[s]) for s in wanted}
        outcomes = {s: study.predictions(problem, systems[s]) for s in TREES}
        added = {s: contributions(problem, made.found, 1) for s, made in outcomes.items() if made is not None}
        if added:
            results.bins[name] = (describe_bins(problem), added)
    return results


if __name__ == "__main__":
    sys.exit(main())
