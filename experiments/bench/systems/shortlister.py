"""One of metarank's shortlisters: `estimator` is its name in `metarank.shortlist`, the rest its arguments."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import metarank
from metarank import Candidates, persist, shortlist
from metarank.types.view import TrainingSet
from systems.forms import OfMatrices, top_of_rows


class System(OfMatrices):
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version = metarank.__version__
        arguments = dict(params)
        cls, seed = getattr(shortlist, arguments.pop("estimator")), arguments.pop("random_state")
        if "random_state" in inspect.signature(cls).parameters:
            arguments["random_state"] = seed
        self.model = cls(**arguments)
        self.threads = threads

    def train(self) -> None:
        if "Y" in inspect.signature(self.model.fit).parameters:
            self.model.fit(self.X, self.Y, n_jobs=self.threads)
        else:  # it knows nothing but a view of training rows
            rows = np.zeros(self.X.shape[0], np.int32)
            self.model.fit(TrainingSet(self.X, self.Y, rows).view(), n_jobs=self.threads)

    def save(self, folder: Path) -> None:
        del self.X, self.Y
        persist.save(self.model, folder)

    def predict(self, rows: sp.csr_matrix, k: int) -> Candidates:
        return self.model.shortlist(rows, k=k, n_jobs=self.threads)

    def top(self, predicted: Candidates, k: int) -> tuple[np.ndarray, np.ndarray]:
        scores = next(iter(predicted.scores.values()))
        return top_of_rows(predicted.indptr, predicted.labels, scores, k)

    def figures(self, rows: sp.csr_matrix) -> dict[str, Any]:
        """How lists are re-ranked."""
        tail = getattr(self.model, "tail_", None)
        if tail is None:
            return {}
        return {"chosen": {"alpha": self.model.alpha_, "unit means": float(tail.unit_means)}}
