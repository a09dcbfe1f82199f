"""Estimates of metrics on the complete ground truth, from labels of which some are missing.

Jain et al. (2016), section 4. Let y* be the relevant labels of a point and y those of them that were
observed, each with its propensity ``p_l = P(y_l = 1 | y*_l = 1)``. Labels may go missing independently or
not. Weighing every observed label by ``w_l = 1 / p_l`` makes the expectation of a
sum over y the sum over y*. With r_l the rank of label l, s the predicted set and ``n* = sum_l y*_l``,
Table 1 and Theorem 4.4 become

========= =================================================== ==========
name      value of a point                                    needs
========= =================================================== ==========
P@k       sum_{r_l <= k} w_l y_l / k                          scores
nDCG@k    sum_{r_l <= k} w_l y_l / log2(1 + r_l)              scores
          / sum_{j <= k} 1 / log2(1 + j)
R@k       sum_{r_l <= k} w_l y_l / n*                         scores, n*
MRR-all   sum_l w_l y_l / r_l / n*                            scores, n*
ADG       sum_l w_l y_l / log2(1 + r_l) / n*                  scores, n*
F1, F0.5  (1 + b^2) sum_l w_l y_l s_l / (b^2 n* + sum_l s_l)  Y_pred, n*
Hamming   sum_l w_l (1 - 2 s_l) y_l + s_l                     Y_pred
========= =================================================== ==========

P@k, nDCG@k and Hamming are unbiased for any distribution of y* (Theorems 4.1 and 4.4), the others, which
divide by n*, for a fixed y* (Theorem 4.2).

Unlike `metarank.metrics.psp_at_k`, the values are not divided by the best possible ones. On few points they
may exceed 1, and Hamming may be negative. nDCG@k has a constant denominator, unlike
`metarank.metrics.ndcg`: a perfect ranking of fewer than k relevant labels stays below 1. MRR-all averages
over *all* relevant labels. Hamming, the only loss, counts the wrong decisions of a point: `hamming_loss`
times L. F takes any b: F2 is F with b = 2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from metarank.metrics.inputs import Inputs
from metarank.metrics.missing_inputs import (
    as_complete_counts,
    as_g,
    as_inv_propensity,
    as_n_relevant,
    row_max,
    weights_of_pairs,
)
from metarank.metrics.ranking_metrics import discount, divide
from metarank.metrics.statistics import mean


def unbiased(
    Y_true: Any,
    scores: Any,
    names: Iterable[str],
    *,
    inv_propensity: Any = None,
    n_relevant: Any = None,
    g: Any = None,
    Y_pred: Any = None,
    n_jobs: int | None = None,
) -> dict[str, float]:
    """Unbiased estimates, from the observed labels, of metrics on the complete ground truth.

    Jain et al. (2016), Table 1; see `metarank.metrics.missing_labels` for the formulas. The value on the
    complete ground truth itself is that of ``unbiased(Y_complete, ..., n_relevant=...)`` without
    propensities.

    Parameters
    ----------
    Y_true : (n, L) array or sparse matrix
        The observed labels: relevant where > 0, whatever the grade.
    scores : `Ranking`, `Candidates`, (n, L) array or sparse matrix, or None
        What P@k, nDCG@k, R@k, MRR-all and ADG judge. Ties by label; a label that is not listed has gain 0.
    names : iterable of str
        "P@5", "nDCG@5", "R@5", "MRR-all", "ADG", "F1" (or "F0.5", "F2", ...), "Hamming".
    inv_propensity : (L,) array, or (n, L) array or sparse matrix, optional
        ``1 / p >= 1`` of each label, as from `metarank.metrics.propensity.inv_propensity` of the training
        labels, or of each (point, label) pair; a sparse matrix must store a value for every pair relevant in
        `Y_true`. None for 1 everywhere: the plain metric on what was observed.
    n_relevant : real array (n,), optional
        For R@k, MRR-all, ADG and F: the number of relevant labels of each point in the *complete* ground
        truth; it does not depend on what was observed.
    g : positive float or real array (L,), optional
        For R@k, MRR-all and ADG where `n_relevant` is not known, but labels were observed with
        ``p_il = g_l / n_relevant_i``: each observed label is divided by g_l, in place of
        ``n_relevant_i * p_il`` (Corollary 4.2.1; `inv_propensity` then plays no part in these three).
    Y_pred : (n, L) array or sparse matrix of 0 and 1, optional
        What F and Hamming judge.
    n_jobs : int, optional
        Threads; None for all cores. The values do not depend on it.

    Returns
    -------
    dict of str to float
        Means over the points; fractions in expectation, Hamming in labels. R@k, MRR-all and ADG leave out
        points with ``n_relevant = 0``. With `g` these points are unknown: none is left out, and a point
        without an observed label counts 0. F counts 1 where such a point has no predicted label, as does
        `example_f1`. NaN where no point counts.

    Raises
    ------
    TypeError
        If a name is no string or an argument holds no numbers.
    ValueError
        If a name is unknown or its k below 1; if an argument it needs is missing or `n_relevant` and `g`
        are both given; if a shape is wrong; if an inverse propensity is below 1, NaN, infinite or missing
        at a relevant pair; if `n_relevant` is below the number of observed labels or above L; if `g` is
        not positive.

    Examples
    --------
    The second label of the first point is seen one time in four:

    >>> Y, scores = [[0, 1, 1], [1, 0, 0]], [[0.2, 0.9, 0.5], [0.7, 0.8, 0.1]]
    >>> w = [1.0, 4.0, 2.0]
    >>> unbiased(Y, scores, ["P@1", "R@2"], inv_propensity=w, n_relevant=[3, 1])  # 4/2, (6/3 + 1) / 2
    {'P@1': 2.0, 'R@2': 1.5}
    >>> unbiased(Y, scores, ["R@2"], g=2.0)  # (2/2 + 1/2) / 2
    {'R@2': 0.75}
    >>> unbiased(Y, None, ["Hamming"], inv_propensity=w, Y_pred=[[0, 0, 1], [0, 0, 0]])  # (4 - 2 + 1 + 1) / 2
    {'Hamming': 2.0}
    """
    if isinstance(names, str):
        raise TypeError(f"names must be a list of metrics, got {names!r}")
    gains = {name: _Gain.parse(name) for name in names}
    inputs = Inputs(Y_true, scores, Y_pred=Y_pred, n_jobs=n_jobs)
    observed = _Observed(inputs, inv_propensity, n_relevant, g)
    return {name: mean(observed.per_row(gain)).value for name, gain in gains.items()}


def unbiased_per_row(
    Y_true: Any,
    scores: Any,
    name: str,
    *,
    inv_propensity: Any = None,
    n_relevant: Any = None,
    g: Any = None,
    Y_pred: Any = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """The value of each point, float64 (n,); their mean, NaN left out, is `unbiased`.

    Arguments, edge cases and errors as in `unbiased`.

    Examples
    --------
    >>> unbiased_per_row([[1, 0], [0, 0]], [[2, 1], [2, 1]], "ADG", inv_propensity=[2, 3], n_relevant=[2, 0])
    array([ 1., nan])
    """
    gain = _Gain.parse(name)
    inputs = Inputs(Y_true, scores, Y_pred=Y_pred, n_jobs=n_jobs)
    return _Observed(inputs, inv_propensity, n_relevant, g).per_row(gain)


def concentration_bound(
    name: str, n_relevant: Any, *, inv_propensity: Any = None, g: Any = None, delta: float = 0.05
) -> float:
    """Bound on the distance of `unbiased` from its expectation, valid with probability 1 - delta.

    Jain et al. (2016), Theorems 4.3 and 4.4, for N points observed independently::

        rho L sqrt(log(2 / delta) / (2 N)),  L = sqrt(mean_i n_relevant_i^2)

    with rho the greatest gain that one observed label can have. The maximum runs over every label of
    `inv_propensity` at the first rank (for F: predicted alone), so that the bound holds for every
    prediction. The bound follows from Hoeffding's inequality: it grows with the *largest* inverse
    propensity, and is loose where only a few labels have such a large one.

    Parameters
    ----------
    name : str
        As in `unbiased`.
    n_relevant : real array (N,)
        The greatest number of labels that can be relevant to each point; for F, and without `g` for
        R@k, MRR-all and ADG, the number given to `unbiased`.
    inv_propensity : (L,) array, or (N, L) array or sparse matrix, optional
        As in `unbiased`, for every label that can be relevant: not only those that were observed.
    g : positive float or real array (L,), optional
        As in `unbiased`, for R@k, MRR-all and ADG.
    delta : float in (0, 1)
        Probability that the bound fails.

    Returns
    -------
    float
        Half the width of the interval, in the unit of the metric; NaN where no point counts.

    Raises
    ------
    ValueError
        If `delta` lies outside (0, 1), or `g` is given for another metric; and as in `unbiased`.

    Examples
    --------
    >>> round(concentration_bound("P@5", [3] * 1000, inv_propensity=[1.0, 4.0, 10.0]), 3)
    0.258
    >>> round(concentration_bound("P@5", [3] * 4000, inv_propensity=[1.0, 4.0, 10.0]), 3)
    0.129
    """
    gain = _Gain.parse(name)
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta}")
    if g is not None and not gain.over_relevant:
        raise ValueError(f"g serves R@k, MRR-all and ADG only, got g = {g!r} for {name!r}")
    n = as_n_relevant(n_relevant)
    weights = as_inv_propensity(inv_propensity, len(n))
    counted = n > 0 if gain.over_relevant and g is None else np.ones(len(n), dtype=bool)
    if not counted.any():
        return math.nan
    if g is None:
        largest = divide(row_max(weights, len(n)), gain.least_denominator(n))
    else:
        largest = np.broadcast_to(1.0 / as_g(g).min(), n.shape)
    rho = gain.at_first_rank * largest.max(where=n > 0, initial=0.0)
    mean_square = np.square(n[counted]).mean()
    return float(rho * math.sqrt(mean_square * math.log(2.0 / delta) / (2.0 * counted.sum())))


_AT_RANK: Final[dict[str, Callable[[np.ndarray, Any], np.ndarray]]] = {
    "P": lambda rank, k: (rank <= k) / k,
    "nDCG": lambda rank, k: discount(rank, k) / discount(np.arange(1.0, k + 1.0), k).sum(),
    "R": lambda rank, k: (rank <= k) / 1.0,
    "MRR-all": lambda rank, k: 1.0 / rank,
    "ADG": discount,
}
_KNOWN: Final = "P@k, nDCG@k, R@k, MRR-all, ADG, F1 (F0.5, F2, ...), Hamming"


@dataclass(frozen=True)
class _Gain:
    """A row of the table above."""

    text: str
    name: str
    k: int | None = None
    beta: float = 1.0

    @classmethod
    def parse(cls, name: str) -> _Gain:
        if not isinstance(name, str):
            raise TypeError(f"a metric is named by a string, got {name!r}")
        if at_k := re.fullmatch(r"(P|nDCG|R)@(0|[1-9][0-9]{0,8})", name):
            if at_k[2] == "0":
                raise ValueError(f"the cut-off of a metric must be positive, got {name!r}")
            return cls(name, at_k[1], k=int(at_k[2]))
        if f := re.fullmatch(r"F([0-9]{1,9}(?:\.[0-9]+)?)", name):
            if float(f[1]) == 0:
                raise ValueError(f"the beta of F must be positive, got {name!r}")
            return cls(name, "F", beta=float(f[1]))
        if name not in ("MRR-all", "ADG", "Hamming"):
            raise ValueError(f"no unbiased estimate of {name!r} is known, but of {_KNOWN}")
        return cls(name, name)

    @property
    def over_relevant(self) -> bool:
        """Whether n* divides the sum, and nothing else does: the premise of Corollary 4.2.1."""
        return self.name in ("R", "MRR-all", "ADG")

    def at_rank(self, rank: np.ndarray) -> np.ndarray:
        """What an observed label of weight 1 adds at its rank, before the division by n*."""
        return _AT_RANK[self.name](rank, self.k)

    @property
    def at_first_rank(self) -> float:
        return float(self.at_rank(np.ones(1))[0]) if self.name in _AT_RANK else 1.0

    def f_denominator(self, n_relevant: np.ndarray, n_predicted: np.ndarray | int) -> np.ndarray:
        b2 = self.beta**2
        return (b2 * n_relevant + n_predicted) / (1.0 + b2)

    def least_denominator(self, n_relevant: np.ndarray) -> np.ndarray:
        """The least that the gain of a label is divided by; F gives none where no label is predicted."""
        if self.name == "F":
            return self.f_denominator(n_relevant, 1)
        return n_relevant if self.over_relevant else np.ones(len(n_relevant))


class _Observed:
    """Observed labels with their propensities, checked once, and the gains of the points."""

    def __init__(self, inputs: Inputs, inv_propensity: Any, n_relevant: Any, g: Any) -> None:
        self.inputs = inputs
        if n_relevant is not None and g is not None:
            raise ValueError(f"n_relevant and g must not both be given, got n_relevant and g = {g!r}")
        self.weight = weights_of_pairs(inv_propensity, inputs)
        self.n_relevant = None if n_relevant is None else as_complete_counts(n_relevant, inputs)
        self.g = None if g is None else as_g(g, inputs.n_labels)

    def per_row(self, gain: _Gain) -> NDArray[np.float64]:
        """float64 (n,): the value of each point, NaN where it is left out."""
        inputs = self.inputs
        if gain.name == "Hamming":
            return inputs.row_sum(self.weight * (1.0 - 2.0 * self._hit)) + self._n_predicted
        if gain.name == "F":
            n = self._n_relevant_for(gain)
            hits = inputs.row_sum(self.weight * self._hit)
            denominator = gain.f_denominator(n, self._n_predicted)
            return np.where(denominator > 0, divide(hits, denominator), 1.0)
        at_rank = gain.at_rank(inputs.rank)
        if not gain.over_relevant:
            return inputs.row_sum(self.weight * at_rank)
        if self.g is not None:
            return inputs.row_sum(at_rank / self.g[inputs.Y.indices])
        return divide(inputs.row_sum(self.weight * at_rank), self._n_relevant_for(gain))

    def _n_relevant_for(self, gain: _Gain) -> np.ndarray:
        if self.n_relevant is None:
            or_g = " or g" if gain.over_relevant else ""
            raise ValueError(
                f"n_relevant{or_g} must be given for {gain.text}: the number of relevant labels of each "
                "point in the complete ground truth"
            )
        return self.n_relevant

    @property
    def _hit(self) -> np.ndarray:
        """Whether each relevant pair is predicted."""
        return self.inputs.find(self.inputs.sets.indptr, self.inputs.sets.indices)[0]

    @property
    def _n_predicted(self) -> np.ndarray:
        return np.diff(self.inputs.sets.indptr)
