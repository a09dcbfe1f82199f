"""metarank on 1 and 2 worker processes: time, CPU by worker, bytes moved, peak memory; and a model of more.

python experiments/scale/run.py [--sets extreme,YSO-FinnaTitles-27K] [--sizes 10000,20000] [--rows 99999]

What is measured is kept in `cache/`, by set, size and workers; `--kept` writes the page from it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))

from measuring import measure
from scale_tables import write
from whole_page import WholePage, add_options

from metarank import Dataset, data

_HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default="extreme,YSO-FinnaTitles-27K", help="extreme, or names of sets")
    parser.add_argument("--sizes", default="10000,20000,40000", help="rows of the made sets, commas between")
    parser.add_argument("--rows", type=int, default=0, help="take at most so many training rows of a set")
    parser.add_argument("--test-rows", type=int, default=2000)
    parser.add_argument("--workers", default="1,2", help="worker processes, commas between")
    parser.add_argument("--effort", default="medium")
    parser.add_argument("--kept", action="store_true", help="measure nothing")
    parser.add_argument("--remark", help="of the circumstances, for the page")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache")
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser)
    options.cache.mkdir(parents=True, exist_ok=True)
    if not options.kept:
        for name in options.sets.split(","):
            sizes = [int(size) for size in options.sizes.split(",")] if name == "extreme" else [options.rows]
            for size in sizes:
                _measure(name, size, options)
    runs = [json.loads(path.read_text()) for path in sorted(options.cache.glob("*.json"))]
    whole.write(write(runs, options.remark))
    return 0


def _measure(name: str, size: int, options: argparse.Namespace) -> None:
    parts: tuple[Dataset, Dataset] | None = None
    for n_workers in (int(number) for number in options.workers.split(",")):
        kept = options.cache / f"{name}-{size}-{options.effort}-{n_workers}.json"
        if kept.exists():
            continue
        if parts is None:
            parts = (
                made(size, options.test_rows) if name == "extreme" else loaded(name, size, options.test_rows)
            )
        figures: dict[str, Any] = measure(*parts, n_workers, effort=options.effort)
        kept.write_text(json.dumps({"set": name, "effort": options.effort, **figures}, indent=1))
        cpu = ", ".join(f"{seconds:.0f}" for seconds in figures["worker_cpu_s"])
        print(
            f"{name} {size or ''} {n_workers}: {figures['fit_s']:.0f} s, CPU of workers {cpu} s", flush=True
        )


def made(n_rows: int, test_rows: int) -> tuple[Dataset, Dataset]:
    """Rows of a made set, whose labels and words grow with the rows: n / 8 labels, n / 4 words, at least."""
    rows = data.make_extreme(
        n_rows + test_rows, max(2000, n_rows // 4), max(1200, n_rows // 8), nnz_per_row=40.0, seed=0
    )
    return rows.take(slice(0, n_rows)), rows.take(slice(n_rows, None))


def loaded(name: str, n_rows: int, test_rows: int) -> tuple[Dataset, Dataset]:
    """Rows of a named set, drawn by a seed where not all are taken."""
    train, test = data.load_named(name, "train"), data.load_named(name, "test")
    return _drawn(train, n_rows), _drawn(test, test_rows)


def _drawn(rows: Dataset, wanted: int) -> Dataset:
    if not 0 < wanted < rows.n_rows:
        return rows
    return rows.take(np.sort(np.random.default_rng(0).permutation(rows.n_rows)[:wanted]))


if __name__ == "__main__":
    sys.exit(main())
