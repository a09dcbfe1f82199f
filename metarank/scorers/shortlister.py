"""`StandaloneShortlister`: a scorer that proposes labels, usable alone or as a source of `MetaRanker`."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp

from metarank._util.parameters import one_target, seed_of
from metarank._util.progress import report, shows_progress
from metarank._util.threads import resolve_n_jobs
from metarank.data.dataset import Dataset
from metarank.data.encoder import label_text_of
from metarank.persist.savable import Savable
from metarank.scorers.base import LabelScorer
from metarank.types.arrays import csr_parts
from metarank.types.checks import (
    check_features,
    check_labels,
    check_sample_weight,
    check_savable_width,
    is_ready,
)
from metarank.types.view import TrainingSet, TrainingView

S = TypeVar("S", bound="StandaloneShortlister")


class StandaloneShortlister(LabelScorer, Savable):
    """A `LabelScorer` that is also an estimator, with ``fit(X, Y)`` as well as ``fit(view)``.

    A subclass learns in ``_learn(view, sample_weight, n_jobs)``.

    Attributes
    ----------
    n_features_in_ : int
    n_labels_ : int
    random_state_ : int
        The seed of the fit, if there is a parameter `random_state`.
    """

    n_features_in_: int
    n_labels_: int
    random_state: Any = 0
    # Whether a fit on a Dataset reads the names of its labels.
    uses_names: ClassVar[bool] = False

    @shows_progress
    def fit(
        self: S, X: Any, Y: Any = None, *, y: Any = None, sample_weight: Any = None, n_jobs: int | None = None
    ) -> S:
        """Learn from features X (n, d) and relevances Y (n, L). Returns self.

        Parameters
        ----------
        X : array, sparse matrix or table (n, d), a Dataset (then without Y), or a TrainingView
        Y : relevances >= 0 (n, L), or a list of label lists, whose integers are ids in [0, L)
        y : the name of Y in scikit-learn; pass one of the two
        sample_weight : array (n,) or None
            Non-negative weight of each row in the losses that are minimised; rows of weight 0 are left out.
            Counts, means and clusters of labels do not depend on it.
        n_jobs : int or None
            Threads; None uses all cores. The result is the same for any number.

        Raises
        ------
        ValueError, TypeError
            If X or Y is malformed (the message names the entry), if they disagree, or if a parameter is out
            of range.
        """
        Y = one_target(Y, y)
        self._check_params()
        params = self.get_params(deep=False)
        seed = seed_of(self.random_state)
        if isinstance(X, TrainingView):
            if Y is not None:
                raise ValueError("Y must be None if X is a TrainingView")
            view = X
        else:
            named = None
            if isinstance(X, Dataset):
                if Y is not None:
                    raise ValueError("Y must be None if X is a Dataset")
                if X.X is None:
                    raise ValueError(
                        "X must be a Dataset with features, got only texts: use "
                        "metarank.data.TextVectorizer, or MetaRanker"
                    )
                named, X, Y = X if self.uses_names else None, X.X, X.Y
            features = check_features(X, layout="sparse", estimator=type(self).__name__)
            check_savable_width(features)
            relevance, _, _ = check_labels(Y, n_rows=features.shape[0], ids="positions")
            fold = np.zeros(features.shape[0], np.int32)
            text = None if named is None else label_text_of(named, features)
            view = TrainingSet(features, relevance, fold, seed=seed, label_text=text).view()
        weight = check_sample_weight(sample_weight, view.n_rows)
        if weight is not None and not np.all(weight > 0):
            counted = np.flatnonzero(weight > 0)
            view, weight = view.part(counted), weight[counted]
        # Into an estimator of its own, so that what was learned before outlives a failure.
        seeded = {"random_state": seed} if "random_state" in params else {}
        learned = type(self)(**params | seeded)._ready(view, weight, resolve_n_jobs(n_jobs))
        learned.n_features_in_, learned.n_labels_ = view.n_features, view.n_labels
        learned._learn(view, weight, resolve_n_jobs(n_jobs))
        report("done", 1.0)
        for name in vars(self).keys() - vars(learned).keys():
            if isinstance(getattr(type(self), name, None), cached_property):  # of the fit before
                delattr(self, name)
        self.__dict__.update(vars(learned) | params)
        return self

    def _ready(self: S, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> S:
        """The estimator that is to learn from a TrainingView, with all that is chosen before."""
        return self

    def _learn(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        raise TypeError(f"{type(self).__name__} must implement _learn")

    def _check_is_fitted(self) -> None:
        if "n_features_in_" not in vars(self):
            raise ValueError(f"this {type(self).__name__} is not fitted yet; call fit first")

    def _rows(self, X: Any) -> sp.csr_matrix:
        """New rows as canonical CSR with the number of features of the fit."""
        self._check_is_fitted()
        if isinstance(X, Dataset):
            X = X.X
        return check_features(
            X, n_features=self.n_features_in_, layout="sparse", min_rows=0, estimator=type(self).__name__
        )

    def _row_parts(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """CSR arrays of new rows. Canonical float32 rows, as a service sends them, skip the conversion."""
        self._check_is_fitted()
        if is_ready(X) and X.shape[1] == self.n_features_in_:
            return csr_parts(X)
        return csr_parts(self._rows(X))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted shortlister to a folder with its card; see `MetaRanker.save`."""
        self._check_params()
        super().save(path)
