"""`BoostedRanker`: LightGBM's ranking objectives, and its pointwise logistic one."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import lightgbm as lgb
import numpy as np

from metarank._util.parameters import check_choice, check_integer, with_parameters
from metarank.persist.fields import Object, Text
from metarank.persist.spec import Spec
from metarank.ranker.base import Ranker, saved_with
from metarank.ranker.boosting import (
    lightgbm_params,
    pointwise_objective,
    sampled_pairs,
    trained,
)
from metarank.ranker.lists import RankingData, hash_numbers
from metarank.types.booster_text import contributions
from metarank.types.boosters import BoosterArrays
from metarank.types.feature_table import FeatureTable

# LightGBM refuses longer lists.
MAX_LIST = 10_000
NOTHING_TO_ORDER = (
    "gains must differ within at least one list of positive weight, got no such list: all candidates of each "
    "row are relevant, or none is"
)


@with_parameters
class BoostedRanker(Ranker):
    """Gradient boosted trees by LightGBM, scored in the compiled core.

    Parameters
    ----------
    objective : "lambdarank", "rank_xendcg" or "binary"
        The first two order each list: pairs get the index of their gain among the sorted
        distinct gains as label, the gains themselves as ``label_gain``; lists whose gains are all
        equal are left out, and of a list longer than 10,000 pairs the relevant ones and a sample
        of the others by hash are learned from. "binary" is pointwise: the log-odds of relevance
        with 0/1 gains, of ``gain / greatest gain`` (so that the order is by expected gain) with graded ones.
    n_rounds, num_leaves, learning_rate, min_data_in_leaf, lambda_l2, max_bin : numbers
    feature_fraction, bagging_fraction : float
        As in LightGBM.
    early_stopping : int
        Where positive, a tenth of the lists (by hash) is held out and boosting stops after
        so many rounds without a gain in nDCG (log loss for "binary").
    max_irrelevant : int
        "binary" learns from all relevant pairs and at most so many others, drawn by hash and weighted
        so that they stand for all.

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
    n_rounds: int = 150
    num_leaves: int = 7
    learning_rate: float = 0.05
    min_data_in_leaf: int = 20
    lambda_l2: float = 5.0
    feature_fraction: float = 0.5
    bagging_fraction: float = 1.0
    max_bin: int = 63
    early_stopping: int = 0
    max_irrelevant: int = 200_000

    _names: ClassVar[dict[str, str]] = {
        "lambdarank": "lambdarank",
        "rank_xendcg": "xendcg",
        "binary": "binary",
    }

    saved: ClassVar[Spec] = saved_with(
        Text("model_text_"),
        Object("arrays_", BoosterArrays, {"d": "columns", "outputs": "one"}, inline=True),
    )

    @property
    def name(self) -> str:
        return self._names[self.objective]

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        self._check_params()
        if self.objective == "binary":
            data = data.lists(data.weight > 0)
            target, label_gain = data.shares, None
        else:
            data = shorten_lists(data.lists(data.informative), MAX_LIST)
            label_gain = gains_of_labels(data.gains)
            target = np.searchsorted(label_gain, data.gains)
        if not len(target) or target.min() == target.max():
            raise ValueError(NOTHING_TO_ORDER)

        params = self._lightgbm_params(data, label_gain, n_jobs)
        held_out = None
        train = data
        if self.early_stopping:
            aside = data.drawn(one_in=10)
            if aside.any() and not aside.all():
                ids = np.flatnonzero(aside)
                aside_lists = data.lists(ids)
                aside_weight = np.repeat(aside_lists.weight, aside_lists.sizes)
                held_out = self._dataset(aside_lists, target[data.pairs_of(ids)], params, aside_weight)
                ids = np.flatnonzero(~aside)
                train, target = data.lists(ids), target[data.pairs_of(ids)]
                params["early_stopping_round"] = self.early_stopping
        pair_weight = np.repeat(train.weight, train.sizes)
        if self.objective == "binary":
            kept, pair_weight = sampled_pairs(train.gains, pair_weight, self.max_irrelevant, train.seed)
            train, target = train.pairs(kept), target[kept]
        self._learn(params, self._dataset(train, target, params, pair_weight), held_out)

    def fit_weighted(self, lists: RankingData, pair_weight: np.ndarray, n_jobs: int) -> BoostedRanker:
        """Learn the order of lists of at most 10,000 pairs, whose pairs have weights (m,). Returns self."""
        label_gain = gains_of_labels(lists.gains)
        params = self._lightgbm_params(lists, label_gain, n_jobs)
        target = np.searchsorted(label_gain, lists.gains)
        self._learn(params, self._dataset(lists, target, params, pair_weight))
        self.names_: list[str] = list(lists.table.names)
        return self

    def _learn(self, params: dict[str, Any], train: lgb.Dataset, held_out: lgb.Dataset | None = None) -> None:
        self.model_text_: str = trained(params, train, self.n_rounds, held_out)
        self.arrays_: BoosterArrays = BoosterArrays.from_text(self.model_text_)

    def can_learn(self, data: RankingData) -> bool:
        """Whether the gains differ: within a list or, pointwise, anywhere."""
        told = data.lists(data.weight > 0 if self.objective == "binary" else data.informative)
        return len(np.unique(told.gains)) > 1

    def _check_params(self) -> None:
        check_choice("objective", self.objective, list(self._names))
        for name, least in (("n_rounds", 1), ("early_stopping", 0), ("max_irrelevant", 1)):
            check_integer(name, getattr(self, name), least)

    def _lightgbm_params(
        self, data: RankingData, label_gain: np.ndarray | None, n_jobs: int
    ) -> dict[str, Any]:
        if label_gain is None:
            objective = pointwise_objective(data.shares)
            metric = "binary_logloss" if objective == "binary" else objective
            return self._tree_params(data.seed, n_jobs, data.table.values.size) | {
                "objective": objective,
                "metric": metric,
            }
        return self.list_params(data.seed, n_jobs, label_gain, int(data.sizes.max()), data.table.values.size)

    def list_params(
        self, seed: int, n_jobs: int, label_gain: np.ndarray, longest: int, n_values: int
    ) -> dict[str, Any]:
        """LightGBM's parameters for an objective that orders lists, the longest of `longest` pairs, with
        `n_values` values of pairs in all."""
        return self._tree_params(seed, n_jobs, n_values) | {
            "objective": self.objective,
            "metric": "ndcg",
            "eval_at": [longest],
            "label_gain": label_gain.tolist(),
            # Every pair counts in short lists; beyond, orders among the far tail are not worth their cost.
            "lambdarank_truncation_level": min(longest, 30),
        }

    def _tree_params(self, seed: int, n_jobs: int, n_values: int) -> dict[str, Any]:
        return lightgbm_params(self, seed, n_jobs, n_values) | {
            "bagging_fraction": self.bagging_fraction,
            "bagging_freq": int(self.bagging_fraction < 1),
        }

    def _dataset(
        self, data: RankingData, target: np.ndarray, params: dict[str, Any], pair_weight: np.ndarray
    ) -> lgb.Dataset:
        return lgb.Dataset(
            data.table.values,
            label=target,
            weight=pair_weight,
            group=None if self.objective == "binary" else data.sizes,
            params=params,
        )

    def planned(self) -> BoosterArrays:
        return self.arrays_

    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray:
        return self.arrays_.predict(table.values, n_jobs=n_jobs)

    def _contributions(self, table: FeatureTable) -> np.ndarray:
        return contributions(self.model_text_, table.values)


def gains_of_labels(gains: np.ndarray) -> np.ndarray:
    """The distinct gains and 0, ascending: LightGBM's label of a pair is the place of its gain among them."""
    return np.unique(np.append(gains, np.float32(0)))


def shorten_lists(data: RankingData, longest: int) -> RankingData:
    """Lists of at most `longest` pairs; see `pairs_within`."""
    return data if data.sizes.max(initial=0) <= longest else data.pairs(pairs_within(data, longest))


def pairs_within(data: RankingData, longest: int) -> np.ndarray:
    """Ascending positions of at most `longest` pairs of each list: the relevant ones, then others by a hash
    of (seed, pair)."""
    row = data.table.candidates.row_of_pair
    order = np.lexsort((hash_numbers(len(row), data.seed), data.gains == 0, row))
    return np.sort(order[np.arange(len(row)) - data.indptr[row] < longest])
