"""metarank's shortlisters: the class and its parameters come from settings.py."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from systems.forms import top_of_rows

import metarank
from metarank import Candidates, data, persist, shortlist
from metarank.scorers.trees.label_tree import SOLVER
from metarank.types.view import TrainingSet


class System:
    def __init__(self, params: dict, threads: int) -> None:
        self.version = metarank.__version__
        arguments = dict(params)
        cls = getattr(shortlist, arguments.pop("estimator"))
        # Constants of the trees that a setting changes: this process trains nothing else.
        constants = {name: arguments.pop(name) for name in ("link_power", "path_weight") if name in arguments}
        solver = {name: arguments.pop(name) for name in SOLVER["hinge"] if name in arguments and name != "C"}
        if solver:
            constants["solver"] = {loss: own | solver for loss, own in SOLVER.items()}
        for name, value in constants.items():
            setattr(cls, name, value)
        self.model = cls(**arguments)
        self.threads = threads

    def read(self, folder: Path) -> None:
        self.X, self.Y = sp.load_npz(folder / "X.npz"), sp.load_npz(folder / "Y.npz")

    def read_text(self, folder: Path) -> None:
        """What `read` would be from text, beside a system that reads nothing else."""
        data.load(folder / "train.txt", n_jobs=self.threads)

    def train(self) -> None:
        self.model.fit(*self._training_set(), n_jobs=self.threads)

    def _training_set(self) -> tuple:
        """X and Y, or a view of them for what knows nothing else."""
        if "Y" in inspect.signature(self.model.fit).parameters:
            return self.X, self.Y
        return (TrainingSet(self.X, self.Y, np.zeros(self.X.shape[0], np.int32)).view(),)

    def save(self, folder: Path) -> None:
        del self.X, self.Y
        persist.save(self.model, folder)

    def prepare(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return X

    def predict(self, rows: sp.csr_matrix, k: int) -> Candidates:
        return self.model.shortlist(rows, k=k, n_jobs=self.threads)

    def top(self, predicted: Candidates, k: int) -> tuple[np.ndarray, np.ndarray]:
        scores = next(iter(predicted.scores.values()))
        return top_of_rows(predicted.indptr, predicted.labels, scores, k)
