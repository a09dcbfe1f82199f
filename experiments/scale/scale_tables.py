"""The page: what was measured, and what the model says of sizes that were not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from extrapolation import ASKED, FITS, RANKED_ROWS, Cluster, forecast, laws
from measuring import speed_up, speed_up_by_split
from pages import table

# Fewer rows have a ridge over all labels, and more folds than one.
LEAST_ROWS = 10_000
TARGET_ROWS, TARGET_LABELS = 70_000_000, 9_000_000


def write(runs: Sequence[dict[str, Any]], remark: str | None = None) -> str:
    """Markdown of all runs."""
    runs = sorted(runs, key=lambda run: (run["set"], run["n_rows"], run["n_workers"]))
    page = ["# On a cluster", *([remark] if remark else []), _measured(runs), _by_task(runs)]
    sized = [run for run in runs if run["set"] == "extreme" and run["n_workers"] == 1]
    # Of small sets or quick scorers alone nothing follows for large ones.
    sized = [
        run for run in sized if run["n_rows"] >= LEAST_ROWS and any(kind in run["tasks"] for kind in FITS)
    ]
    if len({run["n_rows"] for run in sized}) > 1:
        page.append(_forecast(sized))
        others = [run for run in runs if run["set"] != "extreme" and run["n_workers"] == 1]
        page += [_checked(sized, run) for run in others if run["n_rows"] >= LEAST_ROWS]
    return "\n\n".join(page) + "\n"


def _measured(runs: Sequence[dict[str, Any]]) -> str:
    header = [
        "set", "rows", "labels", "workers", "fit s", "CPU s of each worker", "client CPU s",
        "times as fast, by the clock", "by CPU", "by split", "MB between workers", "MB to the cluster",
        "peak MB a worker", "nDCG@5", "same model",
    ]  # fmt: skip
    rows = []
    for run in runs:
        one = _with_one_worker(run, runs)
        rows.append(
            [
                run["set"],
                f"{run['n_rows']:,}",
                f"{run['n_labels']:,}",
                run["n_workers"],
                f"{run['fit_s']:.0f}",
                ", ".join(f"{s:.0f}" for s in run["worker_cpu_s"]),
                f"{run['client_cpu_s']:.0f}",
                "" if one is None else f"{one['fit_s'] / run['fit_s']:.2f}",
                "" if one is None else f"{speed_up(one, run):.2f}",
                "" if one is None else f"{speed_up_by_split(one, run):.2f}",
                f"{sum(run['received_bytes']) / 1e6:.0f}",
                f"{run['training_set_bytes'] / 1e6:.0f}",
                ", ".join(f"{b / 1e6:.0f}" for b in run["peak_bytes"]),
                f"{100 * run['metrics']['nDCG@5']:.1f}",
                "" if one is None else "yes" if one["digest"] == run["digest"] else "NO",
            ]
        )
    note = (
        "A worker is a process of one thread. By CPU: the busiest worker's seconds and the client's, against "
        "those of one worker; it does not see that the client works while workers do. The clock does, and on "
        "a shared machine other work too. By split: the busiest worker's share of the work, taken of "
        "one worker's seconds: two workers on threads of one core need more seconds for the same tasks. "
        "The same model: its saved folder has the same digest."
    )
    return f"## 1 and 2 workers\n\n{note}\n\n{table(header, rows)}"


def _by_task(runs: Sequence[dict[str, Any]]) -> str:
    kinds = ["tuned_params", "fit_without_fold", "fit_trees", "propose", "describe", "rank", "fit_on_all"]
    rows = [
        [run["set"], f"{run['n_rows']:,}", run["n_workers"]]
        + [f"{run['task_cpu_s'].get(kind, 0.0):.1f} ({run['tasks'].get(kind, 0)})" for kind in kinds]
        for run in runs
    ]
    return "## CPU seconds by kind of task (their number)\n\n" + table(
        ["set", "rows", "workers", *kinds], rows
    )


def _forecast(runs: Sequence[dict[str, Any]]) -> str:
    found, cluster = laws(runs), Cluster()
    said = forecast(runs, TARGET_ROWS, cluster)
    exponents = table(
        ["quantity", "exponent of n", f"at {TARGET_ROWS:,} rows"],
        [[name, f"{law.exponent:.2f}", f"{law(TARGET_ROWS):.3g}"] for name, law in found.items()],
    )
    stages = table(
        ["", ""],
        [
            [name, f"{v / 3600:.2f} h" if name.endswith("_s") else f"{v / 1e9:,.0f} GB"]
            for name, v in said.items()
        ],
    )
    memory = "fits" if said["memory_bytes"] < cluster.memory else "does not fit"
    return (
        f"## {TARGET_LABELS:,} labels and {TARGET_ROWS:,} rows: a model, not a measurement\n\n"
        f"Cluster: {cluster.nodes} machines of {cluster.cores} cores, {cluster.memory / 2**30:.0f} GiB and "
        f"{cluster.bandwidth / 1e9:g} GB/s each. Assumptions: every quantity goes on as the power law of the "
        f"rows that the runs above show (from {min(r['n_rows'] for r in runs):,} to "
        f"{max(r['n_rows'] for r in runs):,} rows, a reach of "
        f"{TARGET_ROWS / max(r['n_rows'] for r in runs):,.0f} times the largest); labels grow with the rows "
        f"(n / 8, as 9 of 70 million nearly do), so do features; {cluster.efficiency:g} of each core's work "
        f"is left where all cores of a machine share a task; the ranker learns from {RANKED_ROWS:,} rows of "
        "one fold; one scorer (label trees) is worth tasks of fitting, one a tree; every machine that works "
        "holds the training set, an index of the same size, the model, and what is bounded. Seconds of a "
        "kind of task are of one fit or tree, or of one row of the ranker; all are CPU seconds of one core. "
        "A reach this long tells the order of magnitude and no more. By this model the peak "
        f"{memory} into a machine.\n\n"
        f"{exponents}\n\n{stages}"
    )


def _checked(runs: Sequence[dict[str, Any]], other: dict[str, Any]) -> str:
    """What the laws say of a set that was run, beside what it took."""
    found, n = laws(runs), other["n_rows"]
    fits = [kind for kind in FITS if kind in other["tasks"]]
    took = {kind: other["task_cpu_s"][kind] / other["tasks"][kind] for kind in fits}
    took |= {kind: other["task_cpu_s"][kind] / other["ranked_rows"] for kind in ASKED}
    took |= {"data": other["training_set_bytes"], "model": other["model_bytes"]}
    rows = [
        [name, f"{found[name](n):.3g}", f"{value:.3g}", f"{found[name](n) / value:.2f}"]
        for name, value in took.items()
        if name in found
    ]
    return (
        f"### The same laws asked for {other['set']}\n\n"
        f"{n:,} rows of {other['terms_per_row']:.0f} terms and {other['labels_per_row']:.1f} of "
        f"{other['n_labels']:,} labels; the made sets have {runs[0]['terms_per_row']:.0f} terms and "
        f"{runs[0]['labels_per_row']:.1f} labels a row.\n\n"
        + table(["quantity", "by the laws", "measured", "ratio"], rows)
    )


def _with_one_worker(run: dict[str, Any], runs: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    if run["n_workers"] == 1:
        return None
    same = ("set", "n_rows", "effort")
    return next((one for one in runs if one["n_workers"] == 1 and all(one[k] == run[k] for k in same)), None)
