"""Extreme regression metrics: errors of predicted relevances.

Prabhu et al. (2020), section 3. The error of a pair is ``e_il = |yhat_il - y_il|``, over *all* L labels:

- ``Y_true``: (n, L) array or sparse matrix of relevances >= 0;
- ``scores``: a `Ranking`, `Candidates`, or an (n, L) array or sparse matrix of predicted relevances, finite.
  A label that is not listed (or has score -inf) is predicted 0;
- ``scale``: the relevance that counts as 1; both are divided by it. By default the greatest relevance in
  ``Y_true``. Pass the greatest of the training set to compare test sets, 1 for errors in the units given.

Ties make no difference, except in Regression-error@k, where ties of scores go to the smaller label id. A
row with fewer than k labels has errors of 0 in the missing places. ``labelwise`` swaps points and labels
(the names end in "-l"): all rows of each label, averaged over labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metarank.metrics.inputs import Inputs
from metarank.metrics.statistics import Statistics, mean, ratio
from metarank.types.candidates import Candidates
from metarank.types.ranking import check_k, n_labels_of, n_rows_of, score_rows


def xmad_at_k(
    Y_true: Any, scores: Any, k: int, *, scale: float | None = None, labelwise: bool = False
) -> float:
    """Mean of the k largest errors of a row, averaged over rows: XMAD@k, XMAD-l@k.

    Eq. 1. Half of WP-regret@k is at most XMAD@2k (Lemma 3.1), as is half of Regression-error@k (Lemma A.1),
    for predictions >= 0.

    Examples
    --------
    >>> xmad_at_k([[1, 0, 0.5, 0]], [[0.5, 0.25, 0.5, 0]], k=2)  # (0.5 + 0.25) / 2
    0.375
    """
    return xmad_rows(Inputs.oriented(Y_true, scores, labelwise, scale), check_k(k)).value


def xmad_rows(inputs: Inputs, k: int) -> Statistics:
    """XMAD@k: the mean of each row's k largest errors."""
    return mean(inputs.largest_errors(k)[0] / k)


def xrmse_at_k(
    Y_true: Any, scores: Any, k: int, *, scale: float | None = None, labelwise: bool = False
) -> float:
    """Root of the mean square of the k largest errors of a row, averaged over rows: XRMSE@k, XRMSE-l@k.

    Eq. 2; never below XMAD@k.

    Examples
    --------
    >>> round(xrmse_at_k([[1, 0, 0, 0]], [[0.2, 0.6, 0, 0]], k=2) ** 2, 4)  # (0.8**2 + 0.6**2) / 2
    0.5
    """
    return xrmse_rows(Inputs.oriented(Y_true, scores, labelwise, scale), check_k(k)).value


def xrmse_rows(inputs: Inputs, k: int) -> Statistics:
    """XRMSE@k: the root mean square of each row's k largest errors."""
    return mean(np.sqrt(inputs.largest_errors(k)[1] / k))


def mad(Y_true: Any, scores: Any, *, scale: float | None = None, labelwise: bool = False) -> float:
    """Sum of all L errors of a row, averaged over rows: MAD, MAD-l.

    *Not* divided by L, as in the paper's tables: L times XMAD@L.

    Examples
    --------
    >>> mad([[1, 0, 0.5, 0]], [[0.5, 0.25, 0.5, 0]])
    0.75
    """
    return mad_rows(Inputs.oriented(Y_true, scores, labelwise, scale)).value


def mad_rows(inputs: Inputs, k: None = None) -> Statistics:
    """MAD: the sum of each row's errors over all labels."""
    return mean(inputs.largest_errors(inputs.n_labels)[0])


def rmse(Y_true: Any, scores: Any, *, scale: float | None = None) -> float:
    """Root of the mean square of all n L errors: RMSE.

    One mean over all pairs (row, label), then the root: scikit-learn's `root_mean_squared_error` of the
    flattened matrices. Points and labels play the same part, so there is no labelwise variant.

    Examples
    --------
    >>> rmse([[1, 0], [0, 0]], [[0, 0], [0, 0]])
    0.5
    """
    return rmse_rows(Inputs(Y_true, scores, scale=scale)).value


def rmse_rows(inputs: Inputs, k: None = None) -> Statistics:
    """RMSE: the root of the mean square over all pairs."""
    squares = inputs.largest_errors(inputs.n_labels)[1]
    mean_square = ratio(squares, np.full(inputs.n_rows, inputs.n_labels))
    return Statistics(mean_square.rows, lambda sums: np.sqrt(mean_square.finish(sums)))


def regression_error_at_k(
    Y_true: Any, scores: Any, k: int, *, scale: float | None = None, labelwise: bool = False
) -> float:
    """Mean error of the first k labels, averaged over rows: Regression-error@k, Regression-error-l@k.

    Eq. 10. Divides by k; a rank without a listed label adds nothing. Unlike XMAD@k it ignores relevant labels
    that are predicted 0.

    Examples
    --------
    >>> regression_error_at_k([[1, 0, 0.5, 0]], [[0.5, 0.25, 0.75, 0]], k=2)  # (0.25 + 0.5) / 2
    0.375
    """
    return regression_error_rows(Inputs.oriented(Y_true, scores, labelwise, scale), check_k(k)).value


def regression_error_rows(inputs: Inputs, k: int) -> Statistics:
    """Regression-error@k: the mean error at each row's first k ranks."""
    return mean(inputs.predicted_errors(k) / k)


def xreg_zero(scores: Any, *, largest: float = 1e-6) -> Candidates:
    """The same ranking of each row with all relevances almost 0: the corruption "XReg-zero" of Table 3.

    The label at rank r of its row (ties by label) gets the prediction ``largest / r``. This keeps the order
    within rows and discards the predicted sizes. Ranking metrics of rows do not change; XMAD, AUPRC and the
    outcome of re-ranking do.

    Parameters
    ----------
    scores : Ranking, Candidates, (n, L) array or sparse matrix
    largest : float > 0

    Returns
    -------
    Candidates with one score, "score".

    Examples
    --------
    >>> xreg_zero([[0.2, 0.9]], largest=0.5).to_csr().toarray()
    array([[0.25, 0.5 ]], dtype=float32)
    """
    if not 0 < largest < np.inf:
        raise ValueError(f"largest must be finite and positive, got {largest}")
    rows = score_rows(scores)
    if isinstance(rows, np.ndarray):
        row, labels = np.nonzero(~np.isneginf(rows))
        values = rows[row, labels]
    else:
        listed = ~np.isneginf(rows.scores)
        row = np.repeat(np.arange(n_rows_of(rows)), np.diff(rows.indptr))[listed]
        labels, values = rows.labels[listed], rows.scores[listed]
    if np.any(np.isnan(values)):
        raise ValueError("scores must not be NaN")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n_rows_of(rows)))])
    best_first = np.lexsort((labels, -values, row))
    rank = np.empty(len(labels), np.int64)
    rank[best_first] = np.arange(len(labels)) - indptr[row[best_first]] + 1
    ascending = np.lexsort((labels, row))
    return Candidates(indptr, labels[ascending], n_labels_of(rows), {"score": largest / rank[ascending]})
