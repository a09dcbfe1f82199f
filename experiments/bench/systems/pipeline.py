"""The whole of metarank: arguments of `MetaRanker`; `weights` are propensity weights to rank by in turn.

`shortlister` may be {"XReg": {"normalize": "label"}}: an estimator of `metarank.shortlist` with arguments.
With `serve` the model is asked by its service, too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sets import excluded

import metarank
from metarank import MetaRanker, Ranking, shortlist
from metarank.data import Dataset
from systems.served import steadily

CUTS = ("micro-f1", "macro-f1", "example-f1")


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version = metarank.__version__
        arguments = dict(params)
        self.weights, self.serve = arguments.pop("weights", []), arguments.pop("serve", False)
        if isinstance(proposer := arguments.get("shortlister"), dict):
            ((name, settings),) = proposer.items()
            arguments["shortlister"] = getattr(shortlist, name)(**settings)
        self.model = MetaRanker(n_jobs=threads, **arguments)

    def read(self, folder: Path) -> None:
        names = json.loads((folder / "names.json").read_text())
        self.train_set = Dataset(sp.load_npz(folder / "X.npz"), sp.load_npz(folder / "Y.npz"), **names)
        self.exclude = excluded(folder, "exclude")

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

    def lists(self, rows: sp.csr_matrix, k: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        ranked = {w: self.model.rank(rows, k=k, propensity_weight=w) for w in self.weights}
        return {f"weight {weight}": (found.labels, found.scores) for weight, found in ranked.items()}

    def figures(self, rows: sp.csr_matrix) -> dict[str, dict[str, float]]:
        """What the model itself expects on new rows, and what its service takes."""
        held_out = {metric: found[0] for metric, found in self.model.held_out_quality_.items()}
        return {"held_out": held_out, **({"served": steadily(self.model, rows)} if self.serve else {})}

    def cuts(self, rows: sp.csr_matrix) -> dict[str, sp.csr_matrix]:
        """The label sets after the cut that was learned for each metric."""
        return {metric: self.model.predict(rows, optimize=metric) for metric in CUTS}
