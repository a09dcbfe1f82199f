"""What kept lists and label sets are worth; fractions of one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from borrowed_runs import F1, TAIL, Prepared, best_f1, tail_recall
from sets import weights

from metarank import Ranking, metrics

KS = (1, 3, 5)
RANKING = (*(f"{name}@{k}" for name in ("P", "nDCG", "PSP", "PSnDCG") for k in KS), "R@100")
COLUMNS = (*RANKING, TAIL, "C@5", *F1)


class Judge:
    """The test part of a set, and all that its metrics need."""

    def __init__(self, dataset: Prepared) -> None:
        self.Y, self.Y_test = dataset.matrix("Y"), dataset.matrix("Y_test")
        self.weights = weights(dataset)
        self.exclude = dataset.matrix("exclude_test") if dataset.has("exclude_test") else None

    def values(self, predictions: Path) -> dict[str, float]:
        """All of COLUMNS, of the file of a run: F1 of its own cuts, else of the best cut there is."""
        ranking = self.ranking(predictions)
        with np.load(predictions) as file:
            cuts = {
                name: self._label_sets(file[f"{name.lower()} indptr"], file[f"{name.lower()} labels"])
                for name in F1
                if f"{name.lower()} indptr" in file
            }
        values = metrics.evaluate(
            self.Y_test, ranking, [*RANKING, "C@5"], inv_propensity=self.weights, n_jobs=1
        )
        values[TAIL] = tail_recall(self.Y, self.Y_test, ranking)
        if cuts:
            for name, cut in cuts.items():
                values |= metrics.evaluate(self.Y_test, None, [name], Y_pred=cut)
        else:
            values |= best_f1(self.Y_test, ranking)
        return {name: float(values[name]) for name in COLUMNS}

    def ranking(self, predictions: Path) -> Ranking:
        """The lists of the file of a run, without what is out of the question."""
        with np.load(predictions) as file:
            return Ranking(*self._allowed(file["labels"], file["scores"]), self.Y.shape[1])

    def _allowed(self, labels: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lists without what is out of the question, the rest moved up."""
        if self.exclude is None:
            return labels, scores
        row = np.broadcast_to(np.arange(len(labels))[:, None], labels.shape)
        named = np.asarray(self.exclude[row.ravel(), labels.ravel()]).reshape(labels.shape) > 0
        out = named & (labels >= 0)
        labels, scores = np.where(out, -1, labels), np.where(out, -np.inf, scores)
        order = np.argsort(out, axis=1, kind="stable")
        return np.take_along_axis(labels, order, 1), np.take_along_axis(scores, order, 1)

    def _label_sets(self, indptr: np.ndarray, labels: np.ndarray) -> sp.csr_matrix:
        sets = sp.csr_matrix((np.ones(len(labels), np.float32), labels, indptr), shape=self.Y_test.shape)
        return sets if self.exclude is None else sp.csr_matrix(sets - sets.multiply(self.exclude))
