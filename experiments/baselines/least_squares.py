"""1-vs-all-LS: one least squares regression a label, from the relevances themselves, as Prabhu et al.
(2020) compare with (Table 2): min_W |X W - Y|^2 + penalty |W|^2, all labels by one factorisation.

metarank's `OneVsAll(loss="ridge")` is the same with a bias, a penalty chosen by exact leave-one-out scores,
and small weights pruned. Here the relevance of a pair is the inverse propensity of its label, as in the
paper's rows of PSP.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from protocol import Ridge

from metarank.metrics.propensity import PRESETS, inv_propensity

_LABELS = 1000  # solved for together


class LeastSquares:
    """See above; `propensity`: a name of `PRESETS`, None for the relevance 1."""

    def __init__(self, penalty: float = 1.0, propensity: str | None = "default") -> None:
        self.penalty, self.propensity = penalty, propensity

    def fit(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> LeastSquares:
        ridge = Ridge(X, self.penalty)
        Y = sp.csc_matrix(Y, dtype=np.float64)
        if self.propensity is not None:
            Y = sp.csc_matrix(Y @ sp.diags(inv_propensity(Y, *PRESETS[self.propensity])))
        self.W = np.empty((X.shape[1], Y.shape[1]), np.float32)
        for start in range(0, Y.shape[1], _LABELS):
            some = slice(start, start + _LABELS)
            self.W[:, some] = ridge.solve(Y[:, some].toarray())
        return self

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        return X @ self.W
