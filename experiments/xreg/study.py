"""Runs, kept one JSON (figures) and one NPZ (predictions) each, so that an interrupted study goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pages import digest_of_sources, log
from problems import Problem
from systems import NotHere, Outcome, Settings, System

import metarank
from metarank import Candidates, metrics

Figures = dict[str, Any]

_METRICS = (
    *("WP@1", "WP@3", "WP@5", "Tau@1", "Tau@3", "Tau@5"),
    *("WP-regret@5", "XMAD@5", "XRMSE@5", "XMAD@10", "MAD"),
)


def judged(problem: Problem, found: Candidates) -> dict[str, float]:
    """All metrics of predictions, fractions of one: by points and, for labelwise sets, by labels ("-l")."""
    names = [*_METRICS, "nDCG@5", "AUPRC", "RMSE"]
    if problem.spec.labelwise:
        names += [labelwise(name) for name in _METRICS]
    values: dict[str, float] = metrics.evaluate(problem.Y_test, found, names, scale=problem.scale)
    return values


@dataclass(frozen=True)
class Study:
    """Where runs are kept, and how predictions are judged; the log shows the first of its metrics.

    `only`: systems that may be run, all if empty; `again`: those run even where they are kept.
    """

    cache: Path
    settings: Settings
    only: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    judge: Callable[[Problem, Candidates], dict[str, float]] = judged

    def figures(self, problem: Problem, system: System) -> Figures:
        """The figures of a run, kept or made now; {"failed": why} where there is none."""
        key = _key(problem, system.name, system.params)
        place = self._place(problem, system)
        kept = _read(place.with_suffix(".json"), key)
        if kept is not None and system.name not in self.again:
            return kept
        chosen = not self.only or system.name in self.only
        # The peers' runs are kept by shortlist_speed: judging them is all there is to do.
        if not chosen or (self.settings.only_kept and "peer" not in system.params):
            return {"failed": "not run"}
        try:
            outcome = system.run(problem, dict(system.params), self.settings)
        except NotHere as reason:
            log(f"{problem.name}: {system.name} is left out: {reason}")
            return {"failed": str(reason)}
        values = self.judge(problem, outcome.found)
        figures = {"key": key, "sources": digest_of_sources(), **outcome.figures, "metrics": values}
        place.parent.mkdir(parents=True, exist_ok=True)
        _save(place.with_suffix(".npz"), outcome.found)
        place.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")
        first, value = next(iter(values.items()))
        log(f"{problem.name:26} {system.name:26} {figures['train_s']:8.1f} s, {first} {value:.4f}")
        return figures

    def predictions(self, problem: Problem, system: System) -> Outcome | None:
        """The lists of a run that `figures` has made or found; None if there is none."""
        path = self._place(problem, system).with_suffix(".npz")
        if not path.is_file():
            return None
        with np.load(path) as file:
            scores = {"relevance": file["scores"]}
            return Outcome(Candidates(file["indptr"], file["labels"], problem.Y.shape[1], scores))

    def rows(self, problem: Problem, name: str, make: Callable[[Problem], list[Figures]]) -> list[Figures]:
        """Rows of a smaller table, kept or made now; none where none may be made."""
        key = _key(problem, name, {})
        path = self.cache / problem.name / f"{name}.json"
        kept = _read(path, key)
        if kept is None and not self.settings.only_kept:
            kept = {"key": key, "sources": digest_of_sources(), "rows": make(problem)}
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(kept, indent=1) + "\n")
            log(f"{problem.name:26} {name}")
        return [] if kept is None else kept["rows"]

    def _place(self, problem: Problem, system: System) -> Path:
        name = "".join(c if c.isalnum() or c in "-" else "_" for c in system.name)
        return self.cache / problem.name / name


def labelwise(name: str) -> str:
    """The name of the same metric with points and labels swapped: "WP@5" becomes "WP-l@5"."""
    stem, _, k = name.partition("@")
    return f"{stem}-l@{k}" if k else f"{stem}-l"


def _key(problem: Problem, name: str, params: dict[str, Any]) -> str:
    parts = {"set": problem.checksum, "name": name, "params": params, "version": metarank.__version__}
    return json.dumps(parts, sort_keys=True)


def _read(path: Path, key: str) -> Figures | None:
    if not path.is_file():
        return None
    kept: Figures = json.loads(path.read_text())
    return kept if kept["key"] == key else None


def _save(path: Path, found: Candidates) -> None:
    scores = next(iter(found.scores.values()))
    np.savez_compressed(path, indptr=found.indptr, labels=found.labels, scores=scores)
