"""`LabelMeans`: the mean training point of each label, and distances to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._util.elementary import softplus
from metarank._util.threads import resolve_n_jobs
from metarank.persist.fields import Array, Csr, Ids, Number, Object, Rows
from metarank.persist.spec import Saved, Spec
from metarank.scorers.neighbors.training_rows import (
    LabelRows,
    SparseRows,
    as_canonical,
    canonical_parts,
    check_lists,
    check_width,
    restored_rows,
)
from metarank.types.arrays import csr_parts, dense
from metarank.types.candidates import Candidates, stored_where
from metarank.types.ragged import row_of_entries
from metarank.types.view import Features

# Labels averaged at a time: their sums are in double.
_LABELS = 1 << 14
# Where the rows of all labels have more terms, means of few rows are made of the rows each time:
# stored, those of 670,000 labels of four rows each take 1.4 GB, five times what the rows do.
_MOST_TERMS = 1 << 23
_FEW_ROWS = 16


@dataclass(eq=False, repr=False)
class LabelMeans(Saved):
    """Means of the labels' points, not re-normalised; sparse where the points are.

    Parameters
    ----------
    means : float32 array or CSR (L, d)
    known : uint8 array (L,)
        1 for a label with a point.
    max_sq_norm : float
        |y|^2 of the longest point. A label without a point is as far away as one that shares nothing with x
        and is that long: sqrt(|x|^2 + max |y|^2) under L2, 1 under cosine.
    sq_norm : float64 array (L,), optional
        Squared lengths of sparse means before any term was left out.
    rows : SparseRows, optional
        The points. Means that are not stored are made of those of the label, which `labels` tells.
    labels : LabelRows, optional
    """

    means: np.ndarray | sp.csr_matrix
    known: np.ndarray
    max_sq_norm: float
    sq_norm: np.ndarray | None = None
    rows: SparseRows | None = None
    labels: LabelRows | None = None

    saved: ClassVar[Spec] = Spec(
        Rows("means", dims=("L", "d")),
        Ids("known", np.uint8, ("L",), below=2),
        Number("max_sq_norm", 0),
        Array("sq_norm", np.float64, ("L",), least=0, optional=True),
        Csr(
            "rows",
            dims=("rows", "d"),
            optional=True,
            of=lambda means: means.rows and means.rows.X,
            into=restored_rows,
        ),
        Object("labels", LabelRows, ("rows", "L"), when=lambda known: known.rows is not None),
    )

    @cached_property
    def index(self) -> _core.LabelMeanIndex:
        """The means, dense ones as sparse, ready for products in the compiled core."""
        means = as_canonical(self.means)
        sq_norm = sq_norms(means) if self.sq_norm is None else self.sq_norm
        arrays = (*csr_parts(means), means.shape[1]), sq_norm, self.known, float(self.max_sq_norm)
        if self.rows is None or self.labels is None:
            return _core.LabelMeanIndex(*arrays)
        points = (*csr_parts(self.rows.X), means.shape[1]), self.labels.indptr, self.labels.rows
        return _core.LabelMeanIndex(*arrays, points)

    @classmethod
    def of_rows(
        cls,
        X: Features,
        indptr: np.ndarray,
        rows: np.ndarray,
        max_sq_norm: float,
        *,
        max_terms: int | None = None,
        shared: SparseRows | None = None,
    ) -> LabelMeans:
        """The means of the rows ``rows[indptr[l]:indptr[l + 1]]`` of X, added in that order, in double.

        Of a sparse mean only the `max_terms` largest terms are stored; its length stays that of all terms.
        Beside many `shared` rows, which are X, means of few rows are not stored.
        """
        counts = np.diff(indptr)
        known = (counts > 0).astype(np.uint8)
        if not sp.issparse(X):
            sums = _members(indptr, rows, len(X)) @ X
            means = (sums / np.maximum(counts, 1)[:, None]).astype(np.float32)
            return cls(means, known, max_sq_norm)
        points: sp.csr_matrix = X
        is_lean = shared is not None and np.diff(points.indptr)[rows].sum() > _MOST_TERMS
        values = points.data.astype(np.float64)
        points = sp.csr_matrix((values, points.indices, points.indptr), points.shape, copy=False)
        parts, norms = [], []
        for a in range(0, max(len(counts), 1), _LABELS):
            members = _members(indptr[a : a + _LABELS + 1], rows, points.shape[0])
            part, of_part = _sparse_means(members @ points, counts[a:], max_terms)
            if is_lean:
                part = stored_where(part, (counts[a:] > _FEW_ROWS)[row_of_entries(part.indptr)])
            parts.append(part)
            norms.append(of_part)
        means = sp.csr_matrix(sp.vstack(parts, "csr"))
        means.has_sorted_indices = means.has_canonical_format = True
        labels = LabelRows(n_rows=points.shape[0], rows=rows, indptr=indptr) if is_lean else None
        return cls(means, known, max_sq_norm, np.concatenate(norms), shared if is_lean else None, labels)

    def scaled(self, factors: np.ndarray) -> LabelMeans:
        """The means times a factor each, float64 (L,); of sparse means."""
        means = sp.csr_matrix(self.means, copy=True)
        means.data = (means.data * np.repeat(factors, np.diff(means.indptr))).astype(np.float32)
        norms = None if self.sq_norm is None else self.sq_norm * factors**2
        return LabelMeans(means, self.known, self.max_sq_norm, norms)

    def distances(self, X: Features, candidates: Candidates, n_jobs: int) -> np.ndarray:
        """float32 (2, m): L2 and cosine distance of each pair's row to its label's mean."""
        self._check(X, candidates)
        pairs = (candidates.indptr, candidates.labels)
        n_threads = resolve_n_jobs(n_jobs)
        if sp.issparse(self.means):
            return self.index.distances(canonical_parts(X), *pairs, n_threads)
        means = (self.means, self.known, self.max_sq_norm)
        return _core.centroid_distances_dense(*means, dense(X), *pairs, n_threads)

    def tail_log_probability(
        self, X: Features, candidates: Candidates, gamma: float, unit_means: bool, n_jobs: int
    ) -> np.ndarray:
        """float32 (m,): ``-log(1 + exp(gamma / 2 |x - mean|^2))``, the means scaled to unit length or not."""
        if not sp.issparse(self.means):
            l2, cosine = self.distances(X, candidates, n_jobs).astype(np.float64)
            squared = 2 * cosine if unit_means else l2**2
            return -softplus(gamma / 2 * squared).astype(np.float32)
        self._check(X, candidates)
        pairs = (candidates.indptr, candidates.labels)
        rows = canonical_parts(X)
        return self.index.tail_log_probability(rows, *pairs, gamma, unit_means, resolve_n_jobs(n_jobs))

    def _check(self, X: Features, candidates: Candidates) -> None:
        check_width(X, self.means.shape[1])
        check_lists(candidates, X.shape[0], self.means.shape[0])


def sq_norms(X: sp.csr_matrix) -> np.ndarray:
    """float64 (n,): the squared lengths of canonical rows, features ascending."""
    squares = X.data.astype(np.float64) ** 2
    return np.bincount(row_of_entries(X.indptr), squares, X.shape[0]).astype(np.float64)


def _members(indptr: np.ndarray, rows: np.ndarray, n_rows: int) -> sp.csr_matrix:
    """The rows of some labels as ones (labels, n_rows): a product with them adds rows in their order."""
    rows, indptr = rows[indptr[0] : indptr[-1]], indptr - indptr[0]
    return sp.csr_matrix((np.ones(len(rows)), rows, indptr), shape=(len(indptr) - 1, n_rows))


def _sparse_means(
    sums: sp.csr_matrix, counts: np.ndarray, max_terms: int | None
) -> tuple[sp.csr_matrix, np.ndarray]:
    """The means of some labels as float32, of each its largest terms, and their squared lengths before."""
    sums.sort_indices()
    label = row_of_entries(sums.indptr)
    values = (sums.data / counts[label]).astype(np.float32)
    means = sp.csr_matrix((values, sums.indices.astype(np.int32, copy=False), sums.indptr), shape=sums.shape)
    norms = sq_norms(means)
    if max_terms is not None and np.diff(sums.indptr).max(initial=0) > max_terms:
        order = np.lexsort((sums.indices, -np.abs(values), label))
        kept = np.sort(order[np.arange(len(order)) - sums.indptr[label] < max_terms])
        indptr = np.searchsorted(label[kept], np.arange(sums.shape[0] + 1))
        means = sp.csr_matrix((values[kept], means.indices[kept], indptr), shape=sums.shape)
    return means, norms
