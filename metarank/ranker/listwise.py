"""`ListwiseRanker`: long lists ordered by LambdaRank models that differ in the rows they saw."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from metarank._util.parameters import check_integer, check_real, with_parameters
from metarank._util.progress import as_part, report
from metarank.persist.fields import List, Object
from metarank.persist.spec import Spec
from metarank.ranker.averaged import AveragedRanker
from metarank.ranker.base import saved_with
from metarank.ranker.boosted_ranker import MAX_LIST, NOTHING_TO_ORDER, BoostedRanker, pairs_within
from metarank.ranker.lists import RankingData, hash_numbers
from metarank.types.feature_table import FeatureTable

# Keeps the draws of pairs apart from those of folds and rows.
_SEED_SHIFT = 9_000_011
# The model that finds what is hard: its rounds, and the irrelevant pairs that it learns from.
_FIRST_ROUNDS, _FIRST_PAIRS = 30, 50_000


@with_parameters
class ListwiseRanker(AveragedRanker):
    """The mean of LambdaRank models (LightGBM), for long lists of which most pairs are easily told apart.

    A quick pointwise model finds the irrelevant pairs that are hardest to tell from relevant ones: of each
    list those that it ranks highest. The models learn from these, from all relevant pairs, and from a share
    of the others, drawn by hash and weighted to stand for all. Each sees the lists outside one fold, so that
    out-of-fold scores cost no further fit. Where a thousand candidates a list are given, this costs a tenth
    of learning from all of them and orders no worse.

    Parameters
    ----------
    n_models : int
        Models that are averaged, or one for each fold of the lists where folds are fewer.
    hardest : int
        Irrelevant pairs of each list that the models surely see.
    others : float in (0, 1]
        Share of all other irrelevant pairs.
    n_rounds, num_leaves, learning_rate : as in LightGBM

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> pairs = Candidates.all_labels(200, 3)
    >>> table = FeatureTable(np.tile(np.float32([[1], [3], [2]]), (200, 1)), ["nearness"], pairs)
    >>> ranker = ListwiseRanker(n_rounds=10).fit(table, np.tile([0, 1, 0], 200))
    >>> int(ranker.score(table)[:3].argmax())
    1
    """

    n_models: int = 5
    hardest: int = 30
    others: float = 0.03
    n_rounds: int = 120
    num_leaves: int = 15
    learning_rate: float = 0.1

    name = "listwise"

    saved: ClassVar[Spec] = saved_with(
        List("members_", Object("", BoostedRanker, ("columns",), inline=True), "models")
    )

    def can_learn(self, data: RankingData) -> bool:
        """Whether the gains differ within a list."""
        return bool(data.informative.any())

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        self._check_params()
        if not self.can_learn(data):
            raise ValueError(NOTHING_TO_ORDER)
        with as_part("hard pairs", 0.0, 0.1):
            kept, weight = self._chosen(data, n_jobs)
        part = data.pairs(kept)
        weight = weight * np.repeat(part.weight, part.sizes)
        self.members_: list[BoostedRanker] = []
        with as_part("boosting", 0.1, 0.9):
            for number, seen, told in self._models(data):
                seen &= data.informative
                own = np.flatnonzero(seen if seen.any() else data.informative)
                lists = replace(part.lists(own), seed=data.seed + number)
                member = BoostedRanker(
                    n_rounds=self.n_rounds, num_leaves=self.num_leaves, learning_rate=self.learning_rate
                )
                with told:
                    self.members_.append(member.fit_weighted(lists, weight[part.pairs_of(own)], n_jobs))

    def _chosen(self, data: RankingData, n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the pairs to learn from, ascending, and what each stands for."""
        irrelevant = data.gains == 0
        if len(irrelevant) <= _FIRST_PAIRS:
            kept = pairs_within(data, MAX_LIST)
            return kept, np.ones(len(kept))
        first = BoostedRanker(
            objective="binary", n_rounds=_FIRST_ROUNDS, learning_rate=0.1, max_irrelevant=_FIRST_PAIRS
        )
        report("what is hard", 0.0)
        scores = first.fit_lists(data, n_jobs).score(data.table, n_jobs=n_jobs)
        row = data.table.candidates.row_of_pair
        order = np.lexsort((-scores, ~irrelevant, row))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - data.indptr[row[order]]
        hard = irrelevant & (place < self.hardest)
        drawn = hash_numbers(len(row), data.seed + _SEED_SHIFT) < self.others * 2**31
        kept = np.flatnonzero(~irrelevant | hard | drawn)
        stands_for = np.where(irrelevant & ~hard, 1.0 / self.others, 1.0)
        kept = kept[pairs_within(data.pairs(kept), MAX_LIST)]
        return kept, stands_for[kept]

    def _check_params(self) -> None:
        for name, least in (("n_models", 1), ("hardest", 0), ("n_rounds", 1)):
            check_integer(name, getattr(self, name), least)
        check_real("others", self.others, np.nextafter(0, 1), 1, "a number in (0, 1]")

    def _score_of_model(self, number: int, table: FeatureTable, n_jobs: int) -> np.ndarray:
        return self.members_[number]._score(table, n_jobs)

    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray:
        return np.mean([member._score(table, n_jobs) for member in self.members_], axis=0)

    def _contributions(self, table: FeatureTable) -> np.ndarray:
        return np.mean([member._contributions(table) for member in self.members_], axis=0)
