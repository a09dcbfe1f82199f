"""Runs, each a process of its own, and what is kept of them: a JSON and a predictions file a run."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import accuracy
from datasets import Prepared
from environments import ENVIRONMENTS, python_of
from pages import digest_of_sources
from pages import log as log
from settings import SINGLES, K, Setting

import metarank

_HERE = Path(__file__).parent
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")

Figures = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One repetition of a setting on a set.

    Lists have `k` labels. Predictions are timed `predictions` times; `more` is what else is measured, of
    the extra figures that the system's adapter has.
    """

    dataset: Prepared
    setting: Setting
    repetition: int
    threads: int = 1
    k: int = K
    predictions: int = 1
    more: tuple[str, ...] = ("cuts",)

    @property
    def key(self) -> str:
        """What a kept run must agree in to stand for this one."""
        return json.dumps(
            {
                "set": self.dataset.checksum,
                "params": self.setting.params,
                "version": version_of(self.setting.system),
                "k": self.k,
                "threads": self.threads,
                **({} if self.predictions == 1 else {"predictions": self.predictions}),
                **({} if self.more == ("cuts",) else {"more": self.more}),
            },
            sort_keys=True,
        )

    @property
    def stem(self) -> str:
        name = f"{self.setting.system}-{self.setting.name}-{self.threads}-{self.repetition}"
        return "".join(c if c.isalnum() or c == "-" else "_" for c in name)


@dataclass(frozen=True)
class Laboratory:
    """Where and how runs are made.

    Parameters
    ----------
    cache : folder of what is kept
    environments : folder of the peers' environments
    core : int or None
        The core that runs of one thread are bound to.
    timeout : float
        Seconds after which a run is given up.
    """

    cache: Path
    environments: Path
    core: int | None
    timeout: float

    def kept(self, run: Run) -> Figures | None:
        """The figures of a run that was made before, None if there is none."""
        path = self._place(run).with_suffix(".json")
        if not path.is_file():
            return None
        figures: Figures = json.loads(path.read_text())
        return figures if figures["key"] == run.key else None

    def make(self, run: Run) -> Figures:
        """Measure a run and keep it.

        A run that takes longer than the time limit is kept as {"failed": ...}.

        Raises
        ------
        RuntimeError
            If the run fails otherwise, with the end of what it printed; nothing is kept.
        """
        place = self._place(run)
        place.parent.mkdir(parents=True, exist_ok=True)
        python = python_of(run.setting.system, self.environments)
        threads = dict.fromkeys(THREAD_VARIABLES, str(run.threads))
        started = time.time()
        with tempfile.TemporaryDirectory(dir=self.cache) as scratch:
            job = Path(scratch) / "job.json"
            job.write_text(json.dumps(self._job(run, Path(scratch))))
            try:
                done = subprocess.run(
                    self._command(run, python, job),
                    env={**os.environ, **threads, "TMPDIR": scratch},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    timeout=self.timeout,
                    text=True,
                    errors="replace",
                )
            except subprocess.TimeoutExpired:
                return self._keep(run, {"failed": f"not done after {self.timeout:.0f} s"})
            if done.returncode != 0:
                raise RuntimeError(
                    f"{run.setting} on {run.dataset.name}: exit {done.returncode}\n{done.stderr[-2000:]}"
                )
            figures: Figures = json.loads((Path(scratch) / "run.json").read_text())
            (Path(scratch) / "run.npz").replace(place.with_suffix(".npz"))
        figures["accuracy"] = accuracy.measure(place.with_suffix(".npz"), run.dataset)
        figures["wall_s"] = time.time() - started
        if run.setting.system not in ENVIRONMENTS:
            figures["sources"] = digest_of_sources()
        return self._keep(run, figures)

    def predictions(self, run: Run) -> Path:
        """The file of the lists of a kept run."""
        return self._place(run).with_suffix(".npz")

    def _job(self, run: Run, scratch: Path) -> dict[str, Any]:
        return {
            "system": run.setting.system,
            "params": run.setting.params,
            "threads": run.threads,
            "data": str(run.dataset.folder.resolve()),
            "k": min(run.k, int(run.dataset.sizes["L"])),
            "singles": SINGLES,
            "predictions": run.predictions,
            "more": run.more,
            "out": str((scratch / "run").resolve()),
        }

    def _command(self, run: Run, python: Path, job: Path) -> list[str]:
        bound = (
            ["taskset", "--cpu-list", str(self.core)] if self.core is not None and run.threads == 1 else []
        )
        return [*bound, str(python), str(_HERE / "measure.py"), str(job)]

    def _keep(self, run: Run, figures: Figures) -> Figures:
        figures = {"key": run.key, **figures}
        self._place(run).with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")
        return figures

    def _place(self, run: Run) -> Path:
        return self.cache / "runs" / run.dataset.name / run.stem


def version_of(system: str) -> str:
    return ENVIRONMENTS[system].version if system in ENVIRONMENTS else metarank.__version__
