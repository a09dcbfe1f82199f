"""`BoostedRanker`: trees by LightGBM, on ranking objectives or on the pointwise logistic one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from metarank._util.parameters import check_choice, check_integer, with_parameters
from metarank._util.progress import as_part, report, side_by_side
from metarank.persist.fields import Object
from metarank.persist.spec import Spec
from metarank.ranker.base import Ranker, cross_fit_scores, saved_with
from metarank.ranker.boosting import grown, lightgbm_params, pairs_within, pointwise_objective, sampled_pairs
from metarank.ranker.lists import RankingData, hash_numbers
from metarank.types.boosters import BoosterArrays
from metarank.types.feature_table import FeatureTable

# LightGBM refuses longer lists.
_MAX_LIST = 10_000
_NAMES = {"lambdarank": "lambdarank", "rank_xendcg": "xendcg", "binary": "binary"}
# Settings of LightGBM, and the parameters that the ranker has under the same name.
_TREES = {"min_data_in_leaf": 20, "lambda_l2": 5.0, "max_bin": 63}
_OF_TREES = ("num_leaves", "learning_rate", "feature_fraction", "bagging_fraction")
# Keep the draws of pairs apart from those of folds and rows.
_DRAWN_SHIFT, _OTHERS_SHIFT = 7_000_003, 9_000_011
# The model that finds what is hard: its rounds, and the irrelevant pairs that it learns from.
_FIRST_ROUNDS, _FIRST_PAIRS = 30, 50_000
# The share of the other irrelevant pairs, drawn by hash and weighted to stand for all.
_OTHERS = 0.03


@with_parameters
class BoostedRanker(Ranker):
    """Gradient boosted trees by LightGBM, scored in the compiled core; one model, or the mean of several.

    Several models differ in what they saw: each learns from the lists outside one fold, so that out-of-fold
    scores cost no further fit, and from its own draw of irrelevant pairs. Where candidates are many, nearly
    all are irrelevant, and most of these are easy: to learn from a part costs a fraction of
    learning from all, and orders no worse.

    Parameters
    ----------
    objective : "lambdarank", "rank_xendcg" or "binary"
        The first two order each list: pairs get the index of their gain among the sorted
        distinct gains as label, the gains themselves as ``label_gain``; lists whose gains are all
        equal are left out, and of a list longer than 10,000 pairs the relevant ones and a sample
        of the others by hash are learned from. "binary" is pointwise: the log-odds of relevance
        with 0/1 gains, of ``gain / greatest gain`` (so that the order is by expected gain) with graded ones;
        it is comparable between lists.
    n_models : int
        Models that are averaged, or one for each fold of the lists where folds are fewer.
    n_rounds, num_leaves, learning_rate : numbers
    feature_fraction, bagging_fraction : float
        As in LightGBM.
    max_irrelevant : int
        "binary" learns from all relevant pairs and at most this many others, drawn by hash of (seed, model,
        pair) and weighted so that they stand for all.
    share_irrelevant : float in [0, 1]
        This share of them instead, where it is more.
    hardest : int, optional
        The other objectives learn from all pairs, or from the relevant ones, so many irrelevant ones of each
        list, those that a quick pointwise model ranks highest, and 3 % of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> pairs = Candidates.all_labels(200, 3)
    >>> table = FeatureTable(np.tile(np.float32([[1], [3], [2]]), (200, 1)), ["nearness"], pairs)
    >>> ranker = BoostedRanker(n_rounds=10).fit(table, np.tile([0, 2, 1], 200))
    >>> ranker.score(table)[:3].argsort()
    array([0, 2, 1])
    """

    objective: Literal["lambdarank", "rank_xendcg", "binary"] = "lambdarank"
    n_models: int = 1
    n_rounds: int = 150
    num_leaves: int = 7
    learning_rate: float = 0.05
    feature_fraction: float = 0.5
    bagging_fraction: float = 1.0
    max_irrelevant: int = 200_000
    share_irrelevant: float = 0.0
    hardest: int | None = None

    saved: ClassVar[Spec] = saved_with(Object("trees_", BoosterArrays, {"d": "columns", "outputs": "models"}))

    @property
    def name(self) -> str:
        if self.n_models > 1:
            return "pointwise" if self.objective == "binary" else "listwise"
        return _NAMES[self.objective]

    def fit_out_of_fold(self, data: RankingData, n_jobs: int = 1) -> np.ndarray:
        """Fit, and return each training pair's score from a model that did not see its list."""
        left_out = self._left_out(data)
        if data.outer is not None or not left_out.any():
            with as_part("held out", 0.0, 0.5):
                scores = cross_fit_scores(clone(self).set_params(n_models=1), data, n_jobs)
            with as_part("on all folds", 0.5, 0.5):
                self.fit_lists(data, n_jobs)
            return scores
        self.fit_lists(data, n_jobs)
        scores = np.zeros(len(data.gains))
        for number in range(self.trees_.n_outputs):
            pairs = data.pairs_of(np.flatnonzero(left_out == number))
            scores[pairs] = self.trees_.only(number).predict(data.table.values[pairs], n_jobs=n_jobs)
        return scores

    def can_learn(self, data: RankingData) -> bool:
        """Whether the gains differ: within a list or, pointwise, anywhere."""
        if self.objective == "binary":
            return _differ(data.gains, np.repeat(data.weight > 0, data.sizes))
        return bool(data.informative.any())

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        self._check_params()
        if not self.can_learn(data):
            raise ValueError(
                "gains must differ within a list of positive weight: all candidates of each row are "
                "relevant, or none is"
            )
        models = self._pointwise if self.objective == "binary" else self._listwise
        self.trees_: BoosterArrays = BoosterArrays.stack(list(models(data, n_jobs)))

    def _pointwise(self, data: RankingData, n_jobs: int) -> Iterator[BoosterArrays]:
        import lightgbm as lgb

        target, values = data.shares, data.table.values
        params: dict[str, Any] = {"objective": pointwise_objective(target)}
        all_pairs = None
        if self.n_models > 1:  # they share the bins of all pairs
            binning = params | self._params(data.seed, n_jobs, values.size)
            all_pairs = lgb.Dataset(values, label=target, params=binning, free_raw_data=False).construct()
        for number, seen, context in self._models(data):
            weight = np.repeat(np.where(seen, data.weight, 0.0), data.sizes)
            if not _differ(data.gains, weight > 0):
                weight = np.repeat(data.weight, data.sizes)
            n_irrelevant = np.count_nonzero((data.gains == 0) & (weight > 0))
            most = max(self.max_irrelevant, round(self.share_irrelevant * n_irrelevant))
            seed = data.seed if all_pairs is None else data.seed + _DRAWN_SHIFT * (number + 1)
            kept, weight = sampled_pairs(data.gains, weight, most, seed)
            n_values = len(kept) * values.shape[1]
            params |= self._params(data.seed + number, n_jobs, n_values)
            if all_pairs is None:
                train = lgb.Dataset(values[kept], label=target[kept], weight=weight, params=params)
            else:
                train = all_pairs.subset(kept.tolist()).set_weight(weight)
            with context:
                model = grown(params, train, self.n_rounds)
            yield model

    def _listwise(self, data: RankingData, n_jobs: int) -> Iterator[BoosterArrays]:
        informative = data.informative
        part, stands_for = data, np.ones(len(data.gains))
        if self.hardest is not None and len(data.gains) > _FIRST_PAIRS:
            with as_part("hard pairs", 0.0, 0.1):
                kept, stands_for = self._hard_pairs(data, self.hardest, n_jobs)
                part = data.pairs(kept)
        for number, seen, context in self._models(data):
            seen &= informative
            ids = np.flatnonzero(seen if seen.any() else informative)
            lists = replace(part.lists(ids), seed=data.seed + number)
            weight = stands_for[part.pairs_of(ids)] * np.repeat(lists.weight, lists.sizes)
            if lists.sizes.max() > _MAX_LIST:
                row_of_pair = lists.table.candidates.row_of_pair
                kept = pairs_within(lists.gains, row_of_pair, _MAX_LIST, lists.seed)
                lists, weight = lists.pairs(kept), weight[kept]
            with context:
                model = self._ordered(lists, weight, n_jobs)
            yield model

    def _ordered(self, lists: RankingData, weight: np.ndarray, n_jobs: int) -> BoosterArrays:
        """Trees that order lists, whose pairs have weights (m,)."""
        import lightgbm as lgb

        longest = int(lists.sizes.max())
        # LightGBM's label of a pair is the place of its gain among the distinct ones and 0.
        label_gain = np.unique(np.append(lists.gains, np.float32(0)))
        params = self._params(lists.seed, n_jobs, lists.table.values.size) | {
            "objective": self.objective,
            "label_gain": label_gain.tolist(),
            # Every pair counts in short lists; beyond, orders among the far tail are not worth their cost.
            "lambdarank_truncation_level": min(longest, 30),
        }
        label = np.searchsorted(label_gain, lists.gains)
        train = lgb.Dataset(lists.table.values, label, weight=weight, group=lists.sizes, params=params)
        return grown(params, train, self.n_rounds)

    def _hard_pairs(self, data: RankingData, hardest: int, n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the pairs to learn from, ascending, and how many each stands for."""
        first = BoostedRanker(
            objective="binary", n_rounds=_FIRST_ROUNDS, learning_rate=0.1, max_irrelevant=_FIRST_PAIRS
        )
        report("what is hard", 0.0)
        scores = first.fit_lists(data, n_jobs).score(data.table, n_jobs=n_jobs)
        irrelevant, row = data.gains == 0, data.table.candidates.row_of_pair
        order = np.lexsort((-scores, ~irrelevant, row))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - data.indptr[row[order]]
        hard = irrelevant & (place < hardest)
        drawn = hash_numbers(len(row), data.seed + _OTHERS_SHIFT) < _OTHERS * 2**31
        kept = np.flatnonzero(~irrelevant | hard | drawn)
        return kept, np.where(irrelevant & ~hard, 1.0 / _OTHERS, 1.0)[kept]

    def _models(self, data: RankingData) -> Iterator[tuple[int, np.ndarray, AbstractContextManager[None]]]:
        """Of each model its number, the lists that it sees, bool (n,), and the context that tells of it."""
        left_out = self._left_out(data)
        n_models = int(left_out.max()) + 1
        if n_models == 1:
            yield 0, np.ones(len(left_out), bool), as_part("boosting", 0.0, 1.0)
            return
        contexts = side_by_side([f"model {i + 1} of {n_models}" for i in range(n_models)])
        for number, context in enumerate(contexts):
            yield number, left_out != number, context

    def _left_out(self, data: RankingData) -> np.ndarray:
        """int (n,): the model that does not see the list; all 0 where one model sees all."""
        folds = np.unique(data.fold)
        return np.searchsorted(folds, data.fold) % min(self.n_models, len(folds))

    def _params(self, seed: int, n_jobs: int, n_values: int) -> dict[str, Any]:
        params = _TREES | {name: getattr(self, name) for name in _OF_TREES}
        params["bagging_freq"] = int(self.bagging_fraction < 1)
        return lightgbm_params(params, seed, n_jobs, n_values)

    def _check_params(self) -> None:
        check_choice("objective", self.objective, list(_NAMES))
        for name, least in (("n_models", 1), ("n_rounds", 1), ("max_irrelevant", 1)):
            check_integer(name, getattr(self, name), least)
        if self.hardest is not None:
            check_integer("hardest", self.hardest, 0)

    def trees_in_core(self) -> BoosterArrays:
        return self.trees_

    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray:
        raw = self.trees_.predict(table.values, n_jobs=n_jobs)
        if raw.ndim == 1:
            return raw
        # One model after another, as the compiled plan adds them up.
        return np.add.reduce(np.ascontiguousarray(raw.T), axis=0) / raw.shape[1]

    def _contributions(self, table: FeatureTable) -> np.ndarray:
        return self.trees_.contributions(table.values)


def _differ(gains: np.ndarray, counted: np.ndarray) -> bool:
    gains = gains[counted]
    return len(gains) > 0 and bool(gains.min() < gains.max())
