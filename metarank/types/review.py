"""`ReviewPair`: a pair (row, label) that a person should look at, and what is gained by that."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank.types.label_table import LabelTable

GOALS = ("recall", "errors")


class ReviewPair(NamedTuple):
    """A row, a label, its probability of being relevant, and the expected gain of looking at the pair."""

    row: int
    label: int
    label_name: str | None
    probability: float
    gain: float


def check_goal(goal: Any) -> str:
    """The goal; ValueError if it is none."""
    if not isinstance(goal, str) or goal not in GOALS:
        raise ValueError(f"goal must be one of {', '.join(GOALS)}, got {goal!r:.80}")
    return goal


def review_pairs(
    probabilities: sp.csr_matrix,
    predicted: sp.csr_matrix,
    judged: sp.csr_matrix,
    k: int,
    goal: str,
    factor: np.ndarray,
    labels: LabelTable,
) -> list[ReviewPair]:
    """The k pairs of greatest expected gain, those of equal gain in order of row, then label.

    Parameters
    ----------
    probabilities : CSR (n, L)
        The candidates; only stored entries are considered.
    predicted, judged : CSR (n, L)
        Label sets, and pairs that are known already, by their stored entries.
    k : int
    goal : "recall" or "errors"
        The gain is the probability that a label is relevant and missing from the set, or that the decision of
        the set is wrong.
    factor : float array (L,)
        What a label counts.
    labels : LabelTable

    Examples
    --------
    >>> P, S = sp.csr_matrix([[0.9, 0.3, 0.2]]), sp.csr_matrix([[1, 0, 0]])
    >>> none, table = sp.csr_matrix((1, 3)), LabelTable(3)
    >>> [(p.label, round(p.gain, 2)) for p in review_pairs(P, S, none, 2, "recall", np.ones(3), table)]
    [(1, 0.3), (2, 0.2)]
    >>> [(p.label, round(p.gain, 2)) for p in review_pairs(P, S, none, 3, "errors", np.ones(3), table)]
    [(1, 0.3), (2, 0.2), (0, 0.1)]
    """
    pairs = sp.coo_matrix(probabilities)
    row, label, probability = pairs.row.astype(np.int64), pairs.col, pairs.data.astype(np.float64)
    n_labels = probabilities.shape[1]
    inside, known = (np.isin(row * n_labels + label, _keys(of)) for of in (predicted, judged))
    gain = np.where(inside, 1 - probability if goal == "errors" else 0.0, probability) * factor[label]
    considered = np.flatnonzero(~known & (gain > 0))
    order = np.lexsort((label[considered], row[considered], -gain[considered]))
    return [
        ReviewPair(
            int(row[i]), int(label[i]), labels.name_of(int(label[i])), float(probability[i]), float(gain[i])
        )
        for i in considered[order[:k]]
    ]


def _keys(matrix: sp.csr_matrix) -> np.ndarray:
    """int64: row * L + label of the entries that are not zero."""
    row, label = matrix.nonzero()
    keys: np.ndarray = row.astype(np.int64) * matrix.shape[1] + label
    return keys
