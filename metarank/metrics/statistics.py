"""Metrics as functions of sums over rows: one form for the value, its rows and its bootstrap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Statistics:
    """A metric that depends on its rows only through the sum of what each of them contributes.

    Parameters
    ----------
    rows : (n, s) array or CSR matrix
        Contribution of each row.
    finish : callable
        (B, s) sums to (B,) values of the metric.
    per_row : float64 array (n,) or None
        Values of the rows whose mean, NaN left out, is the metric; None if there are none.
    over_labels : bool
        Whether it is a mean over labels of what their rows have together. Rows drawn with replacement have
        fewer distinct labels than the rows themselves, and such a metric is then lower on average.
    """

    rows: np.ndarray | sp.csr_matrix
    finish: Callable[[np.ndarray], np.ndarray]
    per_row: np.ndarray | None = None
    over_labels: bool = False

    @property
    def value(self) -> float:
        return float(self.finish(np.asarray(self.rows.sum(axis=0)).reshape(1, -1))[0])


def ratio(numerator: np.ndarray, denominator: np.ndarray, *, empty: float = np.nan) -> Statistics:
    """Sum over sum; `empty` where the sum of the denominators is 0."""

    def finish(sums: np.ndarray) -> np.ndarray:
        return np.divide(sums[:, 0], sums[:, 1], out=np.full(len(sums), empty), where=sums[:, 1] != 0)

    return Statistics(np.column_stack([numerator, denominator]).astype(np.float64), finish)


def mean(values: np.ndarray) -> Statistics:
    """Mean of the rows' values, NaN for a row that is left out."""
    counted = ~np.isnan(values)
    of_rows = ratio(np.where(counted, values, 0.0), counted)
    return Statistics(of_rows.rows, of_rows.finish, values)


def attained(gains: np.ndarray, best: np.ndarray) -> Statistics:
    """Sum of the attained gains over the sum of the best possible ones."""
    possible = best > 0
    scale = best[possible].mean() if possible.any() else 1.0
    of_rows = ratio(gains, best)
    return Statistics(of_rows.rows, of_rows.finish, np.where(possible, gains / scale, np.nan))
