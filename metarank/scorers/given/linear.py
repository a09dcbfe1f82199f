"""`GivenLinear`: rows described by the candidates that others propose for them, and linear classifiers of
these rows."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank._util.elementary import log, log2
from metarank._util.parameters import with_parameters
from metarank.persist.fields import Array, Declared, Ids, Object, Params
from metarank.persist.spec import Spec
from metarank.scorers.base import HeldOutProposals
from metarank.scorers.given.lists import places
from metarank.scorers.linear.one_vs_all import OneVsAll
from metarank.scorers.neighbors.training_rows import check_lists
from metarank.types.candidates import Candidates
from metarank.types.given import Given
from metarank.types.ragged import found_at, row_of_entries
from metarank.types.view import TrainingSet, TrainingView

# The best candidates of each source that describe a row; the rest says little, and costs much.
_BEST = 100
_COLUMN = "all sources: linear score"


@with_parameters
class GivenLinear(HeldOutProposals):
    """Linear scores of labels by all that others propose for the row: labels that are right where these are
    proposed, though they need not be candidates.

    A row's features are its 100 best candidates of each source, one feature a source and label, with the
    value ``(1 + log((n + 1) / (df + 1))) / log2(r + 2)`` at place r, for df of the n training rows with the
    candidate, and unit length for each source. Column ``all sources: linear score``: the score of
    ``OneVsAll(loss="ridge", relevance="binary", C=1.0)``, 0 of labels without a row.

    Parameters
    ----------
    given : sequence of str
        The names of the sources.

    Examples
    --------
    >>> from metarank.types.view import TrainingSet
    >>> S = sp.csr_matrix(np.float32([[0.9, 0, 0], [0.8, 0, 0], [0, 0.7, 0], [0, 0.9, 0]]))
    >>> Y = sp.csr_matrix(np.float32([[1, 0, 1], [1, 0, 1], [0, 1, 0], [0, 1, 0]]))
    >>> given = Given(4, 3, {"bm25": S})
    >>> data = TrainingSet(np.zeros((4, 0), np.float32), Y, np.zeros(4), given=given)
    >>> GivenLinear(given=["bm25"]).fit(data.view()).shortlist(given[:1], 2).labels
    array([0, 2], dtype=int32)
    """

    given: Sequence[str] = ()

    reads_given = True

    saved: ClassVar[Spec] = Spec(
        Params(of=lambda scorer: {"given": list(scorer.given)}),
        Declared("n_labels_", size="L"),
        Ids("labels_", np.int32, ("known",), below="L", ascending=True),
        Ids("features_", np.int64, ("features",), ascending=True),
        Array("idf_", np.float32, ("features",), least=0),
        Object("linear_", OneVsAll, {"d": "features", "L": "known"}),
    )

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> GivenLinear:
        """Learn from the rows of the TrainingView and their candidates. Returns self."""
        rows = self._see(view.shared(self._key, lambda X: _Rows.of(view.all_given, self.given)), view.Y)
        data = TrainingSet(rows.X[view.rows], view.Y[:, self.labels_], view.fold, seed=view.seed)
        self.linear_: OneVsAll = _linear().fit(data.view(), n_jobs=n_jobs)
        return self

    def _see(self, rows: _Rows, Y: sp.csr_matrix) -> _Rows:
        """Keep what does not depend on relevance, and which labels have rows."""
        self.n_labels_: int = Y.shape[1]
        self.features_: NDArray[np.int64] = rows.features
        self.idf_: NDArray[np.float32] = rows.idf
        self.labels_: NDArray[np.int32] = (
            np.unique(Y.indices).astype(np.int32) if Y.nnz else np.zeros(1, np.int32)
        )
        return rows

    def score(self, X: Given, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """The column, float32 (m,). X is what is given of the rows."""
        check_lists(candidates, X.n_rows, self.n_labels_)
        known, of_known = self._known(candidates)
        rows = _features(X, self.given, self.features_, self.idf_)
        return self._column(known, self.linear_.score(rows, of_known, n_jobs=n_jobs))

    def shortlist(self, X: Given, k: int, *, n_jobs: int = 1) -> Candidates:
        """The k labels of largest score."""
        rows = _features(X, self.given, self.features_, self.idf_)
        return self._named(self.linear_.shortlist(rows, k, n_jobs=n_jobs))

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray] | None:
        """The column of training rows, equal to that of fits without the row's fold, before small weights are
        pruned."""
        out, inside = self._for_training_rows(data)
        known, of_known = out._known(candidates)
        columns = _linear().score_held_out(inside, of_known, rows=rows, n_jobs=n_jobs)
        return None if columns is None else out._column(known, columns)

    def shortlist_held_out(
        self, data: TrainingSet, k: int, *, rows: np.ndarray, n_jobs: int = 1
    ) -> Candidates | None:
        """The proposals for training rows; see `score_held_out`."""
        out, inside = self._for_training_rows(data)
        listed = _linear().shortlist_held_out(inside, k, rows=rows, n_jobs=n_jobs)
        return None if listed is None else out._named(listed)

    def _for_training_rows(self, data: TrainingSet) -> tuple[GivenLinear, TrainingSet]:
        """A copy that knows the labels of all rows, and these rows with the features and labels it reads."""
        out = copy(self)
        given = data.read_by(self)
        seen = out._see(data.shared(self._key, lambda X: _Rows.of(given, self.given)), data.Y)

        def inside(X: object) -> TrainingSet:
            hidden = None if data.hidden_in is None else data.hidden_in[out.labels_]
            Y = sp.csr_matrix(data.Y[:, out.labels_])
            return TrainingSet(seen.X, Y, data.fold, seed=data.seed, hidden_in=hidden)

        # Proposing and describing share the products that it keeps.
        return out, data.shared(f"held-out {self._key}", inside)

    @property
    def _key(self) -> str:
        return f"rows by {', '.join(self.given)}"

    def _known(self, candidates: Candidates) -> tuple[np.ndarray, Candidates]:
        """Which pairs are of labels with rows, bool (m,), and these pairs."""
        known = np.isin(candidates.labels, self.labels_)
        of_known = candidates.where(known)
        labels = np.searchsorted(self.labels_, of_known.labels).astype(np.int32)
        return known, Candidates.of_core(of_known.indptr, labels, len(self.labels_), {})

    def _column(self, known: np.ndarray, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        column = np.zeros(len(known), np.float32)
        column[known] = columns[_linear().column]
        return {_COLUMN: column}

    def _named(self, candidates: Candidates) -> Candidates:
        scores = {_COLUMN: candidates.final_score}
        return Candidates.of_core(candidates.indptr, self.labels_[candidates.labels], self.n_labels_, scores)


def _linear() -> OneVsAll:
    return OneVsAll(loss="ridge", relevance="binary", C=1.0)


@dataclass(frozen=True, eq=False)
class _Rows:
    """All training rows as their candidates describe them, which is label-free.

    Parameters
    ----------
    features : int64 array (d,), ascending
        Of each column the label times the number of sources, plus the number of the source.
    idf : float32 array (d,)
    X : float32 CSR (n, d)
    """

    features: np.ndarray
    idf: np.ndarray
    X: sp.csr_matrix

    @classmethod
    def of(cls, given: Given, sources: Sequence[str]) -> _Rows:
        keys = [_best(given, name, i, len(sources))[1] for i, name in enumerate(sources)]
        features, counts = np.unique(np.concatenate(keys), return_counts=True)
        if not len(features):
            features, counts = np.zeros(1, np.int64), np.zeros(1, np.int64)
        idf = (1.0 + log((given.n_rows + 1.0) / (counts + 1.0))).astype(np.float32)
        return cls(features, idf, _features(given, sources, features, idf))


def _best(
    given: Given, source: str, number: int, n_sources: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, feature and place of the best candidates of one source."""
    lists = given.scores[source]
    place = places(lists)
    kept = np.flatnonzero(place < _BEST)
    row = row_of_entries(lists.indptr)
    return row[kept], lists.indices[kept].astype(np.int64) * n_sources + number, place[kept]


def _features(given: Given, sources: Sequence[str], features: np.ndarray, idf: np.ndarray) -> sp.csr_matrix:
    """Rows as float32 CSR (n, d); candidates of no training row are left out."""
    parts = []
    for i, name in enumerate(sources):
        row, key, place = _best(given, name, i, len(sources))
        column, known = found_at(features, key)
        row, column = row[known], column[known]
        value = idf[column] / log2(place[known] + 2.0)
        length = np.sqrt(np.bincount(row, weights=value**2, minlength=given.n_rows))
        parts.append((value / length[row], row, column))
    value, row, column = (np.concatenate(of) for of in zip(*parts))
    shape = (given.n_rows, len(features))
    return sp.csr_matrix((value.astype(np.float32), (row, column)), shape)
