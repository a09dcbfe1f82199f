"""metarank's shortlisters against omikuji, napkinXC and PECOS: accuracy, time, memory and size.

python experiments/shortlist_speed/environments.py    (once: the peers, from the package index)
python experiments/shortlist_speed/run.py [--sets CiteULike-t-tags] [--only metarank] [--again] [--kept]

What is kept is not measured again, so that an interrupted study goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

import page
from datasets import Prepared, prepare
from environments import DEFAULT_FOLDER
from runs import Figures, Laboratory, Run, log
from settings import DEFAULT, GROWING, GROWTH, OURS, PEERS, SETS, TWO_THREADS_SETS, Extreme
from whole_page import WholePage, add_options

_HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help=f"among {', '.join(SETS)}")
    parser.add_argument("--only", default="*", help="measure these alone: patterns of 'system setting'")
    parser.add_argument("--again", action="store_true", help="measure them even where a run is kept")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, run nothing")
    parser.add_argument("--repetitions", type=int, help="of every set; else those of settings.py")
    parser.add_argument("--sections", default="sets,threads,growth", help="among sets, threads, growth")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds a run may take")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="-1: any")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of what is kept")
    parser.add_argument("--environments", type=Path, default=DEFAULT_FOLDER, help="folder of the peers")
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    names, sections = options.sets.split(","), options.sections.split(",")
    if unknown := set(names) - set(SETS):
        parser.error(f"--sets must be among {', '.join(SETS)}, got {', '.join(sorted(unknown))}")
    whole = WholePage(options, parser, ("sets", "sections"))
    options.cache.mkdir(parents=True, exist_ok=True)
    core = None if options.core < 0 else options.core
    laboratory = Laboratory(options.cache, options.environments, core, options.timeout)

    sets = dict(available(names, options.cache)) if "sets" in sections or "threads" in sections else {}
    plan: dict[str, list[Run]] = {"sets": [], "threads": [], "growth": []}
    if "sets" in sections:
        plan["sets"] = runs_on_sets(sets, options.repetitions)
    if "threads" in sections:
        chosen = [sets[name] for name in TWO_THREADS_SETS if name in sets]
        plan["threads"] = [Run(dataset, DEFAULT, 0, threads) for dataset in chosen for threads in (1, 2)]
    if "growth" in sections:
        plan["growth"] = [Run(dataset, GROWING, 0) for _, dataset in available(GROWTH, options.cache)]

    patterns = [] if options.kept else options.only.split(",")
    results = {
        section: carry_out(laboratory, runs, patterns, options.again) for section, runs in plan.items()
    }
    whole.write(page.write(sets, results))
    return 0


def available(names: Iterable[str | Extreme], cache: Path) -> Iterable[tuple[str, Prepared]]:
    """The sets that can be had, the others left out with a message."""
    for name in names:
        try:
            yield str(name), prepare(name, cache)
        except FileNotFoundError as error:
            log(f"{name} is left out: {error}")


def runs_on_sets(sets: dict[str, Prepared], repetitions: int | None) -> list[Run]:
    """One repetition of everything first, then the next: an interrupted study has a whole table."""
    wanted = {name: SETS[name] if repetitions is None else repetitions for name in sets}
    return [
        Run(dataset, setting, repetition)
        for repetition in range(max(wanted.values(), default=0))
        for name, dataset in sets.items()
        if repetition < wanted[name]
        for setting in (*PEERS, *OURS)
        if setting.runs_on(name)
    ]


def carry_out(
    laboratory: Laboratory, runs: list[Run], patterns: list[str], again: bool
) -> list[tuple[Run, Figures]]:
    """The figures of the runs that are kept, or match a pattern and are made now."""
    out = []
    for run in runs:
        chosen = any(fnmatch(str(run.setting), pattern.strip() + "*") for pattern in patterns)
        figures = laboratory.kept(run)
        if chosen and (again or figures is None):
            try:
                figures = laboratory.make(run)
            except (RuntimeError, FileNotFoundError) as error:
                log(str(error))
                continue
            note = figures.get("failed") or f"{figures['train_cpu_s']:8.2f} s, {figures['batch_ms']:7.3f} ms"
            log(f"{run.dataset.name:22} {run.setting!s:30} {run.repetition}: {note}")
        if figures is not None:
            out.append((run, figures))
    return out


if __name__ == "__main__":
    sys.exit(main())
