"""Re-ranking with tail classifiers: predicted relevances combined with a second opinion on rare labels."""

from __future__ import annotations

import numpy as np

from metarank._util.elementary import exp, log, log1p
from metarank._util.parameters import POSITIVE, check_real
from metarank.types.candidates import Candidates

_BENT = -60.0


def rerank_with_tail(
    candidates: Candidates, tail_scores: np.ndarray, alpha: float, *, scale: float = 1.0
) -> Candidates:
    """Candidates scored by relevance and tail probability together, labels of relevance 0 left out.

    Jain et al. (2016), eq. 8: ``s = alpha log P + (1 - alpha) log P_tail``, over the labels with P > 0 only.
    The new final score is ``scale * exp(s)``: it orders as s does, and stays on the scale of relevances.
    Below -60, where float32 would lose the order, s is bent to ``-60 - log(1 - 60 - s)``.
    Pairs are combined one by one: lists by label (`Candidates.transpose`) are re-ranked just the same.

    Parameters
    ----------
    candidates : Candidates
        With predicted relevances as their final score.
    tail_scores : float array (m,)
        log P_tail of each pair, as from `metarank.scorers.trees.tail.TailClassifiers`; finite, at most 0.
    alpha : float in [0, 1]
        Weight of the relevance; 1 leaves it as it is.
    scale : float
        The relevance that is probability 1: P = relevance / scale.

    Returns
    -------
    Candidates
        With the same score names; the first holds the new score.

    Raises
    ------
    ValueError, TypeError
        If alpha or scale is out of range, a shape is wrong or a number is not finite.

    Examples
    --------
    >>> c = Candidates(np.array([0, 3]), np.array([0, 1, 2]), 3, {"score": np.array([0.6, 0.5, 0.0])})
    >>> c = rerank_with_tail(c, np.log([0.1, 0.9, 0.9]), alpha=0.5)
    >>> c.labels, c.scores["score"].round(3)
    (array([0, 1], dtype=int32), array([0.245, 0.671], dtype=float32))
    """
    if not isinstance(candidates, Candidates):
        raise TypeError(f"candidates must be Candidates, got {type(candidates).__name__}")
    check_real("alpha", alpha, 0, 1, "a number in [0, 1]")
    check_real("scale", scale, *POSITIVE, "finite and positive")
    if not candidates.scores:
        raise ValueError("candidates must carry predicted relevances as their final score, got no scores")
    tail = np.asarray(tail_scores)
    if tail.dtype.kind not in "fiu":
        raise TypeError(f"tail_scores must be numbers, got dtype {tail.dtype}")
    tail = tail.astype(np.float64)
    if tail.shape != candidates.labels.shape:
        raise ValueError(f"tail_scores must have shape {candidates.labels.shape}, got {tail.shape}")
    if not np.all(tail <= 0) or not np.all(np.isfinite(tail)):
        raise ValueError("tail_scores must be finite log-probabilities, at most 0")
    name = next(iter(candidates.scores))
    relevance = candidates.scores[name].astype(np.float64)
    if not np.all(np.isfinite(relevance)):
        pair = int(np.flatnonzero(~np.isfinite(relevance))[0])
        row, label = candidates.row_of_pair[pair], candidates.labels[pair]
        raise ValueError(
            f"candidates.scores[{name!r}] must be finite, got {relevance[pair]} at row {row}, label {label}"
        )

    listed = relevance > 0
    s = alpha * log(relevance[listed] / scale) + (1 - alpha) * tail[listed]
    kept = candidates.where(listed)
    scores = {**kept.scores, name: (scale * exp(bent(s))).astype(np.float32)}
    return Candidates.of_core(kept.indptr, kept.labels, kept.n_labels, scores)


def bent(s: np.ndarray) -> np.ndarray:
    """s where it is at least -60, and -60 - log(1 - 60 - s) below: in the same order, and exp(s) not 0."""
    return np.where(s < _BENT, _BENT - log1p(np.maximum(_BENT - s, 0)), s)
