"""On a cluster: two workers beside one, and a model of sizes that were not run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import made_sets
import numpy as np
import page_parts
from declared import Figures, Lines, Measure, Study, System

from studies import largest

SIZES = {f"extreme-{size}": size for size in (20_000, 40_000, 80_000)}
YSO, MORE = "YSO-FinnaTitles-27K", "made-670K-30%"
ONE, TWO = (System(name, "cluster", {"n_workers": n}) for n, name in ((1, "1 worker"), (2, "2 workers")))
TARGET = 70_000_000


def maker(n_rows: int, test_rows: int = 2000) -> Callable[[Path], Figures]:
    """What makes a set whose labels and words grow with the rows."""
    return made_sets.extreme(n_rows, n_rows // 4, n_rows // 8, test_rows, nnz_per_row=40.0)


def fitted(n: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """The power law of the number of rows as its exponent and the logarithm of its factor."""
    exponent, shift = np.polyfit(np.log(n), np.log(np.maximum(values, 1e-9)), 1)
    return float(exponent), float(shift)


def at(law: tuple[float, float], n: float) -> float:
    return math.exp(law[1]) * n ** law[0]


def quantities(run: Figures) -> dict[str, float]:
    """What grows with the rows: CPU seconds of the longest fit, of a ranked row and of an answer; bytes."""
    spent, ranked = run["tasks_cpu_s"], run["ranked_rows"]
    found = {
        "longest fit": max(max(spent[kind]) for kind in ("fit_without_fold", "fit_on_all") if kind in spent)
    }
    found |= {kind: sum(spent[kind]) / ranked for kind in ("propose", "describe", "rank")}
    found |= {"client": run["client_cpu_s"] / ranked, "answer": run["predict_cpu_s"] / run["test_rows"]}
    return found | {"data": run["training_set_bytes"], "model": run["model_bytes"]}


def laws(runs: Mapping[int, Figures]) -> dict[str, tuple[float, float]]:
    """Of runs with one worker, by their number of rows."""
    found = [quantities(run) for run in runs.values()]
    return {name: fitted(list(runs), [of[name] for of in found]) for name in found[0]}


# A cluster of so many machines with so many cores each, their bytes and bytes a second, and the share of a
# core's work that is left where all cores share a task.
NODES, CORES, MEMORY, BANDWIDTH, EFFICIENCY = 32, 32, 512 * 2**30, 1.25e9, 0.6
# Rows that the ranker learns from where there are many: 2,000,000 pairs, of four or five shortlists of 50.
RANKED_ROWS = 10_000


def forecast(runs: Mapping[int, Figures], n: int) -> dict[str, float]:
    """What a fit of n rows takes, and a ranking of as many.

    Every fit has a machine of its own; all cores propose and describe; one machine ranks. The training set
    goes along a tree of transfers. A worker holds it, an index of its size, the model, and what is bounded.
    """
    there, largest = ({name: at(law, m) for name, law in laws(runs).items()} for m in (n, max(runs)))
    ranked = min(n, RANKED_ROWS)
    machine, every = CORES * EFFICIENCY, NODES * CORES * EFFICIENCY
    data, model = there["data"], there["model"]
    network = ((1 + float(np.ceil(np.log2(NODES)))) * data + 2 * model) / BANDWIDTH
    fits = 2 * there["longest fit"] / machine  # without a fold, then on all rows
    seconds = network + fits + ranked * (there["propose"] + there["describe"]) / every
    # Ranker and client look at no more than their rows, however many there are.
    seconds += ranked * (largest["rank"] / machine + largest["client"])
    bounded = (max(r["peak_bytes"]) - 2.0 * r["training_set_bytes"] - r["model_bytes"] for r in runs.values())
    return {
        "fit, hours": seconds / 3600,
        "of these the longest fits": fits / 3600,
        "and the network": network / 3600,
        "ranking all rows, hours": there["answer"] * n / every / 3600,
        "memory of a machine, GB": (2 * data + model + max(0.0, *bounded)) / 1e9,
        "moved, GB": (NODES * data + 2 * model) / 1e9,
    }


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
    parts = ["# On a cluster", "## 1 and 2 workers", MEASURED, page_parts.table(HEAD, rows)]
    parts += [f"{line['set']}, {line['system']}: {line['failed']}" for line in lines if "failed" in line]
    runs = {SIZES[name]: run for name, run in one.items() if name in SIZES}
    if len(runs) > 1:
        said = forecast(runs, TARGET)
        fits = "is enough" if 1e9 * said["memory of a machine, GB"] < MEMORY else "is too small"
        parts += ["## 9,000,000 labels and 70,000,000 rows: a model, not a measurement"]
        parts += [ASSUMED.format(min(runs), max(runs), TARGET / max(runs), fits)]
        parts += [page_parts.table(said, [map(page_parts.number, said.values())])]
        parts += [UNITS, exponents(laws(runs), one.get(YSO), lines)]
    return "\n\n".join(parts)


def exponents(found: Mapping[str, tuple[float, float]], other: Figures | None, lines: Lines) -> str:
    """The laws; what they say of a set that was run, beside what it took."""
    head = ["quantity", "exponent of n", f"at {TARGET:,} rows"]
    head += [f"{YSO}, by the laws", "measured"] if other else []
    rows = []
    for name, law in found.items():
        beside = [at(law, lines.sets[YSO]["n"]), quantities(other)[name]] if other else []
        rows.append([name, f"{law[0]:.2f}", *(f"{value:.3g}" for value in (at(law, TARGET), *beside))])
    return page_parts.table(head, rows)


MEASURED = (
    "A worker is a process of one thread, with 10 GiB at most. By split: the busiest worker's share of the "
    "work, of one worker's CPU seconds, and the client's; the clock also sees that the client works while "
    "workers do, and what else runs. The same model: its saved folder has the same digest."
)
ASSUMED = (
    f"{NODES} machines of {CORES} cores, {MEMORY / 2**30:.0f} GiB and {BANDWIDTH / 1e9} GB/s each. Assumed: "
    "every quantity goes on as the power law of the rows that the runs show, from {:,} to {:,} rows (a reach "
    f"of {{:,.0f}} times); labels and features grow with the rows; {EFFICIENCY} of a core's work is left "
    f"where all cores share a task; the ranker learns from {RANKED_ROWS:,} rows; every machine that works "
    "holds the training set, an index of its size, the model, and what is bounded. A reach this long tells "
    "the order of magnitude and no more. By this model the memory of a machine {}."
)
UNITS = (
    "*longest fit*: CPU seconds of the longest fit of a source, by which all others wait; *propose* to "
    "*client*: of one training row of the ranker; *answer*: of a row to be ranked; *data*, *model*: bytes."
)

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
