"""What a study declares: its systems, its sets, its page. A cell is one system on one set with one seed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

Figures = dict[str, Any]


@dataclass(frozen=True)
class System:
    """A row of tables.

    Parameters
    ----------
    name : what the row is called
    module : the file in `systems/` whose class `System` is measured
    params : what that class is made with
    peer : name of an environment (`peer_environments.py`), None for this one
    sets : patterns of names of the sets that it runs on
    kept : whether its line in `peers.jsonl` may stand for a run
    seeds : at most so many, where a study has more
    """

    name: str
    module: str
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)
    peer: str | None = None
    sets: tuple[str, ...] = ("*",)
    kept: bool = False
    seeds: int | None = None

    def runs_on(self, dataset: str) -> bool:
        return any(fnmatch(dataset, pattern) for pattern in self.sets)


@dataclass(frozen=True)
class Measure:
    """What is measured of each cell of a study, beside the training."""

    k: int = 100  # length of the lists
    singles: int = 100  # rows that are answered one a call
    limit: float = 900.0  # seconds until a cell is given up
    memory_gib: float | None = None  # that a cell may take, its threads' stacks included


@dataclass(frozen=True)
class Study:
    """One question: one file in `studies/`, one page.

    Parameters
    ----------
    sets : names of sets (`sets.py`)
    systems : the rows, in order
    judge : of (set folder, arrays of a cell) the quality by name, as fractions; None: its figures tell
    page : of the lines by set and row, the text
    measure : see `Measure`
    make : what makes a set that is not plain matrices, by the name of the set; see `sets.prepare`
    seeds : in one sitting; `large` says whether the study belongs to the long runs instead
    alone : patterns of names of the sets whose cells have the machine to themselves, with all cores
    """

    name: str
    sets: Sequence[str]
    systems: Sequence[System]
    judge: Callable[[Path, Path], dict[str, dict[str, float]]] | None = field(hash=False)
    page: Callable[[Lines], str] = field(hash=False)
    measure: Measure = Measure()
    make: Mapping[str, Callable[[Path], Figures]] = field(default_factory=dict, hash=False)
    seeds: int = 1
    large: bool = False
    alone: tuple[str, ...] = ()

    def cells(self, sets: Sequence[str]) -> list[Cell]:
        return [
            Cell(self, name, system, seed)
            for seed in range(self.seeds)
            for name in self.sets
            if name in sets
            for system in self.systems
            if system.runs_on(name) and (system.seeds is None or seed < system.seeds)
        ]


@dataclass(frozen=True)
class Cell:
    study: Study
    dataset: str
    system: System
    seed: int

    @property
    def alone(self) -> bool:
        return any(fnmatch(self.dataset, pattern) for pattern in self.study.alone)

    @property
    def key(self) -> str:
        """What a line must agree in to stand for this cell, beside the commit and the checksum of the set."""
        what = [self.study.name, self.dataset, self.system.name, dict(self.system.params), self.seed]
        return json.dumps(what, sort_keys=True)

    def __str__(self) -> str:
        return f"{self.study.name}: {self.dataset}, {self.system.name}, seed {self.seed}"


class Lines:
    """The lines of one run, as a page reads them: one figure a seed, or their median."""

    def __init__(
        self, lines: Sequence[Figures], sets: Mapping[str, Figures], run: Path = Path(), data: Path = Path()
    ) -> None:
        self.sets = sets
        self.run, self.data = run, data  # the folders of answers and of sets
        self._lines = lines

    def of(self, dataset: str, system: str) -> list[Figures]:
        """One line a seed; empty where the cell was not to be run."""
        return [line for line in self._lines if (line["set"], line["system"]) == (dataset, system)]

    def __iter__(self):
        return iter(self._lines)
