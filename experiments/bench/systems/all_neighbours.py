"""The 10 nearest training rows of every label under L2, L1 and cosine (Yang & Gopal, Table 2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.scorers.neighbors.voting import LabelNeighbors
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet
from systems import small_set


class System(small_set.System):
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        super().__init__({"kind": "", **params}, threads)

    def read(self, folder: Path) -> None:
        super().read(folder)
        self.X_test = self._form(sp.load_npz(folder / "X_test.npz"))

    def train(self) -> None:
        view = TrainingSet(
            self.X, sp.csr_matrix(self.Y, dtype=np.float32), np.zeros(len(self.Y), np.int32)
        ).view()
        near = LabelNeighbors(columns="raw").fit(view)
        for X in (self.X, self.X_test):
            near.score(X, Candidates.all_labels(X.shape[0], self.Y.shape[1]), n_jobs=1)

    def predict(self, X: Any, k: int) -> None:
        return None

    def arrays(self, predicted: None, X: Any) -> dict[str, np.ndarray]:
        return {}
