"""One system on one set with one seed, in a process of its own: train, save, rank; clocks and lists.

cell.py JOB.json, written by `cells.py`. The job names `set`, `system`, `params`, `seed`, `split_seed`,
`threads`, `unseen` (false, or how labels known by name alone come in), `rows` (of the training part, null for
all) and `out` (a file stem).
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from borrowed import clocked, memory, start_of_peak, yardstick
from models import K, System, make
from parts import Parts, split, with_fewer_rows, without_unseen
from titles import Titles, load
from worth import Lists

SINGLES = 100
_WARM_UP = 10


def main(job_file: str) -> None:
    job = json.loads(Path(job_file).read_text())
    parts = split(load(job["set"]), job["split_seed"])
    if job["unseen"]:
        parts = without_unseen(parts, job["split_seed"])
    if job["rows"] is not None:
        parts = with_fewer_rows(parts, job["rows"], job["split_seed"])
    system = make(job["system"], job["params"], job["seed"], job["threads"])
    figures, valid, test = run(system, parts, at_fit=job["unseen"] == "at fit")
    arrays = {"valid": valid, "test": test}
    named = {f"{part} {name}": array for part, lists in arrays.items() for name, array in vars(lists).items()}
    np.savez_compressed(Path(job["out"]).with_suffix(".npz"), **named)
    Path(job["out"]).with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")


def run(system: System, parts: Parts, at_fit: bool = False) -> tuple[dict[str, Any], Lists, Lists]:
    """Figures, and lists of the validation and the test part; `at_fit`: unseen labels are in the fit."""
    figures: dict[str, Any] = {"yardstick_cpu_s": clocked(yardstick)[0]}
    train, to_set = parts.train, np.arange(len(parts.train.names))
    added = len(parts.unseen) > 0 and not at_fit
    if added:
        seen = np.setdiff1d(to_set, parts.unseen)
        train, to_set = _columns(train, seen), np.concatenate([seen, parts.unseen])
    system.warm_up()
    before, started = start_of_peak(), time.perf_counter()
    figures["train_cpu_s"], _ = clocked(lambda: system.fit(train))
    figures["train_wall_s"] = time.perf_counter() - started
    figures["peak_mib"] = memory("VmHWM") - before
    if added:
        system.add([parts.train.names[label] for label in parts.unseen])
    figures["n_parameters"] = system.n_parameters()
    with tempfile.TemporaryDirectory() as folder:
        system.save(Path(folder) / "model")
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        figures["model_mib"] = sum(path.stat().st_size for path in files) / 2**20
    valid, test = (_columns(part, to_set) for part in (parts.valid, parts.test))
    found: list[Lists] = []
    seconds, _ = clocked(lambda: found.append(system.lists(test, K)))
    figures["batch_ms"] = 1000 * seconds / len(test.texts)
    figures["single_ms"] = _single(system, valid)
    in_set = [_to_set(lists, to_set) for lists in (system.lists(valid, K), found[0])]
    return figures, in_set[0], in_set[1]


def _columns(titles: Titles, labels: np.ndarray) -> Titles:
    """The set with the given labels alone, in the given order."""
    place = np.full(titles.Y.shape[1], -1, np.int32)
    place[labels] = np.arange(len(labels))
    own = np.where(titles.own >= 0, place[titles.own], -1).astype(np.int32)
    Y = sp.csr_matrix(titles.Y[:, labels])
    Y.sort_indices()
    return replace(titles, Y=Y, names=[titles.names[label] for label in labels], own=own)


def _to_set(lists: Lists, to_set: np.ndarray) -> Lists:
    labels = np.where(lists.labels >= 0, to_set[np.maximum(lists.labels, 0)], -1)
    return Lists(labels.astype(np.int32), lists.chances.astype(np.float32))


def _single(system: System, titles: Titles) -> float:
    """Median wall milliseconds of the best ten labels of one text a call."""
    seconds = []
    for i in range(_WARM_UP + SINGLES):
        row = titles.take(np.array([i % len(titles.texts)]))
        started = time.perf_counter()
        system.lists(row, 10)
        seconds.append(time.perf_counter() - started)
    return 1000 * float(np.median(seconds[_WARM_UP:]))


if __name__ == "__main__":
    main(sys.argv[1])
