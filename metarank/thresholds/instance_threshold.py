"""The paper's threshold of each instance (Yang & Gopal 2012, section 2.3)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from metarank import _core
from metarank._util.algebra import dot, gram, solve_positive, transposed_times
from metarank.persist.fields import Array, Flag, Number
from metarank.thresholds.lists import ScoredLists
from metarank.thresholds.rules import Threshold

# Sorted top scores that predict the threshold where a column for each label would be too many.
_TOP = 20
_ROWS_PER_LABEL = 10
_RIDGE = 1e-6
_F1 = ("micro-f1", "macro-f1", "example-f1")


class InstanceThreshold(Threshold):
    """Keep a pair whose score is at least the threshold that its row's scores predict.

    The scores of a row are its calibrated probabilities rescaled to sum to one. The target t_i is
    the threshold that minimises false positives plus false negatives on row i, and ``t = w . scores + b``
    is fitted by linear least squares: from the scores of all labels, in their order, where each list
    is full and there are ten rows per label; otherwise from the 20 best, sorted. Of equally good
    thresholds, F1 takes the one that keeps most labels, where it is greatest; other metrics take the one of
    the widest gap.
    """

    family = "instance"

    by_label: Annotated[bool, Flag("")]
    weights: Annotated[np.ndarray, Array("", np.float64)]
    bias: Annotated[float, Number("", floats="extended")]

    def fit(self, lists: ScoredLists, metric: str) -> InstanceThreshold:
        n, n_labels = lists.n_rows, lists.candidates.n_labels
        self.by_label = lists.candidates.is_full and n >= _ROWS_PER_LABEL * n_labels
        filled = np.diff(lists.candidates.indptr) > 0
        scores = rescaled(lists.probabilities, lists.row, n)
        width = n_labels if self.by_label else _TOP
        X = self._inputs(scores, lists, width)[filled].astype(np.float64)
        t = best_thresholds(scores, lists, for_f1=metric in _F1)[filled]
        if len(t) == 0:
            self.weights, self.bias = np.zeros(X.shape[1]), np.inf
            return self
        mean = X.mean(axis=0)
        centred = X - mean
        curvature = gram(centred) + _RIDGE * len(t) * np.eye(X.shape[1])
        self.weights = solve_positive(curvature, transposed_times(centred, t - t.mean()))
        self.bias = float(t.mean() - dot(mean, self.weights))
        return self

    def keep(self, lists: ScoredLists) -> np.ndarray:
        scores = rescaled(lists.probabilities, lists.row, lists.n_rows)
        width = len(self.weights)  # labels added after training are ignored
        X = self._inputs(scores, lists, width)
        t = _core.linear_scores(X, np.zeros(width), self.weights, self.bias, 1)
        return scores >= t[lists.row]

    def _inputs(self, scores: np.ndarray, lists: ScoredLists, width: int) -> np.ndarray:
        """float32 (n, width): what predicts each row's threshold; labels that are not candidates score 0."""
        place = lists.labels if self.by_label else lists.rank
        out = np.zeros((lists.n_rows, width), np.float32)
        inside = place < width
        with np.errstate(under="ignore"):
            out[lists.row[inside], place[inside]] = scores[inside]
        return out


def rescaled(scores: np.ndarray, row: np.ndarray, n: int) -> np.ndarray:
    """Non-negative scores of each row divided by their sum.

    Examples
    --------
    >>> rescaled(np.array([1.0, 3.0, 2.0]), np.array([0, 0, 1]), 2)
    array([0.25, 0.75, 1.  ])
    """
    total = np.bincount(row, weights=scores, minlength=n)
    return scores / np.maximum(total, np.finfo(np.float64).tiny)[row]


def best_thresholds(scores: np.ndarray, lists: ScoredLists, *, for_f1: bool = False) -> np.ndarray:
    """For each row the threshold with the fewest false positives plus false negatives.

    A threshold lies half-way between the last score above it and the first below. Above the best score the
    gap reaches to 1.2 times that score, below the last score to 0. A row without pairs gets 0. Among equally
    good thresholds the one with the widest gap wins. For F1 the one that keeps most labels wins, since its
    F1 is greatest; and a row with a relevant pair keeps at least one, since F1 is 0 otherwise.

    Parameters
    ----------
    scores : float array (m,)
        Non-negative, in the order of the logits within a row.
    lists : ScoredLists
        With relevance.
    for_f1 : bool

    Returns
    -------
    float64 array (n,)
    """
    n = lists.n_rows
    sizes = np.diff(lists.candidates.indptr)
    width = int(sizes.max(initial=0))
    s, gain = np.zeros((n, width)), np.zeros((n, width))
    s[lists.row, lists.rank] = scores
    gain[lists.row, lists.rank] = np.where(lists.truth, 1.0, -1.0)
    # Mistakes fewer than with nothing kept.
    saved = np.concatenate([np.zeros((n, 1)), np.cumsum(gain, axis=1)], axis=1)
    high = np.concatenate([1.2 * s[:, :1], s], axis=1) if width else np.zeros((n, 1))
    low = np.concatenate([s, np.zeros((n, 1))], axis=1)
    gap = high - low
    possible = (np.arange(width + 1) <= sizes[:, None]) & (gap > 0)
    if for_f1:
        # Unless no threshold keeps anything, as scores are 0.
        possible[:, 0] &= (lists.relevant_per_row == 0) | ~possible[:, 1:].any(axis=1)
    saved[~possible] = -np.inf
    best = possible & (saved == saved.max(axis=1, keepdims=True))
    preferred = np.arange(width + 1) if for_f1 else gap
    at = np.where(best, preferred, -1.0).argmax(axis=1)
    return ((high + low) / 2)[np.arange(n), at]
