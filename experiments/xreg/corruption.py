"""The corruption "XReg-zero" of Table 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from metarank.types.candidates import Candidates
from metarank.types.ranking import score_rows


def xreg_zero(scores: Any, *, largest: float = 1e-6) -> Candidates:
    """The same ranking of each row with all relevances almost 0: the corruption "XReg-zero" of Table 3.

    The label at rank r of its row (ties by label) gets the prediction ``largest / r``. This keeps the order
    within rows and discards the predicted sizes. Ranking metrics of rows do not change; XMAD, AUPRC and the
    outcome of re-ranking do.

    Examples
    --------
    >>> xreg_zero([[0.2, 0.9]], largest=0.5).to_csr().toarray()
    array([[0.25, 0.5 ]], dtype=float32)
    """
    if not 0 < largest < np.inf:
        raise ValueError(f"largest must be finite and positive, got {largest}")
    rows = score_rows(scores)
    listed = ~np.isneginf(rows.scores)
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[listed]
    labels, values = rows.labels[listed], rows.scores[listed]
    if np.any(np.isnan(values)):
        raise ValueError("scores must not be NaN")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows.shape[0]))])
    best_first = np.lexsort((labels, -values, row))
    rank = np.empty(len(labels), np.int64)
    rank[best_first] = np.arange(len(labels)) - indptr[row[best_first]] + 1
    ascending = np.lexsort((labels, row))
    return Candidates(indptr, labels[ascending], rows.shape[1], {"score": largest / rank[ascending]})
