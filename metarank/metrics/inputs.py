"""What every metric is computed from, brought into one form and derived once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank import _core
from metarank._util.parameters import POSITIVE, check_real
from metarank._util.threads import resolve_n_jobs
from metarank.metrics.label_order import in_one_order
from metarank.metrics.parents import as_parents
from metarank.types.label_relations import ancestors
from metarank.types.ranking import Listed, Ranking, n_labels_of, n_rows_of, score_rows


class Inputs:
    """Relevances with scores, decided sets and inverse propensities, all but the first optional.

    `scale` is the relevance that counts as 1 where the scores are judged as predictions of relevance; by
    default the greatest in `Y_true`.

    Its arrays with one entry a *relevant pair*, in the order of the CSR matrix `Y`, are what the
    ranking metrics are sums over:

    - `row`, `gain`: the row of the pair and its relevance;
    - `rank`: place of the label by descending score, from 1, ties to the smaller label id (in a
      `Ranking`: its place); inf if it is not listed;
    - `last`: number of labels with a score at least as great;
    - `not_below`: number of irrelevant labels with a score at least as great.

    Labels that are not listed (not stored by a sparse matrix, not in the `Ranking`, or with score
    -inf) are tied with each other below all that are.
    """

    def __init__(
        self,
        Y_true: Any,
        scores: Any = None,
        *,
        Y_pred: Any = None,
        inv_propensity: Any = None,
        scale: float | None = None,
        parents: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        Y_true, scores, told = in_one_order(
            Y_true, scores, {"Y_pred": Y_pred, "inv_propensity": inv_propensity}
        )
        Y_pred, inv_propensity = told["Y_pred"], told["inv_propensity"]
        self.Y = as_relevance(Y_true)
        self._by_label = False
        self.scale: float = as_scale(scale, self.Y)
        # CSR (L, L) of ones: the parents of each label, where there is a hierarchy.
        self.parents: sp.csr_matrix | None = None if parents is None else as_parents(parents, self.n_labels)
        self.n_jobs: int = resolve_n_jobs(n_jobs)
        self._ranking = scores if isinstance(scores, Ranking) else None
        self._rows = None if scores is None else score_rows(scores)
        self._sets = None if Y_pred is None else as_sets(Y_pred, self.shape)
        self._inv_propensity = None if inv_propensity is None else as_weights(inv_propensity, self.shape[1])
        if self._rows is not None:
            shape = (n_rows_of(self._rows), n_labels_of(self._rows))
            if shape != self.shape:
                by_label = shape == self.shape[::-1] and hasattr(scores, "transpose")
                hint = ": the points of each label? Pass scores.transpose()" if by_label else ""
                if isinstance(scores, Ranking) and scores.label_names is not None and shape[0] == self.n_rows:
                    hint = ": give the data set in place of its Y, whose labels are then matched by name"
                raise ValueError(f"scores must have the shape of Y_true, {self.shape}, got {shape}{hint}")

    @classmethod
    def oriented(cls, Y_true: Any, scores: Any, labelwise: bool, scale: float | None = None) -> Inputs:
        """Inputs whose rows are points or, `labelwise`, labels."""
        inputs = cls(Y_true, scores, scale=scale)
        return inputs.swapped if labelwise else inputs

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.Y.shape[0]), int(self.Y.shape[1])

    @property
    def n_rows(self) -> int:
        return int(self.Y.shape[0])

    @property
    def n_labels(self) -> int:
        return int(self.Y.shape[1])

    @property
    def scores(self) -> np.ndarray | Listed:
        if self._rows is None:
            raise ValueError(
                "scores must be given: a Ranking, Candidates, or an (n, L) array or sparse matrix"
            )
        return self._rows

    @property
    def listed_scores(self) -> np.ndarray:
        """The scores of all pairs (row, label) that are listed, without NaN."""
        rows = self.scores
        scores = rows.ravel() if isinstance(rows, np.ndarray) else rows.scores
        if np.any(np.isnan(scores)):
            raise ValueError("scores must not be NaN")
        return scores

    @property
    def sets(self) -> sp.csr_matrix:
        """The decisions, CSR (n, L) of ones."""
        if self._sets is None:
            raise ValueError("Y_pred must be given for a metric of label sets: an (n, L) matrix of 0 and 1")
        return self._sets

    @property
    def inv_propensity(self) -> np.ndarray:
        if self._inv_propensity is None:
            raise ValueError(
                "inv_propensity must be given for a propensity-scored metric: "
                "metarank.metrics.propensity.inv_propensity(Y_train)"
            )
        return self._inv_propensity

    @cached_property
    def ancestors(self) -> sp.csr_matrix:
        """CSR (L, L) of ones: the labels above each label."""
        if self.parents is None:
            raise ValueError(
                "parents must be given for a hierarchical metric: the table of labels, or a matrix (L, L)"
            )
        return ancestors(self.parents)

    def top_k(self, k: int) -> NDArray[np.int32]:
        """int32 (n, <= k): the labels at the first k ranks, padded with -1."""
        if self._ranking is not None:
            return self._ranking.labels[:, :k]
        rows = self.scores
        if isinstance(rows, np.ndarray):
            return _core.top_k_dense(rows, k, self.n_jobs)[0]
        return _core.top_k_listed(rows.indptr, rows.labels, rows.scores, k, self.n_jobs)[0]

    def largest_errors(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """float64 (n,), (n,): the sum of the k largest errors of each row over all its labels, as shares of
        `scale`, and the sum of their squares. An unlisted label is predicted 0."""
        if k not in self._largest_errors:
            total, squares = self._errors(_core.largest_errors_dense, _core.largest_errors_listed, k)
            self._largest_errors[k] = total / self.scale, squares / self.scale**2
        return self._largest_errors[k]

    def predicted_errors(self, k: int) -> NDArray[np.float64]:
        """float64 (n,): the sum of the errors at the first k ranks, as shares of `scale`."""
        return self._errors(_core.predicted_errors_dense, _core.predicted_errors_listed, k) / self.scale

    def _errors(self, of_dense: Callable[..., Any], of_listed: Callable[..., Any], k: int) -> Any:
        truth = self.Y.indptr.astype(np.int64), self.Y.indices.astype(np.int32, copy=False), self.gain
        rows = self._predictions
        if isinstance(rows, np.ndarray):
            return of_dense(*truth, rows, k, self.n_jobs)
        return of_listed(*truth, rows.indptr, rows.labels, rows.scores, k, self.n_jobs)

    @cached_property
    def _predictions(self) -> np.ndarray | Listed:
        """The scores, where they are finite; -inf for labels that are not listed."""
        rows = self.scores
        values = rows if isinstance(rows, np.ndarray) else rows.scores
        wrong = np.flatnonzero(~(np.isfinite(values) | np.isneginf(values)))
        if len(wrong):
            if isinstance(rows, np.ndarray):
                row, label = np.unravel_index(wrong[0], rows.shape)
            else:
                row, label = np.searchsorted(rows.indptr, wrong[0], side="right") - 1, rows.labels[wrong[0]]
            if self._by_label:
                row, label = label, row
            raise ValueError(
                "scores must be finite predictions of relevance, or -inf for a label that is not listed; "
                f"got {values.flat[wrong[0]]} at row {row}, label {label}"
            )
        return rows

    @cached_property
    def _largest_errors(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        return {}

    @cached_property
    def swapped(self) -> Inputs:
        """Labels as rows and rows as labels, without sets and propensities: what labelwise metrics judge."""
        out = object.__new__(Inputs)
        out.Y = self.Y.T.tocsr()
        out.Y.sort_indices()
        out.scale, out.n_jobs = self.scale, self.n_jobs
        out._by_label = not self._by_label
        out._rows = transpose(self.scores, self.n_rows)
        out._ranking = out._sets = out._inv_propensity = out.parents = None
        return out

    @cached_property
    def row(self) -> np.ndarray:
        return np.repeat(np.arange(self.n_rows), self.n_relevant)

    @cached_property
    def n_relevant(self) -> NDArray[np.int64]:
        """int64 (n,): number of relevant labels of each row."""
        return np.diff(self.Y.indptr).astype(np.int64)

    @property
    def gain(self) -> np.ndarray:
        return self.Y.data

    @cached_property
    def propensity_gain(self) -> np.ndarray:
        """Relevance times inverse propensity of each relevant pair."""
        return self.gain * self.inv_propensity[self.Y.indices]

    @cached_property
    def best_gain(self) -> np.ndarray:
        """The gains of each row in descending order: those of a perfect ranking."""
        return self._descending(self.gain)

    @cached_property
    def best_propensity_gain(self) -> np.ndarray:
        return self._descending(self.propensity_gain)

    @cached_property
    def best_rank(self) -> np.ndarray:
        """1, 2, ... within each row: the ranks of the relevant labels in a perfect ranking."""
        return np.arange(1.0, len(self.row) + 1) - self.Y.indptr[self.row]

    def _descending(self, gain: np.ndarray) -> np.ndarray:
        return _core.descending_rows(self.Y.indptr.astype(np.int64), gain)

    @cached_property
    def relevant_score(self) -> np.ndarray:
        """float64: the score of each relevant pair, -inf where it is not listed."""
        rows = self.scores
        if isinstance(rows, np.ndarray):
            return rows[self.row, self.Y.indices].astype(np.float64)
        out = np.full(len(self.row), -np.inf)
        listed, at = self.find(rows.indptr, rows.labels)
        out[listed] = rows.scores[at]
        return out

    def find(self, indptr: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """bool, one a relevant pair: which of them stand in these rows; and the places of those that do."""
        stored = np.repeat(np.arange(self.n_rows), np.diff(indptr)) * self.n_labels + labels
        order = np.argsort(stored, kind="stable")  # ascending already, but in a Ranking
        relevant = self.row * self.n_labels + self.Y.indices
        at = np.searchsorted(stored, relevant, sorter=order)
        found = at < len(stored)
        found[found] = stored[order[at[found]]] == relevant[found]
        return found, order[at[found]]

    @property
    def rank(self) -> np.ndarray:
        return self.standing[0]

    @property
    def last(self) -> np.ndarray:
        return self.standing[1]

    @property
    def not_below(self) -> np.ndarray:
        return self.standing[3]

    @cached_property
    def standing(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """`rank`, `last`, the number of irrelevant labels with a greater score, and `not_below`."""
        indptr, labels = self.Y.indptr.astype(np.int64), self.Y.indices.astype(np.int32, copy=False)
        rows = self.scores
        if isinstance(rows, np.ndarray):
            return _core.standing_dense(indptr, labels, rows, self.n_jobs)
        return _core.standing_listed(indptr, labels, *rows, self.n_jobs)

    def row_sum(self, values: np.ndarray) -> np.ndarray:
        """float64 (n,): sums of values of relevant pairs, in ascending order of label."""
        return np.bincount(self.row, values, minlength=self.n_rows)

    def row_max(self, values: np.ndarray) -> NDArray[np.float64]:
        """float64 (n,): greatest value of a relevant pair of each row, NaN where there is none."""
        out = np.full(self.n_rows, np.nan)
        filled = self.n_relevant > 0
        if filled.any():
            out[filled] = np.maximum.reduceat(values, self.Y.indptr[:-1][filled])
        return out

    def rows(self, index: np.ndarray) -> Inputs:
        """The inputs of some rows, repetitions allowed."""
        out = object.__new__(Inputs)
        out.Y = self.Y[index]
        out._by_label = self._by_label
        out.scale, out.n_jobs = self.scale, self.n_jobs
        out._ranking = None if self._ranking is None else self._ranking.rows(index)
        out._sets = None if self._sets is None else self._sets[index]
        out._inv_propensity = self._inv_propensity
        out.parents = self.parents
        rows = self._rows
        if isinstance(rows, Listed):
            some = sp.csr_matrix((rows.scores, rows.labels, rows.indptr), shape=self.shape)[index]
            out._rows = Listed(some.indptr.astype(np.int64), some.indices, some.data, rows.n_labels)
        else:
            out._rows = None if rows is None else rows[index]
        return out

    def relevant_among(self, labels: np.ndarray) -> Inputs:
        """The inputs of lists, with these labels alone relevant."""
        among = np.zeros(self.n_labels, bool)
        among[labels] = True
        out = object.__new__(Inputs)
        out.Y = self.Y.copy()
        out.Y.data[~among[out.Y.indices]] = 0
        out.Y.eliminate_zeros()
        out._by_label, out.scale, out.n_jobs = self._by_label, self.scale, self.n_jobs
        out._ranking, out._rows, out._inv_propensity = self._ranking, self._rows, self._inv_propensity
        out._sets = out.parents = None
        return out

    def columns(self, labels: np.ndarray) -> Inputs:
        """The inputs of the label sets of these labels."""
        out = object.__new__(Inputs)
        out.Y = self.Y[:, labels]
        out._by_label, out.scale, out.n_jobs = self._by_label, self.scale, self.n_jobs
        out._sets = None if self._sets is None else self._sets[:, labels]
        out._ranking = out._rows = out._inv_propensity = out.parents = None
        return out


def transpose(rows: np.ndarray | Listed, n_rows: int) -> np.ndarray | Listed:
    """The scores of each label, rows ascending."""
    if isinstance(rows, np.ndarray):
        return np.ascontiguousarray(rows.T)
    row = np.repeat(np.arange(n_rows, dtype=np.int32), np.diff(rows.indptr))
    order = np.argsort(rows.labels, kind="stable")
    counts = np.bincount(rows.labels, minlength=rows.n_labels)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Listed(indptr, row[order], rows.scores[order], n_rows)


def as_relevance(Y: Any, name: str = "Y_true") -> sp.csr_matrix:
    """Relevances as a canonical float64 CSR (n, L) of positive values; the argument is left as it is."""
    if not sp.issparse(Y):
        try:
            Y = np.asarray(Y)
        except ValueError:  # rows of unequal length
            raise ValueError(
                f"{name} must be an (n, L) matrix of numbers, got rows of unequal length; lists of labels "
                "become one by metarank.Dataset(Y=lists, label_names=names).Y"
            ) from None
        if Y.ndim != 2 or Y.dtype.kind not in "fiub":
            raise ValueError(
                f"{name} must be an (n, L) matrix of numbers, got shape {Y.shape}, dtype {Y.dtype}"
            )
    if Y.shape[1] == 0:
        raise ValueError(f"{name} must have at least one label, got shape {Y.shape}")
    csr = sp.csr_matrix(Y, dtype=np.float64, copy=True)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    if not np.all(np.isfinite(csr.data)) or np.any(csr.data < 0):
        worst = csr.data[~(np.isfinite(csr.data) & (csr.data >= 0))][0]
        raise ValueError(f"{name} must hold finite relevances >= 0, got {worst}")
    return csr


def as_sets(Y_pred: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    """Decisions as a canonical CSR (n, L) of ones."""
    sets = as_relevance(Y_pred, "Y_pred")
    if sets.shape != shape:
        raise ValueError(f"Y_pred must have the shape of Y_true, {shape}, got {sets.shape}")
    if np.any(sets.data != 1):
        raise ValueError(f"Y_pred must hold decisions 0 and 1, got {sets.data[sets.data != 1][0]}")
    return sets


def as_weights(inv_propensity: Any, n_labels: int) -> NDArray[np.float64]:
    """Inverse propensities as float64 (L,), finite and positive, or ValueError."""
    w = np.asarray(inv_propensity, dtype=np.float64)
    if w.shape != (n_labels,):
        raise ValueError(f"inv_propensity must have shape ({n_labels},), got {w.shape}")
    if not np.all(np.isfinite(w)) or np.any(w <= 0):
        raise ValueError("inv_propensity must be finite and positive")
    return w


def as_scale(scale: float | None, Y: sp.csr_matrix) -> float:
    """The relevance that counts as 1: `scale` if it is given, the greatest in Y, or 1 if there is none."""
    if scale is None:
        return float(Y.data.max()) if Y.nnz else 1.0
    check_real("scale", scale, *POSITIVE, "finite and positive")
    return float(scale)
