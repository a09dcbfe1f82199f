"""`Centroids`: distances from a row to the mean of a label's training points."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank.persist.fields import Object
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer, Planned
from metarank.scorers.neighbors.label_means import LabelMeans
from metarank.scorers.neighbors.training_rows import SparseRows, shared_rows
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingView

_COLUMNS = ("label centroid: L2 distance", "label centroid: cosine distance")


class Centroids(LabelScorer):
    """L2 and cosine distance to the label's centroid, the last two features of Yang & Gopal (2012), eq. 1.

    The centroid is the mean of the label's points, not re-normalised. Columns
    ``label centroid: L2 distance`` and ``label centroid: cosine distance``. Sparse X has sparse centroids.
    The sums run over the view's rows in their order, so no row outside it leaves a trace, not even in the
    last bit.

    Notes
    -----
    A label without points is as far away as a row that shares no feature with x and is as long as the longest
    training row: sqrt(|x|^2 + max |y|^2) and 1, as in `LabelNeighbors`.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from metarank.types.view import TrainingSet
    >>> X = np.array([[0.0, 2.0], [0.0, 4.0]], np.float32)
    >>> Y = sp.csr_matrix(np.ones((2, 1), np.float32))
    >>> centroids = Centroids().fit(TrainingSet(X, Y, np.zeros(2, np.int32)).view())
    >>> centroids.score(np.array([[0.0, 1.0]], np.float32), Candidates.all_labels(1, 1))
    {'label centroid: L2 distance': array([2.], dtype=float32),
     'label centroid: cosine distance': array([0.], dtype=float32)}
    """

    by_block = True
    suits_any_block = True
    is_quick = True

    saved: ClassVar[Spec] = Spec(Object("means_", LabelMeans, ("L", "d")))

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> Centroids:
        """Average the TrainingView's points of each label. Returns self."""
        rows = shared_rows(view)
        shared = rows if isinstance(rows, SparseRows) else None
        of_labels, longest = view.rows_by_label, rows.max_sq_norm
        self.means_: LabelMeans = LabelMeans.of_rows(rows.X, *of_labels, longest, shared=shared)
        return self

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """The float32 columns (m,)."""
        values = self.means_.distances(X, candidates, n_jobs)
        return dict(zip(_COLUMNS, values))

    def planned(self) -> Planned | None:
        means = self.means_
        if sp.issparse(means.means):
            return Planned(_core.PlanMeans(means.index), list(_COLUMNS))
        core = _core.PlanDenseMeans(means.means, means.known, float(means.max_sq_norm))
        return Planned(core, list(_COLUMNS))
