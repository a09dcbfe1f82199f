"""Table 3 of Prabhu et al. (2020): lists of a `regressor` with their sizes and without, and both re-ranked.

"zero" has the same order with all relevances almost 0. Tail classifiers re-rank by the weight alpha below 1
that is best on a fifth of the training rows, with models of the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from made_sets import relevances

from metarank import Candidates, metrics
from metarank.metrics.rerank import rerank_with_tail
from metarank.scorers.trees.tail import COLUMN, TailClassifiers
from metarank.types.view import TrainingSet
from systems import regressor

ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
HELD_OUT = 0.2


class System(regressor.System):
    def read(self, folder: Path) -> None:
        super().read(folder)
        self.truth = relevances(folder)[0]
        self.scale = float(self.truth.data.max())
        self.train = self.choose_and_train

    def choose_and_train(self) -> None:
        X, Y = self.inner.X.tocsr(), self.inner.Y.tocsr()
        order = np.random.default_rng(0).permutation(X.shape[0])
        cut = round(HELD_OUT * len(order))
        held_out, kept = np.sort(order[:cut]), np.sort(order[cut:])
        self._fit(X[kept], Y[kept])
        self.alphas = {}
        for name, found in self._lists(self.predict(X[held_out], 100)).items():
            ranked = {alpha: self._ranked(found, X[held_out], alpha) for alpha in ALPHAS}
            worth = {
                a: metrics.evaluate(self.truth[held_out], r, ["WP@5"])["WP@5"] for a, r in ranked.items()
            }
            self.alphas[name] = max(ALPHAS, key=lambda alpha, worth=worth: worth[alpha])
        self._fit(X, Y)

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        self.inner.X, self.inner.Y = X, Y
        self.inner.train()
        self.tail = TailClassifiers().fit(TrainingSet(X, Y, np.zeros(X.shape[0], np.int32)).view())

    def _lists(self, found: Candidates) -> dict[str, Candidates]:
        """Both by name, with relevances in the unit of the set."""
        values = self.values(found) * (1.0 if self.is_graded else self.scale)
        found = Candidates(found.indptr, found.labels, found.n_labels, {"relevance": values})
        return {"": found, "zero": almost_zero(found)}

    def _ranked(self, found: Candidates, rows: sp.csr_matrix, alpha: float) -> Candidates:
        return rerank_with_tail(found, self.tail.score(rows, found)[COLUMN], alpha, scale=self.scale)

    def arrays(self, predicted: Candidates, rows: sp.csr_matrix) -> dict[str, np.ndarray]:
        lists = self._lists(predicted)
        lists |= {f"{n} re-ranked".strip(): self._ranked(f, rows, self.alphas[n]) for n, f in lists.items()}
        out = {}
        for name, found in lists.items():
            out |= {f"{name}/indptr": found.indptr, f"{name}/labels": found.labels}
            out[f"{name}/relevance"] = next(iter(found.scores.values()))
        return out

    def figures(self, rows: sp.csr_matrix) -> dict[str, Any]:
        return {"alphas": self.alphas}


def almost_zero(found: Candidates) -> Candidates:
    """The same ranking of each row, its r-th label (ties by label) predicted 1e-6 / r."""
    values = next(iter(found.scores.values()))
    row = np.repeat(np.arange(len(found.indptr) - 1), np.diff(found.indptr))
    best_first = np.lexsort((found.labels, -values, row))
    rank = np.empty(len(values), np.int64)
    rank[best_first] = np.arange(len(values)) - found.indptr[row[best_first]] + 1
    return Candidates(found.indptr, found.labels, found.n_labels, {"relevance": 1e-6 / rank})
