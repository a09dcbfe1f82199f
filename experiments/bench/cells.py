"""Runs cells, each a process on a core of its own, and keeps a line of JSON for each."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import peer_environments
import sets
from declared import Cell, Figures
from progress import Progress

HERE = Path(__file__).parent
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
PEERS = HERE / "peers.jsonl"


class Bench:
    """Where cells run and their lines are kept.

    Parameters
    ----------
    folder : of sets, environments and runs; one folder of lines for each commit
    commit : that metarank is of
    """

    def __init__(self, folder: Path, commit: str) -> None:
        self.sets, self.environments = folder / "sets", folder / "environments"
        self.run = folder / "runs" / commit
        self.run.mkdir(parents=True, exist_ok=True)
        self.commit = commit
        self._file = self.run / "lines.jsonl"
        self._writing = threading.Lock()
        self.lines = {line["key"]: line for line in _read(self._file)}

    def carry_out(self, cells: Sequence[Cell], *, again: bool = False, run: bool = True) -> list[Figures]:
        """The lines of the cells, those that there are and those of the cells that run now.

        Raises
        ------
        ValueError
            If there is a cell without a line, and `run` is false.
        """
        cores = sorted(os.sched_getaffinity(0))
        peers = {line["key"]: line for line in _read(PEERS)}
        for name, make in {cell.dataset: cell.study.make.get(cell.dataset) for cell in cells}.items():
            sets.prepare(name, self.sets, make)
        for cell in cells:
            checksum = sets.described(self.sets / cell.dataset)["checksum"]
            stored = peers.get(cell.key)
            fits = cell.system.kept and stored and stored["checksum"] == checksum
            if fits and cell.key not in self.lines and not again:
                self.lines[cell.key] = {**stored, "from_file": True}
        wanted = [cell for cell in cells if again or self.lines.get(cell.key, {}).get("again", True)]
        if not run:
            if missing := [str(cell) for cell in wanted if cell.key not in self.lines]:
                raise ValueError(f"{self.run} has no line of {len(missing)} cells, as of {missing[0]}")
            wanted = []
        progress = Progress(len(wanted))
        for alone in (False, True):
            part = [cell for cell in wanted if cell.alone is alone]
            free: queue.Queue[str] = queue.Queue()
            for those in [",".join(map(str, cores))] if alone else map(str, cores):
                free.put(those)

            def work(cell: Cell, free: queue.Queue[str] = free) -> None:
                those = free.get()
                try:
                    self._keep(cell, self._measured(cell, those))
                finally:
                    free.put(those)
                progress.done(cell, self.lines[cell.key])

            with ThreadPoolExecutor(free.qsize()) as pool:
                list(pool.map(work, part))
        return [self.lines[cell.key] for cell in cells]

    def _measured(self, cell: Cell, cores: str) -> Figures:
        """The figures of a cell, or why there are none."""
        folder, what = self.sets / cell.dataset, cell.study.measure
        python = peer_environments.python_of(cell.system.peer, self.environments)
        if python is None:
            return {"failed": f"{cell.system.peer} is not installed: make bench-setup", "missing": True}
        with tempfile.TemporaryDirectory(dir=self.run) as scratch:
            out = Path(scratch).resolve() / "cell"
            job = {
                "module": cell.system.module,
                "params": _seeded(cell),
                "threads": 1,
                "data": str(folder.resolve()),
                "k": min(what.k, sets.described(folder).get("L", what.k)),
                "singles": what.singles,
                "out": str(out),
            }
            (Path(scratch) / "job.json").write_text(json.dumps(job))
            program = [python, HERE / "measure.py", Path(scratch) / "job.json"]
            if what.memory_gib is not None:
                program = ["prlimit", f"--data={what.memory_gib * 2**30:.0f}", *program]
            variables = {**os.environ, **dict.fromkeys(THREADS, "1"), "TMPDIR": scratch}
            # Where an experiment of ours finds a peer whose lists it takes.
            variables["BENCH_ENVIRONMENTS"] = str(self.environments.resolve())
            try:
                done = subprocess.run(
                    ["taskset", "--cpu-list", cores, *program],
                    env=variables | {"OMP_WAIT_POLICY": "passive"},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    timeout=what.limit,
                    text=True,
                    errors="replace",
                )
            except subprocess.TimeoutExpired:
                return {"failed": f"not done after {what.limit:.0f} s"}
            if done.returncode != 0:
                lines = done.stderr.strip().splitlines() or [""]
                return {"failed": f"exit {done.returncode}: {lines[-1][-300:]}"}
            figures: Figures = json.loads(out.with_suffix(".json").read_text())
            if cell.study.judge:
                figures["quality"] = cell.study.judge(folder, out.with_suffix(".npz"))
            # Beside the line: what tests of significance compare.
            figures["answers"] = f"{hashlib.sha256(cell.key.encode()).hexdigest()[:16]}.npz"
            out.with_suffix(".npz").replace(self.run / figures["answers"])
        return figures

    def _keep(self, cell: Cell, figures: Figures) -> None:
        line = {
            "key": cell.key,
            "study": cell.study.name,
            "set": cell.dataset,
            "checksum": sets.described(self.sets / cell.dataset)["checksum"],
            "system": cell.system.name,
            "params": dict(cell.system.params),
            "peer": cell.system.peer,
            "seed": cell.seed,
            "commit": self.commit,
            "made": time.strftime("%Y-%m-%d"),
            # A cell that failed is tried again by the next run.
            "again": "failed" in figures,
            **figures,
        }
        with self._writing, self._file.open("a") as file:
            file.write(json.dumps(line) + "\n")
            self.lines[cell.key] = line


def _seeded(cell: Cell) -> Figures:
    """The parameters with the seed, where the system takes one."""
    return {**cell.system.params, **({} if cell.system.peer else {"random_state": cell.seed})}


def _read(file: Path) -> list[Figures]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def keep_peers(lines: Sequence[Figures]) -> None:
    """Add lines of peers to `peers.jsonl`, in place of older ones; failures too, but for want of a peer."""
    there = {line["key"]: line for line in _read(PEERS)}
    there |= {line["key"]: {**line, "again": False} for line in lines if not line.get("missing")}
    PEERS.write_text("".join(json.dumps(there[key]) + "\n" for key in sorted(there)))
