"""Sources that were tried beside those of metarank, as anybody may add them: scorers of the user's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.scorers import LabelScorer
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingView

# A ridge over rows factors a matrix of n x n, whose products take long where rows do.
MOST_ROWS, MOST_TERMS = 7000, 700_000
_BLOCK = 500


class _Ridge(LabelScorer):
    """Weights of the training rows for a row x: x X' (X X' + penalty)^-1, by which targets are summed."""

    def __init__(self, *, penalty: float = 1.0) -> None:
        self.penalty = penalty

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> _Ridge:
        self.X_ = unit(view.X)
        gram = np.asarray((self.X_ @ self.X_.T).todense(), np.float32)
        gram[np.diag_indices(len(gram))] += self.penalty
        self.inverse_ = np.linalg.inv(gram)
        self.Y_ = sp.csr_matrix(view.Y > 0).astype(np.float32)
        self.rarity_ = 1 / np.sqrt(np.maximum(view.label_counts, 1)).astype(np.float32)
        self._learn(view)
        return self

    def _learn(self, view: TrainingView) -> None:
        raise NotImplementedError

    def _of_rows(self, weights: np.ndarray, candidates: Candidates) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def score(self, X: Any, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        parts, rows = [], unit(X)
        for first in range(0, max(1, rows.shape[0]), _BLOCK):
            some = slice(first, min(rows.shape[0], first + _BLOCK))
            weights = np.asarray((rows[some] @ self.X_.T).todense(), np.float32) @ self.inverse_
            parts.append(self._of_rows(weights, candidates.rows(some)))
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return {name: np.ascontiguousarray(values, np.float32) for name, values in joined.items()}


class NameWords(_Ridge):
    """Which words will the names of the row's labels have? Scores of word x word of a name, as ZestXML's.

    Least squares in closed form (Romera-Paredes and Torr, 2015): x W t_l with
    ``W = (X'X + penalty)^-1 X' Y T (T'T + 1)^-1``, in which rare labels weigh more. Columns: the score, that
    score less the row's greatest, and without what the label's own rows add.
    """

    def _learn(self, view: TrainingView) -> None:
        text = unit(view.label_text)
        known = np.flatnonzero(np.diff(text.tocsc().indptr))
        self.text_ = sp.csr_matrix(text[:, known])
        inner = np.asarray((self.text_.T @ self.text_).todense(), np.float32)
        inner[np.diag_indices(len(inner))] += 1
        words = np.asarray((self.Y_ @ sp.diags(self.rarity_) @ self.text_).todense(), np.float32)
        self.words_ = np.linalg.solve(inner, words.T).T

    def _of_rows(self, weights: np.ndarray, candidates: Candidates) -> dict[str, np.ndarray]:
        every = (self.text_ @ (weights @ self.words_).T).T
        own = weights @ (self.Y_ @ sp.diags(self.rarity_)).toarray()
        row, label = candidates.row_of_pair, candidates.labels
        score = every[row, label]
        return {
            "words_score": score,
            "words_behind": score - every.max(axis=1)[row],
            "words_others": score - own[row, label],
        }


class OtherLabels(_Ridge):
    """A graph of labels: what those that the ridge believes in say of a label.

    Column ``others_say``: the sum over labels l' of the ridge's score of l' times the share of the rows of l'
    that have l too.
    """

    def _learn(self, view: TrainingView) -> None:
        self.graph_ = co_occurrence(view)

    def _of_rows(self, weights: np.ndarray, candidates: Candidates) -> dict[str, np.ndarray]:
        believed = np.maximum(weights @ (self.Y_ @ sp.diags(self.rarity_)).toarray(), 0)
        said = (self.graph_.T @ believed.T).T
        return {"others_say": said[candidates.row_of_pair, candidates.labels]}


def co_occurrence(view: TrainingView) -> sp.csr_matrix:
    """CSR (L, L): of the rows of a label, the share that have another too, shrunk by two rows."""
    Y = sp.csr_matrix(view.Y > 0).astype(np.float32)
    both = sp.csr_matrix(Y.T @ Y)
    both.setdiag(0)
    both.eliminate_zeros()
    return sp.csr_matrix(sp.diags((1 / (view.label_counts + 2.0)).astype(np.float32)) @ both)


def unit(X: Any) -> sp.csr_matrix:
    """Rows of unit length, float32; empty ones stay."""
    X = sp.csr_matrix(X, dtype=np.float32)
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1 / np.where(length > 0, length, 1)).astype(np.float32) @ X)
