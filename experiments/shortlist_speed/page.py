"""results.md: the tables and how they were made."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np
from compare import ACCURACY, RULES, Duel, Summary, duels, medians
from datasets import Prepared
from pages import cpu_model, table
from runs import Figures, Run, digest_of_sources, version_of
from settings import OURS, PEERS, SEED, SINGLES, K, Setting

Results = Sequence[tuple[Run, Figures]]
SHORT = {
    "train_cpu_s": "training",
    "batch_ms": "batch",
    "single_cpu_ms": "single",
    "model_mib": "model",
    "peak_mib": "memory",
}


def write(sets: dict[str, Prepared], results: dict[str, Results]) -> str:
    """The whole page, of whatever was measured."""
    parts = [
        "# Shortlisters: accuracy, time, memory and size",
        "One thread. *train*: CPU seconds from data in memory to a model; *+ text*: CPU seconds of reading "
        "the training part from repository text (omikuji reads nothing else, for metarank it is stated "
        f"beside). *batch*: CPU milliseconds a test point, all in one call, the best {K} labels; *single*: "
        f"median CPU milliseconds of {SINGLES} calls with one point each, wall in brackets. *model*: MiB on "
        "disk. *memory*: peak MiB of reading and training, less what the imported packages take. *tail R@5*: "
        "share of all test labels with 1 to 5 training points that are among the first five. *yardstick*: "
        "CPU seconds of a fixed piece of work just before each run; other processes on the machine lengthen "
        "it, and all times with it. Medians over the runs; accuracy in per cent.",
    ]
    for name, dataset in sets.items():
        here = [(run, figures) for run, figures in results["sets"] if run.dataset.name == name]
        if summaries := medians(here):
            parts += [f"## {name}", _sizes(dataset), _systems(summaries), *_failures(here)]
            parts += [*_dominance(duels(summaries))]
    if results["threads"]:
        parts += ["## Two threads", _two_threads(results["threads"])]
    if results["growth"]:
        parts += ["## Growth", *_growth(results["growth"])]
    parts += ["## How it was made", _provenance(sets, [r for part in results.values() for r in part])]
    return "\n\n".join(parts) + "\n"


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def _sizes(dataset: Prepared) -> str:
    s = dataset.sizes
    return (
        f"{s['n']:,.0f} training and {s['n_test']:,.0f} test points, {s['D']:,.0f} features "
        f"({s['nnz_per_row']:.0f} non-zeros a point), {s['L']:,.0f} labels "
        f"({s['labels_per_row']:.1f} a point)."
    )


def _systems(summaries: dict[Setting, Summary]) -> str:
    costs = ["train s", "+ text s", "batch ms", "single ms", "model MiB", "memory MiB", "yardstick", "runs"]
    ordered = [s for s in (*PEERS, *OURS) if s in summaries]
    rows = []
    for setting in ordered:
        v = summaries[setting]
        text = v.get("read_text_cpu_s", v["read_cpu_s"] if setting.system == "omikuji" else None)
        row = [str(setting), *(f"{v[name]:.1f}" for name in ACCURACY), number(v["train_cpu_s"])]
        row += ["" if text is None else number(text), number(v["batch_ms"])]
        row += [f"{number(v['single_cpu_ms'])} ({number(v['single_ms'])})"]
        row += [number(v["model_mib"]), f"{v['peak_mib']:.0f}"]
        row += [f"{v['yardstick_cpu_s']:.2f}", f"{v['runs']:.0f}"]
        rows.append(row)
    return table(["system", *ACCURACY, *costs], rows)


def _failures(results: Results) -> list[str]:
    failed = {str(run.setting): figures["failed"] for run, figures in results if "failed" in figures}
    return [f"{setting}: {why}." for setting, why in failed.items()]


def _dominance(found: list[Duel]) -> list[str]:
    """One table a kind of rule: gains in points, costs as shares of the peer's."""
    parts = []
    for kind, rule in RULES.items():
        rows = []
        for duel in found:
            if duel.peer.kind == kind:
                gains = [f"{duel.gain[name]:+.2f}" for name in rule.loss]
                ratios = [f"{duel.ratio[name]:.2f}" for name in rule.share]
                missing = ", ".join(SHORT.get(name, name) for name in duel.missing)
                verdict = f"missing: {missing}" if missing else "yes"
                rows.append([str(duel.peer), duel.ours.name, *gains, *ratios, verdict])
        if rows:
            shares = [f"{SHORT[name]} (at most {share:.2g})" for name, share in rule.share.items()]
            parts.append(table(["peer", "ours", *rule.loss, *shares, "dominated"], rows))
    return parts


def _two_threads(results: Results) -> str:
    """The caller's thread is one of the two, so the other's time is the rest."""
    rows = []
    by_set = {(run.dataset.name, run.threads): (run, figures) for run, figures in results}
    for (name, threads), (run, two) in by_set.items():
        if threads == 2 and (name, 1) in by_set:
            one = by_set[name, 1][1]
            shares = [
                total / max(caller, total - caller)
                for total, caller in (
                    (two["train_cpu_s"], two["train_caller_s"]),
                    (two["batch_ms"], two["batch_caller_ms"]),
                )
            ]
            same = [
                "yes" if one[digest] == two[digest] else "no"
                for digest in ("model_sha256", "predictions_sha256")
            ]
            more = two["train_cpu_s"] / one["train_cpu_s"]
            rows.append([run.setting.name, name, *(f"{s:.2f}" for s in shares), f"{more:.2f}", *same])
    head = ["setting", "set", "training: total / largest", "batch: total / largest"]
    head += ["CPU of two threads / of one", "same model", "same predictions"]
    return table(head, rows)


def _growth(results: Results) -> list[str]:
    columns = {
        "train_cpu_s": "train s",
        "peak_mib": "memory MiB",
        "model_mib": "model MiB",
        "batch_ms": "batch ms",
        "single_cpu_ms": "single ms",
    }
    measured = [(run, figures) for run, figures in results if "failed" not in figures]
    rows = []
    for run, figures in measured:
        s = run.dataset.sizes
        values = [number(figures[name]) for name in columns]
        rows.append([f"{s['n']:,.0f}", f"{s['L']:,.0f}", *values, f"{figures['accuracy']['R@100']:.1f}"])
    parts = [", ".join(sorted({str(run.setting) for run, _ in results})) + ":"]
    parts += [table(["n", "L", *columns.values(), "R@100"], rows), *_failures(results)]
    sizes = np.array([[run.dataset.sizes["n"], run.dataset.sizes["L"]] for run, _ in measured])
    if len(measured) >= 3 and np.all(np.ptp(sizes, axis=0) > 0):
        design = np.column_stack([np.ones(len(sizes)), np.log10(sizes)])
        fitted = []
        for name, heading in columns.items():
            values = np.array([figures[name] for _, figures in measured])
            _, of_n, of_l = np.linalg.lstsq(design, np.log10(values), rcond=None)[0]
            per_decade = np.linalg.lstsq(design, values, rcond=None)[0][2]
            fitted.append([heading, f"{of_n:.2f}", f"{of_l:.2f}", number(per_decade)])
        parts.append(table(["", "exponent in n", "exponent in L", "more per factor ten of L"], fitted))
    return parts


def _provenance(sets: dict[str, Prepared], results: Results) -> str:
    yardsticks = [figures["yardstick_cpu_s"] for _, figures in results if "failed" not in figures]
    packages = ("numpy", "scipy", "metarank-ltr")
    lines = [
        f"- {cpu_model()}, {os.cpu_count()} cores, Python {platform.python_version()}, seed {SEED}",
        "- " + ", ".join(f"{package} {version(package)}" for package in packages),
        "- " + ", ".join(f"{system} {version_of(system)}" for system in ("omikuji", "pecos", "napkinxc")),
    ]
    if yardsticks:
        low, middle, high = min(yardsticks), statistics.median(yardsticks), max(yardsticks)
        lines.append(
            f"- {len(yardsticks)} runs, yardstick {low:.2f} to {high:.2f} CPU s (median {middle:.2f})"
        )
    now = digest_of_sources()
    older = {str(run.setting) for run, f in results if f.get("sources", now) != now}
    if older:
        lines.append(f"- measured with another state of the sources: {', '.join(sorted(older))}")
    lines += [f"- sha256 of {name} as text: {dataset.checksum}" for name, dataset in sets.items()]
    return "\n".join(lines)
