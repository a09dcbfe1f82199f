"""`Bilinear`: vectors of rows and of labels, compared through a matrix that rows with labels teach."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from metarank import _core
from metarank._util.threads import single_threaded_blas
from metarank.persist.fields import Array
from metarank.persist.spec import Spec
from metarank.scorers.base import Planned
from metarank.scorers.names.given_vectors import LabelVectorScorer
from metarank.types.view import Features, TrainingView

# Penalties of the two sides, as shares of the mean of the eigenvalues.
_PENALTY = 0.1


class Bilinear(LabelVectorScorer):
    """``e W l`` of a row e and the vector l of the label, both of unit length.

    W is the least squares solution of ``E W L' = Y`` for the rows E, labels L and relevances Y of the view,
    with a penalty on either side: ``W = (E'E + a I)^-1 E'Y L (L'L + b I)^-1``. What it learns of some labels
    serves others near to them, those without rows too. Column: ``bilinear``. Needs `view.label_vectors`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.label_names import LabelVectors
    >>> from metarank.types.view import TrainingSet
    >>> X, Y = np.eye(2, dtype=np.float32), sp.csr_matrix(np.float32([[0, 1, 0], [1, 0, 0]]))
    >>> own = LabelVectors(np.float32([[1, 0], [0, 1], [1, 1]]))
    >>> scorer = Bilinear().fit(TrainingSet(X, Y, np.zeros(2), label_vectors=own).view())
    >>> scorer.score(X[:1], Candidates.all_labels(1, 3))["bilinear"].round(2)
    array([-0.18,  0.61,  0.3 ], dtype=float32)
    """

    is_label_free = False
    reads_names = True
    title: ClassVar[str] = "vectors of labels, and what rows teach of them"
    column: ClassVar[str] = "bilinear"
    saved: ClassVar[Spec] = LabelVectorScorer.saved.extended(Array("weights_", np.float32, (None, None)))

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> Bilinear:
        """Solve for the matrix. Returns self."""
        super().fit(view, n_jobs=n_jobs)
        E, L = super().search(view.X)["queries"].astype(np.float64), self.vectors_.astype(np.float64)
        Y = (view.Y > 0).astype(np.float64)
        with single_threaded_blas():
            between = E.T @ (Y @ L)
            W = _solved(E.T @ E, between)
            W = _solved(L.T @ L, W.T)  # its rows are the columns of W, as `search` takes them
        self.weights_: NDArray[np.float32] = np.ascontiguousarray(W, np.float32)
        return self

    def search(self, X: Features, *, n_jobs: int = 1) -> dict[str, Any]:
        """The rows times the matrix, float32 (n, dv)."""
        rows, bias = super().search(X)["queries"], np.zeros(len(self.weights_), np.float32)
        return {"queries": _core.vector_scores(rows, self.weights_, bias, n_jobs)}

    def planned(self) -> Planned | None:
        return self._planned(self.weights_)


def _solved(gram: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(gram + penalty I)^-1 right."""
    penalty = _PENALTY * np.trace(gram) / len(gram)
    return scipy.linalg.solve(gram + penalty * np.eye(len(gram)), right, assume_a="pos")
