"""IBLR-ML and IBLR-ML+ (Cheng & Hüllermeier 2009): logistic regression on the labels of the neighbours."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from baselines.base import Features, one_vs_rest
from baselines.logistic import fit_logistic
from baselines.neighbors import NeighborBaseline


class IBLR(NeighborBaseline):
    """log-odds of label i = w_i0 + sum_j a_ij * (number of the k neighbours that carry label j).

    So the presence of any label among the neighbours may speak for or against label i.
    """

    # On counts from 0 to k this is next to no regularisation, yet labels that separate stay finite.
    C = 1.0

    def _inputs(self, counts: np.ndarray, X: Features) -> Features:
        return counts.astype(np.float64)

    def _learn(self, counts: np.ndarray, X: Features, Y: np.ndarray, k: int) -> None:
        inputs = self._inputs(counts, X)
        self.scores_of = one_vs_rest(lambda y: fit_logistic(inputs, y, self.C, self.seed), Y, self.n_jobs)

    def _scores(self, counts: np.ndarray, X: Features) -> np.ndarray:
        return self.scores_of(self._inputs(counts, X))


class IBLRPlus(IBLR):
    """IBLR-ML with the instance's own features beside the counts."""

    def _inputs(self, counts: np.ndarray, X: Features) -> Features:
        if sp.issparse(X):
            # Words of unit rows are small numbers: the counts are brought down to them.
            return sp.hstack([sp.csr_matrix(counts / 10.0), X.astype(np.float64)], format="csr")
        return np.hstack([counts, X.astype(np.float64)])
