"""`TwoSided`: vectors of rows and of labels, compared by a learned similarity."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank import _core
from metarank.persist.fields import Array
from metarank.persist.spec import Spec
from metarank.scorers.base import Planned
from metarank.scorers.names.given_vectors import LabelVectorScorer
from metarank.types.arrays import unit_rows
from metarank.types.view import Features, TrainingView

# Labels nearest to a row that it is compared with in every epoch, and labels drawn in each.
_HARD, _DRAWN = 50, 50
# Rows of a batch, and epochs: more where rows are so few that these make fewer steps, fewer where they are so
# many that they would be visited more often.
_BATCH, _EPOCHS, _LEAST_STEPS, _MOST_VISITS = 64, 6, 200, 200_000
# Lengths of the first steps, and the factor of cosines in the softmax.
_MATRIX_RATE, _OFFSET_RATE, _SCALE = 4e-4, 7e-3, 20.0
# How much more often frequent labels are drawn: the power of their training rows.
_POWER = 0.5


class TwoSided(LabelVectorScorer):
    """The cosine of ``e W`` and ``l + o``, of a row e, the vector l of the label, and the label's offset o.

    The matrix W, which all labels share, and the offsets are learned by softmax over a row's relevant labels,
    those nearest to it and some drawn at random; they start as the identity and as zeros. So a label without
    training rows, which has no offset, is scored by its vector, and gains from what labels near to it teach.
    Of a row without labels nothing is learned. Column: ``label vector: learned cosine``. Needs
    `view.label_vectors`.

    Examples
    --------
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.label_names import LabelVectors
    >>> from metarank.types.view import TrainingSet
    >>> X, Y = np.eye(2, dtype=np.float32), sp.csr_matrix(np.float32([[0, 1, 0], [1, 0, 0]]))
    >>> own = LabelVectors(np.float32([[1, 0], [0, 1], [1, 1]]))
    >>> scorer = TwoSided().fit(TrainingSet(X, Y, np.zeros(2), label_vectors=own).view())
    >>> scorer.score(X[:1], Candidates.all_labels(1, 3))["label vector: learned cosine"].round(2)
    array([1.  , 0.14, 0.73], dtype=float32)
    """

    is_label_free = False
    reads_names = True
    title: ClassVar[str] = "vectors of labels, compared as learned"
    column: ClassVar[str] = "label vector: learned cosine"
    saved: ClassVar[Spec] = LabelVectorScorer.saved.extended(Array("weights_", np.float32, ("dv", "dv")))

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> TwoSided:
        """Learn the matrix and the offsets. Returns self."""
        super().fit(view, n_jobs=n_jobs)
        nearest = view.shared("label-vectors-nearest", lambda X: self._nearest(X, n_jobs))[view.rows]
        Y = sp.csr_matrix(view.Y > 0)
        Y.sort_indices()
        chance = np.cumsum(view.label_counts**_POWER)
        n_taught = max(1, int(np.count_nonzero(np.diff(Y.indptr))))
        n_epochs = max(_EPOCHS, -(-_LEAST_STEPS // -(-n_taught // _BATCH)))
        options = _core.TwoSidedOptions(
            epochs=max(1, min(n_epochs, _MOST_VISITS // n_taught)),
            batch=_BATCH,
            n_drawn=_DRAWN,
            matrix_rate=_MATRIX_RATE,
            offset_rate=_OFFSET_RATE,
            scale=_SCALE,
            seed=0,
        )
        weights, vectors = _core.train_two_sided(
            super().search(view.X)["queries"],
            self.vectors_,
            Y.indptr.astype(np.int64),
            Y.indices.astype(np.int32),
            nearest,
            chance / max(chance[-1], 1.0),
            options,
            n_jobs,
        )
        self.weights_: NDArray[np.float32] = np.ascontiguousarray(weights.T)
        self.vectors_: NDArray[np.float32] = vectors
        self.__dict__.pop("_index", None)  # of the vectors as they were
        return self

    def _nearest(self, X: Features, n_jobs: int) -> NDArray[np.int32]:
        """(n, k): the labels nearest to each row as vectors stand, ascending; -1 where a graph has fewer."""
        queries, k = super().search(X)["queries"], min(_HARD, len(self.vectors_))
        if not self._uses_index:
            return np.sort(self._labels.best(queries, k, n_jobs).labels, axis=1)
        found = self._index.propose(queries, k, n_jobs)
        out = np.full((len(queries), k), -1, np.int32)
        out[np.arange(k) >= k - np.diff(found.indptr)[:, None]] = found.labels
        return out

    def search(self, X: Features, *, n_jobs: int = 1) -> dict[str, Any]:
        """The rows times the matrix at unit length, float32 (n, dv)."""
        rows, bias = super().search(X)["queries"], np.zeros(len(self.weights_), np.float32)
        return {"queries": unit_rows(_core.vector_scores(rows, self.weights_, bias, n_jobs))}

    def planned(self) -> Planned | None:
        return self._planned(self.weights_)
