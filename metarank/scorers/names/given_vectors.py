"""`LabelVectorScorer`: the similarity of a row and the vector of the label, from an encoder or given."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from metarank import _core
from metarank._util.parameters import check_integer
from metarank.persist.fields import Array, Integer, Known
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer, Planned
from metarank.scorers.neighbors.training_rows import check_lists, check_width
from metarank.text.index import LabelIndex
from metarank.text.scores import ScoredLabels
from metarank.types.arrays import unit_rows
from metarank.types.candidates import Candidates
from metarank.types.dense_index import AUTO_ROWS
from metarank.types.label_names import LabelVectors
from metarank.types.view import Features, TrainingView


def _check_columns(known: Known) -> None:
    if known.start_ + known.vectors_.shape[1] > known["d"]:
        raise ValueError(
            f"start must leave {known.vectors_.shape[1]} of {known['d']} columns, got {known.start_}"
        )


class LabelVectorScorer(LabelScorer):
    """The cosine of a row and the vector of the label, `view.label_vectors`; labels of rows are not used.

    Column: ``label vector: cosine``, 0 where the row or the label has no vector but zeros. Needs the vectors
    of a table of labels, in the space of dense X. The nearest labels are found by comparison with all of
    them; from 50,000 labels on by a FAISS graph, whose proposals are compared again.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from metarank.types.view import TrainingSet
    >>> X, Y = np.float32([[1, 0], [0, 2]]), sp.csr_matrix((2, 3), dtype=np.float32)
    >>> own = LabelVectors(np.float32([[1, 0], [1, 1], [0, 3]]))
    >>> scorer = LabelVectorScorer().fit(TrainingSet(X, Y, np.zeros(2), label_vectors=own).view())
    >>> scorer.score(X[:1], Candidates.all_labels(1, 3))["label vector: cosine"].round(2)
    array([1.  , 0.71, 0.  ], dtype=float32)
    >>> scorer.shortlist(X[:1], k=2).labels
    array([0, 1], dtype=int32)
    """

    is_quick = True
    is_label_free = True
    title: ClassVar[str] = "vectors of the labels alone"
    column: ClassVar[str] = "label vector: cosine"
    saved: ClassVar[Spec] = Spec(
        Array("vectors_", np.float32, ("L", "dv")),
        Array("scale_", np.float32, ("dv",), optional=True),
        Integer("start_"),
        Integer("n_features_", 1, size="d"),
        check=_check_columns,
    )

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> LabelVectorScorer:
        """Keep the vectors. Returns self.

        Raises
        ------
        ValueError
            If the TrainingView has no vectors of labels.
        """
        given = view.label_vectors
        if given is None:
            raise ValueError(
                "LabelVectorScorer needs vectors of the labels: pass labels with a vector column"
            )
        self.vectors_: NDArray[np.float32] = view.shared("label-vectors", lambda X: unit_rows(given.vectors))
        self.start_: int = given.start
        self.scale_: NDArray[np.float32] | None = given.scale
        self.n_features_: int = view.n_features
        if self._uses_index:
            self._index = view.shared(
                "label-vectors-index", lambda X: LabelIndex(self.vectors_, self._no_bias)
            )
        return self

    def search(self, X: Features, *, n_jobs: int = 1) -> dict[str, Any]:
        """The rows in the space of the vectors, float32 (n, dv)."""
        check_width(X, self.n_features_)
        return {"queries": unit_rows(LabelVectors(self.vectors_, self.start_, self.scale_).rows(X))}

    def cosines(self, X: Features) -> np.ndarray:
        """Float32 (n, L): of all labels."""
        return self._labels.scores(self.search(X)["queries"], 1)

    def score(
        self, X: Features, candidates: Candidates, *, n_jobs: int = 1, queries: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """Float32 column (m,)."""
        queries = self.search(X)["queries"] if queries is None else queries
        check_lists(candidates, len(queries), len(self.vectors_))
        return {self.column: self._labels.scores_of_pairs(queries, candidates, n_jobs)}

    def shortlist(
        self, X: Features, k: int, *, n_jobs: int = 1, queries: np.ndarray | None = None
    ) -> Candidates:
        """The k labels of highest cosine for each row, ties by the smaller label.

        Labels of cosine 0 or less are left out: a row may have fewer than k, or none. A FAISS
        graph may miss some; the cosines are exact.
        """
        check_integer("k", k, 1)
        queries = self.search(X)["queries"] if queries is None else queries
        k = min(int(k), len(self.vectors_))
        if self._uses_index:
            ranking = self._labels.best_proposed(queries, k, n_jobs, self._index)
        else:
            ranking = self._labels.best(queries, k, n_jobs)
        scores = ranking.to_csr()
        scores.data[scores.data < 0] = 0
        scores.eliminate_zeros()
        return Candidates.from_csr(scores, "label-vectors")

    def planned(self) -> Planned | None:
        return self._planned(np.zeros((0, 0), np.float32))

    def _planned(self, matrix: np.ndarray) -> Planned | None:
        """With the rows times a matrix, if it has rows, at unit length as queries."""
        if self._uses_index or self.scale_ is not None:
            return None
        core = _core.PlanLabelVectors(self.vectors_, matrix)
        return Planned(core, [self.column], (self.start_, self.start_ + self.vectors_.shape[1], True))

    @property
    def _uses_index(self) -> bool:
        return len(self.vectors_) >= AUTO_ROWS

    @cached_property
    def _no_bias(self) -> np.ndarray:
        return np.zeros(len(self.vectors_), np.float32)

    @property
    def _labels(self) -> ScoredLabels:
        return ScoredLabels(self.vectors_, self._no_bias)

    @cached_property
    def _index(self) -> LabelIndex:
        return LabelIndex(self.vectors_, self._no_bias)
