"""`Cut`: a rule that keeps some pairs of each ranked list."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from metarank.persist.fields import Field, Nested
from metarank.persist.spec import Saved, Spec
from metarank.thresholds.lists import ScoredLists


class Cut(Saved, ABC):
    """A rule learned on training lists for one metric and applied to each new list by itself."""

    tag: ClassVar[str] = "family"
    family: ClassVar[str]

    @classmethod
    def saved_as(cls) -> str:
        return cls.family

    @abstractmethod
    def fit(self, lists: ScoredLists, metric: str) -> Cut:
        """Learn from lists with relevance, for a metric of `objectives.METRICS`."""

    @abstractmethod
    def keep(self, lists: ScoredLists) -> np.ndarray:
        """bool (m,): the pairs that get a yes."""


def saved_with(*learned: Field) -> Spec:
    """The spec of a cut that learns these."""
    return Spec(Nested("state", *learned))
