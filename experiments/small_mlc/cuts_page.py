"""Label sets of all systems by cuts of their own, and by the learner of thresholds that metarank uses.

python experiments/small_mlc/cuts_page.py [--sets emotions,scene] [--methods metarank,RBFSVM] [--kept]

Writes cuts.md. What is kept in cache/ is what run.py keeps there, and is not measured again.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

# First: it sets what must be set before BLAS and OpenMP are there.
import run
import tables
from cache import Cache, Result
from datasets import Problem, load_problem
from methods import CUTS, METARANK, PEERS, Settings
from sklearn.exceptions import ConvergenceWarning
from tables import CELL_SETS, DASH, SET_METRICS, Results, digits, greater_is_better, markdown, number

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

_HERE = Path(__file__).parent
METHODS = (METARANK, *PEERS)
# How a set is cut; the scores are the same.
RULES = {"sets": "own cut", "regression": "regression", "learned": "learned cuts"}
# What those take that may be left out for time: one thread, reckoned from three trees and from three labels.
COSTS = {
    ("reuters90", "ExtraTrees"): "500 trees on 26,377 words take some 230 CPU s, to be fitted six times",
    ("reuters90", "RandomForest"): "500 trees on 26,377 words take some 190 CPU s, to be fitted six times",
    (
        "reuters90",
        "LightGBMOneVsRest",
    ): "90 boosters on 26,377 words take some 300 CPU s, to be fitted six times",
}
# The columns of the table in short.
SHOWN = ("MAP", "RankLoss", "One-error", *SET_METRICS)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(CELL_SETS), help=f"among {', '.join(CELL_SETS)}")
    parser.add_argument("--methods", help="run these alone; all that are kept are shown")
    parser.add_argument("--quick", action="store_true", help="small grids on a part of the training rows")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, run nothing")
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    add_options(parser, _HERE / "cuts.md")
    options = parser.parse_args(arguments)
    names = options.sets.split(",")
    if unknown := set(names) - set(CELL_SETS):
        parser.error(f"--sets must be among {', '.join(CELL_SETS)}, got {', '.join(sorted(unknown))}")
    whole = WholePage(options, parser, ("sets", "quick", "seed"))
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    settings = Settings(options.quick, options.n_jobs, options.seed)
    cache = Cache(folder=_HERE / "cache" / ("quick" if options.quick else "full"))
    wanted = None if options.methods is None else set(options.methods.split(","))
    problems: dict[str, Problem] = {}
    found: dict[tuple[str, str], Result | str] = {}
    for name in names:
        try:
            problems[name] = load_problem(name, quick=options.quick)
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        for method in METHODS:
            kept = options.kept or (wanted is not None and method.name not in wanted)
            found[name, method.name] = run.measured(cache, method, problems[name], settings, kept)
    results = Results({name: p.Y_test for name, p in problems.items()}, found)
    whole.write(page(results) + "\n## How it was made\n\n" + run.provenance(problems, settings) + "\n")
    return 0


def page(results: Results) -> str:
    """The page but for its provenance."""
    return "\n".join(
        [
            "# Cuts learned alike: label sets by one learner of thresholds\n",
            "Written by `python experiments/small_mlc/cuts_page.py`. A system's *own cut* is at probability "
            "0.5 or margin 0 (Rank-SVM's is learned by it), *regression* is the instance-based threshold of "
            "Yang & Gopal (2012), and *learned cuts* are those of `metarank.ThresholdLearner`, "
            "one for each metric, learned from the scores of training rows by a model of the other folds: "
            "the same five folds for all, and the free parameters that were chosen on all rows. "
            "Probabilities are handed over as log-odds. metarank has learned cuts alone. Scores, and so "
            "rankings, are the same under each rule. Test parts only judge.\n",
            "## In short\n",
            "Best other: the best system, with the rule it cuts by; *noted*: measured before, with own cuts "
            "alone (`peers.json`).\n",
            in_short(results),
            f"\n{verdict(results)}\n",
            "## Own cut → regression → learned cuts\n",
            by_rule(results),
            "\n## All with learned cuts\n",
            "Value (rank); \\* and \\*\\*: differs from metarank at 5 % and 1 % by the paper's tests.\n",
            tables.comparison(results, METHODS, SET_METRICS, {}, "learned"),
            "\n## What was run\n",
            "CPU seconds of one thread, of the fit with its choice of parameters; other work ran beside it. "
            "Times of a quiet machine are in [results.md](results.md).\n",
            what_was_run(results),
        ]
    )


def others(results: Results, name: str, metric: str, rules: Mapping[str, str]) -> dict[str, float]:
    """The value of every other system by each of the rules that it has, by what the table calls it."""
    out: dict[str, float] = {}
    for method in PEERS:
        for rule in rules if metric in SET_METRICS else ["sets"]:
            value = results.value(name, method.name, metric, rule)
            if value == value:
                told = f", {rules[rule]}" if metric in SET_METRICS and rule != "sets" else ""
                out[f"{method.title}{told}"] = value
    return out | {f"{t} (noted)": v for t, v in tables.NOTED_PEERS[metric].get(name, {}).items()}


def best(values: Mapping[str, float], metric: str, decimals: int) -> tuple[str, float]:
    """Who is best, and its value, as shown; the first of equals."""
    if not values:
        return "", float("nan")
    choose = max if greater_is_better(metric) else min
    who = choose(values, key=lambda title: round(values[title], decimals))
    return who, round(values[who], decimals)


def in_short(results: Results) -> str:
    """metarank, the best of all other systems by any rule, and the paper's best, each named."""
    rows = []
    for name in results.sets:
        lines: list[list[str]] = [[name, "metarank"], ["", "best other"], ["", "paper's best"]]
        for metric in SHOWN:
            decimals = digits(name, metric)
            ours = round(results.value(name, METARANK.name, metric), decimals)
            theirs = best(others(results, name, metric, RULES), metric, decimals)
            printed = {
                f"{title}{', regression' if table == 5 else ''}": value
                for table in (3, 6, 5)
                for title, value in tables.PAPER[f"table{table}"].get(metric, {}).get(name, {}).items()
            }
            of_paper = best(printed, metric, decimals)
            values = [ours, theirs[1], of_paper[1]]
            top = best({str(i): v for i, v in enumerate(values) if v == v}, metric, decimals)[1]
            for line, value, who in zip(lines, values, ("", theirs[0], of_paper[0])):
                shown = number(value, decimals)
                line.append(f"{f'**{shown}**' if value == top else shown} {who}".rstrip())
        rows += lines
    return markdown(["set", "", *SHOWN], rows)


def verdict(results: Results) -> str:
    """In how many cells metarank is best of the systems run here, with their own and with learned cuts."""
    lines = []
    for rules in ({"sets": RULES["sets"]}, RULES):
        won, lost = 0, []
        for name in results.sets:
            for metric in SET_METRICS:
                decimals = digits(name, metric)
                who, theirs = best(others(results, name, metric, rules), metric, decimals)
                ours = round(results.value(name, METARANK.name, metric), decimals)
                if math.isnan(ours) or math.isnan(theirs):
                    continue
                behind = ours < theirs if greater_is_better(metric) else ours > theirs
                if behind:
                    pair = f"{number(ours, decimals)} against {number(theirs, decimals)}"
                    lost.append(f"{name} {metric} ({pair}, {who})")
                else:
                    won += 1
        against = "any rule" if len(rules) > 1 else "their own cuts"
        told = f"; not {', '.join(lost)}" if lost else ""
        lines.append(
            f"- against all others by {against}: as good or better in {won} of {won + len(lost)} cells "
            f"of {', '.join(SET_METRICS)}{told}"
        )
    return "\n".join(lines)


def by_rule(results: Results) -> str:
    rows = []
    for metric in SET_METRICS:
        rows.append([f"**{metric}**"] + [""] * (len(PEERS) + 1))
        for name in results.sets:
            decimals = digits(name, metric)
            cells = []
            for method in PEERS:
                values = [number(results.value(name, method.name, metric, rule), decimals) for rule in RULES]
                cells.append(" → ".join(values) if values[0] != DASH else DASH)
            rows.append([name, number(results.value(name, METARANK.name, metric), decimals), *cells])
    return markdown(["", METARANK.title, *(m.title for m in PEERS)], rows)


def what_was_run(results: Results) -> str:
    rows = []
    for (name, method), result in results.results.items():
        if isinstance(result, str):
            why = COSTS.get((name, method))
            rows.append([name, method, result if why is None else f"{result}: {why}", "", ""])
            continue
        chosen = ", ".join(f"{k} = {v}" for k, v in result.get("chosen", {}).items())
        families = result.get("learned_cuts") or result["cuts"]
        of_metric = dict(part.split(": ") for part in families.split(", "))
        used = ", ".join(f"{metric}: {of_metric[cut]}" for metric, cut in CUTS.items())
        rows.append([name, method, chosen, used, f"{result['fit_cpu_s']:.1f}"])
    return markdown(["set", "system", "chosen", "cuts", "fit, CPU s"], rows)


if __name__ == "__main__":
    sys.exit(main())
