"""LibMultiLabel's linear label tree: K-means of fan-out 100, dense scores of all labels."""

from __future__ import annotations

import pickle
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from libmultilabel import linear

from systems.forms import top_of_csr

_ROWS = 512  # whose scores of all labels are in memory at a time


class System:
    def __init__(self, params: dict, threads: int) -> None:
        self.version = version("libmultilabel")
        self.params = params
        self.options = f"-s 1 -m {threads}"

    def read(self, folder: Path) -> None:
        self.X = sp.load_npz(folder / "X.npz").tocsr().astype(np.float64)
        self.Y = sp.load_npz(folder / "Y.npz").tocsr().astype(np.int64)

    def train(self) -> None:
        np.random.seed(0)  # noqa: NPY002  (where its K-means takes its seeds from)
        self.model = linear.train_tree(self.Y, self.X, self.options, verbose=False, **self.params)

    def save(self, folder: Path) -> None:
        (folder / "model.pickle").write_bytes(pickle.dumps(self.model))
        del self.X, self.Y

    def prepare(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return X.astype(np.float64)

    def predict(self, rows: sp.csr_matrix, k: int) -> sp.csr_matrix:
        parts = [self._best(rows[start : start + _ROWS], k) for start in range(0, rows.shape[0], _ROWS)]
        return sp.vstack(parts, format="csr")

    def _best(self, rows: sp.csr_matrix, k: int) -> sp.csr_matrix:
        scores = linear.predict_values(self.model, rows)
        best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        indptr = np.arange(0, best.size + 1, k)
        found = sp.csr_matrix(
            (np.take_along_axis(scores, best, axis=1).ravel(), best.ravel(), indptr), scores.shape
        )
        found.eliminate_zeros()  # labels that the beam has not reached
        return found

    def top(self, predicted: sp.csr_matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
        return top_of_csr(predicted, k)
