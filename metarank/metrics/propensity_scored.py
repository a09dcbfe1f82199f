"""Metrics that weigh a label by its inverse propensity, and the number of distinct labels shown.

``Y_true`` and ``scores`` as in `metarank.metrics.ranking_metrics`; ties by label. ``inv_propensity``: (L,)
from `metarank.metrics.propensity.inv_propensity` of the *training* labels. The gain of a label is ``y *
w_l``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.metrics.inputs import Inputs
from metarank.metrics.ranking_metrics import discounted_gains, divide, first_gains
from metarank.metrics.statistics import Statistics, attained, mean
from metarank.types.ranking import check_k


def psp_at_k(Y_true: Any, scores: Any, k: int, inv_propensity: Any, *, per_point: bool = False) -> float:
    """Propensity-scored precision of the first k labels: PSP@k, or PSP-point@k.

    Jain et al. (2016), section 6: the gains of the first k labels summed over *all* points, divided by
    the sum of the best possible ones. `per_point` divides each point by its own best instead and
    averages over the points with a relevant label.

    Examples
    --------
    >>> Y, scores = [[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.8, 0.4]]
    >>> psp_at_k(Y, scores, 1, inv_propensity=[2.0, 2.0, 4.0])  # (2 + 2) / (4 + 2)
    0.6666666666666666
    >>> psp_at_k(Y, scores, 1, inv_propensity=[2.0, 2.0, 4.0], per_point=True)  # (2/4 + 2/2) / 2
    0.75
    """
    inputs = Inputs(Y_true, scores, inv_propensity=inv_propensity)
    return (psp_point_rows if per_point else psp_rows)(inputs, check_k(k)).value


def psndcg_at_k(Y_true: Any, scores: Any, k: int, inv_propensity: Any, *, per_point: bool = False) -> float:
    """Propensity-scored nDCG of the first k labels: PSnDCG@k, or PSnDCG-point@k.

    As `psp_at_k`, with each gain times ``1 / log2(1 + rank)``.

    Examples
    --------
    >>> psndcg_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], 1, inv_propensity=[2.0, 2.0, 4.0])
    0.5
    """
    inputs = Inputs(Y_true, scores, inv_propensity=inv_propensity)
    return (psndcg_point_rows if per_point else psndcg_rows)(inputs, check_k(k)).value


def psp_rows(inputs: Inputs, k: int) -> Statistics:
    """PSP@k: attained over best possible gain, summed over the rows before the division."""
    return attained(*_gains(inputs, k))


def psp_point_rows(inputs: Inputs, k: int) -> Statistics:
    """PSP-point@k: each row's attained gain over its own best."""
    return mean(divide(*_gains(inputs, k)))


def psndcg_rows(inputs: Inputs, k: int) -> Statistics:
    """PSnDCG@k: as PSP@k, with the discount of the rank."""
    return attained(*_discounted_gains(inputs, k))


def psndcg_point_rows(inputs: Inputs, k: int) -> Statistics:
    """PSnDCG-point@k: each row's discounted gain over its own best."""
    return mean(divide(*_discounted_gains(inputs, k)))


def _gains(inputs: Inputs, k: int) -> tuple[np.ndarray, np.ndarray]:
    return first_gains(inputs, inputs.propensity_gain, inputs.best_propensity_gain, k)


def _discounted_gains(inputs: Inputs, k: int) -> tuple[np.ndarray, np.ndarray]:
    return discounted_gains(inputs, inputs.propensity_gain, inputs.best_propensity_gain, k)


def distinct_at_k(Y_true: Any, scores: Any, k: int) -> float:
    """Distinct labels in all lists of k, relevant or not, over min(k n, L): C@k.

    The Coverage@k of Jain et al. (2016). Only the shape of `Y_true` is used.

    Examples
    --------
    >>> distinct_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.8, 0.2, 0.4]], k=1)
    0.5
    """
    return distinct_rows(Inputs(Y_true, scores), check_k(k)).value


def distinct_rows(inputs: Inputs, k: int) -> Statistics:
    """C@k: distinct labels among all first k, over the most there could be."""
    labels = inputs.top_k(k)
    listed = labels >= 0
    indptr = np.concatenate([[0], np.cumsum(listed.sum(axis=1))])
    shown = sp.csr_matrix((np.ones(indptr[-1]), labels[listed], indptr), shape=inputs.shape)
    at_most = min(k * inputs.n_rows, inputs.n_labels) or np.nan
    return Statistics(shown, lambda sums: (sums > 0).sum(axis=1) / at_most, over_labels=True)
