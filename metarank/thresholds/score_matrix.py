"""The scores of any model, as lists of candidates: what `ThresholdLearner` reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank.types.candidates import Candidates
from metarank.types.checks import check_labels
from metarank.types.containers import as_array, check_columns
from metarank.types.view import first_of_unit

_LARGEST = float(np.finfo(np.float32).max)
# Between the least score and the greatest. Where all differ by less, no slope makes them log-odds.
_LEAST_SPREAD = 1e-11


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
        """Scores from an array, a data frame or a sparse matrix (n, L) of at least so many rows.

        Raises
        ------
        ValueError, TypeError
            If S has no two dimensions, too few rows, no column, another width than `n_labels`, or entries
            that are no finite numbers, or too large for 32 bits.
        """
        if not sp.issparse(S):
            check_columns(S, "S", "scores", "")
        values = S if sp.issparse(S) else as_array(S)
        if values.dtype.kind not in "biuf":
            values = _as_numbers(values)
        if values.ndim != 2:
            raise ValueError(f"S must have shape (n, L), a column a label, got {values.shape}")
        n, width = values.shape
        if n_labels is not None and width != n_labels:
            raise ValueError(f"S has {width} labels, but ThresholdLearner is expecting {n_labels}")
        if n < least or width == 0:
            rows = "row and one " if least else ""
            raise ValueError(f"S must have at least one {rows}column, got shape {values.shape}")
        if sp.issparse(S):
            matrix = _sorted(values)
            candidates = Candidates(matrix.indptr, matrix.indices, width)
            scores = np.ascontiguousarray(matrix.data, np.float64)
        else:
            candidates = Candidates.all_labels(n, width)
            scores = np.ascontiguousarray(values, np.float64).ravel()
        bad = ~(np.abs(scores) <= _LARGEST)
        if bad.any():
            at = int(np.argmax(bad))
            rule = f"hold numbers of at most {_LARGEST:.1e}" if np.isfinite(scores[at]) else "be finite"
            raise ValueError(
                f"S must {rule}, got {scores[at]} at row {candidates.row_of_pair[at]}, column "
                f"{candidates.labels[at]}"
            )
        return cls(candidates, scores, sp.issparse(S))

    def check_spread(self) -> None:
        """Raise ValueError if scores differ by so little that a fit would take them as equal."""
        spread = float(np.ptp(self.scores)) if len(self.scores) else 0.0
        if 0 < spread < _LEAST_SPREAD:
            raise ValueError(
                f"S must hold scores that differ by {_LEAST_SPREAD:.0e} or more, got {spread:.1e} between "
                "the least and the greatest: multiply them all by one number"
            )

    def matrix_of(self, values: np.ndarray) -> Any:
        """Values of the pairs in the container of the scores: an array, or CSR with the same entries."""
        shape = (self.candidates.n_rows, self.candidates.n_labels)
        if not self.is_sparse:
            return values.reshape(shape)
        return sp.csr_matrix((values, self.candidates.labels, self.candidates.indptr), shape=shape)

    def checked_labels(self, Y: Any) -> sp.csr_matrix:
        """Relevances of the same rows and labels, CSR (n, L) of values > 0."""
        c = self.candidates
        known = check_labels(Y, n_labels=c.n_labels)[0]
        if known.shape[0] != c.n_rows:
            raise ValueError(f"Y must have as many rows as S, {c.n_rows}, got {known.shape[0]}")
        return known

    def relevance(self, Y: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of the pairs, bool (m,), and how many relevant labels of each row are no candidates."""
        c, n_relevant = self.candidates, np.diff(Y.indptr)
        keys = np.repeat(np.arange(c.n_rows), n_relevant) * np.int64(c.n_labels) + Y.indices
        relevant = np.isin(c.pair_keys, keys, assume_unique=True)
        return relevant, n_relevant - np.bincount(c.row_of_pair[relevant], minlength=c.n_rows)

    def units(self, groups: np.ndarray | None) -> np.ndarray:
        """For each row the number of the first row that stays with it: of its group, or of the same scores.

        See `first_of_unit`.
        """
        c = self.candidates
        scores = self.scores.astype(np.float32)
        distinct, place = np.unique(self.scores, return_inverse=True)
        if 2 * len(np.unique(scores)) < len(distinct):  # far from 0 most scores would become equal
            scores = place.astype(np.float32) + 1
        values = scores, c.labels, c.indptr
        return first_of_unit(c.n_rows, sp.csr_matrix(values, shape=(c.n_rows, c.n_labels)), groups)


def column_names(S: Any) -> list[str] | None:
    """The names of the columns of a data frame; None where there are none, or not all are texts."""
    if not hasattr(S, "columns"):
        return None
    names = list(getattr(S, "column_names", S.columns))
    return names if all(isinstance(name, str) for name in names) else None


def check_same_columns(name: str, found: Any, known: list[str] | None) -> None:
    """Refuse a data frame whose columns have other names, or another order, than those known."""
    names = column_names(found)
    if names is not None and known is not None and names != known:
        raise ValueError(f"{name} must have the columns of S in the fit, {known[:5]}, got {names[:5]}")


def _as_numbers(values: np.ndarray) -> np.ndarray:
    """Objects that are numbers as float64; an error names what is not."""
    if values.dtype.kind == "O":
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError):
            pass
    raise ValueError(f"S must hold real numbers, got dtype {values.dtype}")


def _sorted(matrix: Any) -> sp.csr_matrix:
    """A canonical CSR matrix that keeps explicit zeros."""
    out = sp.csr_matrix(matrix)
    if not out.has_canonical_format:
        out = out.copy()
        out.sum_duplicates()
    return out
