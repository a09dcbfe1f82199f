"""`TrainingRows`: exact nearest rows of a training set, dense or sparse, in the compiled core.

Holds features only, no labels, so all views of a fit share one. Dense rows are
compared one by one; for many queries against many rows FAISS proposes the
nearest, the core computes their distances again and makes sure that no row
left out could change the answer. Where asked to, an approximate index proposes
and the core computes the distances of what it proposed (`dense_index`). Sparse
rows go through an inverted index.
Either way the numbers depend on the query and the training rows only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import RLock
from typing import Annotated, Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank.persist.fields import Array, Ids, Integer, check_csr
from metarank.persist.spec import Saved, Spec
from metarank.types.arrays import Parts, csr_parts, dense, unit_rows
from metarank.types.candidates import Candidates
from metarank.types.dense_index import HnswIndex, faiss_threads
from metarank.types.view import Features, TrainingView

# Metrics, and of each which distances and means of how many are columns.
Asked = tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]
METRICS = {"l2": 0, "l1": 1, "cosine": 2}

# FAISS is asked when both are reached: below, one pass over the rows costs less.
FAISS_MIN_ROWS = 20_000
FAISS_MIN_QUERIES = 32
# Where sums of squares are as exact as `_propose` takes them to be; in 32 bits others vanish or overflow.
LEAST_SUM, MOST_SUM = 1e-30, 1e37


@dataclass(eq=False, repr=False, kw_only=True)
class LabelRows(Saved):
    """Which rows carry which label: the lists by label and, inverted, by row.

    Parameters
    ----------
    n_rows : int
        Rows of the training set, those outside the TrainingView included.
    rows, indptr : int32 array, int64 array (L + 1,)
        For each label its rows, ascending (`TrainingView.rows_by_label`).
    """

    n_rows: Annotated[int, Integer("", size="rows")]
    rows: Annotated[np.ndarray, Ids("", np.int32, below="rows")]
    indptr: Annotated[np.ndarray, Array("", np.int64, ("L+1",))]

    saved: ClassVar[Spec] = Spec(
        check=lambda known: check_csr(known.indptr, known.rows, known.n_rows, known.name)
    )

    @property
    def n_labels(self) -> int:
        return len(self.indptr) - 1

    def of(self, label: int) -> np.ndarray:
        """The rows of one label."""
        return self.rows[self.indptr[label] : self.indptr[label + 1]]

    @cached_property
    def by_row(self) -> tuple[np.ndarray, np.ndarray]:
        """(indptr int64 (n + 1), labels int32): the labels of each row."""
        labels = np.repeat(np.arange(self.n_labels, dtype=np.int32), np.diff(self.indptr))
        indptr = np.zeros(self.n_rows + 1, np.int64)
        np.cumsum(np.bincount(self.rows, minlength=self.n_rows), out=indptr[1:])
        return indptr, labels[np.argsort(self.rows, kind="stable")]

    def matrix(self) -> sp.csr_matrix:
        """CSR (n, L) of ones, float32."""
        indptr, labels = self.by_row
        return sp.csr_matrix((np.ones(len(labels), np.float32), labels, indptr), (self.n_rows, self.n_labels))


class _Rows:
    """The rows X of a training set; a copy builds its index anew."""

    X: Any
    arrays: tuple[np.ndarray, ...] = ()  # see `restored_rows`

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), (self.X,)

    def queries(self, X: Features) -> Any:
        """X as this index takes it; ValueError if it has another number of features."""
        check_width(X, self.X.shape[1])
        return dense(X) if isinstance(self.X, np.ndarray) else canonical_parts(X)


class DenseRows(_Rows):
    """Rows of a float32 matrix (n, d)."""

    def __init__(self, X: np.ndarray) -> None:
        self.X = np.ascontiguousarray(X, np.float32)
        self._faiss: dict[str, Any] = {}
        self._graph: HnswIndex | None = None
        self._saved: dict[str, Any] | None = None
        self._lock = RLock()  # folds that search at the same time build an index once

    @cached_property
    def _norms(self) -> tuple[np.ndarray, np.ndarray]:
        return _core.row_norms(self.X)

    @property
    def sq_norm(self) -> np.ndarray:
        """|y|^2 of each row, float32 (n,)."""
        return self._norms[0]

    @cached_property
    def max_sq_norm(self) -> float:
        """The largest |y|^2, 0 without rows."""
        return float(self._norms[0].max(initial=0.0))

    @cached_property
    def max_l1_norm(self) -> float:
        """The largest |y|_1, 0 without rows."""
        return float(self._norms[1].max(initial=0.0))

    @cached_property
    def _cosines_are_exact(self) -> bool:
        """Whether the length of each row that is not zero is had as exactly as FAISS has it."""
        sq_norm = self._norms[0]
        return bool(_is_exact(sq_norm[sq_norm > 0]).all())

    def label_neighbors(
        self, X: Features, candidates: Candidates, labels: LabelRows, asked: Asked, n_jobs: int
    ) -> np.ndarray:
        """Columns (C, m): metric by metric the order statistics, then the means, of the distances."""
        Q = self.queries(X)
        metrics, orders, means = asked
        k = max([*orders, *means])
        # With every label a candidate, the far ones among them have to be scanned whatever FAISS proposes.
        m = 0 if candidates.is_full else 32 * k
        proposed = [self._propose(Q, metric, m, n_jobs) for metric in metrics]
        return _core.label_neighbors_dense(
            points=self._points(labels if proposed[0][0].shape[1] else None),
            Q=Q,
            pairs=(candidates.indptr, candidates.labels, labels.indptr, labels.rows),
            columns=columns_in_core(*asked),
            proposals=(np.stack([ids for ids, _ in proposed]), np.stack([bounds for _, bounds in proposed])),
            n_threads=n_jobs,
        )

    def nearest(
        self, X: Features, rows: np.ndarray, k: int, metric: str, n_jobs: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """(ids int32, distances float32), both (n, k): nearest of `rows`, ties by number, padded by -1."""
        Q = self.queries(X)
        ids, bounds = self._propose(Q, metric, 2 * k, n_jobs)
        return _core.nearest_rows_dense(
            X=self.X,
            sq_norm=self.sq_norm,
            Q=Q,
            rows=np.ascontiguousarray(rows, np.int32),
            k=k,
            metric=METRICS[metric],
            proposals=ids,
            bounds=bounds,
            n_threads=n_jobs,
        )

    def _points(self, labels: LabelRows | None) -> tuple[Any, ...]:
        """The rows as the core takes them; their labels are not read unless FAISS proposed some."""
        no_labels = np.zeros(len(self.X) + 1, np.int64), np.empty(0, np.int32)
        by_row = no_labels if labels is None else labels.by_row
        return (self.X, self.sq_norm, self.max_sq_norm, self.max_l1_norm, *by_row)

    def planned_neighbors(self, labels: LabelRows, columns: _core.NeighborColumns) -> Any:
        """`label_neighbors`, as a source of a `metarank._core.Plan`."""
        return _core.PlanDenseNeighbors(self._points(None), labels.indptr, labels.rows, columns)

    def planned_votes(self, voters: np.ndarray, votes: _core.Votes, *options: Any) -> Any:
        """Votes of the `nearest` by L2 distance, as a source of a `metarank._core.Plan`."""
        return _core.PlanDenseVotes(self.X, self.sq_norm, voters, votes, *options)

    def nearest_proposed(
        self, X: Features, rows: np.ndarray, k: int, n_jobs: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """`nearest` by L2 distance among what the approximate index proposes.

        A query for which the index finds fewer than min(k, len(rows)) rows has all rows compared.
        """
        Q = self.queries(X)
        within = None
        if len(rows) < len(self.X):
            within = np.zeros(len(self.X), bool)
            within[rows] = True
        proposed = self.index().propose(Q, k, within, n_jobs)
        ids, distances = _core.nearest_proposed_dense(self.X, Q, proposed, k, n_jobs)
        short = np.flatnonzero((ids >= 0).sum(axis=1) < min(k, len(rows)))
        if len(short):
            ids[short], distances[short] = self.nearest(Q[short], rows, k, "l2", n_jobs)
        return ids, distances

    def index(self) -> HnswIndex:
        """The approximate index over all rows, built or restored when first asked for."""
        with self._lock:
            if self._graph is None:
                self._graph = HnswIndex(self.X, self._saved)
            return self._graph

    def restore_index(self, arrays: dict[str, Any]) -> None:
        """Have `index` take up what `HnswIndex.arrays` gave, instead of building."""
        if self._saved is None:
            self._saved = arrays

    def _propose(self, Q: np.ndarray, metric: str, m: int, n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
        """The m rows FAISS finds nearest (n, m), and for each query a lower bound of the key of all others.

        The bound allows for the rounding of both sides: a sum of d products of
        floats is off by at most about d units of its terms' magnitudes. For rows
        so long or short that this does not hold it is -inf: all rows are compared.
        """
        n, d = self.X.shape
        none = np.empty((len(Q), 0), np.int32), np.zeros(len(Q))
        if n < FAISS_MIN_ROWS or len(Q) < FAISS_MIN_QUERIES or not 0 < m < n:
            return none
        sq_norm, l1_norm = (norm.astype(np.float64) for norm in _core.row_norms(Q))
        if metric == "cosine":
            sums = np.where(sq_norm == 0, 1, sq_norm)
        else:
            sums = l1_norm + self.max_l1_norm if metric == "l1" else sq_norm + self.max_sq_norm
        outside = ~_is_exact(sums) | (metric == "cosine" and not self._cosines_are_exact)
        if outside.all():
            return none
        unit = 4 * (d + 32) * float(np.finfo(np.float32).eps)
        index = self._faiss_index(metric)
        if outside.any():  # FAISS would give numbers of no row
            Q = np.where(outside[:, None], np.float32(0), Q)
        with faiss_threads(n_jobs):
            far, ids = index.search(unit_rows(Q) if metric == "cosine" else Q, m)
        last = far[:, -1].astype(np.float64)
        bounds = 1.0 - last - unit if metric == "cosine" else last - unit * sums
        return np.ascontiguousarray(ids, np.int32), np.where(outside, -np.inf, bounds)

    def _faiss_index(self, metric: str) -> Any:
        if metric not in self._faiss:
            import faiss

            measure = {"l2": faiss.METRIC_L2, "l1": faiss.METRIC_L1, "cosine": faiss.METRIC_INNER_PRODUCT}
            index = faiss.IndexFlat(self.X.shape[1], measure[metric])
            index.add(unit_rows(self.X) if metric == "cosine" else self.X)
            self._faiss[metric] = index
        return self._faiss[metric]


class SparseRows(_Rows):
    """Rows of a canonical float32 CSR matrix (n, d), in an inverted index; X is never made dense."""

    def __init__(self, X: sp.csr_matrix) -> None:
        self.X = as_canonical(X)

    @cached_property
    def index(self) -> _core.InvertedIndex:
        """The postings by feature. A model that is loaded builds them when first asked."""
        return _core.InvertedIndex((*csr_parts(self.X), self.X.shape[1]))

    @property
    def max_sq_norm(self) -> float:
        """The largest |y|^2, 0 without rows."""
        return float(self.index.max_sq_norm)

    def label_neighbors(
        self, X: Features, candidates: Candidates, labels: LabelRows, asked: Asked, n_jobs: int
    ) -> np.ndarray:
        """Columns (C, m), as `DenseRows.label_neighbors`."""
        return _core.label_neighbors_sparse(
            self.index,
            self.queries(X),
            pairs=(candidates.indptr, candidates.labels, labels.indptr, labels.rows),
            columns=columns_in_core(*asked),
            n_threads=n_jobs,
        )

    def nearest(
        self, X: Features, rows: np.ndarray, k: int, metric: str, n_jobs: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """(ids int32, distances float32), both (n, k), as `DenseRows.nearest`."""
        rows = np.ascontiguousarray(rows, np.int32)
        return _core.nearest_rows_sparse(self.index, self.queries(X), rows, k, METRICS[metric], n_jobs)

    def planned_neighbors(self, labels: LabelRows, columns: _core.NeighborColumns) -> Any:
        """As of `DenseRows`."""
        return _core.PlanNeighbors(self.index, labels.indptr, labels.rows, columns)

    def planned_votes(self, voters: np.ndarray, votes: _core.Votes, *options: Any) -> Any:
        """Votes of the `nearest` by cosine, as a source of a `metarank._core.Plan`."""
        return _core.PlanVotes(self.index, voters, votes, *options)


@lru_cache(maxsize=64)
def columns_in_core(
    metrics: tuple[str, ...], orders: tuple[int, ...], means: tuple[int, ...]
) -> _core.NeighborColumns:
    """What is asked of the distances to a label's nearest rows, as the core takes it."""
    return _core.NeighborColumns(
        metrics=[METRICS[metric] for metric in metrics], orders=list(orders), means=list(means)
    )


TrainingRows = DenseRows | SparseRows

_restored: WeakValueDictionary[tuple[Any, ...], TrainingRows] = WeakValueDictionary()


def training_rows(X: Features) -> TrainingRows:
    """The index that suits the container: dense rows for an ndarray, an inverted index for CSR."""
    return SparseRows(X) if sp.issparse(X) else DenseRows(X)


def restored_rows(X: Features) -> TrainingRows:
    """`training_rows` of a saved model; its parts share one index, as long as any of them lives."""
    arrays = (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr)
    if any(array.flags.writeable for array in arrays):  # what may change is nobody else's
        return training_rows(X)
    key = (X.shape, *((a.ctypes.data, a.size) for a in arrays))
    rows = _restored.get(key)
    if rows is None:
        rows = _restored[key] = training_rows(X)
        rows.arrays = arrays  # keeps them where they are
    return rows


def shared_rows(view: TrainingView) -> TrainingRows:
    """The index of *all* rows of the training set, built once for all views of a fit."""
    return view.shared("training-rows", training_rows)


def view_labels(view: TrainingView) -> LabelRows:
    """The label lists of a TrainingView."""
    indptr, rows = view.rows_by_label
    return LabelRows(n_rows=view.all_X.shape[0], rows=rows, indptr=indptr)


def as_canonical(X: Features) -> sp.csr_matrix:
    """X as CSR with sorted, distinct columns."""
    if not isinstance(X, sp.csr_matrix):
        X = sp.csr_matrix(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def canonical_parts(X: Features) -> Parts:
    """`csr_parts` of X `as_canonical`."""
    return csr_parts(as_canonical(X))


def check_width(X: Features, n_features: int) -> None:
    """ValueError unless X has as many features as the training rows."""
    if X.ndim != 2 or X.shape[1] != n_features:
        raise ValueError(f"X must have {n_features} features, as the training rows have, got shape {X.shape}")


def check_lists(candidates: Candidates, n_rows: int, n_labels: int) -> None:
    """ValueError unless the candidates are lists of the model's labels, one for each row of X."""
    if not isinstance(candidates, Candidates):
        raise TypeError(f"candidates must be Candidates, got {type(candidates).__name__}")
    if candidates.n_rows != n_rows:
        raise ValueError(
            f"candidates must have one list per row of X, got {candidates.n_rows} for {n_rows} rows"
        )
    if candidates.n_labels != n_labels:
        raise ValueError(f"candidates must be of {n_labels} labels, got {candidates.n_labels}")


def _is_exact(sums: np.ndarray) -> np.ndarray:
    return (sums >= LEAST_SUM) & (sums <= MOST_SUM)
