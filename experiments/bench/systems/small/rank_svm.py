"""Rank-SVM (Elisseeff & Weston 2001): every relevant label above every irrelevant one, by a margin."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from metarank.thresholds.instance_threshold import best_thresholds
from metarank.thresholds.lists import ScoredLists
from metarank.types.candidates import Candidates
from systems.small.base import Baseline, Features, Scorer

# The hinge is rounded over this half-width, so that L-BFGS can follow it; off by a quarter of it at most.
ROUNDING = 0.1
# Small sets converge before; on reuters90 (2.4 million weights) a hundred more steps move MAP by 0.0005.
MAX_STEPS = 60


class RankSVM(Baseline):
    """Linear Rank-SVM; C by cross-validation, default threshold by least squares on the scores.

    Minimises, over one weight vector and one offset a label,

        1/2 sum_k |w_k|^2 + C sum_i 1/(|Y_i| |Z_i|) sum_{k in Y_i, l in Z_i} [1 - (s_ik - s_il)]_+

    with s_ik = w_k . x_i + b_k, Z_i the labels that are irrelevant to row i; rows without either kind of
    label say nothing. Offsets are not penalised.
    """

    GRID = (0.0001, 0.001, 0.01, 0.1, 1.0)
    TEXT_GRID = (10.0, 30.0, 100.0)

    def fit(self, X: Features, Y: np.ndarray) -> RankSVM:
        grid = self.TEXT_GRID if sp.issparse(X) else self.GRID
        C = self.choose("C", grid, lambda C: partial(_fit, C), X, Y)
        self.weights = learn(X, Y, C)
        self.training = self.scores(X)
        self.threshold = _least_squares_threshold(self.training, Y)
        return self

    def scores(self, X: Features) -> np.ndarray:
        return linear_scores(X, self.weights)

    def decide(self, scores: np.ndarray) -> np.ndarray:
        return scores >= (scores @ self.threshold[:-1] + self.threshold[-1])[:, None]


def linear_scores(X: Features, weights: np.ndarray) -> np.ndarray:
    """Scores float64 (n, L) from weights (d + 1, L), the last row the offsets."""
    return np.asarray(X @ weights[:-1] + weights[-1])


def _fit(C: float, X: Features, Y: np.ndarray) -> Scorer:
    weights = learn(X, Y, C)
    return lambda Z: linear_scores(Z, weights)


def learn(X: Features, Y: np.ndarray, C: float) -> np.ndarray:
    """Weights float64 (d + 1, L), the last row the offsets."""
    d, n_labels = X.shape[1], Y.shape[1]
    X = X.astype(np.float64)
    row, relevant = np.nonzero(Y & (Y.sum(axis=1) < n_labels)[:, None])
    sizes = Y.sum(axis=1)[row]
    weight = C / (sizes * (n_labels - sizes))
    rival = ~Y[row]
    starts = np.flatnonzero(np.diff(row, prepend=-1))  # the first pair of each row

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W = flat.reshape(d + 1, n_labels)
        scores = X @ W[:-1] + W[-1]
        lack = 1.0 - (scores[row, relevant][:, None] - scores[row])
        # The hinge and its slope, rounded between -h and h.
        h = ROUNDING
        near = np.clip(lack, -h, h) + h
        slope = np.where(rival, near / (2 * h), 0.0) * weight[:, None]
        loss = np.where(rival, near * near / (4 * h) + np.maximum(lack - h, 0.0), 0.0).sum(axis=1) @ weight
        of_scores = np.zeros_like(scores)
        of_scores[row[starts]] = np.add.reduceat(slope, starts, axis=0)
        of_scores[row, relevant] -= slope.sum(axis=1)
        gradient = np.vstack([X.T @ of_scores + W[:-1], of_scores.sum(axis=0)])
        return loss + 0.5 * float((W[:-1] ** 2).sum()), gradient.ravel()

    start = np.zeros((d + 1) * n_labels)
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_STEPS, "ftol": 1e-7}
    )
    return found.x.reshape(d + 1, n_labels)


def _least_squares_threshold(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Coefficients (L + 1,) of the cut that makes the fewest mistakes on each row, from the row's scores."""
    # best_thresholds wants non-negative scores; the cut moves with them.
    lowest = scores.min(axis=1, keepdims=True)
    pairs = Candidates.all_labels(*Y.shape)
    lists = ScoredLists(pairs, scores.ravel(), Y.ravel())
    target = best_thresholds((scores - lowest).ravel(), lists) + lowest[:, 0]
    inputs = np.column_stack([scores, np.ones(len(scores))])
    return np.linalg.lstsq(inputs, target, rcond=None)[0]
