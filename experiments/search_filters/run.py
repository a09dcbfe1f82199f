"""Language-aware label embeddings on filters, tags and subjects: Tables 1 and 2, encoders, labels never seen.

python experiments/search_filters/run.py [--sets fashion_styles] [--only LALE,ID-only] [--seeds 10]

Each cell (a contender, a set, a seed) is a process of its own and kept in cache/ when it is done, so that an
interrupted study goes on where it stopped; the page tells how many seeds there are.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE))

from borrowed import environments, log  # noqa: E402
from cells import Cabinet, Cell, Figures  # noqa: E402
from contenders import ALL, Contender  # noqa: E402
from page import Measured, write  # noqa: E402
from parts import Parts, split, statistics, statistics_of_unseen, with_fewer_rows, without_unseen  # noqa: E402
from titles import SETS, load  # noqa: E402
from worth import unseen_recall, values  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options  # noqa: E402

TASKS = ("tables", "unseen")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help="make cells of these sets alone")
    parser.add_argument("--only", default="*", help="make these alone: patterns of contenders' names")
    parser.add_argument(
        "--tasks", default=",".join(TASKS), help=f"make these alone, among {', '.join(TASKS)}"
    )
    parser.add_argument("--seeds", type=int, default=10, help="seeds 0, 1, ... of each contender")
    parser.add_argument("--unseen-seeds", type=int, default=3, help="the same for labels never seen")
    parser.add_argument("--split-seed", type=int, default=0)
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, make nothing")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=3600, help="seconds a cell may take")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of what is kept")
    parser.add_argument(
        "--environments", type=Path, default=environments.DEFAULT_FOLDER, help="folder of the peers"
    )
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    sets, tasks = options.sets.split(","), options.tasks.split(",")
    for option, chosen, known in (("--sets", sets, SETS), ("--tasks", tasks, TASKS)):
        if unknown := set(chosen) - set(known):
            parser.error(f"{option} must be among {', '.join(known)}, got {', '.join(sorted(unknown))}")
    whole = WholePage(options, parser, ("seeds", "unseen_seeds", "split_seed"))
    options.cache.mkdir(parents=True, exist_ok=True)
    cabinet = Cabinet(
        options.cache, options.environments, options.split_seed, options.threads, options.timeout
    )
    seeds = {"tables": options.seeds, "unseen": options.unseen_seeds}
    study = Study(cabinet, [] if options.kept else options.only.split(","))
    measured = [study.measure(name, seeds, tasks, name in sets) for name in SETS]
    whole.write(write([of_set for of_set in measured if of_set is not None], options.split_seed))
    return 0


class Study:
    """Makes what is asked for and not kept."""

    def __init__(self, cabinet: Cabinet, only: list[str]) -> None:
        self.cabinet, self.only = cabinet, only

    def measure(self, name: str, seeds: dict[str, int], tasks: list[str], making: bool) -> Measured | None:
        """All that there is of a set, after making what is asked for; None where the set cannot be had."""
        try:
            titles = load(name)
        except FileNotFoundError as absent:
            log(f"{name} is left out: {absent}")
            return None
        parts = split(titles, self.cabinet.split_seed)
        rarer = without_unseen(parts, self.cabinet.split_seed)
        checksum = titles.checksum
        measured = Measured(name, checksum, statistics(titles, parts), statistics_of_unseen(rarer))
        # A seed of all contenders before the next, so that an interrupted study has a whole table.
        for seed in range(max(seeds.values())):
            for contender in _on(name):
                if seed < seeds["tables"] and contender.in_tables:
                    cell = Cell(name, checksum, contender, seed)
                    figures = self._figures(cell, parts, making and "tables" in tasks)
                    if figures is not None:
                        rows = contender.rows
                        seen = (
                            parts if rows is None else with_fewer_rows(parts, rows, self.cabinet.split_seed)
                        )
                        of_cell = values(seen, *self.cabinet.lists(cell))
                        measured.add(contender, figures, of_cell)
                if seed < seeds["unseen"] and contender.unseen:
                    cell = Cell(name, checksum, contender, seed, tuple(rarer.unseen.tolist()))
                    figures = self._figures(cell, rarer, making and "unseen" in tasks)
                    if figures is not None:
                        _, test = self.cabinet.lists(cell)
                        recall = unseen_recall(rarer, test)
                        measured.unseen.setdefault(contender.name, []).append(recall)
        return measured

    def _figures(self, cell: Cell, parts: Parts, making: bool) -> Figures | None:
        kept = self.cabinet.kept(cell)
        wanted = any(fnmatch(cell.contender.name, pattern.strip()) for pattern in self.only)
        if kept is not None or not (
            making and wanted and environments.is_ready(cell.contender.system, self.cabinet.environments)
        ):
            return kept
        try:
            figures = self.cabinet.make(cell, parts)
        except RuntimeError as error:
            log(str(error))
            return None
        log(f"{cell}: {figures['train_cpu_s']:.1f} s")
        return figures


def _on(name: str) -> Iterator[Contender]:
    return (contender for contender in ALL if name in contender.sets)


if __name__ == "__main__":
    sys.exit(main())
