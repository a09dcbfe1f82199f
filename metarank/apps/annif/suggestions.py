"""Answers of a model as Annif's suggestions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.isotonic import isotonic_regression

from metarank.types.ranking import Ranking

# No label is impossible; Annif takes scores of 0 for none.
_LEAST = 1e-6


def scores_in_order(probabilities: np.ndarray) -> np.ndarray:
    """Probabilities of labels in the order of their ranking, as scores that fall along it.

    Probabilities may rise along a ranking that boosts rare labels; Annif has no order but that of scores.
    They become the nearest sequence (in squares) that does not rise, which keeps their sum, within [1e-6, 1].
    Of equal ones each becomes the next smaller float32 of the one before.

    Parameters
    ----------
    probabilities : float array (k,)

    Returns
    -------
    float32 array (k,), strictly decreasing, in (0, 1]

    Examples
    --------
    >>> scores_in_order(np.array([0.5, 0.25, 0.75, 0.125])).round(3).tolist()
    [0.5, 0.5, 0.5, 0.125]
    """
    if len(probabilities) == 0:
        return np.zeros(0, np.float32)
    falling = isotonic_regression(np.asarray(probabilities, np.float64), increasing=False)
    out = np.clip(falling, _LEAST, 1).astype(np.float32)
    below = np.float32(0)
    for i in range(1, len(out)):
        if out[i] >= out[i - 1]:
            out[i] = np.nextafter(out[i - 1], below)
    return out


def suggested(
    ranking: Ranking, probabilities: sp.csr_matrix | None, subject_of: np.ndarray, n_subjects: int, limit: int
) -> Any:
    """A `SuggestionBatch` of the `limit` best subjects of each row; rows without evidence have none.

    Parameters
    ----------
    ranking : Ranking of n rows
    probabilities : CSR (n, L), or None of a model without training rows: the scores, brought to (0, 1)
    subject_of : int array (L,)
        Annif's id of each label of the model, or -1 where it is not to be suggested.
    n_subjects : int
    limit : int

    Returns
    -------
    annif.suggestion.SuggestionBatch
    """
    from annif.suggestion import SuggestionBatch

    blank = ranking.without_evidence
    rows, columns, values = [np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0, np.float32)]
    for i, ranked in enumerate(ranking.labels):
        places = np.flatnonzero((ranked >= 0) & (subject_of[ranked] >= 0))[:limit]
        labels = ranked[places]
        if len(labels) and (blank is None or not blank[i]):
            rows.append(np.full(len(labels), i))
            columns.append(subject_of[labels])
            scores = expit(ranking.scores[i, places])
            known = scores if probabilities is None else probabilities[i, labels].toarray().ravel()
            values.append(scores_in_order(known))
    parts = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    shape = (len(ranking.labels), n_subjects)
    return SuggestionBatch(sp.csr_array(parts, shape=shape, dtype=np.float32))
