"""One run of one system in a process of its own: train, save, predict; clocks, memory and predictions.

measure.py JOB.json, written by run.py, in the environment of the system. Only NumPy and SciPy are needed
beside the system itself. The job names `system`, `params`, `threads`, `data` (folder), `k`, `singles`,
`predictions` (times are the medians of so many), `more` and `out` (a file stem); figures go to OUT.json, the
best k labels of every test row to OUT.npz, with the label sets that the system has cut by itself, if it does
and `more` names "cuts". With "pairs" in `more`, the figures have the pairs a row that it describes.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))
from clocks import cpu_seconds, memory, one_by_one, start_of_peak, yardstick

SECONDS_FOR_SINGLES = 30.0


def main(job_file: str) -> None:
    job = json.loads(Path(job_file).read_text())
    folder, out, k, more = Path(job["data"]), Path(job["out"]), job["k"], job["more"]
    system = importlib.import_module(f"{folder_of(job['system'])}.{job['system']}").System(
        job["params"], job["threads"]
    )
    figures: dict[str, Any] = {"version": system.version, "yardstick_cpu_s": clocked(yardstick)[0]}

    before = start_of_peak()
    figures["read_cpu_s"], _ = clocked(lambda: system.read(folder))
    figures["train_cpu_s"], figures["train_caller_s"] = clocked(system.train)
    figures["peak_mib"] = memory("VmHWM") - before
    figures["imports_mib"] = before

    with tempfile.TemporaryDirectory(dir=job.get("scratch")) as model:
        system.save(Path(model))
        files = sorted(path for path in Path(model).rglob("*") if path.is_file())
        figures["model_mib"] = sum(path.stat().st_size for path in files) / 2**20
        figures["model_sha256"] = digest_of_files(files)
        X_test = sp.load_npz(folder / "X_test.npz")
        times = range(job["predictions"])
        singles = [one_by_one(system, X_test, k, job["singles"], SECONDS_FOR_SINGLES) for _ in times]
        figures["single_ms"], figures["single_cpu_ms"] = map(float, np.median(singles, axis=0))
        rows = system.prepare(X_test)
        predicted: list[Any] = []
        batches = [clocked(lambda: predicted.append(system.predict(rows, k))) for _ in times]
        per_row = 1000 * np.median(batches, axis=0) / X_test.shape[0]
        figures["batch_ms"], figures["batch_caller_ms"] = map(float, per_row)
        labels, scores = system.top(predicted[0], k)
        cuts = system.cuts(rows) if "cuts" in more and hasattr(system, "cuts") else {}
        if "pairs" in more and hasattr(system, "pairs"):
            figures |= system.pairs(rows)
    figures["predictions_sha256"] = hashlib.sha256(labels.tobytes() + scores.tobytes()).hexdigest()
    if hasattr(system, "read_text"):
        figures["read_text_cpu_s"], _ = clocked(lambda: system.read_text(folder))
    np.savez_compressed(out.with_suffix(".npz"), labels=labels, scores=scores, **_flat(cuts))
    out.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")


def folder_of(system: str) -> str:
    """Where a system is: ours here, a peer among those of the bench."""
    return "adapters" if system.startswith("metarank") else "systems"


def _flat(cuts: dict[str, sp.csr_matrix]) -> dict[str, np.ndarray]:
    """Label sets as arrays of names of their own: "METRIC indptr" and "METRIC labels"."""
    parts = {"indptr": "indptr", "labels": "indices"}
    return {f"{name} {key}": getattr(cut, part) for name, cut in cuts.items() for key, part in parts.items()}


def clocked(work: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds of `work`: of the whole process, and of the calling thread alone."""
    whole, caller = cpu_seconds(), time.thread_time()
    work()
    return cpu_seconds() - whole, time.thread_time() - caller


def digest_of_files(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    main(sys.argv[1])
