"""Targets in processes of their own: a crash, a hang or a blow-up of memory is a result, with its seed."""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import random
import resource
import select
import signal
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fuzz.targets import scratch_folder

# Of one mutant: seconds, and memory beyond what the worker had before.
SECONDS = 30
GROWTH = 1 << 29
# Whether the core is one with sanitizers, see `sanitize.core`.
SANITIZED = "METARANK_SANITIZED_CORE" in os.environ
# Of a worker as a whole.
ADDRESS_SPACE = 12 << 30


@dataclass
class Report:
    """What came of the mutants of a target."""

    target: str
    n_mutants: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Task:
    """The mutants of a target by number; `make` builds it within the worker."""

    name: str
    make: Callable[[], Any]
    numbers: range


def run_targets(
    tasks: list[Task], seed: int, *, processes: int = 1, until: float = float("inf"), most_failures: int = 20
) -> Iterator[Report]:
    """What came of each task, as they end; mutant i depends on (seed, name, i) alone.

    A worker that dies is replaced, and the next goes on behind the mutant that killed it.
    """
    waiting, at_work = deque(tasks), list[_Worker]()
    while waiting or at_work:
        while waiting and len(at_work) < processes:
            task = waiting.popleft()
            at_work.append(_Worker(task, seed, until, Report(task.name)))
        ready, _, _ = select.select([worker.pipe for worker in at_work], [], [], 1)
        for worker in list(at_work):
            if worker.pipe in ready:
                worker.read()
            elif time.monotonic() - worker.heard > SECONDS + 90:
                worker.kill()
            if not worker.ended:
                continue
            at_work.remove(worker)
            first = worker.settle()
            failed = len(worker.report.failures) >= most_failures
            if first < worker.task.numbers.stop and time.monotonic() < until and not failed:
                rest = replace(worker.task, numbers=range(first, worker.task.numbers.stop))
                at_work.append(_Worker(rest, seed, until, worker.report))
            else:
                yield worker.report


class _Worker:
    """A process at the mutants of a task, and what it told so far."""

    def __init__(self, task: Task, seed: int, until: float, report: Report) -> None:
        self.task, self.seed, self.report = task, seed, report
        self.at, self.message, self.ended = task.numbers.start - 1, "", False
        self.heard = time.monotonic()
        self._rest = b""
        self.pipe, writer = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(self.pipe)
            try:
                _work(task, seed, until, os.fdopen(writer, "w", buffering=1))
            except BaseException:
                traceback.print_exc()
                os._exit(3)
            os._exit(0)
        os.close(writer)

    def read(self) -> None:
        """Note what has come."""
        self.heard = time.monotonic()
        content = os.read(self.pipe, 1 << 16)
        self.ended = not content
        *lines, self._rest = (self._rest + content).split(b"\n")
        for line in lines:
            kind, _, rest = line.decode().partition(" ")
            if kind == "at":
                self.at = int(rest)
            elif kind == "outcome":
                self.report.n_mutants += 1
                self.report.outcomes[json.loads(rest)] += 1
            elif kind == "failure":
                self._failed(json.loads(rest))

    def kill(self) -> None:
        """End a process that does not heed its alarm."""
        os.kill(self._child, signal.SIGKILL)
        self.message, self.ended = "it hangs, and does not heed the alarm", True

    def settle(self) -> int:
        """Take leave of a process that has ended; the number to go on with."""
        os.close(self.pipe)
        _, status = os.waitpid(self._child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return self.task.numbers.stop
        if self.at < self.task.numbers.start:
            raise RuntimeError(f"the worker of {self.task.name!r} could not begin")
        if code == -signal.SIGALRM:
            self.message = f"it hangs: more than {SECONDS} s"
        self._failed(self.message or f"the process died, exit code {code}")
        return self.at + 1

    def _failed(self, what: str) -> None:
        self.report.n_mutants += 1
        self.report.failures.append(
            {"target": self.task.name, "seed": self.seed, "number": self.at, "what": what}
        )


def _work(task: Task, seed: int, until: float, out: Any) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not SANITIZED:  # a sanitizer maps the whole address space, and tells of faults itself
        faulthandler.enable()
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with scratch_folder() as scratch:
        target = task.make()
        for number in task.numbers:
            if time.monotonic() > until:
                return
            print("at", number, file=out, flush=True)
            signal.alarm(SECONDS)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            try:
                outcome = mutant(target, task.name, seed, number, Path(scratch))
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
