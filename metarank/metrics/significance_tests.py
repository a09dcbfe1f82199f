"""Is one system better than another? The tests of Yang & Gopal (2012), section 4.3.

The sign test on all decisions for micro-F1; the Wilcoxon signed-rank test on the F1 of each label for
macro-F1, and on the values of each row for all other metrics. All tests are two-sided.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import bdtr

from metarank.metrics.areas import auc_per_label
from metarank.metrics.evaluation import per_row
from metarank.metrics.inputs import as_relevance, as_sets
from metarank.metrics.names import Metric
from metarank.metrics.sets import f1_per_label

_DECIMALS = 12


def significance(Y_true: Any, a: Any, b: Any, name: str | Metric, *, inv_propensity: Any = None) -> float:
    """p-value of the difference between two systems in a metric, by the test for that metric.

    Parameters
    ----------
    Y_true : (n, L) array or sparse matrix
    a, b : the predictions of the two systems
        Decisions (n, L) for a metric of label sets, scores or a `Ranking` for any other.
    name : str or Metric
        micro-F1 takes `sign_test`, macro-F1 and AUC the Wilcoxon test on the labels' F1 and AUC, any other
        metric `wilcoxon_rows` on its `per_row` values.
    inv_propensity : float array (L,), optional

    Raises
    ------
    ValueError
        For micro-AUC, AUPRC, RMSE and C@k, which have no values by row or by label.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.eye(8)
    >>> significance(Y, Y, 1 - Y, "P@1")
    0.0078125
    """
    metric = Metric.parse(name)
    if metric.name == "micro-F1":
        return sign_test(Y_true, a, b)
    if metric.name == "macro-F1":
        return wilcoxon_rows(f1_per_label(Y_true, a), f1_per_label(Y_true, b))
    if metric.name == "AUC":
        return wilcoxon_rows(auc_per_label(Y_true, a), auc_per_label(Y_true, b))
    if metric.needs == "sets":
        values = [per_row(Y_true, None, metric, Y_pred=decisions) for decisions in (a, b)]
    else:
        values = [per_row(Y_true, scores, metric, inv_propensity=inv_propensity) for scores in (a, b)]
    return wilcoxon_rows(*values)


def significance_mark(p: float) -> str:
    """'**' for p <= 0.01, '*' for p <= 0.05, '' otherwise: the marks of the paper's tables.

    Examples
    --------
    >>> [significance_mark(p) for p in (0.004, 0.03, 0.2)]
    ['**', '*', '']
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p must lie in [0, 1], got {p}")
    return "**" if p <= 0.01 else "*" if p <= 0.05 else ""


def sign_test(Y_true: Any, pred_a: Any, pred_b: Any) -> float:
    """p-value of the sign test on the decisions of all pairs (row, label).

    The test counts only pairs on which the systems decide differently, so one of the two is right. Under
    the null hypothesis either is right with probability 1/2. The binomial tail is exact for any number of
    pairs.

    Returns
    -------
    float, 1.0 if the systems agree everywhere.

    Examples
    --------
    >>> sign_test([[1, 1, 1, 1, 0, 0]], [[1, 1, 1, 1, 0, 0]], [[0, 0, 0, 0, 1, 1]])  # 6 to 0
    0.03125
    """
    Y = as_relevance(Y_true)
    a, b = as_sets(pred_a, Y.shape), as_sets(pred_b, Y.shape)
    Y.data[:] = 1
    both = a.multiply(b)
    only_a, only_b = a - both, b - both
    n = int(only_a.sum() + only_b.sum())
    only_a_right, only_b_right = only_a.multiply(Y).sum(), only_b.multiply(Y).sum()
    a_wins = int(only_a_right + only_b.sum() - only_b_right)
    return min(1.0, 2.0 * float(bdtr(min(a_wins, n - a_wins), n, 0.5)))


def wilcoxon_rows(values_a: Any, values_b: Any) -> float:
    """p-value of the Wilcoxon signed-rank test on paired values.

    Pairs whose difference is 0 are dropped (Wilcoxon's own rule, SciPy's ``zero_method="wilcox"``);
    differences are rounded to 12 decimals first, so the order of a sum has no effect.
    NaN in both values marks a pair that is left out.

    Returns
    -------
    float, 1.0 if no pair differs.

    Raises
    ------
    ValueError
        If the shapes differ, or a value is NaN in one system only.

    Examples
    --------
    >>> wilcoxon_rows([0.9, 0.8, 0.7, 0.6, 0.5], [0.1, 0.1, 0.1, 0.1, 0.1])
    0.0625
    """
    a, b = np.asarray(values_a, np.float64), np.asarray(values_b, np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(
            f"values_a and values_b must be (n,) of the same length, got {a.shape} and {b.shape}"
        )
    if np.any(np.isnan(a) != np.isnan(b)):
        raise ValueError("values_a and values_b must be NaN in the same rows")
    difference = np.round(a - b, _DECIMALS)
    difference = difference[~np.isnan(difference)]
    if not difference.any():
        return 1.0
    from scipy.stats import wilcoxon  # slow to import

    return float(wilcoxon(difference[difference != 0], zero_method="wilcox").pvalue)
