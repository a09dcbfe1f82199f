"""All fuzzers, one after another, with their counts: ``python -m fuzz.run``; see README.md."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# Before anything is imported that reads them: workers are forked, which a pool of threads does not outlive.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from fuzz import native, readers, targets
from fuzz.workers import Report, run_target


def main() -> int:
    options = _parser().parse_args()
    until = time.monotonic() + options.seconds if options.seconds else float("inf")
    failures: list[dict[str, Any]] = []
    total = 0

    def show(report: Report) -> None:
        nonlocal total
        total += report.n_mutants
        failures.extend(report.failures)
        print(
            f"{report.target:<28} {report.n_mutants:>8,} mutants {len(report.outcomes):>5} outcomes "
            f"{report.outcomes['ok']:>7,} accepted {len(report.failures):>3} failures",
            flush=True,
        )
        for failure in report.failures[:3]:
            print(f"  number {failure['number']}, seed {failure['seed']}: {failure['what']}", flush=True)

    def wanted(name: str) -> bool:
        return options.only is None or options.only in name

    harnesses = [name for name in native.HARNESSES if options.native_runs and wanted(f"native: {name}")]
    # Compiled beside the mutants, in a process of its own: this one forks.
    compiling = subprocess.Popen([sys.executable, "-m", "fuzz.native", options.build, *harnesses])
    with tempfile.TemporaryDirectory(prefix="metarank-fuzz-") as scratch:
        folder = Path(options.models or scratch)
        names = [name for name in targets.MODELS if wanted(f"model: {name}")]
        if names and options.models_mutants:
            _save_models(folder, names)
        makers: list[tuple[str, Callable[[], Any], int]] = [
            (f"model: {name}", partial(targets.model_target, name, folder), options.models_mutants)
            for name in names
        ]
        makers += [
            (target.name, partial(_warmed_up, target), options.readers_mutants)
            for target in readers.reader_targets()
            if wanted(target.name)
        ]
        for name, make, n in makers:
            if n:
                first = options.first
                show(run_target(make, name, options.seed, range(first, first + n), until=until))
        if compiling.wait() != 0:
            raise RuntimeError("the harnesses could not be compiled")
        for harness in harnesses:
            found = native.run(harness, options.native_runs, options.seed, Path(options.build))
            total += found.runs
            failures += [{"target": f"native: {harness}", "what": found.failure}] if found.failure else []
            print(found, flush=True)
    print(f"{total:,} mutants, {len(failures)} failures")
    return 1 if failures else 0


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
    parser.add_argument("--seconds", type=float, help="stop the mutants of models and readers after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant, to repeat one")
    parser.add_argument("--only", help="targets whose name holds this")
    parser.add_argument("--models", help="folder that keeps the models to be mutated")
    parser.add_argument("--build", default="build/fuzz", help="folder for the harnesses")
    return parser


if __name__ == "__main__":
    sys.exit(main())
