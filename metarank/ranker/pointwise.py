"""`PointwiseRanker`: pairs judged one by one, by boosted trees that differ in the pairs they saw."""

from __future__ import annotations

from typing import ClassVar

import lightgbm as lgb
import numpy as np

from metarank._util.parameters import check_integer, check_real, with_parameters
from metarank.persist.fields import Object, Strings
from metarank.persist.spec import Spec
from metarank.ranker.averaged import AveragedRanker
from metarank.ranker.base import saved_with
from metarank.ranker.boosting import lightgbm_params, pointwise_objective, sampled_pairs, trained
from metarank.ranker.lists import RankingData
from metarank.types.booster_text import contributions
from metarank.types.boosters import BoosterArrays
from metarank.types.feature_table import FeatureTable

# Keeps the draws of pairs apart from those of folds and rows.
_SEED_SHIFT = 7_000_003
# The share of the irrelevant pairs that a model draws by default, and how many at least: these cost little.
_SHARE = 0.2
_LEAST_DRAWN = 50_000
# NumPy adds up fewer numbers one after another.
_SUMMED_IN_ORDER = 8


@with_parameters
class PointwiseRanker(AveragedRanker):
    """Mean log-odds of relevance of several boosted models (logistic loss; LightGBM).

    Where candidates are many, nearly all are irrelevant. Each model sees the lists outside one fold, of them
    all relevant pairs and its own draw of the irrelevant ones, weighted to stand for all. Together the models
    see most pairs, and those of each fold are scored by one that did not see them: out-of-fold scores cost no
    further fit. The score is on the scale of log-odds, comparable between lists, which is what a propensity
    weight and a threshold need.

    Parameters
    ----------
    n_models : int
        Models that are averaged, or one for each fold of the lists where folds are fewer.
    irrelevant : float in (0, 1], optional
        Share of the irrelevant pairs that each model draws, by hash of (seed, model, pair), and one pair at
        least. By default a fifth, or 50,000 pairs if that is more.
    n_rounds, num_leaves, learning_rate, min_data_in_leaf, lambda_l2, feature_fraction, max_bin : int or float
        As in LightGBM.

    Notes
    -----
    Grades are divided by their maximum and learned as probabilities (cross-entropy).

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> pairs = Candidates.all_labels(200, 3)
    >>> table = FeatureTable(np.tile(np.float32([[1], [3], [2]]), (200, 1)), ["nearness"], pairs)
    >>> ranker = PointwiseRanker(n_rounds=10).fit(table, np.tile([0, 1, 0], 200))
    >>> int(ranker.score(table)[:3].argmax())
    1
    """

    n_models: int = 5
    irrelevant: float | None = None
    n_rounds: int = 120
    num_leaves: int = 15
    learning_rate: float = 0.1
    min_data_in_leaf: int = 20
    lambda_l2: float = 5.0
    feature_fraction: float = 0.5
    max_bin: int = 63

    name = "pointwise"

    saved: ClassVar[Spec] = saved_with(
        Strings("model_texts_", "models"),
        Object("arrays_", BoosterArrays, {"d": "columns", "outputs": "models"}, inline=True),
    )

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        self._check_params()
        if not self.can_learn(data):
            raise ValueError("gains must differ, got the same gain for every pair of positive weight")
        target = data.shares
        objective = pointwise_objective(target)
        params = lightgbm_params(self, data.seed, n_jobs, data.table.values.size)
        params["objective"] = objective
        whole = lgb.Dataset(data.table.values, label=target, params=params, free_raw_data=False)
        whole.construct()
        self.model_texts_: list[str] = []
        for number, seen, told in self._models(data):
            if not _differ(data.gains, np.repeat(seen & (data.weight > 0), data.sizes)):
                seen[:] = True
            kept, weight = self._drawn(number, data, seen)
            # A subset keeps the bins of the whole.
            part = whole.subset(kept.tolist()).set_weight(weight)
            n_values = len(kept) * len(data.table.names)
            own = params | lightgbm_params(self, data.seed + number, n_jobs, n_values)
            with told:
                self.model_texts_.append(trained(own, part, self.n_rounds))
        self.arrays_: BoosterArrays = BoosterArrays.stack(
            [BoosterArrays.from_text(text) for text in self.model_texts_]
        )

    def can_learn(self, data: RankingData) -> bool:
        """Whether gains differ among the pairs of positive weight."""
        return _differ(data.gains, np.repeat(data.weight > 0, data.sizes))

    def _drawn(self, number: int, data: RankingData, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ascending positions of the pairs of one model, among the lists it sees, and their weights."""
        weight = np.repeat(np.where(seen, data.weight, 0.0), data.sizes)
        n_irrelevant = np.count_nonzero((data.gains == 0) & (weight > 0))
        if self.irrelevant is None:
            wanted = max(_LEAST_DRAWN, round(_SHARE * n_irrelevant))
        else:
            wanted = max(1, round(self.irrelevant * n_irrelevant))
        return sampled_pairs(data.gains, weight, wanted, data.seed + _SEED_SHIFT * (number + 1))

    def _check_params(self) -> None:
        for name in ("n_models", "n_rounds"):
            check_integer(name, getattr(self, name), 1)
        if self.irrelevant is not None:
            check_real("irrelevant", self.irrelevant, np.nextafter(0, 1), 1, "a number in (0, 1] or None")

    def planned(self) -> BoosterArrays | None:
        return self.arrays_ if self.arrays_.n_outputs < _SUMMED_IN_ORDER else None

    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray:
        raw: np.ndarray = self.arrays_.predict(table.values, n_jobs=n_jobs)
        return raw if raw.ndim == 1 else raw.sum(axis=1) / raw.shape[1]

    def _score_of_model(self, number: int, table: FeatureTable, n_jobs: int) -> np.ndarray:
        arrays = BoosterArrays.from_text(self.model_texts_[number])
        return np.asarray(arrays.predict(table.values, n_jobs=n_jobs))

    def _contributions(self, table: FeatureTable) -> np.ndarray:
        return np.mean([contributions(text, table.values) for text in self.model_texts_], axis=0)


def _differ(gains: np.ndarray, seen: np.ndarray) -> bool:
    told = gains[seen]
    return len(told) > 0 and bool(told.min() < told.max())
