"""`EnsembleRanker`: three readings of one table, averaged as log-odds."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import clone

from metarank._util.parameters import with_parameters
from metarank._util.progress import as_part, report
from metarank.persist.fields import Object
from metarank.persist.spec import Spec
from metarank.ranker.base import Ranker, cross_fit_scores, saved_with, trial_scores
from metarank.ranker.boosted_ranker import BoostedRanker
from metarank.ranker.corrections import LabelCorrections
from metarank.ranker.linear_ranker import LinearRanker
from metarank.ranker.lists import RankingData
from metarank.types.feature_table import FeatureTable

# Up to so many pairs the pooled penalty is worth choosing, and boosting must be gentle; beyond, the penalty.
_SMALL = 60_000
_LARGE_L2 = 3e-4


@with_parameters
class EnsembleRanker(Ranker):
    """The mean log-odds of a pooled linear model, its corrections by label, and boosted trees.

    The pooled model (pointwise logistic on all columns) is what little data can bear. Each
    label's correction starts from it and departs as far as the label's own pairs support. The
    trees (LightGBM, pointwise) see interactions. Each wins somewhere; over many data sets their
    mean loses to none of them, and a choice by cross-validation does.

    Parameters
    ----------
    label_columns : list of str, optional
        Columns a label may weigh in its own way, as a rule the scores of base classifiers. Those of
        them that a table lacks are passed over.
    n_rounds : int, optional
        Boosting rounds; by default 120 for small tables, 100 faster ones beyond.

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> pairs = Candidates.all_labels(200, 3)
    >>> table = FeatureTable(np.tile(np.float32([[1], [3], [2]]), (200, 1)), ["nearness"], pairs)
    >>> ranker = EnsembleRanker().fit(table, np.tile([0, 1, 0], 200))
    >>> ranker.score(table)[:3].argsort()
    array([0, 2, 1])
    """

    label_columns: list[str] | None = None
    n_rounds: int | None = None

    name = "ensemble"

    saved: ClassVar[Spec] = saved_with(
        Object("pooled_", LinearRanker, ("columns",)),
        Object("corrections_", LabelCorrections, ("columns",)),
        Object("boosted_", BoostedRanker, ("columns",)),
    )

    def fit_out_of_fold(self, data: RankingData, n_jobs: int = 1) -> np.ndarray:
        """Fit, and return every training pair's score from a fit that saw nothing of its list, float64 (m,).

        The penalty of the pooled model and the strength of the corrections are those chosen on all lists.
        """
        with as_part("fitting", 0.0, 0.3):
            self._fit(data, n_jobs)
        self.names_: list[str] = list(data.table.names)

        def fit(seen: RankingData, threads: int) -> Ranker:
            return clone(self)._learn(
                seen, threads, LinearRanker(loss="logistic", l2=self.pooled_.l2_), self.corrections_
            )

        with as_part("held out", 0.3, 0.7):
            return trial_scores(fit, self, data, n_jobs)

    def can_learn(self, data: RankingData) -> bool:
        """Whether the boosted trees can."""
        return self._boosted(True).can_learn(data)

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        small = len(data.gains) <= _SMALL
        data = data.by_fold()
        pooled = LinearRanker(loss="logistic", l2="auto" if small else _LARGE_L2)
        self._learn(data, n_jobs, pooled.tuned(data, n_jobs))

    def _learn(
        self, data: RankingData, n_jobs: int, pooled: LinearRanker, like: LabelCorrections | None = None
    ) -> EnsembleRanker:
        """Fit all three with a tuned pooled model; corrections as strong as others, or as chosen."""
        with as_part("pooled model", 0.0, 0.3):
            self.pooled_: LinearRanker = clone(pooled).fit_lists(data, n_jobs)
            held_out = (
                cross_fit_scores(pooled, data, n_jobs)
                if len(np.unique(data.fold)) > 1
                else self.pooled_.score(data.table, n_jobs=n_jobs)
            )
        report("corrections by label", 0.3)
        self.corrections_: LabelCorrections = LabelCorrections(columns=self.label_columns or [])
        self.corrections_.fit(data, held_out, None if like is None else like.strength_)
        with as_part("boosting", 0.5, 0.5):
            self.boosted_: BoostedRanker = self._boosted(len(data.gains) <= _SMALL).fit_lists(data, n_jobs)
        self.names_ = list(data.table.names)
        return self

    def _boosted(self, small: bool) -> BoostedRanker:
        return BoostedRanker(
            objective="binary",
            n_rounds=self.n_rounds or (120 if small else 100),
            learning_rate=0.05 if small else 0.1,
            feature_fraction=0.3,
            bagging_fraction=0.7,
        )

    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray:
        pooled = self.pooled_._score(table, n_jobs)
        corrected = self.corrections_.score(table, pooled, n_jobs)
        return np.asarray((pooled + corrected + self.boosted_._score(table, n_jobs)) / 3.0)

    def _contributions(self, table: FeatureTable) -> np.ndarray:
        pooled = self.pooled_._contributions(table)
        corrected = self.corrections_.contributions(table, pooled)
        return np.asarray((pooled + corrected + self.boosted_._contributions(table)) / 3.0)
