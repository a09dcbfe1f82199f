"""`LabelScorer`: the one protocol of every source of evidence."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from metarank.candidates import Candidates
from metarank.persist.spec import Saved
from metarank.view import View

Features: TypeAlias = np.ndarray | sp.csr_matrix


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

    A subclass stores its parameters in ``__init__`` (keyword only), learns in
    `fit` and answers `score` with named columns. To be saved with a model it
    lists what it learned in a `metarank.persist.spec.Spec` named `saved`, or
    implements `get_state` and `from_state` (numbers, strings, lists, dicts,
    NumPy arrays and CSR matrices; no other objects), and is registered by
    `metarank.persist.register`.

    The columns of training rows come from scorers fitted on Views without the
    rows' fold; `metarank.crossfit` sees to that. A scorer that knows those
    scores at less cost implements `score_held_out` as a shortcut, one with parameters
    to be settled once for all folds `choose(view) -> unfitted scorer`, and one whose
    proposals and columns come from one costly search `search(X, n_jobs) -> dict` of
    keyword arguments for its `shortlist` and `score`. One that is an ensemble of trees
    says by `fit_trees`, `fit_rest` and `joined` how a fit divides, for workers of a
    cluster to share it (`metarank.scorers.tree_ensemble`).
    """

    # Whether the columns are scores of a classifier, which a label may weigh in its own way.
    is_classifier = False
    # Whether the columns come from the texts of the labels alone, whatever rows carry them.
    is_label_free = False
    # Whether a fit takes seconds only, on any number of rows: then `updated` is a fit.
    is_quick = False
    # What every column says of a label without a row in the View, where that is one number.
    score_without_rows: float | None = None

    def fit(self, view: View, *, n_jobs: int = 1) -> LabelScorer:
        """Learn from the rows of the View. Returns self."""
        raise TypeError(f"{type(self).__name__} must implement fit")

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """Named float32 columns (m,), finite, one value a pair; rows of X are rows of `candidates`.

        The value of a pair depends on its own row of X and its label only: not on the
        other rows of the batch, nor on `n_jobs`.
        """
        raise TypeError(f"{type(self).__name__} must implement score")

    def cheaper(self) -> LabelScorer:
        """An unfitted scorer whose columns mean the same, noisier perhaps, at less cost; self where there is
        none. It describes the rows of which nothing but held-out quality and cuts are learned."""
        return self

    def updated(self, view: View, *, n_jobs: int = 1) -> LabelScorer | None:
        """This scorer as fitted on a View with other rows or labels; None if that is not to be had quickly.

        Ids of labels that are in both stay the same; self stays as it is.
        """
        return clone(self).fit(view, n_jobs=n_jobs) if self.is_quick else None

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
