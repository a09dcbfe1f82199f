"""A cut that keeps the same number of labels in every row."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from metarank.persist.fields import Integer
from metarank.persist.spec import Spec
from metarank.thresholds.base import Cut, saved_with
from metarank.thresholds.lists import ScoredLists
from metarank.thresholds.set_metrics import quality

_MAX_K = 50


class TopKCut(Cut):
    """Keep the k best pairs of each row (RCut; Yang 2001), k in 0..50 chosen by the metric in training."""

    family = "top-k"

    k: int

    saved: ClassVar[Spec] = saved_with(Integer("k"))

    def fit(self, lists: ScoredLists, metric: str) -> TopKCut:
        most = int(min(lists.rank.max(initial=-1) + 1, _MAX_K))
        values = [quality(metric, lists.rank < k, lists)[0] for k in range(most + 1)]
        self.k = int(np.argmax(values))
        return self

    def keep(self, lists: ScoredLists) -> np.ndarray:
        return lists.rank < self.k
