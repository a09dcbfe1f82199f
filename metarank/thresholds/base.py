"""`Cut`: a rule that keeps some pairs of each ranked list."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from metarank.thresholds.lists import ScoredLists


class Cut(ABC):
    """A rule learned on training lists for one metric and applied to each new list by itself."""

    family: ClassVar[str]

    @abstractmethod
    def fit(self, lists: ScoredLists, metric: str) -> Cut:
        """Learn from lists with relevance, for a metric of `objectives.METRICS`."""

    @abstractmethod
    def keep(self, lists: ScoredLists) -> np.ndarray:
        """bool (m,): the pairs that get a yes."""

    @abstractmethod
    def get_state(self) -> dict[str, Any]:
        """Numbers and arrays that `set_state` restores."""

    @abstractmethod
    def set_state(self, state: dict[str, Any]) -> Cut:
        """The inverse of `get_state`."""
