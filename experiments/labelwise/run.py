"""The best points of each label: a labelwise MetaRanker beside label trees and pointwise lists.

python experiments/labelwise/run.py [--sets MovieLens-small-users] [--seeds 3]
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path
from statistics import mean

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import lightgbm  # noqa: E402
import numpy as np  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent.parent))
from rows import FOUND, LABELWISE, LISTED, METRICS, ROWS, TREES, K, Lists, gains, judged  # noqa: E402
from whole_page import WholePage, add_options  # noqa: E402

import metarank  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent.parent / "xreg"))
from problems import SETS, Problem, load_problem  # noqa: E402

_HERE = Path(__file__).parent
_SETS = ("MovieLens-small-users", "LastFM-ArtistTags-graded")
_COLUMNS = ("WP-l@1", "WP-l@5", "nDCG-l@5", LISTED, FOUND)
_RESAMPLES = 2000
Figures = dict[str, list[dict[str, float]]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(_SETS), help="among those of experiments/xreg")
    parser.add_argument("--seeds", type=int, default=2)
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    names = options.sets.split(",")
    if unknown := set(names) - set(SETS):
        parser.error(f"--sets must be among {', '.join(SETS)}, got {', '.join(sorted(unknown))}")
    page = WholePage(options, parser, narrowed_by=("sets", "seeds"))
    chapters = []
    for name in names:
        try:
            problem = load_problem(SETS[name])
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        chapters += chapter(problem, options.seeds)
    versions = f"metarank {metarank.__version__}, LightGBM {lightgbm.__version__}, NumPy {np.__version__}"
    head = _HEAD.format(seeds=options.seeds, python=platform.python_version(), versions=versions)
    page.write("\n".join([head, *chapters]) + "\n")
    return 0


def chapter(problem: Problem, seeds: int) -> list[str]:
    """What held-out training rows say of the sources, and the test part, once."""
    part = problem.held_out_part()
    held_out = measured(part, 1)[0]
    chosen = max(LABELWISE, key=lambda name: held_out[name][0]["WP@5"])
    figures, lists = measured(problem, seeds)
    n, L = problem.X_test.shape[0], problem.Y.shape[1]
    lines = [
        f"## {problem.name}",
        "",
        f"{problem.X.shape[0]:,} training and {n:,} test points, {L:,} labels, "
        f"{problem.Y.nnz / problem.X.shape[0]:.1f} a point; sha256 {problem.checksum[:16]}.",
        "",
        *verdict(problem, chosen, figures, lists),
        "",
        *table(figures),
        "",
        f"Of a fifth of the training points, held out (seed 0; the choice of sources: {chosen}):",
        "",
        *table(held_out),
        "",
    ]
    for name in LABELWISE:
        told = [text for text in lists[name][0].choices if text.startswith("labelwise: ")]
        lines += [f"- {name}, seed 0: {text.removeprefix('labelwise: ')}" for text in told]
    return [*lines, ""]


def measured(problem: Problem, seeds: int) -> tuple[Figures, dict[str, list[Lists]]]:
    """Of each row the figures and the lists of each seed."""
    figures: Figures = {name: [] for name in ROWS}
    lists: dict[str, list[Lists]] = {name: [] for name in ROWS}
    for name, row in ROWS.items():
        for seed in range(seeds):
            found = row(problem, seed)
            figures[name].append(judged(problem, found.points) | {"seconds": found.seconds})
            lists[name].append(found)
        print(f"{problem.name:26} {name:40} {figures[name]}", file=sys.stderr, flush=True)
    return figures, lists


def table(figures: Figures) -> list[str]:
    lines = [
        "| lists of points | " + " | ".join(_COLUMNS) + " | CPU s |",
        "| --- |" + " --- |" * (len(_COLUMNS) + 1),
    ]
    for name, runs in figures.items():
        cells = [f"{100 * mean(run[key] for run in runs):.2f}" for key in (*METRICS, FOUND)]
        lines.append(f"| {name} | {' | '.join(cells)} | {mean(run['seconds'] for run in runs):.1f} |")
    return lines


def verdict(problem: Problem, chosen: str, figures: Figures, lists: dict[str, list[Lists]]) -> list[str]:
    """Whether the labelwise pipeline of the chosen sources is above the best of the trees, and the other."""
    lines = []
    for name in LABELWISE:
        for k, metric in ((1, "WP@1"), (K, "WP@5")):
            value = {row: mean(run[metric] for run in runs) for row, runs in figures.items()}
            best = max(TREES, key=value.__getitem__)
            low, high = interval(problem, lists[name], lists[best], k)
            above = "**holds**" if low > 0 else "**above, but within chance**"
            word = above if value[name] > value[best] else "**does not hold**"
            lines.append(
                f"- {name}{' (chosen)' if name == chosen else ''}, "
                f"{metric.replace('@', '-l@')} above all trees: "
                f"{word}, {100 * (value[name] - value[best]):+.2f} [{100 * low:+.2f}, {100 * high:+.2f}] "
                f"against {best}"
            )
        listed, of_tree = (100 * mean(run["C@5"] for run in figures[row]) for row in (name, best))
        lines.append(
            f"- {name}, distinct points listed ({LISTED}): {listed:.2f} against {of_tree:.2f} of {best}"
        )
    return lines


def interval(problem: Problem, a: list[Lists], b: list[Lists], k: int) -> tuple[float, float]:
    """95 % of the difference in WP-l@k, mean over seeds, by a bootstrap over labels."""
    own, best = zip(*(gains(problem, found.points, k) for found in [*a, *b]))
    difference = np.mean(own[: len(a)], axis=0) - np.mean(own[len(a) :], axis=0)
    rng = np.random.default_rng(0)
    n = len(difference)
    draws = [rng.integers(n, size=n) for _ in range(_RESAMPLES)]
    values = [difference[draw].sum() / best[0][draw].sum() for draw in draws]
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


_HEAD = """# The best points of each label

Written by `python experiments/labelwise/run.py`; {versions}, Python {python}; means over {seeds} seeds.

All test points are ranked for each label (Prabhu et al. 2020, "labelwise"). *Pointwise*: lists of labels of
each point, transposed; of trees 100 labels a point, of `MetaRanker` the probabilities of the same fit.
*Labelwise*: of trees `shortlist_points` (algorithm 1, F = 4), of `MetaRanker` `rank_points` of a model with
``labelwise=True``: a label is a query over its candidate points, ordered by a ranker of its own. *With
regression*: sources that know grades, two XReg (one with two-way trees) and a ridge, beside neighbours and
Parabel; else the sources of "auto". WP-l@k, nDCG-l@5 in per cent; C-l@5: distinct points that some label
lists among its first five, of the most there could be; *labels found*: labels that list a relevant point
among their first five, of those that have one. Relevances are ratings (MovieLens) and log2(1 + users who
gave the tag) (LastFM). What a labelwise model is made of was chosen by the held-out fifth of the training
points, whose tables therefore favour it; the test parts were looked at once. *Within chance*: the interval
of the difference, of labels drawn anew, holds 0. Seeds change models, not the split. CPU seconds are of one
thread of a machine that others used, of fit and lists together, and only rough.
"""

if __name__ == "__main__":
    sys.exit(main())
