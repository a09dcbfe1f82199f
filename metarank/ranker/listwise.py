"""`ListwiseRanker`: long lists ordered by LambdaRank models that differ in the rows they saw."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
from sklearn.base import clone

from metarank._util.parameters import check_integer, check_real, with_parameters
from metarank._util.progress import as_part, report, side_by_side
from metarank.persist.fields import List, Object
from metarank.ranker.base import Ranker, saved_with
from metarank.ranker.boosted_ranker import MAX_LIST, NOTHING_TO_ORDER, BoostedRanker, gains_of_labels
from metarank.ranker.boosting import model_text, rounds_told
from metarank.ranker.lists import RankingData, cross_fit_scores, hash_numbers
from metarank.types.boosters import BoosterArrays
from metarank.types.feature_table import FeatureTable

# Keeps the draws of pairs apart from those of folds and rows.
_SEED_SHIFT = 9_000_011
# The model that finds what is hard: its rounds, and the irrelevant pairs that it learns from.
_FIRST_ROUNDS, _FIRST_PAIRS = 30, 50_000


@with_parameters
class ListwiseRanker(Ranker):
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
    n_rounds: int = 150
    num_leaves: int = 7
    learning_rate: float = 0.05

    name = "listwise"

    saved = saved_with(List("members_", Object("", BoostedRanker, ("columns",), inline=True), "models"))

    def fit_out_of_fold(self, data: RankingData, n_jobs: int = 1) -> np.ndarray:
        """Fit, and return each training pair's score from a model that did not see its list."""
        if data.outer is not None or len(np.unique(data.fold)) < 2:
            with as_part("held out", 0.0, 0.5):
                scores = cross_fit_scores(clone(self).set_params(n_models=1), data, n_jobs)
            with as_part("on all folds", 0.5, 0.5):
                self.fit_lists(data, n_jobs)
            return scores
        self.fit_lists(data, n_jobs)
        left_out, scores = self._left_out(data), np.zeros(len(data.gains))
        if left_out.max(initial=0) == 0:  # a single model, which has seen every list
            return cross_fit_scores(self, data, n_jobs)
        for number, member in enumerate(self.members_):
            pairs = data.pairs_of(np.flatnonzero(left_out == number))
            scores[pairs] = member._score(data.table.pairs(pairs), n_jobs)
        return scores

    def can_learn(self, data: RankingData) -> bool:
        """Whether the gains differ within a list."""
        return bool(data.informative.any())

    def _left_out(self, data: RankingData) -> np.ndarray:
        """int (n,): the model that does not see the list; all 0 where one model sees all."""
        folds = np.unique(data.fold)
        return np.searchsorted(folds, data.fold) % min(self.n_models, len(folds))

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        self._check_params()
        if not self.can_learn(data):
            raise ValueError(NOTHING_TO_ORDER)
        left_out, informative = self._left_out(data), data.informative
        n_models = int(left_out.max()) + 1
        with as_part("hard pairs", 0.0, 0.1):
            kept, weight = self._chosen(data, n_jobs)
        part = data.pairs(kept)
        weight = weight * np.repeat(part.weight, part.sizes)
        self.members_ = []
        told = side_by_side([f"model {i + 1} of {n_models}" for i in range(n_models)])
        with as_part("boosting", 0.1, 0.9):
            for number, progress in enumerate(told):
                seen = informative & ((left_out != number) | (n_models == 1))
                if not seen.any():
                    seen = informative
                with progress:
                    self.members_.append(self._learned(part, weight, np.flatnonzero(seen), number, n_jobs))

    def _chosen(self, data: RankingData, n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the pairs to learn from, ascending, and what each stands for."""
        irrelevant = data.gains == 0
        if data.table.candidates.n_pairs <= _FIRST_PAIRS:
            return np.arange(len(irrelevant)), np.ones(len(irrelevant))
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
        place_kept = np.arange(len(kept)) - np.searchsorted(kept, data.indptr[:-1])[row[kept]]
        kept = kept[place_kept < MAX_LIST]  # LightGBM refuses longer lists
        return kept, stands_for[kept]

    def _learned(
        self, part: RankingData, weight: np.ndarray, seen: np.ndarray, number: int, n_jobs: int
    ) -> BoostedRanker:
        lists = part.lists(seen)
        label_gain = gains_of_labels(lists.gains)
        member = BoostedRanker(
            n_rounds=self.n_rounds, num_leaves=self.num_leaves, learning_rate=self.learning_rate
        )
        params = member.list_params(part.seed + number, n_jobs, label_gain, int(lists.sizes.max()))
        booster = lgb.train(
            params,
            lgb.Dataset(
                lists.table.values,
                label=np.searchsorted(label_gain, lists.gains),
                weight=weight[part.pairs_of(seen)],
                group=lists.sizes,
                params=params,
            ),
            num_boost_round=self.n_rounds,
            callbacks=rounds_told(self.n_rounds),
        )
        member.model_text_, member.names_ = model_text(booster, n_jobs), list(part.table.names)
        member.arrays_ = BoosterArrays.from_text(member.model_text_)
        return member

    def _check_params(self) -> None:
        for name, least in (("n_models", 1), ("hardest", 0), ("n_rounds", 1)):
            check_integer(name, getattr(self, name), least)
        check_real("others", self.others, np.nextafter(0, 1), 1, "a number in (0, 1]")

    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray:
        return np.mean([member._score(table, n_jobs) for member in self.members_], axis=0)

    def _contributions(self, table: FeatureTable) -> np.ndarray:
        return np.mean([member._contributions(table) for member in self.members_], axis=0)
