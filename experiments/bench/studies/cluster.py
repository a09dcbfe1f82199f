"""On a cluster: two workers beside one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import made_sets
import page_parts
from declared import Figures, Lines, Measure, Study, System

from studies import largest

prose = page_parts.prose_of(globals())

SIZES = {f"extreme-{size}": size for size in (20_000, 40_000, 80_000)}
YSO, MORE = "YSO-FinnaTitles-27K", "made-670K-30%"
ONE, TWO = (System(name, "cluster", {"n_workers": n}) for n, name in ((1, "1 worker"), (2, "2 workers")))


def maker(n_rows: int, test_rows: int = 2000) -> Callable[[Path], Figures]:
    """What makes a set whose labels and words grow with the rows."""
    return made_sets.extreme(n_rows, n_rows // 4, n_rows // 8, test_rows, nnz_per_row=40.0)


def by_split(one: Figures, more: Figures) -> float:
    """How many times as fast by the split of the work: the busiest worker's share, and the client's work.

    Where workers run on threads of one core, or beside other work, a CPU second of theirs does less.
    """
    needed, share = sum(one["worker_cpu_s"]), max(more["worker_cpu_s"]) / sum(more["worker_cpu_s"])
    return (needed + one["client_cpu_s"]) / (share * needed + one["client_cpu_s"])


HEAD = ("set", "rows", "labels", "workers", "fit s", "CPU s of each worker", "client CPU s")
HEAD += ("times as fast, by the clock", "by split", "MB between workers", "MB to the cluster")
HEAD += ("peak MB a worker", "nDCG@5", "same model")


def row(described: Figures, run: Figures, one: Figures | None) -> list[str]:
    """A run, beside that with one worker if it has more."""
    beside, same = ["", ""], ""
    if one and one is not run:
        beside = [f"{one['fit_s'] / run['fit_s']:.2f}", f"{by_split(one, run):.2f}"]
        same = "yes" if one["digest"] == run["digest"] else "NO"
    cells = [run["set"], f"{described['n']:,}", f"{described['L']:,}", str(run["params"]["n_workers"])]
    cells += [f"{run['fit_s']:.0f}", ", ".join(f"{seconds:.0f}" for seconds in run["worker_cpu_s"])]
    cells += [f"{run['client_cpu_s']:.0f}", *beside, f"{run['received_bytes'] / 1e6:.0f}"]
    peaks = ", ".join(f"{peak / 1e6:.0f}" for peak in run["peak_bytes"])
    return [*cells, f"{run['training_set_bytes'] / 1e6:.0f}", peaks, f"{100 * run['nDCG@5']:.1f}", same]


def page(lines: Lines) -> str:
    ran = [line for line in lines if "failed" not in line]
    one = {line["set"]: line for line in ran if line["system"] == ONE.name}
    rows = [row(lines.sets[run["set"]], run, one.get(run["set"])) for run in ran]
    parts = ["# On a cluster", "## 1 and 2 workers", prose("MEASURED"), page_parts.table(HEAD, rows)]
    parts += [f"{line['set']}, {line['system']}: {line['failed']}" for line in lines if "failed" in line]
    return "\n\n".join(parts)


STUDY = Study(
    "cluster",
    tuple(SIZES),
    (ONE, System(TWO.name, TWO.module, TWO.params, sets=("*-40000",))),
    None,
    page,
    Measure(limit=1800),
    make={name: maker(size) for name, size in SIZES.items()},
    alone=("*",),
)
LARGE = replace(
    STUDY,
    name="cluster_large",
    sets=(*SIZES, YSO, MORE),
    systems=(ONE, TWO),
    measure=Measure(limit=3600),
    make={**STUDY.make, MORE: largest.made(largest.MADE[MORE])},
    large=True,
)
