"""LPSR (Weston et al. 2013, "Label partitioning for sublinear ranking"), simplified.

k-means parts the rows; a part has the labels of its training rows, ordered by the scores of 1-vs-all.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import MiniBatchKMeans

from metarank import Candidates
from metarank.shortlist import OneVsAll
from systems.rivals.base import Rival


class LPSR(Rival):
    """See above."""

    rows_a_part = 500
    grid = (("rows_a_part", (500, 2000)),)

    def learn(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        self.base = OneVsAll().fit(X, Y)
        n, n_parts = X.shape[0], max(1, X.shape[0] // self.rows_a_part)
        self.parts = MiniBatchKMeans(n_parts, random_state=self.seed, n_init=3).fit(X)
        member = sp.csr_matrix((np.ones(n, np.float32), (self.parts.labels_, np.arange(n))), (n_parts, n))
        self.labels = sp.csr_matrix(member @ Y)
        self.labels.sort_indices()

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        listed = Candidates.from_csr(self.labels[self.parts.predict(X)])
        scores = np.full((X.shape[0], self.labels.shape[1]), -1e6, np.float32)
        row = np.repeat(np.arange(X.shape[0]), np.diff(listed.indptr))
        scores[row, listed.labels] = next(iter(self.base.score(X, listed).values()))
        return scores
