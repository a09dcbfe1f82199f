"""What is kept of the cells, and how those that are not kept are made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from borrowed import Laboratory, Prepared, Run, Setting, digest_of_sources, version_of
from contenders import Contender
from parts import Parts
from worth import Lists

from metarank import data
from metarank.data import TextVectorizer

_HERE = Path(__file__).parent
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Figures = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A contender on a set with a seed; `unseen` are ids of labels known by name alone."""

    set_name: str
    checksum: str
    contender: Contender
    seed: int
    unseen: tuple[int, ...] = ()

    def key(self, split_seed: int) -> dict[str, Any]:
        """What a kept cell must agree in to stand for this one."""
        peer = self.contender.system == "omikuji"
        return {
            "set": self.checksum,
            "split seed": split_seed,
            "system": self.contender.system,
            "params": self.contender.params_on(self.set_name),
            "seed": self.seed,
            "unseen": list(self.unseen) or False,
            **({} if self.contender.rows is None else {"rows": self.contender.rows}),
            "version": version_of("omikuji" if peer else "metarank"),
        }

    @property
    def stem(self) -> str:
        name = "".join(c if c.isalnum() else "_" for c in self.contender.name)
        return f"{name}-{self.seed}" + ("-unseen" if self.unseen else "")

    def __str__(self) -> str:
        unseen = ", unseen labels" if self.unseen else ""
        return f"{self.set_name}, {self.contender.name}, seed {self.seed}{unseen}"


@dataclass(frozen=True)
class Cabinet:
    """Where cells are kept and made.

    Parameters
    ----------
    cache : folder of what is kept
    environments : folder of the peers' environments
    split_seed : int
    threads : int
    timeout : float
        Seconds after which a cell is given up.
    """

    cache: Path
    environments: Path
    split_seed: int
    threads: int
    timeout: float

    def kept(self, cell: Cell) -> Figures | None:
        """The figures of a cell, None where none are kept."""
        path = self._place(cell).with_suffix(".json")
        if not path.is_file():
            return None
        figures: Figures = json.loads(path.read_text())
        return figures if figures["key"] == cell.key(self.split_seed) else None

    def lists(self, cell: Cell) -> tuple[Lists, Lists]:
        """The lists of the validation and test part of a kept cell."""
        with np.load(self._place(cell).with_suffix(".npz")) as file:
            valid, test = (
                Lists(file[f"{part} labels"], file[f"{part} chances"].astype(float))
                for part in ("valid", "test")
            )
        return valid, test

    def make(self, cell: Cell, parts: Parts) -> Figures:
        """Make a cell and keep it.

        Raises
        ------
        RuntimeError
            If its process fails or takes longer than the time limit; nothing is kept.
        """
        place = self._place(cell)
        place.parent.mkdir(parents=True, exist_ok=True)
        if cell.contender.system == "omikuji":
            figures = self._peer(cell, parts)
        else:
            figures = self._ours(cell) | {"sources": digest_of_sources(), "packages": packages()}
        figures = {"key": cell.key(self.split_seed), **figures}
        place.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")
        return figures

    def _ours(self, cell: Cell) -> Figures:
        place = self._place(cell)
        with tempfile.TemporaryDirectory(dir=self.cache) as scratch:
            job = {
                "set": cell.set_name,
                "system": cell.contender.system,
                "params": cell.contender.params_on(cell.set_name),
                "seed": cell.seed,
                "split_seed": self.split_seed,
                "threads": self.threads,
                "unseen": bool(cell.unseen) and cell.contender.unseen,
                "rows": cell.contender.rows,
                "out": str((Path(scratch) / "cell").resolve()),
            }
            (Path(scratch) / "job.json").write_text(json.dumps(job))
            threads = dict.fromkeys(_THREAD_VARIABLES, str(self.threads))
            try:
                done = subprocess.run(
                    [sys.executable, str(_HERE / "cell.py"), str(Path(scratch) / "job.json")],
                    env={**os.environ, **threads, "TMPDIR": scratch},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    timeout=self.timeout,
                    text=True,
                    errors="replace",
                )
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"{cell}: not done after {self.timeout:.0f} s") from None
            if done.returncode != 0:
                raise RuntimeError(f"{cell}: exit {done.returncode}\n{done.stderr[-2000:]}")
            (Path(scratch) / "cell.npz").replace(place.with_suffix(".npz"))
            figures: Figures = json.loads((Path(scratch) / "cell.json").read_text())
        return figures

    def _peer(self, cell: Cell, parts: Parts) -> Figures:
        """omikuji, as the other studies run it, on the same TF-IDF rows as our trees."""
        laboratory = Laboratory(self.cache, self.environments, None, self.timeout)
        prepared = self._prepared(cell, parts)
        run = Run(prepared, Setting("omikuji", "parabel3", cell.contender.params), cell.seed, self.threads)
        figures = laboratory.kept(run) or laboratory.make(run)
        if "failed" in figures:
            raise RuntimeError(f"{cell}: {figures['failed']}")
        with np.load(laboratory.predictions(run)) as file:
            labels, chances = file["labels"], file["scores"]
        n = len(parts.valid.texts)
        arrays = {"valid labels": labels[:n], "valid chances": chances[:n]}
        arrays |= {"test labels": labels[n:], "test chances": chances[n:]}
        np.savez_compressed(self._place(cell).with_suffix(".npz"), **arrays)
        wanted = ("train_cpu_s", "peak_mib", "model_mib", "batch_ms", "single_ms", "yardstick_cpu_s")
        return {"n_parameters": None} | {name: figures[name] for name in wanted}

    def _prepared(self, cell: Cell, parts: Parts) -> Prepared:
        """The files a peer reads: validation and test rows are one part, taken apart afterwards."""
        folder = self.cache / "data" / f"{cell.set_name}-{self.split_seed}-{cell.checksum[:12]}"
        sizes = {"n": len(parts.train.texts), "L": parts.train.Y.shape[1]}
        if not (folder / "train.txt").is_file():
            folder.mkdir(parents=True, exist_ok=True)
            vectorizer = TextVectorizer().fit(parts.train.texts)
            X = vectorizer.transform(parts.train.texts)
            X_test = vectorizer.transform([*parts.valid.texts, *parts.test.texts])
            Y_test = sp.vstack([parts.valid.Y, parts.test.Y], format="csr")
            matrices = {"X": X, "Y": parts.train.Y, "X_test": X_test, "Y_test": Y_test}
            for name, matrix in matrices.items():
                sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(matrix), compressed=False)
            data.write_xc(folder / "train.txt", data.Dataset(X, parts.train.Y))
        return Prepared(folder.name, folder, cell.checksum, sizes)

    def _place(self, cell: Cell) -> Path:
        return self.cache / "cells" / cell.set_name / cell.stem


def packages() -> dict[str, str]:
    """Versions of what our figures depend on."""
    return dict(_versions(("numpy", "scipy", "scikit-learn", "lightgbm", "torch", "tokenizers")))


def _versions(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name in names:
        with suppress(PackageNotFoundError):
            yield name, version(name)
