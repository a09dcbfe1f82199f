"""Estimates of metrics on the complete labels, from labels of which some are missing.

Jain et al. (2016), section 4. Weighing each observed label by ``w_l = 1 / p_l`` makes the expectation of a
sum over the observed labels the sum over the complete ones. With r_l the rank of label l and
``n* = sum_l y*_l``, a point has

- P@k: ``sum_{r_l <= k} w_l y_l / k``;
- nDCG@k: ``sum_{r_l <= k} w_l y_l / log2(1 + r_l)`` over ``sum_{j <= k} 1 / log2(1 + j)``;
- R@k: ``sum_{r_l <= k} w_l y_l / n*``.

The first two are unbiased for any distribution of the complete labels (Theorem 4.1), R@k if these are fixed.
Values are not divided by the best possible ones, and may exceed 1 on few points.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy.sparse as sp

from metarank.metrics.inputs import Inputs
from metarank.metrics.names import Metric
from metarank.metrics.ranking_metrics import discount
from metarank.types.candidates import Candidates


def unbiased_per_row(
    Y: sp.csr_matrix,
    scores: Candidates | np.ndarray,
    name: str,
    inv_propensity: np.ndarray | None = None,
    n_relevant: np.ndarray | None = None,
) -> np.ndarray:
    """The estimate of each point, float64 (n,); the plain metric without `inv_propensity`."""
    inputs, metric = Inputs(Y, scores), Metric.parse(name)
    assert metric.k is not None
    weight = 1.0 if inv_propensity is None else inv_propensity[inputs.Y.indices]
    if metric.name == "nDCG":
        best = discount(np.arange(1.0, metric.k + 1.0), metric.k).sum()
        return inputs.row_sum(weight * discount(inputs.rank, metric.k)) / best
    found = inputs.row_sum(weight * (inputs.rank <= metric.k))
    if metric.name == "P":
        return found / metric.k
    if metric.name != "R" or n_relevant is None:
        raise ValueError(f"an estimate is known of P@k, nDCG@k and, with n_relevant, of R@k, got {name!r}")
    return found / n_relevant


def unbiased(
    Y: sp.csr_matrix,
    scores: Candidates | np.ndarray,
    names: Iterable[str],
    inv_propensity: np.ndarray | None = None,
) -> dict[str, float]:
    """The means of the estimates over all points, by name."""
    return {name: float(unbiased_per_row(Y, scores, name, inv_propensity).mean()) for name in names}
