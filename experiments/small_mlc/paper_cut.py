"""Section 2.3 of Yang & Gopal (2012): the threshold of a row, predicted from its ranked scores.

The paper leaves open how scores are brought to sum to one, which of several best thresholds is learned, and
in what order scores enter the regression. A `Reading` says so; `READING` is the one that
`thresholds_page.py` finds nearest to the paper's figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from cache import Result

# So far above the best score, as a share of it, a threshold lies that keeps nothing.
_ABOVE = 0.1


@dataclass(frozen=True)
class Reading:
    """What section 2.3 leaves open.

    normalise : "shift" (less the row's least score, over their sum), "softmax", "mean" (a constant is
        added) or "raw" (none)
    scores : "training" (of the model of all rows; "non-splitting" in 3.4) or "held-out"
    order : "sorted" (the regression sees ranked scores) or "label" (scores in the order of the labels)
    ties : of equally good thresholds that which keeps "most" or "fewest" labels, or has the "widest" gap
    place : of the threshold in the gap: "middle" (Elisseeff & Weston 2001), "lower" or "upper" end
    least : labels that a threshold to learn from keeps at least, 0 or 1
    """

    normalise: str = "shift"
    scores: str = "training"
    order: str = "sorted"
    ties: str = "most"
    place: str = "middle"
    least: int = 1


READING = Reading()


def normalised(scores: np.ndarray, how: str) -> np.ndarray:
    """Scores of each row, (n, L), brought to sum to one; "raw" leaves them.

    Examples
    --------
    >>> normalised(np.array([[3.0, -1.0, 1.0]]), "shift")
    array([[0.66666667, 0.        , 0.33333333]])
    >>> normalised(np.array([[3.0, -1.0, 1.0]]), "mean").round(2)
    array([[ 2.33, -1.67,  0.33]])
    """
    scores = np.asarray(scores, np.float64)
    if how == "raw":
        return scores
    if how == "mean":
        return scores - scores.mean(axis=1, keepdims=True) + 1 / scores.shape[1]
    if how == "softmax":
        positive = np.exp(scores - scores.max(axis=1, keepdims=True))
    elif how == "shift":
        positive = scores - scores.min(axis=1, keepdims=True)
    else:
        raise ValueError(f"normalise must be raw, mean, softmax or shift, got {how!r}")
    return positive / np.maximum(positive.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)


def best_cuts(scores: np.ndarray, Y: np.ndarray, reading: Reading = READING) -> np.ndarray:
    """For each row the threshold with the fewest false positives plus false negatives, float64 (n,).

    A threshold that keeps j labels lies between the j-th score and the next, where these differ; one that
    keeps all is the least score, one that keeps none a tenth above the best.

    Examples
    --------
    Three mistakes fewer are none: the second label alone, and all three, leave one mistake each.

    >>> scores, Y = np.array([[0.6, 0.3, 0.1]]), np.array([[True, False, True]])
    >>> best_cuts(scores, Y), best_cuts(scores, Y, Reading(ties="fewest"))
    (array([0.1]), array([0.45]))
    """
    n, n_labels = scores.shape
    order = np.argsort(-scores, axis=1, kind="stable")
    s = np.take_along_axis(scores, order, axis=1)
    gain = np.where(np.take_along_axis(Y, order, axis=1), 1, -1)
    fewer = np.hstack(
        [np.zeros((n, 1), np.int64), np.cumsum(gain, axis=1)]
    )  # mistakes, than with nothing kept
    above = s[:, :1] + 2 * _ABOVE * np.abs(s[:, :1])
    upper, lower = np.hstack([above, s]), np.hstack([s, s[:, -1:]])
    possible = upper > lower
    possible[:, -1] = True
    possible[:, : reading.least] = False
    best = possible & (fewer == np.where(possible, fewer, -n_labels - 1).max(axis=1, keepdims=True))
    if reading.ties == "widest":
        at = np.where(best, upper - lower, -1.0).argmax(axis=1)
    elif reading.ties == "most":
        at = n_labels - best[:, ::-1].argmax(axis=1)
    else:
        at = best.argmax(axis=1)
    high, low = (side[np.arange(n), at] for side in (upper, lower))
    return {"middle": (high + low) / 2, "lower": low, "upper": high}[reading.place]


def label_sets(
    training: np.ndarray, Y: np.ndarray, scores: np.ndarray, reading: Reading = READING
) -> np.ndarray:
    """Label sets, bool (n, L), of new scores: those at or above the threshold that least squares predict.

    training : float (N, L), scores of the rows whose labels are Y, bool (N, L)
    """
    learned, new = normalised(training, reading.normalise), normalised(scores, reading.normalise)
    cuts = best_cuts(learned, Y, reading)
    inputs, of_new = (_inputs(part, reading.order) for part in (learned, new))
    # Scores that sum to one hold the constant already: the least solution is taken.
    weights = np.linalg.lstsq(inputs, cuts, rcond=1e-10)[0]
    return new >= (of_new @ weights)[:, None]


def _inputs(scores: np.ndarray, order: str) -> np.ndarray:
    ordered = -np.sort(-scores, axis=1) if order == "sorted" else scores
    return np.column_stack([ordered, np.ones(len(scores))])


def sets_of(result: Result, Y: np.ndarray, reading: Reading = READING) -> np.ndarray:
    """`label_sets` of a system's result. One without scores of training rows, whose own would be all but
    perfect, learns from its held-out ones."""
    wanted = "training" if reading.scores == "training" and "training" in result else "held_out"
    return label_sets(result[wanted], Y, result["scores"], reading)
