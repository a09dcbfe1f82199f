"""Scorers that use another one: of one block of the features, of one objective, or for the labels of now."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank.persist.fields import Declared, Ids, Integer, Known, Object, Text
from metarank.persist.spec import Spec
from metarank.scorers.base import HeldOutColumns, HeldOutProposals, LabelScorer, Planned, planned
from metarank.scorers.crossfit import held_out_columns
from metarank.scorers.neighbors.training_rows import check_lists
from metarank.types.block_columns import BlockColumns
from metarank.types.candidates import Candidates, canonical_csr
from metarank.types.feature_table import qualified
from metarank.types.label_names import OtherNames
from metarank.types.label_table import relabeled
from metarank.types.ragged import extreme_of_rows
from metarank.types.view import Features, TrainingSet, TrainingView


def as_of_scorer(name: str) -> Any:
    """An attribute of a scorer that is made of another one, `scorer`: that one's."""
    return property(lambda wrapper: getattr(wrapper.scorer, name), doc="That of the scorer.")


class WrappedScorer(LabelScorer):
    """Base of scorers that fit another one, `scorer`, on a part of their TrainingView.

    Attributes
    ----------
    scorer : LabelScorer
        Unfitted.
    scorer_ : LabelScorer
        Fitted.
    prefix : str
        The part, which stands in parentheses in the names of columns.
    """

    scorer: LabelScorer
    scorer_: LabelScorer

    is_classifier: bool = as_of_scorer("is_classifier")
    is_label_free: bool = as_of_scorer("is_label_free")
    reads_names: bool = as_of_scorer("reads_names")
    reads_given: bool = as_of_scorer("reads_given")
    is_quick: bool = as_of_scorer("is_quick")
    score_without_rows: float | None = as_of_scorer("score_without_rows")
    reads_text: ClassVar[str] = as_of_scorer("reads_text")

    @property
    @abstractmethod
    def prefix(self) -> str: ...

    @abstractmethod
    def _part(self, view: TrainingView) -> TrainingView:
        """What the scorer sees of a TrainingView."""

    @property
    def shown_as(self) -> str:
        return f"{self.scorer.shown_as} of {self.prefix}"

    def _of(self, scorer: LabelScorer) -> Self:
        """An unfitted copy with another scorer."""
        return type(self)(**{**self.get_params(deep=False), "scorer": scorer})

    def tuned(self, view: TrainingView, *, n_jobs: int = 1) -> Self:
        """An unfitted copy whose scorer's free parameters are tuned on the part."""
        return self._of(self.scorer.tuned(self._part(view), n_jobs=n_jobs))

    def cheaper(self) -> Self:
        return self._of(self.scorer.cheaper())

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> Self:
        """Fit the scorer on the part. Returns self."""
        self.scorer_ = clone(self.scorer).fit(self._part(view), n_jobs=n_jobs)
        return self

    def score(
        self, X: Features, candidates: Candidates, *, n_jobs: int = 1, **shared: Any
    ) -> dict[str, np.ndarray]:
        """The scorer's columns."""
        return self._named(self.scorer_.score(X, candidates, n_jobs=n_jobs, **shared))

    def _named(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {qualified(name, self.prefix): values for name, values in columns.items()}

    def _restored(self) -> None:
        self.scorer_ = self.scorer


class BlockScorer(WrappedScorer, HeldOutProposals):
    """A scorer that sees one block; its columns are named like ``label centroid (<block>): L2 distance``.

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
    ['label centroid (place): L2 distance', 'label centroid (place): cosine distance']
    """

    columns_: BlockColumns

    proposes: bool = as_of_scorer("proposes")

    saved: ClassVar[Spec] = Spec(
        Text("block"),
        Object("columns_", BlockColumns),
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

    def _part(self, view: TrainingView) -> TrainingView:
        return view.of_block(self.block)

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> BlockScorer:
        """Fit the scorer on the block. Returns self."""
        return super().fit(view, n_jobs=n_jobs)._in(view)

    def _in(self, view: TrainingView) -> BlockScorer:
        self.n_features_: int = view.n_features
        self.columns_ = replace(view.block(self.block), words=None)
        return self

    def search(self, X: Features, *, n_jobs: int = 1) -> dict[str, Any]:
        return self.scorer_.search(self.columns_.of(X), n_jobs=n_jobs)

    def score(
        self, X: Features, candidates: Candidates, *, n_jobs: int = 1, **shared: Any
    ) -> dict[str, np.ndarray]:
        """The scorer's columns."""
        return super().score(self.columns_.of(X), candidates, n_jobs=n_jobs, **shared)

    def shortlist(self, X: Features, k: int, *, n_jobs: int = 1, **shared: Any) -> Candidates:
        """The scorer's proposals."""
        return self.scorer_.shortlist(self.columns_.of(X), k, n_jobs=n_jobs, **shared)

    def planned(self) -> Planned | None:
        own = self.columns_
        of_block = planned(self.scorer_, own.is_dense)
        if of_block is None or of_block.block is not None:
            return None
        columns = [qualified(name, self.prefix) for name in of_block.columns]
        return Planned(of_block.core, columns, (own.start, own.stop, own.is_dense))

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray] | None:
        """The scorer's, if it has some without a fit for each fold."""
        if not isinstance(self.scorer, HeldOutColumns):
            return None
        of_block = data.of_block(self.block)
        columns = self.scorer.score_held_out(of_block, candidates, rows=rows, n_jobs=n_jobs)
        return None if columns is None else self._named(columns)

    def shortlist_held_out(
        self, data: TrainingSet, k: int, *, rows: np.ndarray, n_jobs: int = 1
    ) -> Candidates | None:
        """As `score_held_out`."""
        if not isinstance(self.scorer, HeldOutProposals):
            return None
        return self.scorer.shortlist_held_out(data.of_block(self.block), k, rows=rows, n_jobs=n_jobs)

    def neighbors_of(
        self, X: Features, label: int, k: int | None = None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        return self.scorer_.neighbors_of(self.columns_.of(X), label, k)

    def updated(self, view: TrainingView, *, n_jobs: int = 1) -> BlockScorer | None:
        new = self.scorer_.updated(self._part(view), n_jobs=n_jobs)
        if new is None:
            return None
        out = self._of(new)._in(view)
        out.scorer_ = new
        return out

    def label_texts(self) -> dict[str, sp.csr_matrix]:
        """The scorer's, in the columns of the block."""
        return {name: self._placed(text) for name, text in self.scorer_.label_texts().items()}

    def other_names(self) -> dict[str, OtherNames]:
        """The scorer's, in the columns of the block."""
        by_source = self.scorer_.other_names()
        return {
            source: OtherNames(self._placed(names.text), names.label) for source, names in by_source.items()
        }

    def block_rows(self) -> tuple[BlockColumns, Any, sp.csr_matrix] | None:
        training = self.scorer_.training_labels()
        return None if training is None else (self.columns_, *training)

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


class ObjectiveScorer(WrappedScorer, HeldOutColumns):
    """A scorer that is fitted on one objective's labels; its columns are named like
    ``label frequency (<objective>): log share``.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from metarank.scorers.neighbors.prior import LabelPrior
    >>> clicks = sp.csr_matrix(np.float32([[1], [0]]))
    >>> data = TrainingSet(np.ones((2, 1), np.float32), clicks, np.zeros(2), targets={"clicks": clicks})
    >>> scorer = ObjectiveScorer(scorer=LabelPrior(), objective="clicks").fit(data.view())
    >>> list(scorer.score(data.X, Candidates.all_labels(2, 1)))
    ['label frequency (clicks): log share']
    """

    saved: ClassVar[Spec] = Spec(
        Text("objective"), Object("scorer", LabelScorer, ("d", "L"), of=lambda own: own.scorer_)
    )

    def __init__(self, *, scorer: LabelScorer, objective: str) -> None:
        self.scorer = scorer
        self.objective = objective

    @property
    def prefix(self) -> str:
        return self.objective

    def _part(self, view: TrainingView) -> TrainingView:
        return view.of_objective(self.objective)

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """The scorer's columns of training rows, from fits without the row's fold."""
        of_objective = data.of_objective(self.objective)
        return self._named(held_out_columns(self.scorer, of_objective, candidates, rows=rows, n_jobs=n_jobs))


def _check_kept(known: Known) -> None:
    if isinstance(known.scorer, KeptScorer) or not len(known.now):
        raise ValueError("scorer must be one of some labels, not kept itself")


class KeptScorer(LabelScorer):
    """A fitted scorer with its labels mapped to those of now.

    Removed labels are never proposed. A label into which others were merged gets the maximum of their scores.
    A label that the scorer does not know gets `score_without_rows` if that is a number, else the lowest score
    of the row's candidates; if the scorer knows none of these, the score of its label 0.

    Parameters
    ----------
    scorer : fitted LabelScorer
    now : int32 array
        The present id of each label of the scorer, or -1 if it was removed.
    n_labels : int
        Present size L of the label set.
    """

    is_classifier: bool = as_of_scorer("is_classifier")
    proposes: bool = as_of_scorer("proposes")

    saved: ClassVar[Spec] = Spec(
        Object("scorer", LabelScorer, {"d": "d", "L": "before", "rows": "rows"}),
        Declared("n_labels", size="L"),
        Ids("now", np.int32, ("before",), least=-1, below="L"),
        check=_check_kept,
    )

    def __init__(self, *, scorer: LabelScorer, now: np.ndarray, n_labels: int) -> None:
        self.scorer = scorer
        self.now = now
        self.n_labels = n_labels

    @property
    def shown_as(self) -> str:
        return self.scorer.shown_as

    @classmethod
    def of(cls, scorer: Any, now: np.ndarray, n_labels: int) -> KeptScorer:
        """The scorer after one more change. `now` maps each earlier label to its present id, or -1."""
        if isinstance(scorer, cls):
            earlier = scorer.now
            now = np.where(earlier >= 0, now[earlier], -1)
            scorer = scorer.scorer
        return cls(scorer=scorer, now=np.ascontiguousarray(now, np.int32), n_labels=n_labels)

    @cached_property
    def _members(self) -> sp.csr_matrix:
        """CSR of ones (L, labels of the scorer): those that each present label stands for."""
        known = np.flatnonzero(self.now >= 0)
        ones = np.ones(len(known), np.int32)
        return sp.csr_matrix((ones, (self.now[known], known)), (self.n_labels, len(self.now)))

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """The columns of the scorer, float32 (m,)."""
        check_lists(candidates, X.shape[0], self.n_labels)
        known = candidates.to_csr(np.ones(candidates.n_pairs, np.int32)) @ self._members
        # Of rows without a candidate that the scorer knows, label 0.
        empty = np.flatnonzero((np.diff(known.indptr) == 0) & (np.diff(candidates.indptr) > 0))
        known = (
            known + sp.csr_matrix((np.ones_like(empty), (empty, 0 * empty)), known.shape)
        ).sorted_indices()
        pairs = Candidates(known.indptr, known.indices, len(self.now))
        now = self.now[pairs.labels]
        at, is_asked = Candidates.of_core(pairs.indptr, now, self.n_labels, {}).found_in(candidates)
        is_asked &= now >= 0
        blank, row = self.scorer.score_without_rows, candidates.row_of_pair
        columns = {}
        for name, values in self.scorer.score(X, pairs, n_jobs=n_jobs).items():
            column = np.full(len(row), -np.inf, np.float32)
            np.maximum.at(column, at[is_asked], values[is_asked])
            least = extreme_of_rows(np.minimum, values, known.indptr, 0.0)
            otherwise = least[row] if blank is None else np.full(len(row), blank)
            columns[name] = np.where(np.isneginf(column), otherwise, column).astype(np.float32)
        return columns

    def shortlist(self, X: Features, k: int, *, n_jobs: int = 1) -> Candidates:
        """The scorer's k proposals for each row, in present ids; fewer if some labels were removed."""
        listed: Candidates = self.scorer.shortlist(X, k, n_jobs=n_jobs)
        now = {
            name: relabeled(listed.to_csr(values), self.now, self.n_labels)
            for name, values in listed.scores.items()
        }
        pairs = next(iter(now.values()))  # the same for all
        scores = {name: matrix.data for name, matrix in now.items()}
        return Candidates(pairs.indptr, pairs.indices, self.n_labels, scores)
