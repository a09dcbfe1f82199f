"""Targets in processes of their own: a crash, a hang or a blow-up of memory is a result, with its seed."""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import select
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz.targets import scratch_folder

# Of one mutant: seconds, and memory beyond what the worker had before.
SECONDS = 30
GROWTH = 1 << 29
# Of a worker as a whole.
ADDRESS_SPACE = 12 << 30


@dataclass
class Report:
    """What came of the mutants of a target."""

    target: str
    n_mutants: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)


def run_target(
    make: Callable[[], Any],
    name: str,
    seed: int,
    numbers: range,
    *,
    until: float = float("inf"),
    most_failures: int = 20,
) -> Report:
    """The mutants of a target by number; mutant i depends on (seed, name, i) alone.

    `make` builds the target within the worker. A worker that dies is replaced, and goes on behind the mutant
    that killed it.
    """
    report = Report(name)
    first = numbers.start
    while first < numbers.stop and time.monotonic() < until and len(report.failures) < most_failures:
        first = _run_worker(make, name, seed, range(first, numbers.stop), until, report)
    return report


def _run_worker(
    make: Callable[[], Any], name: str, seed: int, numbers: range, until: float, report: Report
) -> int:
    """One worker; returns the number to go on with."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            _work(make, name, seed, numbers, until, os.fdopen(writer, "w", buffering=1))
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    os.close(writer)
    at, message = numbers.start - 1, ""
    stream = os.fdopen(reader)
    while True:
        ready, _, _ = select.select([stream], [], [], SECONDS + 90)
        line = stream.readline() if ready else ""
        if not line:
            if not ready:
                os.kill(child, signal.SIGKILL)
                message = "it hangs, and does not heed the alarm"
            break
        kind, _, rest = line.rstrip("\n").partition(" ")
        if kind == "at":
            at = int(rest)
        elif kind == "outcome":
            report.n_mutants += 1
            report.outcomes[json.loads(rest)] += 1
        elif kind == "failure":
            report.n_mutants += 1
            report.failures.append({"target": name, "seed": seed, "number": at, "what": json.loads(rest)})
    stream.close()
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) == 0:
        return numbers.stop
    code = os.waitstatus_to_exitcode(status)
    if at < numbers.start:
        raise RuntimeError(f"the worker of {name!r} could not begin")
    if code == -signal.SIGALRM:
        message = f"it hangs: more than {SECONDS} s"
    report.n_mutants += 1
    report.failures.append(
        {"target": name, "seed": seed, "number": at, "what": message or f"the process died, exit code {code}"}
    )
    return at + 1


def _work(make: Callable[[], Any], name: str, seed: int, numbers: range, until: float, out: Any) -> None:
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    with scratch_folder() as scratch:
        target = make()
        for number in numbers:
            if time.monotonic() > until:
                return
            print("at", number, file=out, flush=True)
            signal.alarm(SECONDS)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            try:
                outcome = mutant(target, name, seed, number, Path(scratch))
            except Exception:
                kind, what = "failure", traceback.format_exc(limit=-6)
            else:
                kind, what = "outcome", outcome
            signal.alarm(0)
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
            if grown > GROWTH:
                kind, what = "failure", f"memory grew by {grown >> 20} MiB: {what}"
            print(kind, json.dumps(what), file=out, flush=True)


def mutant(target: Any, name: str, seed: int, number: int, scratch: Path) -> str:
    """Make a mutant and hand it over; the outcome, or an exception that is a failure."""
    outcome: str = target.run(random.Random(f"{seed} {name} {number}"), scratch)
    return outcome
