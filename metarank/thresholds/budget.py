"""A cut that keeps as many labels on average as training rows have."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from metarank.persist.fields import Number
from metarank.persist.spec import Spec
from metarank.thresholds.base import Cut, saved_with
from metarank.thresholds.lists import ScoredLists


class BudgetCut(Cut):
    """Keep the pairs whose logit is at least t, where t keeps as many training pairs as are relevant.

    Relevant pairs missed by the candidates count. Rows of new data may hold more or fewer labels
    than the average; t does not move with the batch.
    """

    family = "budget"

    threshold: float

    saved: ClassVar[Spec] = saved_with(Number("threshold", floats="extended"))

    def fit(self, lists: ScoredLists, metric: str) -> BudgetCut:
        budget = min(int(np.count_nonzero(lists.truth) + lists.n_missed), len(lists.logits))
        self.threshold = float(-np.sort(-lists.logits)[budget - 1]) if budget else np.inf
        return self

    def keep(self, lists: ScoredLists) -> np.ndarray:
        return lists.logits >= self.threshold
