"""The scores of any model, as lists of candidates: what `ThresholdLearner` reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from metarank.types.candidates import Candidates
from metarank.types.checks import check_labels
from metarank.types.ranking import score_rows
from metarank.types.view import first_of_unit

# From this many labels on, only the best of each row are listed; and at least how many.
MANY_LABELS, LEAST_LISTED = 200, 100
_LARGEST = float(np.finfo(np.float32).max)


class ScoreMatrix(NamedTuple):
    """Scores (n, L) as pairs.

    Attributes
    ----------
    candidates : Candidates
        All pairs of a dense matrix, the stored entries of a sparse one, zeros included.
    scores : float64 array (m,)
    is_sparse : bool
    """

    candidates: Candidates
    scores: np.ndarray
    is_sparse: bool

    @classmethod
    def read(cls, S: Any, n_labels: int | None = None, least: int = 1) -> ScoreMatrix:
        """Scores from an array, a data frame or a sparse matrix (n, L) of at least `least` rows.

        Raises
        ------
        ValueError, TypeError
            If S does not have two dimensions, has too few rows, no column, another width than `n_labels`, or
            entries that are not finite, or too large for 32 bits.
        """
        values = check_array(
            S, accept_sparse="csr", dtype=np.float64, order="C", ensure_min_samples=least, input_name="S"
        )
        width = values.shape[1]
        if n_labels is not None and width != n_labels:
            raise ValueError(f"S has {width} labels, but ThresholdLearner is expecting {n_labels}")
        rows = score_rows(values)
        largest = float(np.abs(rows.scores).max(initial=0.0))
        if largest > _LARGEST:
            raise ValueError(f"S must hold numbers of at most {_LARGEST:.1e}, got {largest:.1e}")
        return cls(Candidates(rows.indptr, rows.labels, width), rows.scores, sp.issparse(values))

    def best(self, k: int | None) -> ScoreMatrix:
        """The k best pairs of each row of a dense matrix, ties to the smaller label; None for all.

        Examples
        --------
        >>> ScoreMatrix.read([[0.1, 0.7, 0.7], [0.5, 0.2, 0.1]]).best(1).candidates.labels
        array([1, 0], dtype=int32)
        """
        c = self.candidates
        if k is None or self.is_sparse or k >= c.n_labels:
            return self
        order = np.argsort(-self.scores.reshape(c.n_rows, -1), axis=1, kind="stable")[:, :k]
        labels = np.sort(order, axis=1)
        at = (np.arange(c.n_rows)[:, None] * c.n_labels + labels).ravel()
        indptr = np.arange(c.n_rows + 1, dtype=np.int64) * k
        return ScoreMatrix(Candidates(indptr, labels.ravel(), c.n_labels), self.scores[at], False)

    def listed(self, Y: sp.csr_matrix) -> int | None:
        """How many labels of each row are enough to learn thresholds from; None for all.

        Most of the many labels of a dense matrix are never kept, and hold no information.
        """
        c = self.candidates
        k = max(LEAST_LISTED, 2 * int(np.diff(Y.indptr).max(initial=0)))
        return None if self.is_sparse or c.n_labels < MANY_LABELS or k >= c.n_labels else k

    def matrix_of(self, values: np.ndarray) -> Any:
        """Values of the pairs in the container of the scores: an array, or CSR with the same entries."""
        c = self.candidates
        return c.to_csr(values) if self.is_sparse else values.reshape(c.n_rows, c.n_labels)

    def checked_labels(self, Y: Any) -> sp.csr_matrix:
        """Relevances of the same rows and labels, CSR (n, L) of values > 0."""
        c = self.candidates
        relevances = check_labels(Y, n_labels=c.n_labels)[0]
        if relevances.shape[0] != c.n_rows:
            raise ValueError(f"Y must have as many rows as S, {c.n_rows}, got {relevances.shape[0]}")
        return relevances

    def relevance(self, Y: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of the pairs, bool (m,), and how many relevant labels of each row are not candidates."""
        c = self.candidates
        relevant = c.among(Candidates.from_csr(Y))
        return relevant, np.diff(Y.indptr) - np.bincount(c.row_of_pair[relevant], minlength=c.n_rows)

    def units(self, groups: np.ndarray | None) -> np.ndarray:
        """For each row the number of the first row that stays with it: of its group, or of the same scores.

        See `first_of_unit`.
        """
        # Ranks, since 32 bits would make most scores equal where they are far from 0.
        ranks = np.unique(self.scores, return_inverse=True)[1].astype(np.float32) + 1
        return first_of_unit(self.candidates.n_rows, self.candidates.to_csr(ranks), groups)
