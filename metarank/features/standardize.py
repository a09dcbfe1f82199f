"""z-scores within a candidate list: distances are not comparable across instances, ranks of pairs are."""

from __future__ import annotations

import numpy as np

from metarank import _core
from metarank._threads import resolve_n_jobs


def standardize_within_lists(values: np.ndarray, indptr: np.ndarray, *, n_jobs: int = 1) -> np.ndarray:
    """Each column's z-score within each row's candidate list: (value - list mean) / list deviation.

    Parameters
    ----------
    values : float32 array (m, F), finite
        One row a pair, as in `FeatureTable`.
    indptr : int64 array (n + 1,)
        List i holds the rows ``indptr[i]:indptr[i + 1]``.
    n_jobs : int
        Threads; the result does not depend on them.

    Returns
    -------
    float32 array (m, F)
        Population mean and deviation, summed in double down the list. A column that is constant in a list,
        as in any list of one pair, gives 0.

    Raises
    ------
    ValueError
        If a value is not finite or `indptr` does not describe m rows.

    Examples
    --------
    >>> standardize_within_lists(np.array([[1], [3], [5]], np.float32), np.array([0, 2, 3]))
    array([[-1.],
           [ 1.],
           [ 0.]], dtype=float32)
    """
    values = np.ascontiguousarray(values, np.float32)
    if values.ndim != 2:
        raise ValueError(f"values must be of shape (m, F), got {values.shape}")
    return _core.standardize_within_lists(
        values, np.ascontiguousarray(indptr, np.int64), resolve_n_jobs(n_jobs)
    )
