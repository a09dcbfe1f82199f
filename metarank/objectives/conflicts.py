"""How often two labels order a pair of rows oppositely."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from metarank.objectives.pair_terms import pair_terms


class Conflicts(NamedTuple):
    """Numbers of pairs of rows, by two labels.

    Attributes
    ----------
    opposite : float64 array (K, K)
        Pairs of which one row has the greater grade of label j and the smaller one of label k.
    ordered : float64 array (K, K)
        Pairs whose grades differ in both labels; on the diagonal, in the one label.
    n_pairs : float
        All pairs; with groups those within a group.
    """

    opposite: np.ndarray
    ordered: np.ndarray
    n_pairs: float


def pair_conflicts(grades: np.ndarray, group: np.ndarray | None = None) -> Conflicts:
    """Conflicts between the labels, exact and in O(K^2 n log n).

    Take label k as a score of label j. Of the P pairs that j orders, k orders C in the same way and D in the
    opposite way, and ties T. The AUC counts C + T / 2, and T follows from the sizes of ties.

    Parameters
    ----------
    grades : float array (n, K)
    group : integer array (n,), optional
        Only rows of the same group make pairs.

    Examples
    --------
    >>> found = pair_conflicts(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]))
    >>> float(found.opposite[0, 1]), float(found.ordered[0, 1]), found.n_pairs
    (1.0, 2.0, 6.0)
    """
    n, n_labels = grades.shape
    block = np.zeros(n, np.int64) if group is None else np.unique(group, return_inverse=True)[1]
    codes = [np.unique(column, return_inverse=True)[1] for column in grades.T]
    tied = [_tied_pairs(block, code) for code in codes]
    opposite, ordered = np.zeros((2, n_labels, n_labels))
    n_pairs = _tied_pairs(block)
    for j in range(n_labels):
        ordered[j, j] = n_pairs - tied[j]
        for k in range(j):
            won = pair_terms(grades[:, k], grades[:, j], "uniform", block).won.sum() / 2
            not_ordered = tied[k] - _tied_pairs(block, codes[j], codes[k])
            ordered[j, k] = ordered[k, j] = ordered[j, j] - not_ordered
            opposite[j, k] = opposite[k, j] = ordered[j, j] - won - not_ordered / 2
    return Conflicts(opposite, ordered, n_pairs)


def _tied_pairs(*codes: np.ndarray) -> float:
    """Pairs of rows that are alike in all codes."""
    key = codes[0].astype(np.int64)
    for code in codes[1:]:
        key = np.unique(key * (int(code.max()) + 1) + code, return_inverse=True)[1]
    counts = np.bincount(key).astype(np.float64)
    return float((counts * (counts - 1)).sum() / 2)
