"""The propensity curve: the rarer a label, the more often a relevant one is missing from the data."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank._util.parameters import POSITIVE, check_real

PRESETS: Final[dict[str, tuple[float, float]]] = {
    "default": (0.55, 1.5),
    "wikipedia": (0.5, 0.4),
    "amazon": (0.6, 2.6),
}
"""(a, b) of Jain et al. (2016), to be unpacked: ``inv_propensity(Y, *PRESETS["amazon"])``."""


def inv_propensity(
    Y: np.ndarray | sp.spmatrix | sp.sparray, a: float = 0.55, b: float = 1.5, *, n_points: int | None = None
) -> NDArray[np.float64]:
    """Inverse propensity ``w_l = 1 / p_l`` of every label.

    Jain et al. (2016), eq. 1, with the natural logarithm::

        p_l = 1 / (1 + C exp(-a log(N_l + b))),  C = (log N - 1) (b + 1)^a

    so that ``w_l = 1 + C (N_l + b)^-a``. N is the number of training points and N_l
    the number of those where label l is relevant: pass *training* labels, never test labels.

    Parameters
    ----------
    Y : (n, L) array or sparse matrix of relevances, relevant where > 0; or, if `n_points` is given,
        (L,) the number of points of each label
    a, b : float
        Shape of the curve; see `PRESETS`.
    n_points : int, optional
        N, when `Y` holds counts.

    Returns
    -------
    float64 array (L,), every value > 1; the rarer the label, the greater.

    Raises
    ------
    ValueError
        If log N <= 1 (N <= 2), where the formula gives no propensity; if a or b is not positive;
        if a count is negative or above N.

    Examples
    --------
    >>> import numpy as np
    >>> inv_propensity(np.array([100, 10, 1]), n_points=1000).round(2)
    array([1.77, 3.55, 6.91])
    """
    for name, value in (("a", a), ("b", b)):
        check_real(name, value, *POSITIVE, "a positive number")
    counts, n = label_counts(Y, n_points)
    if n <= math.e:
        raise ValueError(f"propensities need log N > 1, that is at least 3 points, got N = {n}")
    with np.errstate(over="ignore", invalid="ignore"):
        c = (math.log(n) - 1.0) * np.float64(b + 1.0) ** a
        weights: np.ndarray = 1.0 + c * (counts.astype(np.float64) + b) ** -a
    if not np.all(np.isfinite(weights)):
        raise ValueError(f"a and b must give finite weights, got a = {a!r}, b = {b!r}")
    return weights


def counts_of_weights(
    weights: np.ndarray, n_points: int, a: float = 0.55, b: float = 1.5
) -> NDArray[np.int64]:
    """N_l, int64 (L,), of weights that `inv_propensity` gave: its inverse.

    Examples
    --------
    >>> counts_of_weights(inv_propensity(np.array([100, 10, 0]), n_points=1000), 1000)
    array([100,  10,   0])
    """
    c = (math.log(n_points) - 1.0) * (b + 1.0) ** a
    return np.rint(((weights - 1.0) / c) ** (-1.0 / a) - b).astype(np.int64)


def label_counts(Y: Any, n_points: int | None = None) -> tuple[np.ndarray, int]:
    """(N_l, N): counted in the relevances `Y` (n, L); or `Y` itself and `n_points`, where `Y` holds counts.

    Raises
    ------
    ValueError
        If `Y` has the wrong number of dimensions; if a count is negative, NaN or above N.

    Examples
    --------
    >>> label_counts([[1, 0], [2, 3]])
    (array([2, 1]), 2)
    """
    if n_points is not None:
        check_real("n_points", n_points, -POSITIVE[1], POSITIVE[1], "a finite number")
        counts = np.asarray(Y)
        if counts.dtype.kind not in "biuf":
            raise TypeError(f"Y must hold counts when n_points is given, got dtype {counts.dtype}")
        if counts.ndim != 1 or not np.all((counts >= 0) & (counts <= n_points)):
            raise ValueError(
                f"Y must hold one count in [0, n_points = {n_points}] for each label when n_points is given"
            )
        return counts, n_points
    if not sp.issparse(Y):
        Y = np.asarray(Y)
    if Y.ndim != 2:
        raise ValueError(f"Y must be (n, L), or counts (L,) with n_points, got shape {Y.shape}")
    values = Y.data if sp.issparse(Y) and hasattr(Y, "data") else Y
    if np.asarray(values).dtype.kind == "f" and not np.all(np.isfinite(values)):
        raise ValueError("Y must be finite")
    relevant = sp.csr_matrix(Y > 0)
    return np.bincount(relevant.indices, minlength=relevant.shape[1]), int(relevant.shape[0])
