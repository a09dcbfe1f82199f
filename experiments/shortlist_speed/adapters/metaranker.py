"""The whole of metarank, `MetaRanker`: settings name its arguments; label names are there if it asks.

With `least_survivors` among them, so many candidates of a row are described, if it has as many.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import metarank
from metarank import MetaRanker, Ranking
from metarank.data import Dataset
from metarank.model.answering.answer import Request
from metarank.model.fitting import auto
from metarank.types.restrict import LabelLimits

CUTS = ("micro-f1", "macro-f1", "example-f1")


class System:
    def __init__(self, params: dict, threads: int) -> None:
        self.version = metarank.__version__
        arguments = dict(params)
        if "least_survivors" in arguments:
            auto.LEAST_SURVIVORS = arguments.pop("least_survivors")
        self.model = MetaRanker(n_jobs=threads, **arguments)

    def read(self, folder: Path) -> None:
        names = json.loads((folder / "names.json").read_text())
        self.train_set = Dataset(sp.load_npz(folder / "X.npz"), sp.load_npz(folder / "Y.npz"), **names)
        excluded = folder / "exclude.npz"
        self.exclude = sp.load_npz(excluded) if excluded.is_file() else None

    def train(self) -> None:
        self.model.fit(self.train_set, exclude=self.exclude)

    def save(self, folder: Path) -> None:
        self.model.save(folder)
        del self.train_set, self.exclude
        self.model = metarank.load(folder)

    def prepare(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return X

    def predict(self, rows: sp.csr_matrix, k: int) -> Ranking:
        return self.model.rank(rows, k=k)

    def top(self, predicted: Ranking, k: int) -> tuple[np.ndarray, np.ndarray]:
        return predicted.labels, predicted.scores

    def cuts(self, rows: sp.csr_matrix) -> dict[str, sp.csr_matrix]:
        """The label sets after the cut that was learned for each metric."""
        return {metric: self.model.predict(rows, optimize=metric) for metric in CUTS}

    def pairs(self, rows: sp.csr_matrix) -> dict[str, float]:
        """Candidates a row, and those of them that are described, over the first thousand rows."""
        rows = self.model.encoder_.encode(rows[:1000])
        request = Request(rows, LabelLimits(None, removed=self.model.removed_))
        lists = [described.lists for described in self.model.answering().describe(request)]
        counts = {
            "proposed": sum(part.candidates.n_pairs for part in lists),
            "described": sum(part.described.n_pairs for part in lists),
        }
        return {name: count / rows.shape[0] for name, count in counts.items()}
