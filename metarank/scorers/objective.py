"""`ObjectiveScorer`: another scorer's evidence for one of several objectives."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import clone

from metarank.persist.fields import Object, Text
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import held_out_columns
from metarank.scorers.wrapped import WrappedScorer
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, View


class ObjectiveScorer(WrappedScorer):
    """A scorer that is fitted on one objective's labels; its columns are named ``<objective>: <column>``.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from metarank.scorers.neighbors.prior import LabelPrior
    >>> clicks = sp.csr_matrix(np.float32([[1], [0]]))
    >>> data = TrainingSet(np.ones((2, 1), np.float32), clicks, np.zeros(2), targets={"clicks": clicks})
    >>> scorer = ObjectiveScorer(scorer=LabelPrior(), objective="clicks").fit(data.view())
    >>> list(scorer.score(data.X, Candidates.all_labels(2, 1)))
    ['clicks: prior']
    """

    saved: ClassVar[Spec] = Spec(
        Text("objective"), Object("scorer", LabelScorer, ("d", "L"), of=lambda own: own.scorer_)
    )

    def __init__(self, *, scorer: LabelScorer, objective: str) -> None:
        self.scorer = scorer
        self.objective = objective

    @property
    def prefix(self) -> str:
        return self.objective

    def tuned(self, view: View, *, n_jobs: int = 1) -> ObjectiveScorer:
        """An unfitted copy whose scorer's free parameters are tuned on the View."""
        tuned = self.scorer.tuned(view.of_objective(self.objective), n_jobs=n_jobs)
        return ObjectiveScorer(scorer=tuned, objective=self.objective)

    def fit(self, view: View, *, n_jobs: int = 1) -> ObjectiveScorer:
        """Fit the scorer on the View's rows and the labels of the objective. Returns self."""
        self.scorer_: LabelScorer = clone(self.scorer).fit(view.of_objective(self.objective), n_jobs=n_jobs)
        return self

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray | None = None, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """The scorer's columns of training rows, from fits without the row's fold."""
        own = data.of_objective(self.objective)
        return self._named(held_out_columns(self.scorer, own, candidates, rows=rows, n_jobs=n_jobs))
