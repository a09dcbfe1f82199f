"""`BlockScorer`: another scorer's evidence from one block of the features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank.persist.fields import Integer, Known, Object, Text
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.wrapped import WrappedScorer, as_of_scorer
from metarank.types.block_columns import BlockColumns
from metarank.types.candidates import Candidates
from metarank.types.canonical import canonical_csr
from metarank.types.other_names import OtherNames
from metarank.types.view import Features, View


class BlockScorer(WrappedScorer):
    """A scorer that sees one block; its columns are named ``<block>: <column>``.

    Parameters
    ----------
    scorer : LabelScorer
    block : str

    Examples
    --------
    >>> from metarank.scorers.neighbors.centroids import Centroids
    >>> from metarank.types.view import TrainingSet
    >>> X = np.float32([[1, 0, 9], [0, 1, 8], [1, 1, 7]])
    >>> Y = sp.csr_matrix(np.float32([[1, 0], [0, 1], [1, 1]]))
    >>> blocks = [BlockColumns("place", "vector", 0, 2, True), BlockColumns("age", "numbers", 2, 3, True)]
    >>> data = TrainingSet(X, Y, np.zeros(3), blocks=blocks)
    >>> scorer = BlockScorer(scorer=Centroids(), block="place").fit(data.view())
    >>> list(scorer.score(X, Candidates.all_labels(3, 2)))
    ['place: centroid_l2', 'place: centroid_cosine']
    """

    columns_: BlockColumns

    proposes: bool = as_of_scorer("proposes")

    saved: ClassVar[Spec] = Spec(
        Text("block"),
        Object("columns_", BlockColumns, inline=True),
        Integer("n_features_", 1, size="d"),
        Object("scorer", LabelScorer, ("L", "rows"), of=lambda own: own.scorer_),
        check=lambda known: _check_columns(known),
    )

    def __init__(self, *, scorer: LabelScorer, block: str) -> None:
        self.scorer = scorer
        self.block = block

    @property
    def prefix(self) -> str:
        return self.block

    def tuned(self, view: View, *, n_jobs: int = 1) -> BlockScorer:
        """An unfitted copy whose scorer's free parameters are tuned on the block."""
        return BlockScorer(
            scorer=self.scorer.tuned(view.of_block(self.block), n_jobs=n_jobs), block=self.block
        )

    def cheaper(self) -> BlockScorer:
        return BlockScorer(scorer=self.scorer.cheaper(), block=self.block)

    def fit(self, view: View, *, n_jobs: int = 1) -> BlockScorer:
        """Fit the scorer on the block. Returns self."""
        return self._with(clone(self.scorer).fit(view.of_block(self.block), n_jobs=n_jobs), view)

    def _with(self, scorer: LabelScorer, view: View) -> BlockScorer:
        self.scorer_ = scorer
        self.n_features_: int = view.n_features
        self.columns_ = replace(view.block(self.block), words=None)
        return self

    def search(self, X: Features, *, n_jobs: int = 1) -> dict[str, Any]:
        return self.scorer_.search(self.columns_.of(X), n_jobs=n_jobs)

    def score(
        self, X: Features, candidates: Candidates, *, n_jobs: int = 1, **found: Any
    ) -> dict[str, np.ndarray]:
        """The scorer's columns."""
        return super().score(self.columns_.of(X), candidates, n_jobs=n_jobs, **found)

    def shortlist(self, X: Features, k: int, *, n_jobs: int = 1, **found: Any) -> Candidates:
        """The scorer's proposals."""
        return self.scorer_.shortlist(self.columns_.of(X), k, n_jobs=n_jobs, **found)

    def neighbors_of(
        self, X: Features, label: int, k: int | None = None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        return self.scorer_.neighbors_of(self.columns_.of(X), label, k)

    def updated(self, view: View, *, n_jobs: int = 1) -> BlockScorer | None:
        new = self.scorer_.updated(view.of_block(self.block), n_jobs=n_jobs)
        return None if new is None else BlockScorer(scorer=new, block=self.block)._with(new, view)

    def label_texts(self) -> dict[str, sp.csr_matrix]:
        """The scorer's, in the columns of the block."""
        return {name: self._placed(text) for name, text in self.scorer_.label_texts().items()}

    def other_names(self) -> dict[str, OtherNames]:
        """The scorer's, in the columns of the block."""
        found = self.scorer_.other_names()
        return {source: OtherNames(self._placed(names.text), names.label) for source, names in found.items()}

    def label_phrases(self) -> list[str] | None:
        return self.scorer_.label_phrases()

    def block_rows(self) -> tuple[BlockColumns, Any, sp.csr_matrix] | None:
        found = self.scorer_.training_labels()
        return None if found is None else (self.columns_, *found)

    def _placed(self, text: sp.csr_matrix) -> sp.csr_matrix:
        """A matrix of the block's columns as one of all columns."""
        shape = (text.shape[0], self.n_features_)
        return canonical_csr(text.data, text.indices + self.columns_.start, text.indptr, shape)


def _check_columns(known: Known) -> None:
    columns, width = known.columns_, known.scorer.named_sizes().get("d")
    if columns.stop > known.n_features_ or width not in (None, columns.stop - columns.start):
        raise ValueError(
            f"columns must be those of the scorer, which has {width}, of {known.n_features_}, got "
            f"{columns.start} to {columns.stop}"
        )
