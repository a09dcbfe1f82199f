"""`ObjectiveModel`: what a `MultiObjectiveRanker` learns on one objective."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from metarank.persist.spec import Saved


class ObjectiveModel(Saved):
    """Scores rows; a saved model says by `kind` of which class it is."""

    tag: ClassVar[str] = "kind"
    kind: ClassVar[str]

    @classmethod
    def saved_as(cls) -> str:
        return cls.kind

    @abstractmethod
    def importances(self) -> np.ndarray:
        """float64 (d,): what each column is worth."""

    @abstractmethod
    def score(self, X: Any, n_jobs: int = 1) -> np.ndarray:
        """float64 (n,): raw scores."""

    @abstractmethod
    def contributions(self, X: np.ndarray) -> np.ndarray:
        """float64 (n, d + 1): shares of the columns in the score, and what all rows have in common."""
