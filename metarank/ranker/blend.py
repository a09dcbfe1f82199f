"""`BlendRanker`: several rankers on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sklearn.base import clone

from metarank._util.parameters import with_parameters
from metarank.persist.fields import Array, List, Object, Params
from metarank.persist.spec import Spec
from metarank.ranker.base import Ranker, saved_with
from metarank.ranker.lists import RankingData, spread_within_lists
from metarank.types.feature_table import FeatureTable


@with_parameters
class BlendRanker(Ranker):
    """The weighted mean of the scores of several rankers, each divided by its spread within lists.

    Parameters
    ----------
    members : sequence of Ranker
        Unfitted; `fit` leaves them so.
    weights : sequence of float, optional
        One a member, > 0; equal by default. Only their ratios matter.
    scales : sequence of float, optional
        What each member's scores are divided by, > 0. By default the root mean squared
        deviation of its training scores from the mean of their list; spreads of held-out
        scores, where known, are better. Ones for members that all give log-odds: so does the blend.

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> from metarank.ranker import ListNet, RankSVM
    >>> table = FeatureTable(np.float32([[1], [3], [2], [0]]), ["nearness"], Candidates.all_labels(2, 2))
    >>> blend = BlendRanker(members=[ListNet(l2=0.1), RankSVM(l2=0.1)]).fit(table, np.array([0, 1, 1, 0]))
    >>> blend.score(table)[:2].round(2)
    array([-0.5,  1.5])
    """

    members: Sequence[Ranker]
    weights: Sequence[float] | None = None
    scales: Sequence[float] | None = None

    saved: ClassVar[Spec] = saved_with(
        List("members_", Object("", Ranker, ("columns",), inline=True), "members"),
        Array("factors_", np.float64, ("members",), least=0),
        params=Params(of=lambda blend: {"members": []}),
    )

    @property
    def name(self) -> str:
        return "+".join(member.name for member in self.members)

    def tuned(self, data: RankingData, n_jobs: int) -> BlendRanker:
        """A copy with every member tuned."""
        members = [member.tuned(data, n_jobs) for member in self.members]
        return BlendRanker(members=members, weights=self.weights, scales=self.scales)

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        if not len(self.members):
            raise ValueError("members must hold at least one ranker, got none")
        if self.scales is not None:
            self.factors(self.scales)  # refuse bad numbers before the work
        self.members_: list[Ranker] = [clone(member).fit_lists(data, n_jobs) for member in self.members]
        scales = self.scales
        if scales is None:
            fitted = (member.score(data.table, n_jobs=n_jobs) for member in self.members_)
            scales = [spread_within_lists(scores, data.indptr) for scores in fitted]
        self.factors_: np.ndarray = self.factors(scales)

    def factors(self, scales: Sequence[float]) -> np.ndarray:
        """float64 (members,): what each member's scores are multiplied by, given their scales."""
        weights = self._positive(
            "weights", [1.0] * len(self.members) if self.weights is None else self.weights
        )
        return weights / weights.sum() / self._positive("scales", scales)

    def _positive(self, name: str, values: Sequence[float]) -> np.ndarray:
        out = np.asarray(values, np.float64)
        if out.shape != (len(self.members),) or not ((out > 0) & np.isfinite(out)).all():
            raise ValueError(f"{name} must be {len(self.members)} positive numbers, got {values!r}")
        return out

    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray:
        total = np.zeros(len(table.values))
        for factor, member in zip(self.factors_, self.members_):
            total += factor * member._score(table, n_jobs)
        return total

    def _contributions(self, table: FeatureTable) -> np.ndarray:
        total = np.zeros((len(table.values), len(table.names) + 1))
        for factor, member in zip(self.factors_, self.members_):
            total += factor * member._contributions(table)
        return total

    def _restored(self) -> None:
        self.members = self.members_
