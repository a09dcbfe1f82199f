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

import numpy as np

from metarank.metrics.inputs import Inputs
from metarank.metrics.statistics import Statistics, mean, ratio


def xmad_rows(inputs: Inputs, k: int) -> Statistics:
    """Mean of the k largest errors of a row, averaged over rows: XMAD@k, XMAD-l@k.

    Eq. 1. Half of WP-regret@k is at most XMAD@2k (Lemma 3.1), as is half of Regression-error@k (Lemma A.1),
    for predictions >= 0.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 0.5, 0]], [[0.5, 0.25, 0.5, 0]], ["XMAD@2"])["XMAD@2"]  # (0.5 + 0.25) / 2
    0.375
    """
    return mean(inputs.largest_errors(k)[0] / k)


def xrmse_rows(inputs: Inputs, k: int) -> Statistics:
    """Root of the mean square of the k largest errors of a row, averaged over rows: XRMSE@k, XRMSE-l@k.

    Eq. 2; never below XMAD@k.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> # (0.8**2 + 0.6**2) / 2
    >>> round(evaluate([[1, 0, 0, 0]], [[0.2, 0.6, 0, 0]], ["XRMSE@2"])["XRMSE@2"] ** 2, 4)
    0.5
    """
    return mean(np.sqrt(inputs.largest_errors(k)[1] / k))


def mad_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Sum of all L errors of a row, averaged over rows: MAD, MAD-l.

    *Not* divided by L, as in the paper's tables: L times XMAD@L.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 0.5, 0]], [[0.5, 0.25, 0.5, 0]], ["MAD"])["MAD"]
    0.75
    """
    return mean(inputs.largest_errors(inputs.n_labels)[0])


def rmse_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Root of the mean square of all n L errors: RMSE.

    One mean over all pairs (row, label), then the root: scikit-learn's `root_mean_squared_error` of the
    flattened matrices. Points and labels play the same part, so there is no labelwise variant.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0], [0, 0]], [[0, 0], [0, 0]], ["RMSE"])["RMSE"]
    0.5
    """
    squares = inputs.largest_errors(inputs.n_labels)[1]
    mean_square = ratio(squares, np.full(inputs.n_rows, inputs.n_labels))
    return Statistics(mean_square.rows, lambda sums: np.sqrt(mean_square.finish(sums)))


def regression_error_rows(inputs: Inputs, k: int) -> Statistics:
    """Mean error of the first k labels, averaged over rows: Regression-error@k, Regression-error-l@k.

    Eq. 10. Divides by k; a rank without a listed label adds nothing. Unlike XMAD@k it ignores relevant labels
    that are predicted 0.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> # (0.25 + 0.5) / 2
    >>> evaluate([[1, 0, 0.5, 0]], [[0.5, 0.25, 0.75, 0]], ["Regression-error@2"])["Regression-error@2"]
    0.375
    """
    return mean(inputs.predicted_errors(k) / k)
