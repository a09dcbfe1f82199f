"""`Candidates`: the (instance, label) pairs to be ranked, by instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank import _core
from metarank.types.ragged import entries_of_rows, extreme_of_rows, found_at, row_of_entries


@dataclass(frozen=True)
class Candidates:
    """Pairs (instance, label) in CSR order, with the scores of the sources that proposed them.

    Parameters
    ----------
    indptr : int64 array (n + 1,)
        Row i owns the pairs ``indptr[i]:indptr[i + 1]``.
    labels : int32 array (m,)
        Label ids, ascending and distinct within a row.
    n_labels : int
        Size L of the label set; every id is below it.
    scores : mapping of name to float32 array (m,)
        Evidence by source; the first key is the final score. May be empty.

    Raises
    ------
    ValueError
        If the arrays do not describe n rows of ascending, distinct ids in [0, L).

    Examples
    --------
    >>> c = Candidates.all_labels(2, 3)
    >>> c.labels
    array([0, 1, 2, 0, 1, 2], dtype=int32)
    >>> c.n_rows, c.n_pairs
    (2, 6)
    """

    indptr: np.ndarray
    labels: np.ndarray
    n_labels: int
    scores: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        indptr = np.ascontiguousarray(self.indptr, dtype=np.int64)
        labels = np.ascontiguousarray(self.labels, dtype=np.int32)
        if indptr.ndim != 1 or len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != len(labels):
            raise ValueError(
                "candidates.indptr must start at 0 and end at the number of pairs, "
                f"got {len(indptr)} entries for {len(labels)} pairs"
            )
        if np.any(np.diff(indptr) < 0):
            raise ValueError("candidates.indptr must not decrease")
        if len(labels):
            if labels.min() < 0 or labels.max() >= self.n_labels:
                raise ValueError(
                    f"candidates.labels must lie in [0, {self.n_labels}), "
                    f"got {labels.min()} to {labels.max()}"
                )
            row_starts = np.zeros(len(labels), bool)
            row_starts[indptr[:-1][indptr[:-1] < len(labels)]] = True
            if np.any((np.diff(labels) <= 0) & ~row_starts[1:]):
                raise ValueError("candidates.labels must be ascending and distinct within a row")
        scores = {k: np.ascontiguousarray(v, dtype=np.float32) for k, v in self.scores.items()}
        for name, values in scores.items():
            if values.shape != labels.shape:
                raise ValueError(
                    f"candidates.scores[{name!r}] must have shape {labels.shape}, got {values.shape}"
                )
        self.__dict__.update(indptr=indptr, labels=labels, scores=scores)

    @classmethod
    def of_core(
        cls, indptr: np.ndarray, labels: np.ndarray, n_labels: int, scores: dict[str, np.ndarray]
    ) -> Candidates:
        """Construct without checks, which cost more than the work itself for a single row."""
        out = object.__new__(cls)
        out.__dict__.update(indptr=indptr, labels=labels, n_labels=n_labels, scores=scores)
        return out

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_pairs(self) -> int:
        return len(self.labels)

    @property
    def row_of_pair(self) -> NDArray[np.int64]:
        """int64 array (m,): the row of each pair."""
        return row_of_entries(self.indptr)

    @property
    def pair_keys(self) -> NDArray[np.int64]:
        """int64 array (m,): a number for each pair, ascending; equal pairs of other `Candidates` have equal
        numbers."""
        return self.row_of_pair * np.int64(self.n_labels) + self.labels

    @property
    def final_score(self) -> NDArray[np.float32]:
        """float32 array (m,): the first of the scores; ValueError if there is none."""
        if not self.scores:
            raise ValueError("these candidates carry no scores; pass values")
        return next(iter(self.scores.values()))

    @property
    def is_full(self) -> bool:
        """Whether every row holds all L labels."""
        return self.n_pairs == self.n_rows * self.n_labels

    @classmethod
    def all_labels(cls, n_rows: int, n_labels: int) -> Candidates:
        """Every label for every row."""
        return cls.same_for_each(np.arange(n_labels, dtype=np.int32), n_rows, n_labels)

    @classmethod
    def same_for_each(cls, labels: np.ndarray, n_rows: int, n_labels: int) -> Candidates:
        """The same labels (ascending) for every row."""
        indptr = np.arange(n_rows + 1, dtype=np.int64) * len(labels)
        return cls(indptr, np.tile(labels, n_rows), n_labels)

    @classmethod
    def stack(cls, parts: Sequence[Candidates]) -> Candidates:
        """The rows of several `Candidates` (at least one) with the same labels and sources, concatenated."""
        counts = np.concatenate([np.diff(part.indptr) for part in parts])
        return cls(
            np.concatenate([[0], np.cumsum(counts)]),
            np.concatenate([part.labels for part in parts]),
            parts[0].n_labels,
            {name: np.concatenate([part.scores[name] for part in parts]) for name in parts[0].scores},
        )

    @classmethod
    def from_csr(cls, scores: sp.csr_matrix, name: str = "score") -> Candidates:
        """The stored entries of a CSR matrix (n, L), zeros included, with their values as scores."""
        s = sp.csr_matrix(scores)
        if not s.has_sorted_indices:
            s = s.sorted_indices()
        return cls(s.indptr, s.indices, s.shape[1], {name: s.data})

    def to_csr(self, values: np.ndarray | None = None) -> sp.csr_matrix:
        """CSR (n, L) of `values`, or of the final score. Pairs of value 0 are stored too."""
        values = self.final_score if values is None else np.asarray(values)
        shape = self.n_rows, self.n_labels
        return canonical_csr(values, self.labels, self.indptr, shape, values.dtype)

    def values_of(self, Y: sp.csr_matrix) -> NDArray[np.float32]:
        """The entry of a canonical CSR matrix (n, L) at each pair, float32 (m,); 0 if it is not stored."""
        at, is_stored = self.found_in(Candidates.of_core(Y.indptr, Y.indices, self.n_labels, {}))
        values = np.zeros(self.n_pairs, np.float32)
        values[is_stored] = Y.data[at[is_stored]]
        return values

    def found_in(self, others: Candidates) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The position of each pair in `others` (of the same n and L), int64 (m,), and whether it has one."""
        return found_at(others.pair_keys, self.pair_keys)

    def without(self, excluded: Candidates) -> Candidates:
        """The pairs that are not in `excluded` (of the same n and L), with their scores.

        Examples
        --------
        >>> own = Candidates(np.array([0, 1, 1]), np.array([2]), 3)
        >>> Candidates.all_labels(2, 3).without(own).labels
        array([0, 1, 0, 1, 2], dtype=int32)
        """
        return self.where(~self.among(excluded))

    def among(self, others: Candidates) -> NDArray[np.bool_]:
        """bool (m,): whether each pair is in `others` (of the same n and L)."""
        found: np.ndarray = np.isin(self.pair_keys, others.pair_keys)
        return found

    def without_labels(self, labels: np.ndarray | Sequence[int]) -> Candidates:
        """The pairs of other labels, with their scores."""
        if len(labels) == 0:
            return self
        kept = np.ones(self.n_labels, bool)
        kept[labels] = False
        return self.where(kept[self.labels])

    def where(self, kept: np.ndarray) -> Candidates:
        """The pairs for which `kept` (m,) is True, with their scores."""
        return self._picked(np.concatenate([[0], np.cumsum(kept)])[self.indptr], kept)

    def _picked(self, indptr: np.ndarray, pairs: np.ndarray) -> Candidates:
        """Some pairs (positions, or a mask), which are those of rows in the order of `indptr`."""
        scores = {name: values[pairs] for name, values in self.scores.items()}
        return Candidates.of_core(indptr, self.labels[pairs], self.n_labels, scores)

    def to_dense(self, values: np.ndarray) -> NDArray[np.float32]:
        """Values (m,) as float32 (n, L). Other labels get the row's lowest value minus 1."""
        values = values.astype(np.float32)
        if self.is_full:
            return values.reshape(self.n_rows, self.n_labels)
        below = extreme_of_rows(np.minimum, values, self.indptr, np.float32(1)) - 1
        out = np.repeat(below[:, None], self.n_labels, axis=1)
        out[self.row_of_pair, self.labels] = values
        return out

    def rows(self, index: np.ndarray | slice) -> Candidates:
        """The candidates of some rows, in the given order."""
        return self._picked(*entries_of_rows(self.indptr, np.arange(self.n_rows)[index]))

    def union(self, other: Candidates) -> Candidates:
        """The pairs of either. A score that one side lacks is the minimum of that source in the row, or 0."""
        self._check_agrees(other)
        keys = [self.pair_keys, other.pair_keys]
        merged = np.union1d(*keys)
        row = merged // self.n_labels
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=self.n_rows))])
        scores: dict[str, np.ndarray] = {}
        for part, key in zip((self, other), keys):
            at = np.searchsorted(merged, key)
            for name, values in part.scores.items():
                if name not in scores:
                    scores[name] = extreme_of_rows(np.minimum, values, part.indptr, np.float32(0))[row]
                scores[name][at] = values
        return Candidates(indptr, (merged % self.n_labels).astype(np.int32), self.n_labels, scores)

    @classmethod
    def united(cls, parts: Sequence[Candidates]) -> Candidates:
        """The union of several `Candidates` (at least one), without scores.

        Examples
        --------
        >>> a = Candidates(np.array([0, 1, 2]), np.array([1, 1]), 3)
        >>> b = Candidates(np.array([0, 2, 2]), np.array([0, 1]), 3)
        >>> both = Candidates.united([a, b])
        >>> both.indptr.tolist(), both.labels.tolist()
        ([0, 2, 3], [0, 1, 1])
        """
        first, *others = parts
        for other in others:
            first._check_agrees(other)
        if not others:
            return cls.of_core(first.indptr, first.labels, first.n_labels, {})
        indptr, labels = _core.unite_lists([(p.indptr, p.labels, np.zeros(0, np.float32)) for p in parts])
        return cls.of_core(indptr, labels, first.n_labels, {})

    def _check_agrees(self, other: Candidates) -> None:
        if (self.n_rows, self.n_labels) != (other.n_rows, other.n_labels):
            raise ValueError(
                f"candidates to unite must agree in rows and labels, got {(self.n_rows, self.n_labels)} "
                f"and {(other.n_rows, other.n_labels)}"
            )

    def transpose(self) -> Candidates:
        """The same pairs by label: for each of L labels, the instances of which it is a candidate, with
        scores.

        Examples
        --------
        >>> c = Candidates(np.array([0, 1, 3]), np.array([2, 0, 2]), 3, {"score": np.array([0.1, 0.2, 0.3])})
        >>> by_label = c.transpose()
        >>> by_label.indptr, by_label.labels, by_label.n_labels
        (array([0, 1, 1, 3]), array([1, 0, 1], dtype=int32), 2)
        >>> by_label.scores["score"]
        array([0.2, 0.1, 0.3], dtype=float32)
        """
        order = np.argsort(self.labels, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(self.labels, minlength=self.n_labels))])
        scores = {name: values[order] for name, values in self.scores.items()}
        return Candidates(indptr, self.row_of_pair[order], self.n_rows, scores)

    def recall(self, Y: sp.csr_matrix) -> float:
        """Share of the relevant pairs of `Y` (n, L) that are among the candidates; 1.0 if there are none."""
        Y = sp.csr_matrix(Y)
        if Y.shape != (self.n_rows, self.n_labels):
            raise ValueError(f"Y must have shape {(self.n_rows, self.n_labels)}, got {Y.shape}")
        relevant = Y > 0
        found = self.to_csr(np.ones(self.n_pairs, np.float32)).multiply(relevant)
        return float(found.sum() / relevant.nnz) if relevant.nnz else 1.0

    def top(self, k: int) -> Candidates:
        """The k best pairs of each row by the final score. Ties go to the smaller label id, NaN is last."""
        if k < 1:
            raise ValueError(f"k must be positive, got {k}")
        score = self.final_score
        if not np.isfinite(score).all():  # to the core -inf is no score: below all, and NaN below that
            score = np.nan_to_num(score.astype(np.float64), nan=-2e300, neginf=-1e300, posinf=np.inf)
        counts = np.diff(self.indptr)
        place = (np.arange(self.n_pairs) - np.repeat(self.indptr[:-1], counts)).astype(np.int32)
        best, _ = _core.top_k_listed(self.indptr, place, score, min(k, max(1, counts.max(initial=1))), 1)
        kept = np.sort((best + self.indptr[:-1, None])[best >= 0])
        return self._picked(np.concatenate([[0], np.cumsum(np.minimum(counts, k))]), kept)


def canonical_csr(
    data: Any, indices: Any, indptr: Any, shape: tuple[int, int], dtype: Any = np.float32
) -> sp.csr_matrix:
    """The CSR matrix of arrays that are canonical: sorted, without duplicates. Stored zeros stay.

    SciPy, which would look again, is not asked.
    """
    out = copy(_blank(*shape))
    ids = np.int32 if max(len(data), *shape) < 2**31 else np.int64  # SciPy's routines want one for both
    out.data = np.ascontiguousarray(data, dtype)
    out.indices, out.indptr = np.ascontiguousarray(indices, ids), np.ascontiguousarray(indptr, ids)
    return out


@lru_cache(maxsize=256)
def _blank(n_rows: int, n_columns: int) -> sp.csr_matrix:
    """A canonical matrix of this shape whose arrays are to be replaced: for SciPy to make one takes longer
    than all else that is done for a single row."""
    blank = sp.csr_matrix((n_rows, n_columns), dtype=np.float32)
    blank.has_canonical_format = True
    blank.indptr = blank.indices  # none of it is kept
    return blank


def stored_where(X: sp.csr_matrix, kept: np.ndarray) -> sp.csr_matrix:
    """The stored entries of a canonical float32 CSR matrix for which `kept` (nnz,) is True.

    Examples
    --------
    >>> X = sp.csr_matrix(np.float32([[1, 2], [0, 3]]))
    >>> stored_where(X, X.data > 1).toarray()
    array([[0., 2.],
           [0., 3.]], dtype=float32)
    """
    indptr = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
    return canonical_csr(X.data[kept], X.indices[kept], indptr, X.shape)
