"""`Centroids`: distances from a row to the mean of a label's training points."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._threads import resolve_n_jobs
from metarank.candidates import Candidates
from metarank.scorers.base import Features, LabelScorer
from metarank.scorers.training_rows import (
    as_canonical,
    as_dense,
    check_candidates,
    check_width,
    csr_arrays,
    shared_rows,
)
from metarank.view import View


class Centroids(LabelScorer):
    """L2 and cosine distance to the label's centroid, the last two features of Yang & Gopal (2012), eq. 1.

    The centroid is the mean of the label's points in the View, not re-normalised. Columns ``centroid_l2`` and
    ``centroid_cosine``. Sparse X has sparse centroids. The sums run over the View's rows in their order, so
    no row outside it leaves a trace, not even in the last bit.

    Notes
    -----
    A label without a point is as far away as a row that shares nothing with x and is as long as the longest
    training row: sqrt(|x|^2 + max |y|^2) and 1, as in `LabelNeighbors`.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from metarank.view import TrainingSet
    >>> X = np.array([[0.0, 2.0], [0.0, 4.0]], np.float32)
    >>> Y = sp.csr_matrix(np.ones((2, 1), np.float32))
    >>> centroids = Centroids().fit(TrainingSet(X, Y, np.zeros(2, np.int32)).view())
    >>> centroids.score(np.array([[0.0, 1.0]], np.float32), Candidates.all_labels(1, 1))
    {'centroid_l2': array([2.], dtype=float32), 'centroid_cosine': array([0.], dtype=float32)}
    """

    def fit(self, view: View, *, n_jobs: int = 1) -> Centroids:
        """Average the View's points of each label. Returns self."""
        indptr, rows = view.rows_by_label
        rows_of_fit = shared_rows(view)
        self.max_sq_norm_ = rows_of_fit.max_sq_norm
        self.known_ = (np.diff(indptr) > 0).astype(np.uint8)
        if sp.issparse(rows_of_fit.X):
            self._set(_sparse_means(rows_of_fit.X, indptr, rows))
        else:
            self._set(_core.label_means(rows_of_fit.X, indptr, rows, resolve_n_jobs(n_jobs)))
        return self

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """Float32 columns (m,): ``centroid_l2`` and ``centroid_cosine``."""
        n_labels, n_features = self.centroids_.shape
        check_width(X, n_features)
        check_candidates(X, candidates, n_labels)
        known = (self.known_, self.max_sq_norm_)
        pairs: tuple[Any, ...] = (candidates.indptr, candidates.labels, resolve_n_jobs(n_jobs))
        if self._csr is None:
            values = _core.centroid_distances_dense(self.centroids_, *known, as_dense(X), *pairs)
        else:
            queries = csr_arrays(as_canonical(X))
            values = _core.centroid_distances_sparse(n_features, *self._csr, *known, *queries, *pairs)
        return dict(zip(("centroid_l2", "centroid_cosine"), values))

    def get_state(self) -> dict[str, Any]:
        return {"centroids": self.centroids_, "known": self.known_, "max_sq_norm": self.max_sq_norm_}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Centroids:
        out = cls()
        out.known_, out.max_sq_norm_ = state["known"], state["max_sq_norm"]
        out._set(state["centroids"])
        return out

    def _set(self, centroids: np.ndarray | sp.csr_matrix) -> None:
        self.centroids_ = centroids
        self._csr = None
        if sp.issparse(centroids):
            arrays = csr_arrays(centroids)
            self._csr = (*arrays, _core.csr_sq_norms(centroids.shape[1], *arrays))


def _sparse_means(X: sp.csr_matrix, indptr: np.ndarray, rows: np.ndarray) -> sp.csr_matrix:
    """CSR (L, d) of means. SciPy's product adds the rows of each label in the order given, in double."""
    counts = np.diff(indptr)
    membership = sp.csr_matrix((np.ones(len(rows)), rows, indptr), shape=(len(counts), X.shape[0]))
    sums = membership @ X
    sums.sort_indices()
    means = sums.data / np.repeat(counts, np.diff(sums.indptr))
    return sp.csr_matrix((means.astype(np.float32), sums.indices, sums.indptr), shape=sums.shape)
