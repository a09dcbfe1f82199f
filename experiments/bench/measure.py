"""One cell in a process of its own: train, save, answer; clocks, memory and lists.

measure.py JOB.json, in the environment of the system, which needs NumPy and SciPy alone beside it. Figures
go to OUT.json, the lists of the test rows to OUT.npz. A system with a method `experiment(folder)` is clocked
as a whole: that gives its figures, for JSON, and arrays by name.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from clocks import clocked, memory, one_by_one, start_of_peak, yardstick


def main(job_file: str) -> None:
    job = json.loads(Path(job_file).read_text())
    folder, out = Path(job["data"]), Path(job["out"])
    system = importlib.import_module(f"systems.{job['module']}").System(job["params"], job["threads"])
    figures: dict[str, Any] = {"version": system.version, "yardstick_s": clocked(yardstick)}

    before = start_of_peak()
    train_and_answer = whole if hasattr(system, "experiment") else trained
    arrays = train_and_answer(system, job, folder, figures)
    figures["imports_mib"] = before
    digest = hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays)))
    figures["answers_sha256"] = digest.hexdigest()
    np.savez_compressed(out.with_suffix(".npz"), **arrays)
    out.with_suffix(".json").write_text(json.dumps(figures) + "\n")


def whole(system: Any, job: dict, folder: Path, figures: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of an experiment; its figures are added, and what it took."""
    found: list[Any] = []
    figures["train_s"] = clocked(lambda: found.append(system.experiment(folder)))
    figures["memory_mib"] = memory("VmHWM")
    figures |= found[0][0]
    return found[0][1]


def trained(system: Any, job: dict, folder: Path, figures: dict[str, Any]) -> dict[str, np.ndarray]:
    """The lists of the test rows, or what else the system answers; figures of all steps are added."""
    k = job["k"]
    figures["read_s"] = clocked(lambda: system.read(folder))
    figures["train_s"] = clocked(system.train)
    figures["memory_mib"] = memory("VmHWM")

    with tempfile.TemporaryDirectory() as place:
        model = Path(place) / "model"
        model.mkdir()
        system.save(model)
        files = sorted(path for path in model.rglob("*") if path.is_file())
        figures["model_mib"] = sum(path.stat().st_size for path in files) / 2**20
        own = hasattr(system, "test_rows")
        X_test = system.test_rows(folder) if own else sp.load_npz(folder / "X_test.npz")
        figures["single_wall_ms"], figures["single_ms"] = one_by_one(system, X_test, k, job["singles"])
        rows = system.prepare(X_test)
        predicted: list[Any] = []
        figures["batch_ms"] = (
            1000 * clocked(lambda: predicted.append(system.predict(rows, k))) / X_test.shape[0]
        )
        arrays = (
            system.arrays(predicted[0], rows)
            if hasattr(system, "arrays")
            else lists_of(system, predicted[0], rows, k)
        )
        if hasattr(system, "figures"):
            figures |= system.figures(rows)
    return arrays


def lists_of(system: Any, predicted: Any, rows: Any, k: int) -> dict[str, np.ndarray]:
    """The lists as "NAME/labels" and "NAME/scores", the name of the main one empty; and the cuts."""
    lists = {"": system.top(predicted, k), **(system.lists(rows, k) if hasattr(system, "lists") else {})}
    arrays = {}
    for name, (labels, scores) in lists.items():
        arrays |= {f"{name}/labels": labels, f"{name}/scores": scores}
    for name, cut in (system.cuts(rows) if hasattr(system, "cuts") else {}).items():
        arrays |= {f"{name}/cut indptr": cut.indptr, f"{name}/cut labels": cut.indices}
    return arrays


if __name__ == "__main__":
    main(sys.argv[1])
