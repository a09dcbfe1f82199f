"""The core's tests under address, undefined-behaviour and thread sanitizers: ``python -m sanitize.run``.

A core of each kind is built in build/sanitize/, which takes minutes the first time; the installed one is left
alone. Before the tests it is shown to report mistakes made on purpose. The exit code is 1 where a test fails,
a sanitizer reports anything, a mistake on purpose goes unreported, or an entry point of the core is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from sanitize.build import KINDS, ROOT, build, run_with

# The files that call the core more than in passing; together they reach every entry point of it.
TESTS = ["algebra", "base_classifiers", "config", "dense_index", "elementary", "gbdt", "gram", "hierarchy"]
TESTS += ["instance_trees", "kernel_threads", "label_means", "label_partition", "label_tree"]
TESTS += ["label_tree_predict", "label_vectors", "metrics_ranking", "metrics_regression", "names_scorer"]
TESTS += ["neighbors", "objectives", "one_vs_all", "rankers", "standardize", "thresholds", "vectorizer"]
TESTS += ["weight_blocks", "xc"]
# Of these, pytrec_eval frees with free() what it had from new[].
LEFT_OUT = ["tests/test_metrics/test_metrics_ranking.py::test_agrees_with_trec_eval"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m sanitize.run", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; default: all")
    parser.add_argument(
        "--tests", nargs="+", metavar="FILE", help="these alone; no entry point need be called"
    )
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"KIND must be one of {', '.join(KINDS)}, got {', '.join(sorted(unknown))}")
    tests = options.tests or [
        str(path) for name in TESTS for path in (ROOT / "tests").glob(f"test_*/test_{name}.py")
    ]
    # A list: a kind is run whatever became of the one before.
    clean = [_run(name, tests, whole=not options.tests) for name in options.kinds or KINDS]
    return 0 if all(clean) else 1


def _run(name: str, tests: list[str], whole: bool) -> bool:
    """Build, check and test the core of a kind; whether it is clean."""
    folder = build(name)
    bites = [_reports_fault(name, folder, fault, words) for fault, words in KINDS[name].faults.items()]
    with tempfile.TemporaryDirectory(prefix="metarank-sanitize-") as scratch:
        counts = Path(scratch) / "counts.json"
        # Without capture=sys, pytest would keep reports on stderr to itself.
        options = ["-p", "sanitize.plugin", "-p", "no:cacheprovider", "--capture=sys"]
        options += [f"--deselect={test}" for test in LEFT_OUT]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        code, reports = run_with(name, folder, command, {"METARANK_SANITIZE_COUNTS": counts})
        found = json.loads(counts.read_text()) if counts.exists() else None
    for report in reports[:5]:
        print(*report.splitlines()[:15], sep="\n")
    if found is None:
        print(f"{name}: the tests ended early, exit code {code}, {len(reports)} reports", flush=True)
        return False
    left_out = missed(found) if whole else []
    if left_out:
        print(f"{name}: not called, or never with threads: {', '.join(left_out)}")
    print(f"{name}: {summary(found)}, {len(reports)} reports of the sanitizer", flush=True)
    return code == 0 and not reports and not left_out and all(bites)


def _reports_fault(name: str, folder: Path, fault: str, words: str) -> bool:
    _, reports = run_with(name, folder, [sys.executable, "-m", "sanitize.faults", fault])
    bites = any(words in report and "metarank/_core/" in report for report in reports)
    print(f"{name}: fault on purpose ({fault}) {'reported' if bites else 'NOT REPORTED'}", flush=True)
    return bites


def missed(found: dict[str, Any]) -> list[str]:
    """The entry points that the tests left out: not called, or, with `n_threads`, never with threads."""
    serial = set(found["threaded"]) - set(found["with_threads"])
    return [name for name in found["entry_points"] if name in serial or name not in found["called"]]


def summary(found: dict[str, Any]) -> str:
    """A line of what the plugin counted."""
    outcomes = ", ".join(f"{n} {outcome}" for outcome, n in sorted(found["outcomes"].items()))
    called = f"{len(found['called'])} of {len(found['entry_points'])} entry points of the core called"
    threads = f"{len(found['with_threads'])} of the {len(found['threaded'])} threaded ones on several threads"
    return f"{sum(found['outcomes'].values())} tests ({outcomes}), {called}, {threads}"


if __name__ == "__main__":
    sys.exit(main())
