"""`LabelScorer`: the one protocol of every source of evidence."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from metarank.persist.spec import Saved
from metarank.scorers.sizes import DESCRIBE, FIT, FitSizes, MemoryPart
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingSet, View

# What a class can do shows in the methods that it has of its own.
_TOLD_BY = {
    "proposes": "shortlist",
    "has_held_out_columns": "score_held_out",
    "has_held_out_proposals": "shortlist_held_out",
    "is_tunable": "tuned",
}


def columns_of(scorer: Any, X: Features, candidates: Candidates, **options: Any) -> dict[str, np.ndarray]:
    """What a scorer, which may be a user's own, says of the pairs: named arrays with a value a pair.

    Raises
    ------
    TypeError, ValueError
        If `score` gives anything else; the scorer is named.
    """
    found = scorer.score(X, candidates, **options)
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

    A subclass stores its parameters in ``__init__`` (keyword only), learns in `fit` and answers `score` with
    named columns. One that also proposes labels has `shortlist`. To be saved with a model it lists what
    it learned in a `metarank.persist.spec.Spec` named `saved`, or implements `get_state` and `from_state`
    (numbers, strings, lists, dicts, NumPy arrays and CSR matrices; no other objects), and is registered by
    `metarank.persist.register`.

    Everything else has a default that is right for most. The columns of training rows come from scorers
    fitted on Views without the rows' fold; `metarank.scorers.crossfit` sees to that, unless a scorer knows
    those columns at less cost (`score_held_out`, `shortlist_held_out`). `tuned` chooses parameters once for
    all folds, `search` finds what proposing and describing both need, `blocks` divides a fit into parts that
    several workers share (`metarank.scorers.trees.tree_ensemble`), `memory` and `n_columns` tell the memory
    plan what a fit costs, and the methods from `updated` on say what becomes of a fitted scorer when labels
    or rows change.

    Attributes
    ----------
    proposes : bool
        Whether it has `shortlist`; true of each class that implements it.
    is_classifier : bool
        Whether the columns are scores of a classifier, which a label may weigh in its own way.
    is_label_free : bool
        Whether the columns come from the texts of the labels alone, whatever rows carry them.
    reads_names : bool
        Whether it knows something of labels that have no row, by their names.
    is_quick : bool
        Whether a fit takes seconds only, on any number of rows: then `updated` is a fit.
    score_without_rows : float or None
        What every column says of a label without a row in the View, where that is one number.
    has_held_out_columns, has_held_out_proposals, is_tunable : bool
        Whether it has `score_held_out`, `shortlist_held_out` and `tuned` of its own.
    rest : tuple of str
        What a fit in blocks learns beside them.
    source : str
        Which texts of the labels it reads: "label_text", "label_spelling" of a `View`, or none.
    title : str
        What a report calls its proposals; by default the name of the class.
    """

    proposes: bool = False
    is_classifier: bool = False
    is_label_free: bool = False
    reads_names: bool = False
    is_quick: bool = False
    score_without_rows: float | None = None
    has_held_out_columns: bool = False
    has_held_out_proposals: bool = False
    is_tunable: bool = False
    rest: ClassVar[tuple[str, ...]] = ()
    source: ClassVar[str] = ""
    title: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        for flag, method in _TOLD_BY.items():
            if method in own and flag not in own:
                setattr(cls, flag, True)
        if own.get("is_label_free") is True:
            cls.reads_names = True

    # --- a fit, and what it says --------------------------------------------

    def fit(self, view: View, *, n_jobs: int = 1) -> LabelScorer:
        """Learn from the rows of the View. Returns self."""
        raise TypeError(f"{type(self).__name__} must implement fit")

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """Named float32 columns (m,), finite, one value a pair; rows of X are rows of `candidates`.

        The value of a pair depends on its own row of X and its label only: not on the
        other rows of the batch, nor on `n_jobs`.
        """
        raise TypeError(f"{type(self).__name__} must implement score")

    def shortlist(self, X: Features, k: int, *, n_jobs: int = 1) -> Candidates:
        """At most k labels of each row, the best by its own score."""
        raise TypeError(f"{type(self).__name__} proposes no labels: it has no shortlist of its own")

    def search(self, X: Features, *, n_jobs: int = 1) -> dict[str, Any]:
        """What `shortlist` and `score` both need of some rows, as keyword arguments of both."""
        return {}

    def neighbors_of(
        self, X: Features, label: int, k: int | None = None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """(rows, distances) of the training rows of a label nearest to one row; None if it knows none."""
        return None

    # --- held-out rows ------------------------------------------------------

    def tuned(self, view: View, *, n_jobs: int = 1) -> LabelScorer:
        """An unfitted scorer whose free parameters are tuned on the View."""
        return self

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """The columns of training rows, as fits without the row's fold give them."""
        raise TypeError(f"{type(self).__name__} has no score_held_out of its own")

    def shortlist_held_out(
        self, data: TrainingSet, k: int, *, rows: np.ndarray, n_jobs: int = 1
    ) -> Candidates:
        """The proposals for training rows, as fits without the row's fold give them."""
        raise TypeError(f"{type(self).__name__} has no shortlist_held_out of its own")

    def cheaper(self) -> LabelScorer:
        """An unfitted scorer whose columns mean the same, noisier perhaps, at less cost; self where there is
        none. It describes the rows of which nothing but held-out quality and cuts are learned."""
        return self

    # --- what a fit costs ---------------------------------------------------

    def blocks(self) -> list[tuple[int, int]]:
        """(first, count) of the parts that a fit divides into; a single one if it does not divide."""
        return [(0, 1)]

    def memory(self, sizes: FitSizes, *, keeps_products: bool) -> list[MemoryPart]:
        """What its fits hold; see `metarank.scorers.sizes`."""
        return [MemoryPart(type(self).__name__, 16 * sizes.Y.nnz + 8 * sizes.n_labels, (FIT,))]

    def _parts_of(self, sizes: FitSizes, fitted: int, training: int, remedy: str) -> list[MemoryPart]:
        """The parts of a scorer that is fitted once without each fold, and on all rows: bytes of a fitted
        one, and what training takes beside it."""
        name = type(self).__name__
        return [
            MemoryPart(f"{name} on all rows", fitted + training, (FIT,), remedy),
            MemoryPart(f"{name} without folds", fitted * sizes.used_folds + training, (DESCRIBE,), remedy),
        ]

    def n_columns(self) -> int:
        """How many columns `score` gives, as far as that is known before a fit."""
        return 1

    def index_kind(self, n_rows: int) -> str | None:
        """The index of dense training rows that it searches; None if it searches none."""
        return None

    def _check_params(self) -> None:
        """Refuses parameters out of range before any work."""

    # --- labels and rows that change, shards --------------------------------

    def updated(self, view: View, *, n_jobs: int = 1) -> LabelScorer | None:
        """This scorer as fitted on a View with other rows or labels; None if a refit is required.

        Ids of labels that are in both stay the same; self stays as it is.
        """
        return clone(self).fit(view, n_jobs=n_jobs) if self.is_quick else None

    def training_labels(self) -> tuple[Any, sp.csr_matrix] | None:
        """The training rows (a `TrainingRows`) and their labels, CSR (n, L) of ones; None if it has none."""
        return None

    def label_texts(self) -> dict[str, sp.csr_matrix]:
        """The texts of the labels that it keeps, (L, d), by their name in a `View`."""
        return {}

    def label_phrases(self) -> list[str] | None:
        """What is written of each label, where it has learned to read that."""
        return None

    def of_labels(self, first: int, last: int) -> LabelScorer | None:
        """What it knows of a range of labels, which count from 0 there; None if it does not divide so."""
        return None

    def rows_searched(self) -> tuple[Features, np.ndarray] | None:
        """The training rows (n, d) and the numbers of those that it searches for neighbours of a row, where
        parts of them may be searched apart and what they find be merged, exactly; else None."""
        return None

    def without_rows(self) -> LabelScorer:
        """What answers by neighbours that were found elsewhere, where there are `rows_searched`."""
        return self

    # --- saving -------------------------------------------------------------

    def sizes(self) -> tuple[int | None, int | None]:
        """(features, labels) that the fitted scorer is of; None where it does not know.

        A model that is loaded compares them with its own. By default the sizes "d" and "L" of what is saved.
        """
        known = super().named_sizes()
        return known.get("d"), known.get("L")

    def rows_kept(self) -> int | None:
        """How many training rows the fitted scorer keeps, and names by number; None where it keeps none.

        A model that is loaded compares them with its own. By default the size "rows" of what is saved.
        """
        return super().named_sizes().get("rows")

    def named_sizes(self) -> dict[str, int]:
        """The sizes that are known, by name."""
        d, L = self.sizes()
        return {name: n for name, n in (("d", d), ("L", L), ("rows", self.rows_kept())) if n is not None}
