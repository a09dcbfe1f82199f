"""napkinXC: writes its model while it trains; an ensemble reads every tree from disk on each call."""

from __future__ import annotations

import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from napkinxc.models import PLT

from systems.forms import OfMatrices, top_of_lists


class System(OfMatrices):
    def __init__(self, params: dict, threads: int) -> None:
        self.version = version("napkinxc")
        # Everything is set here: changing options after a prediction can corrupt the heap.
        self.folder = tempfile.TemporaryDirectory()
        self.model = PLT(self.folder.name, threads=threads, seed=0, **params)

    def train(self) -> None:
        self.model.fit(self.X, self.Y)

    def save(self, folder: Path) -> None:
        shutil.copytree(self.folder.name, folder, dirs_exist_ok=True)
        del self.X, self.Y
        self.model.load()

    def predict(self, rows: sp.csr_matrix, k: int) -> list:
        return self.model.predict_proba(rows, top_k=k)

    def top(self, predicted: list, k: int) -> tuple[np.ndarray, np.ndarray]:
        return top_of_lists(predicted, k)
