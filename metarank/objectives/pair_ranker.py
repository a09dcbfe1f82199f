"""`ObjectivesRanker`: the pairs of a list ordered by several gains at once."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from metarank._util.parameters import with_parameters
from metarank.objectives.aggregation import Aggregation
from metarank.objectives.multi_objective import MultiObjectiveRanker
from metarank.persist.fields import Object, Params
from metarank.persist.spec import Spec
from metarank.ranker.base import Ranker, saved_with
from metarank.ranker.boosting import sampled_pairs
from metarank.ranker.lists import RankingData, informative_lists
from metarank.types.feature_table import FeatureTable


@with_parameters
class ObjectivesRanker(Ranker):
    """A `MultiObjectiveRanker` over candidate labels: lists are its queries, pairs its documents.

    Learns from `RankingData.targets`, a gain of each pair by objective; `RankingData.gains` tell only which
    pairs are relevant at all.

    Parameters
    ----------
    model : MultiObjectiveRanker, optional
        How objectives are weighed and what is learned; label aggregation by default.
    max_irrelevant : int
        It learns from all pairs that are relevant for an objective and at most this many others, drawn by
        hash.

    Examples
    --------
    >>> from metarank.types.candidates import Candidates
    >>> pairs = Candidates.all_labels(90, 3)
    >>> table = FeatureTable(np.tile(np.float32([[1], [3], [2]]), (90, 1)), ["nearness"], pairs)
    >>> targets = {"relevance": np.tile([0, 1, 1], 90), "clicks": np.tile([0, 1, 0], 90)}
    >>> data = RankingData.checked(table, np.tile([0, 2, 1], 90), None, None, 0, targets)
    >>> ObjectivesRanker().fit_lists(data).score(table)[:3].argsort()
    array([0, 2, 1])
    """

    model: MultiObjectiveRanker | None = None
    max_irrelevant: int = 1_000_000

    name = "objectives"

    saved: ClassVar[Spec] = saved_with(
        Object("model_", MultiObjectiveRanker, {"d": "columns"}), params=Params(without=("model",))
    )

    def summary(self) -> str:
        """The method and the weights of the objectives."""
        model = self.model_ if hasattr(self, "model_") else self.model or MultiObjectiveRanker()
        shown = f"objectives by {Aggregation.of(model.aggregation).method!r}"
        if hasattr(model, "weights_"):
            pairs = zip(model.objective_names_, model.weights_)
            shown += " (" + ", ".join(f"{name} {weight:.2f}" for name, weight in pairs) + ")"
        return shown

    def reweighted(self, weights: Any) -> ObjectivesRanker:
        """The same ranker with other weights of the objectives; see `MultiObjectiveRanker.reweighted`."""
        out = copy.copy(self)
        out.model_ = self.model_.reweighted(weights)
        return out

    def can_learn(self, data: RankingData) -> bool:
        """Whether each objective tells two pairs apart."""
        inside = np.repeat(_informative(data), data.sizes)
        counted = [values[inside] for values in data.targets.values()]
        return bool(inside.any()) and all(values.min() < values.max() for values in counted)

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        if len(np.unique(data.weight[data.weight > 0])) > 1:
            raise ValueError("sample_weight must be left out with several objectives")
        part = self._learned(data)
        sizes = part.sizes[part.sizes > 0]
        model = clone(self.model) if self.model is not None else MultiObjectiveRanker(label_gain="linear")
        model.set_params(n_jobs=n_jobs)
        self.model_: MultiObjectiveRanker = model.fit(part.table.values, part.targets, group=sizes)
        self.model_.set_params(n_jobs=None)  # the number of threads is no part of the model

    def _learned(self, data: RankingData) -> RankingData:
        """The pairs of the lists in which objectives tell any apart, the irrelevant ones thinned out."""
        if not data.targets:
            raise ValueError("data must hold targets, a gain of each pair by objective, got none")
        data = data.lists(_informative(data))
        kept, _ = sampled_pairs(
            data.gains, np.ones(len(data.gains)), max(1, int(self.max_irrelevant)), data.seed
        )
        return data.pairs(kept)

    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray:
        return self.model_.scores(table.values, n_jobs)

    def _contributions(self, table: FeatureTable) -> np.ndarray:
        return self.model_.contributions(table.values)


def _informative(data: RankingData) -> np.ndarray:
    """bool (n,): lists in which some objective tells two pairs apart; all may be relevant for any of them."""
    lists = [informative_lists(of, data.indptr, data.weight) for of in data.targets.values()]
    return np.logical_or.reduce(lists, axis=0) if lists else data.informative
