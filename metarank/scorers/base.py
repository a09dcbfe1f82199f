"""`LabelScorer`: the one protocol of every source of evidence."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank._util.typed_base import BaseEstimator
from metarank.persist.spec import Saved
from metarank.scorers.sizes import DESCRIBE, FIT, FitSizes, MemoryPart
from metarank.types.block_columns import BlockColumns
from metarank.types.candidates import Candidates
from metarank.types.given import Given
from metarank.types.other_names import OtherNames
from metarank.types.view import Features, TrainingSet, View

_FLOAT32 = np.dtype(np.float32)

# A class has an ability if it implements the method.
_TOLD_BY = {
    "proposes": "shortlist",
    "proposes_points": "shortlist_points",
    "has_held_out_columns": "score_held_out",
    "has_held_out_proposals": "shortlist_held_out",
    "is_tunable": "tuned",
}


class Planned(NamedTuple):
    """A fitted scorer as a source of `metarank.model.plan.Plan`.

    Attributes
    ----------
    core : metarank._core.PlanSource
    columns : list of str
        The names of its columns, in their order.
    """

    core: Any
    columns: list[str]


def columns_of(scorer: Any, X: Features, candidates: Candidates, **options: Any) -> dict[str, np.ndarray]:
    """The columns of a scorer, which may be user-defined: named arrays with one value for each pair.

    Raises
    ------
    TypeError, ValueError
        If `score` returns anything else. The message names the scorer.
    """
    found = scorer.score(X, candidates, **options)
    shape = candidates.labels.shape
    if type(found) is dict and all(
        type(values) is np.ndarray
        and values.dtype is _FLOAT32
        and values.shape == shape
        and type(name) is str
        for name, values in found.items()
    ):
        return found
    who, m = type(scorer).__name__, candidates.n_pairs
    rule = f"{who}.score must return a dict of names to arrays of {m} numbers, one a pair"
    if not isinstance(found, dict):
        raise TypeError(f"{rule}, got {type(found).__name__}")
    for name, values in found.items():
        if not isinstance(name, str):
            raise TypeError(f"{rule}, got the name {name!r:.40}")
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
            raise TypeError(f"{rule}, got {type(values).__name__} for {name!r:.40}")
        if values.shape != (m,):
            raise ValueError(f"{rule}, got shape {values.shape} for {name!r:.40}")
    return found


class LabelScorer(Saved, BaseEstimator):
    """Evidence for pairs (instance, label): fit on a View, score any pair.

    A subclass stores its parameters in ``__init__`` (keyword only), learns in `fit` and returns named columns
    from `score`. If it also proposes labels, it implements `shortlist`. To be saved with a model, it lists
    what it learned in a `metarank.persist.spec.Spec` named `saved`, or implements `get_state` and
    `from_state` (numbers, strings, lists, dicts, NumPy arrays and CSR matrices; no other objects), and is
    registered with `metarank.persist.register`.

    Everything else has a default that suits most scorers. `metarank.scorers.crossfit` computes the columns of
    training rows from scorers that are fitted without the rows' fold; a scorer that can compute them at lower
    cost implements `score_held_out` and `shortlist_held_out`. `tuned` chooses parameters once for all folds.
    `search` computes what `shortlist` and `score` have in common. `blocks` divides a fit into parts for
    several workers (`metarank.scorers.trees.tree_ensemble`). `memory` and `n_columns` tell the memory plan
    the cost of a fit. The methods from `updated` on handle changes of labels and rows after a fit.

    Attributes
    ----------
    proposes : bool
        Whether it implements `shortlist`.
    proposes_points : bool
        Whether it has ``shortlist_points(X, k, n_jobs=1)``: at most k rows of X for each label, the best by
        its own score, as `Candidates` of the labels.
    is_classifier : bool
        Whether its columns are classifier scores, which the ranker may weight label by label.
    is_label_free : bool
        Whether its columns depend on the texts of the labels alone, not on their training rows.
    reads_names : bool
        Whether it can score labels without training rows, by their names.
    reads_given : bool
        Whether it reads what others say of pairs, a `metarank.types.given.Given` of the rows, in place of
        their features X.
    reads_word_order : bool
        Whether it reads the words of texts in their order, `Given.words`; `reads_given` then too.
    proposes_given : bool
        Whether it proposes what was given and nothing else, however many labels are asked for.
    is_quick : bool
        Whether a fit takes only seconds on any number of rows; `updated` then refits.
    score_without_rows : float or None
        The value of every column for a label without a row in the View, if that is a constant.
    has_held_out_columns, has_held_out_proposals, is_tunable : bool
        Whether it implements `score_held_out`, `shortlist_held_out` and `tuned`.
    tune : int
        The number of settings among which `tuned` chooses; see `trying`.
    rest : tuple of str
        Names of what a fit in blocks learns apart from the blocks.
    source : str
        The label texts that it reads from a `View`: "label_text", "label_spelling", or "" for none.
    title : str
        Name of its proposals in reports; the default is the name of the class.
    by_block : bool
        Whether it describes each block of X by itself, rather than all of them together.
    needs_words : bool
        Whether it describes only features that stand for words.
    suits_any_block : bool
        Whether it describes also blocks of one or two numbers, and of categories.
    block : str
        The block that it describes; "" for all of X.
    shown_as : str
        Its name in reports.
    """

    proposes: bool = False
    proposes_points: bool = False
    is_classifier: bool = False
    is_label_free: bool = False
    reads_names: bool = False
    reads_given: bool = False
    reads_word_order: bool = False
    proposes_given: bool = False
    is_quick: bool = False
    score_without_rows: float | None = None
    has_held_out_columns: bool = False
    has_held_out_proposals: bool = False
    is_tunable: bool = False
    tune: int = 0
    rest: ClassVar[tuple[str, ...]] = ()
    source: ClassVar[str] = ""
    title: ClassVar[str] = ""
    by_block: ClassVar[bool] = False
    needs_words: ClassVar[bool] = False
    suits_any_block: ClassVar[bool] = False
    block: str = ""

    @property
    def shown_as(self) -> str:
        return type(self).__name__

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        for flag, method in _TOLD_BY.items():
            if method in own and flag not in own:
                setattr(cls, flag, True)
        if own.get("is_label_free") is True:
            cls.reads_names = True

    # --- fit and score --------------------------------------------

    def fit(self, view: View, *, n_jobs: int = 1) -> LabelScorer:
        """Learn from the rows of the View. Returns self."""
        raise TypeError(f"{type(self).__name__} must implement fit")

    def score(self, X: Any, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """Named float32 columns (m,), finite, one value a pair; rows of X are rows of `candidates`.

        The value of a pair depends on its own row of X and its label only: not on the
        other rows of the batch, nor on `n_jobs`.
        """
        raise TypeError(f"{type(self).__name__} must implement score")

    def shortlist(self, X: Any, k: int, *, n_jobs: int = 1) -> Candidates:
        """At most k labels for each row, the best by its own score."""
        raise TypeError(f"{type(self).__name__} proposes no labels: it has no shortlist of its own")

    def search(self, X: Any, *, n_jobs: int = 1) -> dict[str, Any]:
        """What `shortlist` and `score` both need for some rows, as keyword arguments of both."""
        return {}

    def planned(self) -> Planned | None:
        """The fitted scorer as a source of a compiled plan, which proposes and describes sparse rows as
        `shortlist` and `score` do, to the bit; None where only these can."""
        return None

    def neighbors_of(
        self, X: Features, label: int, k: int | None = None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """(rows, distances) of the training rows of a label nearest to one row; None if it keeps no rows."""
        return None

    def given_read(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the given sources and of the features of pairs that it reads."""
        return (), ()

    def check_given(self, given: Given) -> None:
        """Raise ValueError if what it reads of them is given in another way than in the fit."""

    def training_record(self) -> tuple[str, float, int] | None:
        """The name of a given source, how often its best pair of a training row was relevant, and in how many
        rows with labels; None if it is no given source."""
        return None

    # --- held-out rows ------------------------------------------------------

    def tuned(self, view: View, *, n_jobs: int = 1) -> LabelScorer:
        """An unfitted copy whose free parameters are tuned on the View."""
        return self

    def trying(self, n: int) -> LabelScorer:
        """An unfitted copy that `tuned` chooses among n settings, unless it says how many itself; by default
        self, which has none to choose among."""
        return self

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """The columns of training rows, equal to those of fits without the row's fold."""
        raise TypeError(f"{type(self).__name__} has no score_held_out of its own")

    def shortlist_held_out(
        self, data: TrainingSet, k: int, *, rows: np.ndarray, n_jobs: int = 1
    ) -> Candidates:
        """The proposals for training rows, equal to those of fits without the row's fold."""
        raise TypeError(f"{type(self).__name__} has no shortlist_held_out of its own")

    def cheaper(self) -> LabelScorer:
        """An unfitted scorer whose columns mean the same at lower cost, perhaps noisier; by default self. It
        describes rows from which only held-out quality and cuts are learned."""
        return self

    # --- what a fit costs ---------------------------------------------------

    def blocks(self) -> list[tuple[int, int]]:
        """(first, count) of the parts that a fit divides into; one part if it does not divide."""
        return [(0, 1)]

    def memory(self, sizes: FitSizes, *, keeps_products: bool) -> list[MemoryPart]:
        """The memory that its fits need; see `metarank.scorers.sizes`."""
        return [MemoryPart(type(self).__name__, 16 * sizes.Y.nnz + 8 * sizes.n_labels, (FIT,))]

    def _parts_of(self, sizes: FitSizes, fitted: int, training: int, remedy: str) -> list[MemoryPart]:
        """The parts of a scorer that is fitted without each fold and on all rows, from the bytes of a fitted
        scorer and the bytes that training needs in addition."""
        name = type(self).__name__
        return [
            MemoryPart(f"{name} on all rows", fitted + training, (FIT,), remedy),
            MemoryPart(f"{name} without folds", fitted * sizes.used_folds + training, (DESCRIBE,), remedy),
        ]

    def n_columns(self) -> int:
        """The number of columns of `score`, as far as it is known before a fit."""
        return 1

    def index_kind(self, n_rows: int) -> str | None:
        """The kind of index over dense training rows that it searches; None if it searches none."""
        return None

    def _check_params(self) -> None:
        """Raise an error for parameters out of range, before any work."""

    def _restored(self) -> None:
        self._check_params()

    # --- labels and rows that change, shards --------------------------------

    def updated(self, view: View, *, n_jobs: int = 1) -> LabelScorer | None:
        """A scorer as if fitted on a View with other rows or labels; None if a refit is required.

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
        """The texts of the labels that it keeps, (L, d), by their name in a `View`."""
        return {}

    def other_names(self) -> dict[str, OtherNames]:
        """The alternative names of the labels that it keeps, by their name in a `View`."""
        return {}

    def labels_named(self) -> np.ndarray:
        """The labels that it looks for in the words of texts, if it `reads_word_order`."""
        return np.zeros(0, np.int32)

    def label_phrases(self) -> list[str] | None:
        """The phrases from which it learned about each label, if it did."""
        return None

    def of_labels(self, first: int, last: int) -> LabelScorer | None:
        """The scorer restricted to a range of labels, renumbered from 0; None if it cannot be restricted."""
        return None

    def rows_searched(self) -> tuple[Features, np.ndarray] | None:
        """The training rows (n, d) and the numbers of those that it searches for neighbours. None if results
        from parts of the rows cannot be merged exactly."""
        return None

    def without_rows(self) -> LabelScorer:
        """A copy without `rows_searched`, which scores by neighbours that were found elsewhere."""
        return self

    # --- saving -------------------------------------------------------------

    def sizes(self) -> tuple[int | None, int | None]:
        """(features, labels) of the fitted scorer; None if it does not know.

        A loaded model compares them with its own. The default is the sizes "d" and "L" of the saved state.
        """
        known = super().named_sizes()
        return known.get("d"), known.get("L")

    def rows_kept(self) -> int | None:
        """The number of training rows that the fitted scorer keeps; None if it keeps none.

        A loaded model compares it with its own. The default is the size "rows" of the saved state.
        """
        return super().named_sizes().get("rows")

    def named_sizes(self) -> dict[str, int]:
        """The known sizes, by name."""
        d, L = self.sizes()
        return {name: n for name, n in (("d", d), ("L", L), ("rows", self.rows_kept())) if n is not None}
