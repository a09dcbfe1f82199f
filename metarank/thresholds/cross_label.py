"""Evidence for a label from the scores of the other labels."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from metarank import _core
from metarank._util.algebra import dot, gram, solve_positive, times, transposed_times
from metarank._util.elementary import logistic, softplus
from metarank.persist.fields import Array, Number
from metarank.persist.spec import Saved
from metarank.types.candidates import Candidates

_LOW, _HIGH = -6.0, 4.0
_MIN_RELEVANT = 5
_MAX_STEPS = 6


class CrossLabel(Saved):
    """Added log-odds ``W[l] . v + b_l``, v the clipped, standardised scores of all labels of the row.

    For each label with at least five relevant rows a ridge-penalised logistic regression, with
    the log-odds found so far as offset.
    """

    # Bounds within which sums of products stay within single precision.
    ridge: Annotated[float, Number("", 0)]
    mean: Annotated[np.ndarray, Array("", np.float64, ("L",), least=-1e3, most=1e3)]
    scale: Annotated[float, Number("", 1e-20, 1e3)]
    weights: Annotated[np.ndarray, Array("", np.float64, ("L", "L+1"), least=-1e12, most=1e12)]

    def __init__(self, ridge: float) -> None:
        self.ridge = ridge

    def fit(
        self, S: np.ndarray, Y: np.ndarray, offset: np.ndarray, start: CrossLabel | None = None
    ) -> CrossLabel:
        """Learn from scores, relevance and log-odds found so far, each (n, L), by Newton's method."""
        n_labels = S.shape[1]
        clipped = np.clip(S, _LOW, _HIGH)
        self.mean, self.scale = clipped.mean(axis=0), float(clipped.std()) or 1.0
        V = self._inputs(S)
        self.weights = np.zeros((n_labels, n_labels + 1)) if start is None else start.weights.copy()
        for label in range(n_labels):
            if Y[:, label].sum() < _MIN_RELEVANT:
                self.weights[label] = 0.0
                continue
            w, y, o = self.weights[label], Y[:, label], offset[:, label]
            value = self._loss(V, w, y, o)
            for _ in range(_MAX_STEPS):
                P = logistic(o + times(V, w))
                hessian = gram(V, P * (1 - P)) + self.ridge * np.eye(n_labels + 1)
                new = w - solve_positive(hessian, transposed_times(V, P - y) + self.ridge * w)
                new_value = self._loss(V, new, y, o)
                if not new_value < value - 1e-7 * abs(value):
                    break
                w, value = new, new_value
            self.weights[label] = w
        return self

    def _loss(self, V: np.ndarray, w: np.ndarray, y: np.ndarray, offset: np.ndarray) -> float:
        z = offset + times(V, w)
        return float((softplus(z) - y * z).sum() + 0.5 * self.ridge * dot(w, w))

    def _inputs(self, S: np.ndarray) -> np.ndarray:
        standardised = (np.clip(S, _LOW, _HIGH) - self.mean) / self.scale
        return np.concatenate([np.ones((len(S), 1)), standardised], axis=1)

    def terms(self, S: np.ndarray) -> np.ndarray:
        """Added log-odds (n, L) in training."""
        V = self._inputs(S)
        return np.column_stack([times(V, w) for w in self.weights])

    def logits(self, candidates: Candidates, scores: np.ndarray) -> np.ndarray:
        """Added log-odds, float32 (m,), in a fixed order; a label that is not a candidate counts as average.

        A label that came after training adds nothing, and nothing is added to it.
        """
        labels, n_known = candidates.labels, len(self.mean)
        known = labels < n_known
        V = np.zeros((candidates.n_rows, n_known), np.float32)
        V[candidates.row_of_pair[known], labels[known]] = (
            np.clip(scores[known], _LOW, _HIGH) - self.mean[labels[known]]
        ) / self.scale
        W = np.ascontiguousarray(self.weights[:, 1:].T, np.float32)
        bias = np.ascontiguousarray(self.weights[:, 0], np.float32)
        of_known, out = candidates.where(known), np.zeros(len(labels), np.float32)
        out[known] = _core.linear_scores_dense(V, W, bias, of_known.indptr, of_known.labels, 1)
        return out
