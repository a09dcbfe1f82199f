"""All fuzzers, one after another, with their counts: ``python -m fuzz.run``; see README.md."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

# Before anything is imported that reads them: workers are forked, which a pool of threads does not outlive.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
if "METARANK_SANITIZED_CORE" in os.environ:
    from sanitize.core import import_core

    import_core()

from sanitize.build import KINDS, build, run_with

from fuzz import native, readers, targets
from fuzz.workers import Report, Task, run_targets


def main() -> int:
    options = _parser().parse_args()
    if options.sanitize:
        return _under_sanitizers(options.sanitize)
    until = time.monotonic() + options.seconds if options.seconds else float("inf")
    shown = _Shown()

    def wanted(name: str) -> bool:
        return options.only is None or options.only in name

    harnesses = [name for name in native.HARNESSES if options.native_runs and wanted(f"native: {name}")]
    # Compiled beside the mutants, in a process of its own: this one forks.
    compiling = subprocess.Popen([sys.executable, "-m", "fuzz.native", options.build, *harnesses])
    with tempfile.TemporaryDirectory(prefix="metarank-fuzz-") as scratch:
        folder = Path(options.models or scratch)
        names = [name for name in targets.MODELS if wanted(f"model: {name}")]
        first = options.first
        tasks: list[Task] = []
        if names and options.models_mutants:
            _save_models(folder, names)
            numbers = range(first, first + options.models_mutants)
            tasks += [
                Task(f"model: {name}", partial(targets.model_target, name, folder), numbers) for name in names
            ]
        if options.readers_mutants:
            numbers = range(first, first + options.readers_mutants)
            wanted_readers = [target for target in readers.reader_targets() if wanted(target.name)]
            tasks += [Task(target.name, partial(_warmed_up, target), numbers) for target in wanted_readers]
        for report in run_targets(tasks, options.seed, processes=options.processes, until=until):
            shown.add(report)
        if compiling.wait() != 0:
            raise RuntimeError("the harnesses could not be compiled")
        for harness in harnesses:
            found = native.run(harness, options.native_runs, options.seed, Path(options.build))
            shown.total += found.runs
            shown.n_failures += bool(found.failure)
            print(found, flush=True)
    shown.end()
    return 1 if shown.n_failures else 0


class _Shown:
    """Prints the counts of each target as it ends, and their sums."""

    def __init__(self) -> None:
        self.total, self.n_failures = 0, 0
        self.models = Report("all models")

    def add(self, report: Report) -> None:
        self.total += report.n_mutants
        self.n_failures += len(report.failures)
        print(_counts(report), flush=True)
        for failure in report.failures[:3]:
            print(f"  number {failure['number']}, seed {failure['seed']}: {failure['what']}", flush=True)
        if report.target.startswith("model: "):
            self.models.n_mutants += report.n_mutants
            self.models.outcomes.update(report.outcomes)
            self.models.failures += report.failures

    def end(self) -> None:
        if self.models.n_mutants:
            print(_counts(self.models))
        print(f"{self.total:,} mutants, {self.n_failures} failures")


def _counts(report: Report) -> str:
    """A line of what came of mutants: refused by `load`, refused when used, answered."""
    refused, used = (
        sum(n for outcome, n in report.outcomes.items() if outcome.startswith(kind))
        for kind in ("load: ", "use: ")
    )
    others = report.outcomes.total() - refused - used - report.outcomes["ok"]
    return (
        f"{report.target:<30} {report.n_mutants:>8,} mutants {refused + others:>8,} refused {used:>6,} in use"
        f" {report.outcomes['ok']:>7,} answered {len(report.failures):>4} failures"
    )


def _under_sanitizers(kind: str) -> int:
    """This command with a core of a kind; whatever a sanitizer reports ends the process of its mutant."""
    rest = [a for a in sys.argv[1:] if a not in ("--sanitize", kind) and not a.startswith("--sanitize=")]
    # The harnesses have sanitizers of their own.
    command = [sys.executable, "-m", "fuzz.run", "--native-runs", "0", *rest]
    folder = build(kind)
    code, reports = run_with(kind, folder, command, {"UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"})
    for report in reports[:5]:
        print(*report.splitlines()[:15], sep="\n")
    print(f"{kind}: {len(reports)} reports of the sanitizer")
    return 1 if code or reports else 0


def _warmed_up(target: readers.ReaderTarget) -> readers.ReaderTarget:
    with tempfile.TemporaryDirectory() as scratch:
        target.warm_up(Path(scratch))
    return target


def _save_models(folder: Path, names: list[str]) -> None:
    """In a process of their own: fitting starts threads, which a process that forks must not have."""
    code = "import sys; from pathlib import Path; from fuzz.targets import save_models; "
    code += "save_models(Path(sys.argv[1]), sys.argv[2:])"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(folder), *names], check=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzz.run", description=__doc__)
    parser.add_argument("--models-mutants", type=int, default=500, help="of each saved model")
    parser.add_argument("--readers-mutants", type=int, default=2000, help="of each reader")
    parser.add_argument("--native-runs", type=int, default=20_000, help="of each harness of the core")
    cpus = len(os.sched_getaffinity(0))
    parser.add_argument("--processes", type=int, default=cpus, help="at a time that try mutants")
    parser.add_argument("--sanitize", choices=list(KINDS), help="try them with a core of this kind")
    parser.add_argument("--seconds", type=float, help="stop the mutants of models and readers after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant, to repeat one")
    parser.add_argument("--only", help="targets whose name holds this")
    parser.add_argument("--models", help="folder that keeps the models to be mutated")
    parser.add_argument("--build", default="build/fuzz", help="folder for the harnesses")
    return parser


if __name__ == "__main__":
    sys.exit(main())
