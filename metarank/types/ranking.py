"""`Ranking`: the k best labels of each instance, best first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank import _core
from metarank._util.printable import html_table
from metarank._util.threads import resolve_n_jobs
from metarank.types.candidates import Candidates
from metarank.types.label_table import LabelTable
from metarank.types.ragged import found_at, row_of_entries

# Rows and places that a notebook shows.
_SHOWN = 10


@dataclass(frozen=True, eq=False)
class Ranking:
    """Labels by instance, best first, with their scores.

    Parameters
    ----------
    labels : int32 array (n, k)
        Distinct label ids in [0, n_labels), best first. Rows with fewer than k labels are padded with -1.
    scores : float32 array (n, k)
        Non-increasing along a row, and > -inf for a label. The padding is set to -inf.
    n_labels : int
        Size L of the label set.
    label_names : sequence of str, optional
        The L names.
    without_evidence : bool array (n,), optional
        Rows about which the model knows nothing, such as texts without known words. Their labels are in order
        of frequency. None by default. `to_frame` has no such column.
    index : sequence (n,), optional
        Names of the rows: the index of the data frame or Series that was ranked, unless it counts from 0.
        `to_frame` uses it as `row`.
    label_ids : sequence of str, optional
        The L ids of labels from a table of labels, such as URIs.

    Raises
    ------
    ValueError
        If the arrays do not describe such lists.

    Examples
    --------
    >>> import numpy as np
    >>> r = Ranking.from_scores(np.array([[0.1, 0.9, 0.1], [3.0, 1.0, 2.0]]), k=2)
    >>> r.labels
    array([[1, 0],
           [0, 2]], dtype=int32)
    >>> [[label for label, score in row] for row in r]
    [[1, 0], [0, 2]]
    >>> r[1], r[:1].labels.tolist(), r.names.tolist()
    ([(0, 3.0), (2, 2.0)], [[1, 0]], [['1', '0'], ['0', '2']])
    """

    labels: np.ndarray
    scores: np.ndarray
    n_labels: int
    label_names: Sequence[str] | None = None
    without_evidence: np.ndarray = None  # type: ignore[assignment]
    index: Any = None
    label_ids: Sequence[str] | None = None

    def __post_init__(self) -> None:
        ids, scores = np.asarray(self.labels), np.asarray(self.scores, np.float32)
        if ids.ndim != 2 or not (np.issubdtype(ids.dtype, np.integer) or ids.size == 0):
            raise ValueError(f"ranking.labels must be (n, k) ids, got shape {ids.shape}, dtype {ids.dtype}")
        if ids.size and (ids.min() < -1 or ids.max() >= self.n_labels):
            raise ValueError(
                f"ranking.labels must lie in [0, {self.n_labels}), or be -1 for padding, "
                f"got {ids.min()} to {ids.max()}"
            )
        if scores.shape != ids.shape:
            raise ValueError(f"ranking.scores must have shape {ids.shape}, got {scores.shape}")
        labels = np.ascontiguousarray(ids, np.int32)
        if not _are_lists(labels):
            raise ValueError("ranking.labels must be distinct within a row, padded with -1 at the end")
        padding = labels < 0
        scores = np.where(padding, np.float32(-np.inf), scores)
        if np.any(np.isnan(scores) | (np.isneginf(scores) & ~padding)) or np.any(
            scores[:, :-1] < scores[:, 1:]
        ):
            raise ValueError("ranking.scores must not increase along a row, nor be NaN or -inf for a label")
        _check_names(self.label_names, self.n_labels)
        _check_names(self.label_ids, self.n_labels, "label_ids")
        flags = _flags(self.without_evidence, len(labels))
        index = _checked_index(self.index, len(labels))
        self.__dict__.update(labels=labels, scores=scores, without_evidence=flags, index=index)

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        k: int,
        *,
        values: np.ndarray | None = None,
        label_names: Sequence[str] | None = None,
        without_evidence: np.ndarray | None = None,
        label_ids: Sequence[str] | None = None,
        n_jobs: int | None = None,
    ) -> Ranking:
        """The k labels with the largest scores of each row. Ties go to the smaller label id.

        Parameters
        ----------
        scores : (n, L) array, (n, L) sparse matrix, `Candidates` or `Ranking`
            Scores, not ids: an integer array that looks like label ids is refused. A label that a sparse
            matrix does not store, or whose score is -inf, is never listed.
        k : int
            Length of the lists, at least 1; above L the lists are padded.
        values : float array (m,), optional
            Scores of the m pairs, when `scores` is a `Candidates`; its final score by default.
        label_names, without_evidence, label_ids : optional
            As of a Ranking.
        n_jobs : int, optional
            Threads; None for all cores.

        Raises
        ------
        ValueError
            If a score is NaN, k < 1, a shape is wrong, or the scores are label ids.
        """
        k = check_k(k)
        rows = score_rows(scores, values)
        n_labels = rows.n_labels
        labels, best = _core.top_k_listed(rows.indptr, rows.labels, rows.scores, k, resolve_n_jobs(n_jobs))
        _check_names(label_names, n_labels)
        _check_names(label_ids, n_labels, "label_ids")
        # Lists of the core have their form: for one row a second look costs more than the choice.
        out = object.__new__(cls)
        out.__dict__.update(labels=labels, scores=best, n_labels=n_labels, label_names=label_names)
        out.__dict__.update(without_evidence=_flags(without_evidence, len(labels)), label_ids=label_ids)
        return out

    @property
    def n_rows(self) -> int:
        return int(self.labels.shape[0])

    @property
    def k(self) -> int:
        return int(self.labels.shape[1])

    def __len__(self) -> int:
        return self.n_rows

    def __iter__(self) -> Iterator[list[tuple[int, float]]]:
        """Row by row, the (label id, score) pairs without the padding."""
        return (self[row] for row in range(self.n_rows))

    @overload
    def __getitem__(self, row: int) -> list[tuple[int, float]]: ...
    @overload
    def __getitem__(self, row: slice | Sequence[int] | np.ndarray) -> Ranking: ...
    def __getitem__(self, row: Any) -> list[tuple[int, float]] | Ranking:
        """Of a number the (label id, score) pairs of that row, without the padding, as iteration gives them;
        of a slice, a mask or several numbers the `Ranking` of those rows."""
        if isinstance(row, tuple):
            raise TypeError(f"a Ranking is indexed only by rows, got {row!r:.80}")
        if isinstance(row, Integral) and not isinstance(row, (bool, np.bool_)):
            listed = self.labels[row] >= 0
            return list(zip(self.labels[row][listed].tolist(), self.scores[row][listed].tolist()))
        return self.rows(np.asarray(row, np.int64) if isinstance(row, list) and not row else row)

    @property
    def names(self) -> NDArray[np.object_]:
        """Object array (n, k) of the labels' names, None for the padding.

        If several labels share a name, it is given with that of `label_ids`, or as "tree (id 7)". A label
        without a name is given as its id. Each access makes a new array.
        """
        return self._shown(self.label_table.shown)

    @property
    def label_table(self) -> LabelTable:
        """The labels by name and by id."""
        return LabelTable(self.n_labels, self.label_names, ids=self.label_ids)

    @property
    def ids(self) -> NDArray[np.object_]:
        """Object array (n, k): of each label that of `label_ids`, else its number; None for the padding."""
        known = self.label_ids
        return self._shown(int if known is None else known.__getitem__)

    def _shown(self, called: Callable[[int], Any]) -> NDArray[np.object_]:
        listed, place = np.unique(self.labels, return_inverse=True)
        shown = np.array([None if label < 0 else called(label) for label in listed.tolist()], object)
        return shown[place].reshape(self.labels.shape)

    @classmethod
    def concatenate(cls, parts: Sequence[Ranking]) -> Ranking:
        """The rows of several rankings with the same k and labels, concatenated.

        The `index` is kept if all of them have one.
        """
        if len(parts) == 1:
            return parts[0]
        labels, scores, flags = (
            np.concatenate([getattr(p, name) for p in parts])
            for name in ("labels", "scores", "without_evidence")
        )
        index: Any = None
        if all(p.index is not None for p in parts):
            one, *others = (p.index for p in parts)
            index = one.append(others) if hasattr(one, "append") else np.concatenate([one, *others])
        first = parts[0]
        return cls(labels, scores, first.n_labels, first.label_names, flags, index, first.label_ids)

    def top(self, k: int) -> Ranking:
        """The first k columns; all of them if there are fewer."""
        k = check_k(k)
        return replace(self, labels=self.labels[:, :k], scores=self.scores[:, :k])

    def rows(self, index: np.ndarray | slice) -> Ranking:
        """The lists of some rows, in the given order."""
        chosen = {name: getattr(self, name)[index] for name in ("labels", "scores", "without_evidence")}
        return replace(self, **chosen, index=None if self.index is None else self.index[index])

    def to_csr(self) -> sp.csr_matrix:
        """float32 CSR (n, L) of the scores; a listed label is stored even if its score is 0."""
        return score_rows(self).csr.sorted_indices()

    def to_frame(self) -> Any:
        """One record per listed label: row, rank (from 1), label, label_name and label_id (if names and ids
        are known), score.

        `row` is the entry of `index`, or else the number of the row.

        Returns
        -------
        pandas.DataFrame, or a dict of the columns as arrays if pandas is not installed.
        """
        row, rank, label, score = self._listed()
        called: Any = row if self.index is None else self.index[row]
        if getattr(called, "nlevels", 1) > 1:  # a column of tuples
            called = called.to_numpy()
        names = self.label_names
        named = {} if names is None else {"label_name": np.asarray(names, dtype=object)[label]}
        if self.label_ids is not None:
            named["label_id"] = np.asarray(self.label_ids, dtype=object)[label]
        return _frame_of({"row": called, "rank": rank, "label": label} | named | {"score": score})

    def _listed(self) -> tuple[np.ndarray, ...]:
        """Row, place from 1, label and score of all that is listed, row by row."""
        row, column = np.nonzero(self.labels >= 0)
        return row, column + 1, self.labels[row, column], self.scores[row, column]

    def _repr_html_(self) -> str:
        """For notebooks: the first rows, a column a rank."""
        first = self.rows(slice(_SHOWN)).top(_SHOWN)
        called = range(first.n_rows) if first.index is None else list(first.index)
        rows = [
            [row, *(f"{name}  {score:.3f}" for name, score in zip(names, scores) if name is not None)]
            for row, names, scores in zip(called, first.names, first.scores)
        ]
        width = max((len(row) for row in rows), default=1)
        rows = [row + [""] * (width - len(row)) for row in rows]
        more = f"{self.n_rows:,} rows, {self.k:,} of {self.n_labels:,} labels each"
        guessed = ", ".join(str(row) for row, blank in zip(called, first.without_evidence) if blank)
        if guessed:
            more += f"; without evidence: rows {guessed}, whose labels are in order of frequency"
        return html_table(["row", *range(1, width)], rows, more)


class PointRanking(Ranking):
    """The k best rows of each label: labels and rows change places.

    ``labels[l]`` holds the numbers of the rows of label l, ``n_labels`` is the number of rows, and `index`
    has the names of the labels, where known.
    """

    def to_frame(self) -> Any:
        """One record per listed row: label, label_name (if names are known), rank (from 1), row, score.

        Returns
        -------
        pandas.DataFrame, or a dict of the columns as arrays if pandas is not installed.
        """
        label, rank, row, score = self._listed()
        named = {} if self.index is None else {"label_name": np.asarray(self.index, dtype=object)[label]}
        return _frame_of({"label": label} | named | {"rank": rank, "row": row, "score": score})


class Listed(NamedTuple):
    """Scores of some labels of each row: row i owns the entries ``indptr[i]:indptr[i + 1]``."""

    indptr: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    n_labels: int

    @property
    def shape(self) -> tuple[int, int]:
        """(n, L)"""
        return len(self.indptr) - 1, self.n_labels

    @property
    def csr(self) -> sp.csr_matrix:
        """The scores as CSR (n, L), in their order."""
        return sp.csr_matrix((self.scores, self.labels, self.indptr), shape=self.shape)

    def of_pairs(self, keys: np.ndarray) -> NDArray[np.float64]:
        """float64 (m,): the scores of pairs by their numbers (row * L + label); -inf where not listed."""
        own = row_of_entries(self.indptr) * self.n_labels + self.labels
        order = np.argsort(own, kind="stable")  # ascending already, but in a Ranking
        at, is_listed = found_at(own[order], keys)
        out = np.full(len(keys), -np.inf)
        out[is_listed] = self.scores[order[at[is_listed]]]
        return out

    @classmethod
    def of_csr(cls, matrix: sp.csr_matrix) -> Listed:
        """The stored entries of a CSR matrix."""
        indptr, labels = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)
        return cls(indptr, labels, matrix.data, int(matrix.shape[1]))


def score_rows(scores: Any, values: np.ndarray | None = None) -> Listed:
    """Scores in any container as `Listed`, float32 or float64; of an array all labels are listed.

    The entries of a row are in ascending order of label, or, for a `Ranking`, in its own order. An array of
    integers that are label ids by all appearance, see `_look_like_ids`, is refused.
    """
    if values is not None and not isinstance(scores, Candidates):
        raise ValueError(f"values need Candidates, got scores of type {type(scores).__name__}")
    if isinstance(scores, Ranking):
        listed = scores.labels >= 0
        indptr = np.concatenate([[0], np.cumsum(listed.sum(axis=1))]).astype(np.int64)
        return Listed(indptr, scores.labels[listed], scores.scores[listed], scores.n_labels)
    if isinstance(scores, Candidates):
        values = _as_float(scores.final_score if values is None else values, "values")
        if values.shape != scores.labels.shape:
            raise ValueError(f"values must have shape {scores.labels.shape}, got {values.shape}")
        return Listed(scores.indptr, scores.labels, values, scores.n_labels)
    if sp.issparse(scores):
        csr = sp.csr_matrix(scores)
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        return Listed.of_csr(csr)._replace(scores=_as_float(csr.data, "scores"))
    dense = _as_float(scores, "scores")
    if dense.ndim != 2:
        raise ValueError(f"scores must be (n, L), got shape {dense.shape}")
    if np.asarray(scores).dtype.kind in "iu" and _look_like_ids(dense):
        raise ValueError(
            f"scores must not be label ids, and each row of these integers holds distinct ids below "
            f"{dense.shape[1]}: pass the Ranking itself, or if they are scores, as floats"
        )
    n, n_labels = dense.shape
    indptr = np.arange(n + 1, dtype=np.int64) * n_labels
    return Listed(indptr, np.tile(np.arange(n_labels, dtype=np.int32), n), dense.ravel(), n_labels)


def _look_like_ids(values: np.ndarray) -> bool:
    """Whether integers (n, L) are what `Ranking.labels` would hold: in every row distinct ids below L, any
    padding of -1 at its end, and in some row an id. Two labels are too few to tell them from decisions."""
    n_labels = values.shape[1]
    if n_labels < 3 or values.size == 0 or not np.any(values >= 0):
        return False
    within = values.min() >= -1 and values.max() < n_labels
    return bool(within) and _are_lists(values)


def _are_lists(ids: np.ndarray) -> bool:
    """Whether in each row (n, k) no number from 0 on is twice, and negative ones are at the end."""
    ordered = np.sort(ids, axis=1)
    twice = (ordered[:, :-1] == ordered[:, 1:]) & (ordered[:, 1:] >= 0)
    return not np.any(twice | ((ids[:, :-1] < 0) & (ids[:, 1:] >= 0)))


def _flags(flags: np.ndarray | None, n_rows: int) -> np.ndarray:
    """bool (n,), False where none are given."""
    if flags is None:
        return np.zeros(n_rows, bool)
    out = np.asarray(flags)
    if out.dtype != bool or out.shape != (n_rows,):
        raise ValueError(f"without_evidence must be bool ({n_rows},), got {out.dtype} {out.shape}")
    return out


def row_index(X: Any) -> Any:
    """The index of a data frame or Series; None of anything else, and where it counts the rows from 0."""
    if not hasattr(X, "iloc"):
        return None
    index = X.index
    counts = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    return None if counts else index


def _checked_index(index: Any, n_rows: int) -> Any:
    if index is None:
        return None
    if not (hasattr(index, "to_numpy") or isinstance(index, np.ndarray)):
        items = list(index)
        index = np.empty(len(items), object)
        index[:] = items
    if len(index) != n_rows:
        raise ValueError(f"index must have {n_rows} entries, got {len(index)}")
    return index


def _check_names(names: Sequence[str] | None, n_labels: int, parameter: str = "label_names") -> None:
    if names is not None and len(names) != n_labels:
        raise ValueError(f"{parameter} must hold {n_labels} texts, got {len(names)}")


def check_k(k: int) -> int:
    """The length of a list, as an int."""
    if isinstance(k, bool) or not isinstance(k, Integral):
        raise TypeError(f"k must be a positive integer, got {k!r}")
    if k < 1:
        raise ValueError(f"k must be a positive integer, got {k!r}")
    return int(k)


def _as_float(values: Any, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got dtype {array.dtype}")
    return np.ascontiguousarray(array, np.float32 if array.dtype in (np.float16, np.float32) else np.float64)


def _frame_of(columns: dict[str, Any]) -> Any:
    """A pandas.DataFrame of columns by name, or the dict itself where pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        return columns
    return pd.DataFrame(columns)
