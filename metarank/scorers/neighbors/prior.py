"""`LabelPrior`: how frequent a label is."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from metarank import _core
from metarank.persist.fields import Array
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer, Planned
from metarank.scorers.neighbors.training_rows import check_lists
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingView

# The name of the column.
PRIOR = "label frequency: log share"


def smoothed_shares(counts: np.ndarray, n_rows: int) -> np.ndarray:
    """(N_l + 1/2) / (N + 1) of each label, float64 between 0 and 1, of the rows that have it among N.

    Examples
    --------
    >>> smoothed_shares(np.array([0, 3]), 3)
    array([0.125, 0.875])
    """
    return (counts + 0.5) / (n_rows + 1)


class LabelPrior(LabelScorer):
    """Log of the label's smoothed share of the view's rows: log((N_l + 1/2) / (N + 1)), column
    ``label frequency: log share``.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from metarank.types.view import TrainingSet
    >>> Y = sp.csr_matrix(np.array([[1, 0], [1, 0], [0, 0]], np.float32))
    >>> X = np.zeros((3, 1), np.float32)
    >>> prior = LabelPrior().fit(TrainingSet(X, Y, np.zeros(3, np.int32)).view())
    >>> np.exp(prior.score(X[:1], Candidates.all_labels(1, 2))[PRIOR]).round(3)
    array([0.625, 0.125], dtype=float32)
    """

    is_quick = True

    saved: ClassVar[Spec] = Spec(Array("log_prior_", np.float32, ("L",)))

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> LabelPrior:
        """Count. Returns self."""
        self.log_prior_: NDArray[np.float32] = np.log(smoothed_shares(view.label_counts, view.n_rows)).astype(
            np.float32
        )
        return self

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """The float32 column (m,); X is ignored."""
        check_lists(candidates, X.shape[0], len(self.log_prior_))
        return {PRIOR: self.log_prior_[candidates.labels]}

    def planned(self) -> Planned:
        return Planned(_core.PlanConstants(self.log_prior_), [PRIOR])
