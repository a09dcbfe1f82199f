"""`LinearClassifier`: a one-vs-rest linear SVM, trained and evaluated in the compiled core."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank._util.parameters import with_parameters
from metarank.persist.fields import Array, Number, Params
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.linear.one_vs_all import squared_hinge_weights
from metarank.scorers.neighbors.training_rows import as_canonical
from metarank.types.arrays import linear_scores, require_rows, sample_rows
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingView

_C_GRID = (0.001, 0.01, 0.1, 1.0, 10.0)
_CHOICE_ROWS = 3000
# Training stops at this violation of the optimality conditions, or after so many passes over the rows.
_TOLERANCE, _MOST_EPOCHS = 0.1, 100


@with_parameters
class LinearClassifier(LabelScorer):
    """The margin of a linear SVM with the squared hinge loss, one for each label.

    For a label with targets y_i = 1 on relevant rows and -1 elsewhere, minimises
    ``1/2 ||w||^2 + C sum_i max(0, 1 - y_i (w . x_i + b))^2``; the bias b is the weight
    of a constant feature 1 and part of ``||w||``. Solved by dual coordinate descent
    (Hsieh et al. 2008), sixteen labels at a time.

    Parameters
    ----------
    C : float or "auto"
        Weight of the loss. "auto": the power of ten from 0.001 to 10 with the least squared
        hinge loss on the TrainingView's first fold, trained on its other folds (at most 3,000 rows in all).

    Attributes
    ----------
    weights_ : float32 array (d, L)
    bias_ : float32 array (L,)
    C_ : float

    Notes
    -----
    Column: ``linear SVM: margin``. A label without relevant (or without irrelevant) rows in the TrainingView
    scores -1 (or 1) for every row.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from metarank.types.view import TrainingSet
    >>> X = np.array([[2.0], [1.0], [-1.0], [-2.0]], np.float32)
    >>> Y = sp.csr_matrix(np.array([[1], [1], [0], [0]], np.float32))
    >>> scorer = LinearClassifier(C=1.0).fit(TrainingSet(X, Y, np.zeros(4)).view())
    >>> scorer.score(X, Candidates.all_labels(4, 1))["linear SVM: margin"] > 0
    array([ True,  True, False, False])
    """

    C: float | str = "auto"

    is_classifier = True
    score_without_rows = -1.0

    saved: ClassVar[Spec] = Spec(
        Params(),
        Number("C_", 0),
        Array("bias_", np.float32, ("L",)),
        Array("weights_", np.float32, ("d", "L")),
    )

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> LinearClassifier:
        """Learn from the rows of the TrainingView. Returns self.

        Raises
        ------
        ValueError
            If `C` is neither "auto" nor positive.
        """
        if self.C != "auto" and not (isinstance(self.C, (int, float)) and 0 < self.C < np.inf):
            raise ValueError(f"C must be 'auto' or a positive number, got {self.C!r}")
        require_rows(view)
        self.C_ = self._choose(view, n_jobs) if self.C == "auto" else float(self.C)
        self.weights_: np.ndarray
        self.bias_: np.ndarray
        self.weights_, self.bias_ = self._train(view.X, view.Y, self.C_, view.seed, n_jobs)
        return self

    def tuned(self, view: TrainingView, *, n_jobs: int = 1) -> LinearClassifier:
        """An unfitted copy whose `C` is tuned on this TrainingView."""
        return clone(self).set_params(C=self._choose(view, n_jobs) if self.C == "auto" else self.C)

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        return {"linear SVM: margin": linear_scores(X, self.weights_, self.bias_, candidates, n_jobs)}

    def _train(
        self, X: Features, Y: sp.csr_matrix, C: float, seed: int, n_jobs: int
    ) -> tuple[np.ndarray, np.ndarray]:
        W, bias = squared_hinge_weights(
            as_canonical(X),
            Y,
            positive_cost=np.ones(Y.shape[1]),
            C=C,
            tolerance=_TOLERANCE,
            max_epochs=_MOST_EPOCHS,
            weights_per_label=None,
            seed=seed,
            n_jobs=n_jobs,
            order=np.arange(Y.shape[1], dtype=np.int32),
        )
        weights, count = W.toarray(), np.bincount(Y.indices, minlength=Y.shape[1])
        for constant, value in ((count == 0, -1.0), (count == X.shape[0], 1.0)):
            weights[:, constant], bias[constant] = 0.0, value
        return weights, bias

    def _choose(self, view: TrainingView, n_jobs: int) -> float:
        rows = sample_rows(view, _CHOICE_ROWS)
        X, Y, fold = view.X[rows], view.Y[rows], view.fold[rows]
        held_out = fold == fold.min()
        if held_out.all():
            return 1.0
        inside = np.flatnonzero(held_out)
        pairs = Candidates.all_labels(len(inside), view.n_labels)
        sign = np.where(Y[inside].toarray().ravel() > 0, 1.0, -1.0)
        loss = []
        for C in _C_GRID:
            W, bias = self._train(X[~held_out], Y[~held_out], C, view.seed, n_jobs)
            margin = sign * linear_scores(X[inside], W, bias, pairs, n_jobs)
            loss.append(float(np.sum(np.maximum(0.0, 1.0 - margin) ** 2)))
        return _C_GRID[int(np.argmin(loss))]
