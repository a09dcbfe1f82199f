"""A cut that keeps as many labels on average as training rows have."""

from __future__ import annotations

from typing import Any

import numpy as np

from metarank._state import Fields
from metarank.thresholds.base import Cut
from metarank.thresholds.lists import ScoredLists


class BudgetCut(Cut):
    """Keep the pairs whose logit is at least t, where t keeps as many training pairs as are relevant.

    Relevant pairs missed by the candidates count. Rows of new data may hold more or fewer labels
    than the average; t does not move with the batch.
    """

    family = "budget"

    threshold: float

    def fit(self, lists: ScoredLists, metric: str) -> BudgetCut:
        budget = min(int(np.count_nonzero(lists.truth) + lists.missed), len(lists.logits))
        self.threshold = float(-np.sort(-lists.logits)[budget - 1]) if budget else np.inf
        return self

    def keep(self, lists: ScoredLists) -> np.ndarray:
        return lists.logits >= self.threshold

    def get_state(self) -> dict[str, Any]:
        return {"threshold": self.threshold}

    def set_state(self, state: dict[str, Any]) -> BudgetCut:
        self.threshold = Fields(state, type(self).__name__).extended("threshold")
        return self
