"""`WrappedScorer`: another scorer's evidence, for a part of what its View has."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from metarank.scorers.base import LabelScorer
from metarank.scorers.sizes import FitSizes, MemoryPart
from metarank.types.candidates import Candidates
from metarank.types.view import Features


def as_of_scorer(name: str) -> Any:
    """An attribute of a scorer that is made of another one, `scorer`: that one's."""
    return property(lambda own: getattr(own.scorer, name), doc="That of the scorer.")


class WrappedScorer(LabelScorer):
    """Base of scorers that fit another one, `scorer`, on a part of their View.

    Attributes
    ----------
    scorer : LabelScorer
        Unfitted.
    scorer_ : LabelScorer
        Fitted.
    prefix : str
        The part; column names begin with it.
    """

    scorer: LabelScorer
    scorer_: LabelScorer

    is_classifier: bool = as_of_scorer("is_classifier")
    is_label_free: bool = as_of_scorer("is_label_free")
    reads_names: bool = as_of_scorer("reads_names")
    reads_given: bool = as_of_scorer("reads_given")
    is_quick: bool = as_of_scorer("is_quick")
    is_tunable: bool = as_of_scorer("is_tunable")
    score_without_rows: float | None = as_of_scorer("score_without_rows")
    source: ClassVar[str] = as_of_scorer("source")

    @property
    @abstractmethod
    def prefix(self) -> str: ...

    @property
    def shown_as(self) -> str:
        return f"{self.scorer.shown_as} of {self.prefix}"

    def memory(self, sizes: FitSizes, *, keeps_products: bool) -> list[MemoryPart]:
        return self.scorer.memory(sizes, keeps_products=keeps_products)

    def n_columns(self) -> int:
        return self.scorer.n_columns()

    def index_kind(self, n_rows: int) -> str | None:
        return self.scorer.index_kind(n_rows)

    def score(
        self, X: Features, candidates: Candidates, *, n_jobs: int = 1, **found: Any
    ) -> dict[str, np.ndarray]:
        """The scorer's columns."""
        return self._named(self.scorer_.score(X, candidates, n_jobs=n_jobs, **found))

    def _named(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {f"{self.prefix}: {name}": values for name, values in columns.items()}

    def _restored(self) -> None:
        self.scorer_ = self.scorer
