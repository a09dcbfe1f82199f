"""What every metric is computed from, brought into one form and derived once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank import _core
from metarank._util.parameters import POSITIVE, check_real
from metarank._util.threads import resolve_n_jobs
from metarank.metrics.relevance import Relevance, in_order, named_sets
from metarank.types.candidates import Candidates
from metarank.types.checks import check_same_order
from metarank.types.containers import table_columns
from metarank.types.label_descriptions import LabelDescriptions, ancestors
from metarank.types.ragged import extreme_of_rows, row_of_entries
from metarank.types.ranking import Listed, Ranking, score_rows

# What a user gave, beside the relevances.
_GIVEN = ("scale", "n_jobs", "parents", "n_known", "_ranking", "_rows", "_sets", "_inv_propensity")


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

    `Y_true` may be `Relevance`, or a `Dataset`, whose labels are then matched by name with those of a
    `Ranking`. The labels behind the first `n_known` are unknown to what is judged: they are not listed, in no
    set, have no parents and the greatest inverse propensity.
    """

    def __init__(
        self,
        Y_true: Any,
        scores: Any = None,
        Y_pred: Any = None,
        inv_propensity: Any = None,
        scale: float | None = None,
        parents: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        check_same_order(Y_true=Y_true, scores=scores, Y_pred=Y_pred)
        known = scores.label_table if isinstance(scores, Ranking) else None
        order = (known and known.names) or [name for name, _ in table_columns(Y_true) or ()]
        scores, Y_pred = in_order(scores, order), in_order(Y_pred, order)
        Y_pred, known = named_sets(Y_pred, Y_true, known)
        of_labels = Relevance.of(Y_true, known)
        self.Y = as_relevance(of_labels.Y)
        self.n_known: int = self.n_labels - len(of_labels.unknown)
        if scale is not None:
            check_real("scale", scale, *POSITIVE, "finite and positive")
        self.scale: float = float(self.Y.data.max(initial=0.0) if scale is None else scale) or 1.0
        # CSR (L, L) of ones: the parents of each label, where there is a hierarchy.
        self.parents: sp.csr_matrix | None = None if parents is None else as_parents(parents, self.n_known)
        self.n_jobs: int = resolve_n_jobs(n_jobs)
        self._ranking = scores if isinstance(scores, Ranking) else None
        self._rows = None if scores is None else score_rows(scores)
        shape = self.n_rows, self.n_known
        self._sets = None if Y_pred is None else as_sets(Y_pred, shape)
        self._inv_propensity = None
        if inv_propensity is not None:
            self._inv_propensity = as_weights(self.of_all_labels(inv_propensity), self.n_labels)
        if self._rows is not None and self._rows.shape != shape:
            got = self._rows.shape
            by_label = got == shape[::-1] and hasattr(scores, "transpose")
            hint = ": the points of each label? Pass scores.transpose()" if by_label else ""
            if isinstance(scores, Ranking) and scores.label_names is not None and got[0] == self.n_rows:
                hint = ": give the data set in place of its Y, whose labels are then matched by name"
            raise ValueError(f"scores must have the shape of Y_true, {shape}, got {got}{hint}")
        if self.n_known < self.n_labels:
            if self._rows is not None:
                self._rows = self._rows._replace(n_labels=self.n_labels)
            self._sets = _resized(self._sets, self.shape)
            self.parents = _resized(self.parents, (self.n_labels, self.n_labels))

    def of_all_labels(self, values: Any, unseen: float | None = None) -> Any:
        """An array of the labels; if it is of the known ones alone, the others have the greatest value, at
        least 1, or `unseen`."""
        values = np.asarray(values)
        if values.shape != (self.n_known,) or self.n_known == self.n_labels:
            return values
        rest = values.max(initial=1.0) if unseen is None else unseen
        return np.append(values, np.full(self.n_labels - self.n_known, rest, values.dtype))

    def _with(self, Y: sp.csr_matrix, **changed: Any) -> Inputs:
        """The inputs of other pairs: what is not named in `changed` stays as it is."""
        out = object.__new__(Inputs)
        kept = {name: vars(self)[name] for name in _GIVEN}
        out.__dict__.update(kept | changed, Y=Y)
        return out

    def with_scores(self, scores: Listed) -> Inputs:
        """These with other scores, of the same labels."""
        return self._with(self.Y, _rows=scores, _ranking=None)

    def judged_among(self, pairs: Candidates) -> Inputs:
        """These with label sets of these pairs alone."""
        known = pairs.to_csr(np.ones(pairs.n_pairs, np.float32))
        return self._with(
            self.Y, _sets=None if self._sets is None else sp.csr_matrix(self._sets.multiply(known))
        )

    @property
    def has_scores(self) -> bool:
        return self._rows is not None

    @property
    def is_ranking(self) -> bool:
        return self._ranking is not None

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
    def scores(self) -> Listed:
        if self._rows is None:
            raise ValueError(
                "scores must be given: a Ranking, Candidates, or an (n, L) array or sparse matrix"
            )
        return self._rows

    @property
    def listed_scores(self) -> np.ndarray:
        """The scores of all pairs (row, label) that are listed, without NaN."""
        scores = self.scores.scores
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
        return _core.top_k_listed(rows.indptr, rows.labels, rows.scores, k, self.n_jobs)[0]

    def largest_errors(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """float64 (n,), (n,): the sum of the k largest errors of each row over all its labels, as shares of
        `scale`, and the sum of their squares. An unlisted label is predicted 0."""
        errors = self._errors
        row, values = row_of_entries(errors.indptr), errors.data
        if np.diff(errors.indptr).max(initial=0) > k:
            counted = np.arange(len(row)) - errors.indptr[row] < k
            row, values = row[counted], self._descending_errors[counted]
        total, squares = (np.bincount(row, v, self.n_rows) for v in (values, values**2))
        return total / self.scale, squares / self.scale**2

    def predicted_errors(self, k: int) -> NDArray[np.float64]:
        """float64 (n,): the sum of the errors at the first k ranks, as shares of `scale`."""
        labels = self.top_k(k)
        row, place = np.nonzero(labels >= 0)
        if not len(row):
            return np.zeros(self.n_rows)
        errors = np.asarray(self._errors[row, labels[row, place]]).ravel()
        return np.bincount(row, errors, self.n_rows) / self.scale

    @cached_property
    def _errors(self) -> sp.csr_matrix:
        """float64 CSR (n, L): the errors of all labels, those that are 0 left out."""
        rows = self.scores
        predicted = np.where(np.isneginf(rows.scores), 0, rows.scores).astype(np.float64)
        if not np.isfinite(predicted).all():
            raise ValueError(
                "scores must be finite, or -inf for labels that are not listed, got "
                f"{predicted[~np.isfinite(predicted)][0]}"
            )
        return abs(rows._replace(scores=predicted).csr.sorted_indices() - self.Y)

    @cached_property
    def _descending_errors(self) -> np.ndarray:
        """The errors of each row, the largest first: in one order, whatever the container."""
        return self._descending(self._errors.data, self._errors)

    @cached_property
    def swapped(self) -> Inputs:
        """Labels as rows and rows as labels, without sets and propensities: what labelwise metrics judge."""
        Y = self.Y.T.tocsr()
        Y.sort_indices()
        rows = Listed.of_csr(self.scores.csr.T.tocsr())
        return self._with(Y, _rows=rows, _ranking=None, _sets=None, _inv_propensity=None, parents=None)

    @cached_property
    def row(self) -> np.ndarray:
        return row_of_entries(self.Y.indptr)

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

    def _descending(self, values: np.ndarray, rows: sp.csr_matrix | None = None) -> np.ndarray:
        indptr = (self.Y if rows is None else rows).indptr
        return _core.descending_rows(indptr.astype(np.int64), values)

    @cached_property
    def relevant_score(self) -> np.ndarray:
        """float64: the score of each relevant pair, -inf where it is not listed."""
        return self.scores.of_pairs(self.row * self.n_labels + self.Y.indices)

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
        return _core.standing_listed(indptr, labels, *self.scores, self.n_jobs)

    def row_sum(self, values: np.ndarray) -> np.ndarray:
        """float64 (n,): sums of values of relevant pairs, in ascending order of label."""
        return np.bincount(self.row, values, minlength=self.n_rows)

    def row_max(self, values: np.ndarray) -> NDArray[np.float64]:
        """float64 (n,): greatest value of a relevant pair of each row, NaN where there is none."""
        return extreme_of_rows(np.maximum, values, self.Y.indptr, np.nan)

    def rows(self, index: np.ndarray) -> Inputs:
        """The inputs of some rows, repetitions allowed."""
        return self._with(
            self.Y[index],
            _rows=None if self._rows is None else Listed.of_csr(self._rows.csr[index]),
            _ranking=None if self._ranking is None else self._ranking.rows(index),
            _sets=None if self._sets is None else self._sets[index],
        )

    def relevant_among(self, labels: np.ndarray) -> Inputs:
        """The inputs of lists, with these labels alone relevant."""
        Y = self.Y.copy()
        Y.data[~np.isin(Y.indices, labels)] = 0
        Y.eliminate_zeros()
        return self._with(Y, _sets=None, parents=None)

    def columns(self, labels: np.ndarray) -> Inputs:
        """The inputs of the label sets of these labels."""
        sets = None if self._sets is None else self._sets[:, labels]
        return self._with(
            self.Y[:, labels], _sets=sets, _ranking=None, _rows=None, _inv_propensity=None, parents=None
        )


def _resized(matrix: sp.csr_matrix | None, shape: tuple[int, int]) -> sp.csr_matrix | None:
    """A copy of another shape."""
    if matrix is None:
        return None
    out = matrix.copy()
    out.resize(shape)
    return out


def as_relevance(Y: Any, name: str = "Y_true") -> sp.csr_matrix:
    """Relevances as a canonical float64 CSR (n, L) of positive values; the argument is left as it is."""
    if not sp.issparse(Y):
        try:
            Y = np.asarray(Y)
        except ValueError:  # rows of unequal length
            raise ValueError(
                f"{name} must be an (n, L) matrix of numbers, or metarank.Dataset(Y=lists of labels), "
                "got rows of unequal length"
            ) from None
        if Y.ndim != 2 or Y.dtype.kind not in "fiub":
            raise ValueError(
                f"{name} must be an (n, L) matrix of numbers, or metarank.Dataset(Y=lists of labels), "
                f"got shape {Y.shape}, dtype {Y.dtype}"
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
    if not np.all(np.isfinite(w) & (w > 0)):
        raise ValueError("inv_propensity must be finite and positive")
    return w


def as_parents(parents: Any, n_labels: int) -> sp.csr_matrix:
    """The parents of each label as CSR (L, L) of ones.

    Parameters
    ----------
    parents : LabelDescriptions; (L, L) array or sparse matrix; or sequence (L) of sequences of label ids
        Row l of a matrix is nonzero at the parents of label l.
    n_labels : int
        L.

    Raises
    ------
    ValueError, TypeError
        If there are parents of another number of labels, an id is out of range, or there is a cycle.
    """
    if isinstance(parents, LabelDescriptions):
        table = parents
    else:
        lists = sp.csr_matrix(parents) if isinstance(parents, np.ndarray) else parents
        table = LabelDescriptions(ids=range(n_labels), parents=lists)
    if len(table) != n_labels:
        raise ValueError(f"parents must be of {n_labels} labels, got {len(table)}")
    return sp.csr_matrix((n_labels, n_labels)) if table.parents is None else table.parents
