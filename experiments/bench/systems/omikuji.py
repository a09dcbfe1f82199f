"""omikuji: reads repository text by itself, predicts one point a call."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import omikuji
import scipy.sparse as sp

from systems.forms import top_of_lists


class System:
    def __init__(self, params: dict, threads: int) -> None:
        self.version = version("omikuji")
        self.beam = params.get("beam", 10)
        self.params = omikuji.Model.default_hyper_param()
        for name, value in params.items():
            if name != "beam":
                setattr(self.params, name, value)
        self.threads = threads

    def read(self, folder: Path) -> None:
        # The two halves of Model.train_on_data, so that parsing is seen apart from training.
        self.pool = omikuji._ThreadPoolHandle(self.threads)
        path = omikuji.ffi.new("char[]", str(folder / "train.txt").encode())
        with _silence():
            read = omikuji.lib.load_omikuji_data_set(path, self.pool.ptr)
        self.data = omikuji.ffi.gc(read, omikuji.lib.free_omikuji_data_set)

    def train(self) -> None:
        with _silence():
            trained = omikuji.lib.train_omikuji_model(self.data, self.params, self.pool.ptr)
        self.model = omikuji.Model(trained)

    def save(self, folder: Path) -> None:
        self.model.save(str(folder))
        del self.data
        self.model.init_prediction_thread_pool(self.threads)

    def prepare(self, X: sp.csr_matrix) -> list[list[tuple[int, float]]]:
        ids, values = X.indices.tolist(), X.data.tolist()
        bounds = zip(X.indptr[:-1], X.indptr[1:])
        return [list(zip(ids[start:end], values[start:end])) for start, end in bounds]

    def predict(self, rows: list, k: int) -> list:
        return [self.model.predict(row, beam_size=self.beam, top_k=k) for row in rows]

    def top(self, predicted: list, k: int) -> tuple[np.ndarray, np.ndarray]:
        return top_of_lists(predicted, k)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """No output: thousands of lines of progress into a pipe would cost it time."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
