"""metarank at thousands of labels against omikuji, napkinXC, PECOS and LibMultiLabel: every metric and cost.

python experiments/extreme/run.py [--sets CiteULike-t-tags] [--only metaranker] [--again metaranker] [--kept]

The peers' environments are made on first use, from the package index. What is kept is not measured again,
so that an interrupted study goes on where it stopped. A set is a name, or a folder with the Extreme
Classification repository's train.txt and test.txt.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from borrowed_runs import Figures, Laboratory, Prepared, Run, environments, log
from contenders import GROUPS, contenders
from judging import Judge
from report import Measured, write
from sets import REPOSITORY, SETS, available

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

_HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join((*SETS, *REPOSITORY)), help="names or folders")
    parser.add_argument("--only", default="*", help="measure these alone: patterns of contenders' names")
    parser.add_argument("--again", default="", help="measure these even where a run is kept: patterns")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, run nothing")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds a run may take")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="-1: any")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of what is kept")
    parser.add_argument(
        "--environments", type=Path, default=environments.DEFAULT_FOLDER, help="folder of the peers"
    )
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("sets",))
    options.cache.mkdir(parents=True, exist_ok=True)
    core = None if options.core < 0 else options.core
    study = Study(
        Laboratory(options.cache, options.environments, core, options.timeout),
        only=[] if options.kept else options.only.split(","),
        again=[] if options.kept else [pattern for pattern in options.again.split(",") if pattern],
    )
    measured = [study.measure(dataset) for dataset in available(options.sets.split(","), options.cache)]
    whole.write(write(measured))
    return 0


class Study:
    """Runs what is asked for and not kept."""

    def __init__(self, laboratory: Laboratory, only: list[str], again: list[str]) -> None:
        self.laboratory, self.only, self.again = laboratory, only, again

    def measure(self, dataset: Prepared, groups: Iterable[str] = GROUPS) -> Measured:
        measured, judge = Measured(dataset), Judge(dataset)
        for setting in contenders(dataset.name, groups):
            run = Run(dataset, setting, 0)
            figures = self._figures(run)
            if figures is not None:
                measured.figures[setting] = figures
                if "failed" not in figures:
                    measured.values[setting] = judge.values(self.laboratory.predictions(run))
        return measured

    def _figures(self, run: Run) -> Figures | None:
        """The figures of a run, kept or made now; None where there is none."""
        kept = self.laboratory.kept(run)
        again = _matches(run, self.again)
        if not again and (kept is not None or not _matches(run, self.only)):
            return kept
        if not environments.is_ready(run.setting.system, self.laboratory.environments):
            return kept
        try:
            figures = self.laboratory.make(run)
        except RuntimeError as error:
            log(str(error))
            return kept
        note = figures.get("failed") or f"{figures['train_cpu_s']:8.2f} s, {figures['batch_ms']:7.3f} ms"
        log(f"{run.dataset.name:22} {run.setting!s:30} {note}")
        return figures


def _matches(run: Run, patterns: list[str]) -> bool:
    return any(fnmatch(str(run.setting), pattern.strip() + "*") for pattern in patterns)


if __name__ == "__main__":
    sys.exit(main())
