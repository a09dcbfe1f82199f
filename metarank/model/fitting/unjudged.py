"""Rejected pairs are irrelevant; other pairs without a label are unjudged, and some of them are relevant.

`believed_gains` estimates which. Without rejected pairs nobody calls it: a pair without a label is then
irrelevant.
"""

from __future__ import annotations

import numpy as np

from metarank._util.progress import note
from metarank.ranker.lists import hash_numbers
from metarank.types.candidates import Candidates

# Keeps the draw apart from those of folds and rows, and from the pairs that a ranker draws.
_DRAW_SHIFT = 11_000_027


def believed_gains(
    candidates: Candidates, scores: np.ndarray, gains: np.ndarray, rejected: np.ndarray, seed: int
) -> np.ndarray:
    """The gains, with those unjudged pairs counted as relevant that are drawn as such, float32 (m,).

    An unjudged pair is drawn with its probability of being relevant; see `relevant_though_unlabelled`. So
    calibration and thresholds, which sum over pairs, expect what complete labels would give. A drawn pair
    gets the median gain of the labelled ones. Labelled and rejected pairs keep their gain.

    Parameters
    ----------
    candidates : Candidates, m pairs
    scores : float array (m,)
        From rankers that did not see the row.
    gains : float32 array (m,)
    rejected : bool array (m,)
    seed : int
    """
    row = candidates.row_of_pair
    reviewed: np.ndarray = np.bincount(row, weights=rejected, minlength=candidates.n_rows)[row] > 0
    share = labelled_share(scores, gains, rejected, reviewed)
    probability = relevant_though_unlabelled(scores, gains, reviewed, share)
    probability[rejected] = 0
    drawn = hash_numbers(len(gains), seed + _DRAW_SHIFT) / 2.0**31 < probability
    note(
        f"negatives: {np.count_nonzero(rejected)} rejected candidates; about {100 * share:.0f} % of "
        f"relevant pairs are labelled, so {np.count_nonzero(drawn)} unjudged ones count as relevant"
    )
    labelled = gains[gains > 0]
    value = np.quantile(labelled, 0.5, method="lower") if len(labelled) else 0
    return np.where(drawn, value, gains).astype(np.float32)


def labelled_share(
    scores: np.ndarray, gains: np.ndarray, rejected: np.ndarray, reviewed: np.ndarray
) -> float:
    """The share of relevant pairs that are labelled in rows without a rejected pair, in (0, 1].

    Among the surest pairs (half as many as there are labelled ones), the rows with a rejected pair tell how
    many are relevant, ``f = labelled / (labelled + rejected)``, and the other rows how many are labelled, g.
    The share is ``g / f``, with f lowered by its standard error. It is 1 where g is greater, and where either
    kind of row has no such pair.

    Parameters
    ----------
    scores, gains : arrays (m,)
    rejected, reviewed : bool arrays (m,)
        Rejected pairs, and all pairs of rows that have one.

    Examples
    --------
    >>> gains, rejected = np.float32([1, 1, 1, 1, 0, 1, 1, 0, 0, 1]), np.arange(10) == 4
    >>> labelled_share(np.array([9.0] * 3 + [0.0] * 7), gains, rejected, np.arange(10) < 2)
    1.0
    """
    surest = np.zeros(len(scores), bool)
    surest[np.argsort(-scores, kind="stable")[: max(1, np.count_nonzero(gains > 0) // 2)]] = True
    judged = surest & reviewed & ((gains > 0) | rejected)
    others = surest & ~reviewed
    if not judged.any() or not others.any():
        return 1.0
    relevant = float(np.mean(gains[judged] > 0))
    relevant -= float(np.sqrt(relevant * (1 - relevant) / np.count_nonzero(judged)))
    labelled = float(np.mean(gains[others] > 0))
    return labelled / relevant if 0 < labelled < relevant else 1.0


def relevant_though_unlabelled(
    scores: np.ndarray, gains: np.ndarray, reviewed: np.ndarray, share: float
) -> np.ndarray:
    """Probability that a pair is relevant though it has no label, float64 (m,); 0 for labelled ones.

    With c the share of relevant pairs that are labelled, whatever their score, and g the probability that a
    pair of that score is labelled, in the rows that are not `reviewed`, it is ``(1 - c) / c * g / (1 - g)``,
    at most 1 (Elkan & Noto 2008, section 3). g rises with the score (isotonic regression).

    Examples
    --------
    >>> gains, reviewed = np.array([1, 1, 0, 0, 0, 1, 0]), np.array([0, 0, 0, 1, 0, 0, 0], bool)
    >>> relevant_though_unlabelled(np.array([2, 2, 2, 2, 1, 1, 1]), gains, reviewed, 0.8).round(3)
    array([0.   , 0.   , 0.5  , 0.5  , 0.125, 0.   , 0.125])
    """
    if share >= 1 or reviewed.all():
        return np.zeros(len(scores))
    from sklearn.isotonic import IsotonicRegression

    learned = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    known = learned.fit(scores[~reviewed], (gains > 0)[~reviewed]).predict(scores)
    with np.errstate(divide="ignore"):
        odds = (1 - share) / share * known / (1 - known)
    return np.where(gains > 0, 0.0, np.minimum(odds, 1.0))
