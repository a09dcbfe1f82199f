"""PECOS XR-Linear: an average of trees of different seeds, or flat one-vs-all without a cluster chain."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from pecos.utils.smat_util import CsrEnsembler
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

from systems.forms import OfMatrices, top_of_csr


class System(OfMatrices):
    def __init__(self, params: dict, threads: int) -> None:
        self.version = version("libpecos")
        self.n_trees = params["n_trees"]  # 0: flat
        self.nr_splits = params.get("nr_splits", 16)
        self.beam = params.get("beam", 10)
        self.threads = threads

    def read(self, folder: Path) -> None:
        super().read(folder)
        self.Y = self.Y.tocsc()

    def train(self) -> None:
        if self.n_trees == 0:
            self.models = [XLinearModel.train(self.X, self.Y, C=None, threads=self.threads)]
            return
        vectors = LabelEmbeddingFactory.create(self.Y, self.X, method="pifa", threads=self.threads)
        self.models = []
        for seed in range(self.n_trees):
            clusters = Indexer.gen(
                vectors,
                indexer_type="hierarchicalkmeans",
                nr_splits=self.nr_splits,
                max_leaf_size=100,
                seed=seed,
                threads=self.threads,
            )
            self.models.append(
                XLinearModel.train(self.X, self.Y, C=clusters, nr_splits=self.nr_splits, threads=self.threads)
            )

    def save(self, folder: Path) -> None:
        for i, model in enumerate(self.models):
            model.save(str(folder / str(i)))
        del self.X, self.Y
        # Its fastest form for prediction.
        self.models = [
            XLinearModel.load(str(folder / str(i)), is_predict_only=True) for i in range(len(self.models))
        ]

    def predict(self, rows: sp.csr_matrix, k: int) -> sp.csr_matrix:
        options = {"only_topk": k, "threads": self.threads}
        if self.n_trees:
            options["beam_size"] = self.beam
        predicted = [model.predict(rows, **options) for model in self.models]
        return predicted[0] if len(predicted) == 1 else CsrEnsembler.average(*predicted)

    def top(self, predicted: sp.csr_matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
        return top_of_csr(predicted, k)
