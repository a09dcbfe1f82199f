"""`LabelScorer`: the base class of every source of evidence."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank._util.typed_base import BaseEstimator
from metarank.persist.spec import Saved
from metarank.types.block_columns import BlockColumns
from metarank.types.candidates import Candidates
from metarank.types.given import Given
from metarank.types.label_names import OtherNames
from metarank.types.view import Features, TrainingSet, TrainingView


class Planned(NamedTuple):
    """A fitted scorer as a source of `metarank.model.answering.plan.Plan`.

    Attributes
    ----------
    core : metarank._core.PlanSource
    columns : list of str
        The names of its columns, in their order.
    block : (start, stop, is_dense) or None
        The columns of the rows that it reads; all, as sparse rows, if None.
    """

    core: Any
    columns: list[str]
    block: tuple[int, int, bool] | None = None


# What a subclass changes of these, the plan of its parent does not know.
_INTERFACES = ("shortlist", "score", "search")


def planned(scorer: LabelScorer, is_dense: bool = False) -> Planned | None:
    """The scorer as a source of a plan; None if the core does not compute its scores."""
    order = type(scorer).__mro__
    of_class = next(number for number, base in enumerate(order) if "planned" in vars(base))
    changed = [vars(scorer), *map(vars, order[:of_class])]
    if any(name in methods for methods in changed for name in _INTERFACES):
        return None
    return scorer.planned_dense() if is_dense else scorer.planned()


def columns_of(scorer: Any, X: Features, candidates: Candidates, **options: Any) -> dict[str, np.ndarray]:
    """The columns of a scorer, which may be user-defined: named arrays with one value for each pair.

    Raises
    ------
    TypeError, ValueError
        If `score` returns anything else. The message names the scorer.
    """
    columns = scorer.score(X, candidates, **options)
    m = candidates.n_pairs
    rule = f"{type(scorer).__name__}.score must return a dict of names to arrays of {m} numbers, one per pair"
    if not isinstance(columns, dict):
        raise TypeError(f"{rule}, got {type(columns).__name__}")
    for name, values in columns.items():
        if not isinstance(name, str):
            raise TypeError(f"{rule}, got the name {name!r:.40}")
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
            raise TypeError(f"{rule}, got {type(values).__name__} for {name!r:.40}")
        if values.shape != (m,):
            raise ValueError(f"{rule}, got shape {values.shape} for {name!r:.40}")
    return columns


class LabelScorer(Saved, BaseEstimator):
    """Evidence for pairs (instance, label): fitted on the training data that it may see, it scores any pair.

    A subclass stores its parameters in ``__init__`` (keyword only), learns in `fit` and returns named columns
    from `score`. If it also proposes labels, it implements `shortlist`. To be saved with a model, it lists
    what it learned in a `metarank.persist.spec.Spec` named `saved`, or implements `get_state` and
    `from_state` (numbers, strings, lists, dicts, NumPy arrays and CSR matrices; no other objects), and is
    registered with `metarank.persist.register`.

    Everything else has a default. `metarank.scorers.crossfit` computes the columns of
    training rows from scorers that are fitted without the rows' fold; a scorer with a faster way
    inherits from `HeldOutColumns` or `HeldOutProposals`, one that finds the best rows of a label from
    `PointProposer`. `tuned` chooses parameters once for all folds. `search` computes what `shortlist` and
    `score` have in common. The methods from `updated` on handle changes of labels and rows after a fit.

    Attributes
    ----------
    proposes : bool
        Whether it implements `shortlist`.
    is_classifier : bool
        Whether its columns are classifier scores, which the ranker may weight label by label.
    is_label_free : bool
        Whether its columns depend on the texts of the labels alone, not on their training rows.
    reads_names : bool
        Whether it can score labels without training rows, by their names; by default `is_label_free`.
    reads_given : bool
        Whether it reads given scores of pairs, a `metarank.types.given.Given`, instead of the features X.
    reads_word_order : bool
        Whether it reads the words of texts in their order, `Given.words`; `reads_given` then too.
    proposes_given : bool
        Whether it proposes exactly the given candidates, for any number of labels.
    is_quick : bool
        Whether a fit takes only seconds on any number of rows; `updated` then refits.
    score_without_rows : float or None
        The value of every column for a label without a row in the TrainingView, if that is a constant.
    reads_text : str
        The label texts that it reads from a `TrainingView`: "label_text", "label_spelling", or "" for none.
    title : str
        Name of its proposals in reports; the default is the name of the class.
    by_block : bool
        Whether it describes each block of X separately.
    needs_words : bool
        Whether it describes only features that are words.
    suits_any_block : bool
        Whether it also describes blocks of one or two numbers, and of categories.
    block : str
        The block that it describes; "" for all of X.
    shown_as : str
        Its name in reports.
    """

    is_classifier: bool = False
    is_label_free: bool = False
    reads_given: bool = False
    reads_word_order: bool = False
    proposes_given: bool = False
    is_quick: bool = False
    score_without_rows: float | None = None
    reads_text: ClassVar[str] = ""
    title: ClassVar[str] = ""
    by_block: ClassVar[bool] = False
    needs_words: ClassVar[bool] = False
    suits_any_block: ClassVar[bool] = False
    block: str = ""

    @property
    def proposes(self) -> bool:
        return type(self).shortlist is not LabelScorer.shortlist

    @property
    def reads_names(self) -> bool:
        return self.is_label_free

    @property
    def shown_as(self) -> str:
        return type(self).__name__

    # --- fit and score --------------------------------------------

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> LabelScorer:
        """Learn from the rows of the TrainingView. Returns self."""
        raise TypeError(f"{type(self).__name__} must implement fit")

    def score(self, X: Any, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """Named float32 columns (m,), finite, one value per pair; rows of X are rows of `candidates`.

        The value of a pair depends only on its row of X and its label, not on other rows or `n_jobs`.
        """
        raise TypeError(f"{type(self).__name__} must implement score")

    def shortlist(self, X: Any, k: int, *, n_jobs: int = 1) -> Candidates:
        """At most k labels for each row, the best by its score."""
        raise TypeError(f"{type(self).__name__} proposes no labels: it has no shortlist")

    def search(self, X: Any, *, n_jobs: int = 1) -> dict[str, Any]:
        """What `shortlist` and `score` share for some rows, as keyword arguments of both."""
        return {}

    def planned(self) -> Planned | None:
        """The fitted scorer as a source of a compiled plan, which proposes and describes rows as `shortlist`
        and `score` do, to the bit; None if it cannot."""
        return None

    def planned_dense(self) -> Planned | None:
        """As `planned`, of rows which a plan has as an array, too."""
        return self.planned()

    def neighbors_of(
        self, X: Features, label: int, k: int | None = None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """(rows, distances) of the training rows of a label nearest to one row; None if it keeps no rows."""
        return None

    def given_read(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the given sources and of the features of pairs that it reads."""
        return (), ()

    def check_given(self, given: Given) -> None:
        """Raise ValueError if the sources that it reads are given differently than in the fit."""

    # --- held-out rows ------------------------------------------------------

    def tuned(self, view: TrainingView, *, n_jobs: int = 1) -> LabelScorer:
        """An unfitted copy whose free parameters are tuned on the TrainingView."""
        return self

    def cheaper(self) -> LabelScorer:
        """An unfitted scorer with the same columns at lower cost, perhaps noisier; by default self. It
        describes rows for held-out estimates and thresholds only."""
        return self

    # --- parameters -------------------------------------------------

    def _check_params(self) -> None:
        """Raise an error for parameters out of range, before any work."""

    def _restored(self) -> None:
        self._check_params()

    # --- labels and rows that change --------------------------------

    def updated(self, view: TrainingView, *, n_jobs: int = 1) -> LabelScorer | None:
        """A scorer as if fitted on a TrainingView with other rows or labels; None if a refit is required.

        Labels that are in both keep their ids. Self does not change.
        """
        return clone(self).fit(view, n_jobs=n_jobs) if self.is_quick else None

    def training_labels(self) -> tuple[Any, sp.csr_matrix] | None:
        """The training rows, a `TrainingRows`, and their labels, CSR (n, L) of ones; None if not kept."""
        return None

    def block_rows(self) -> tuple[BlockColumns, Any, sp.csr_matrix] | None:
        """As `training_labels`, for rows of one block of the features, and its columns."""
        return None

    def label_texts(self) -> dict[str, sp.csr_matrix]:
        """The texts of the labels that it keeps, (L, d), by their name in a `TrainingView`."""
        return {}

    def other_names(self) -> dict[str, OtherNames]:
        """The alternative names of the labels that it keeps, by their name in a `TrainingView`."""
        return {}

    def labels_named(self) -> np.ndarray:
        """The labels that it looks for in the words of texts, if it `reads_word_order`."""
        return np.zeros(0, np.int32)


class HeldOutColumns(LabelScorer):
    """A scorer that computes the columns of held-out rows without a fit for each fold."""

    @abstractmethod
    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray] | None:
        """The columns of some training rows, equal to those of fits without the row's fold; None where only
        such fits tell them."""


class HeldOutProposals(HeldOutColumns):
    """A scorer that also proposes labels for held-out rows without a fit for each fold."""

    @abstractmethod
    def shortlist_held_out(
        self, data: TrainingSet, k: int, *, rows: np.ndarray, n_jobs: int = 1
    ) -> Candidates | None:
        """The proposals for some training rows, equal to those of fits without the row's fold; None as in
        `score_held_out`."""


class PointProposer(LabelScorer):
    """A scorer that proposes rows for labels as well as labels for rows."""

    @abstractmethod
    def shortlist_points(self, X: Any, k: int, *, n_jobs: int = 1) -> Candidates:
        """At most k rows of X for each label, the best by its score: row l holds those of label l."""
