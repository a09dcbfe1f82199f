"""`Boosting`: LightGBM's trees on an objective of several targets."""

from __future__ import annotations

from typing import Any, ClassVar

import lightgbm as lgb
import numpy as np
import scipy.sparse as sp

from metarank.objectives.aggregation import Aggregation
from metarank.objectives.objective_model import ObjectiveModel
from metarank.objectives.watch import Watch
from metarank.persist.fields import Object, Text
from metarank.persist.spec import Spec
from metarank.ranker.boosting import model_text, pointwise_objective
from metarank.types.booster_text import contributions, split_gains
from metarank.types.boosters import BoosterArrays

# A model in LightGBM's text format that scores 0, over features up to a number.
_NO_TREES = "num_tree_per_iteration=1\nmax_feature_idx={}\n\nend of trees"
# Rows of sparse features that are made dense at a time, and their values: of many features, fewer rows.
_BLOCK = 4096
_BLOCK_VALUES = 1 << 24


class BoostedScorer(ObjectiveModel):
    """Trees, as LightGBM's text and as arrays that the core evaluates."""

    kind = "boosted"

    saved: ClassVar[Spec] = Spec(
        Text("text"),
        Object("arrays", BoosterArrays, {"d": "d", "outputs": "one"}, inline=True),
    )

    def __init__(self, text: str, arrays: BoosterArrays | None = None) -> None:
        self.text = text
        self.arrays: BoosterArrays = BoosterArrays.from_text(text) if arrays is None else arrays

    def score(self, X: np.ndarray | sp.csr_matrix, n_jobs: int = 1) -> np.ndarray:
        """float64 (n,): raw scores."""
        if isinstance(X, np.ndarray):
            return self.arrays.predict(X, n_jobs=n_jobs)
        step = max(1, min(_BLOCK, _BLOCK_VALUES // max(1, X.shape[1])))
        blocks = range(0, X.shape[0], step)
        parts = [self.arrays.predict(X[i : i + step].toarray(), n_jobs=n_jobs) for i in blocks]
        return np.concatenate([np.zeros(0), *parts])

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """float64 (n, d + 1): shares of the columns in the score, and the expected score."""
        if not len(self.arrays.root):
            return np.zeros((len(X), X.shape[1] + 1))
        return contributions(self.text, X)

    def importances(self) -> np.ndarray:
        """float64 (d,): the gain of all splits by each feature, as LightGBM counts it."""
        return split_gains(self.text, self.arrays.n_features)


class Boosting:
    """Trains as often as asked on features that are binned once.

    Parameters
    ----------
    X, X_eval : float32 array or CSR matrix
        X_eval is None where the training rows are watched.
    params : dict
        LightGBM's.
    n_rounds : int
    """

    def __init__(
        self,
        X: np.ndarray | sp.csr_matrix,
        X_eval: np.ndarray | sp.csr_matrix | None,
        params: dict[str, Any],
        n_rounds: int,
    ) -> None:
        self.params: dict[str, Any] = params | {"metric": "None", "feature_pre_filter": False}
        self.n_rounds = n_rounds
        unlabelled = np.zeros(X.shape[0], np.float32)
        self.train: lgb.Dataset = lgb.Dataset(
            X, label=unlabelled, params=self.params, free_raw_data=False
        ).construct()
        self.held_out: lgb.Dataset | None = None
        if X_eval is not None:
            unlabelled = np.zeros(X_eval.shape[0], np.float32)
            self.held_out = self.train.create_valid(X_eval, label=unlabelled, params=self.params)

    def fit(self, objective: Aggregation, watch: Watch, start: Aggregation | None = None) -> BoostedScorer:
        """Trees grown on the gradients of an objective, up to the best round of the watch."""
        return self._boost(self.params | {"objective": "none"}, watch, objective)

    def fit_probability(self, target: np.ndarray, watch: Watch) -> BoostedScorer:
        """Trees whose raw score is the log-odds of a target in [0, 1]."""
        self.train.set_label(target)
        return self._boost(self.params | {"objective": pointwise_objective(target)}, watch, None)

    def _boost(self, params: dict[str, Any], watch: Watch, objective: Aggregation | None) -> BoostedScorer:
        n_features = self.train.num_feature()
        if all(self.train.feature_num_bin(j) < 2 for j in range(n_features)):  # nothing to split by
            watch.record(np.zeros((self.held_out or self.train).num_data()))
            return BoostedScorer(_NO_TREES.format(n_features - 1))
        booster = lgb.Booster(params, self.train)
        if self.held_out is not None:
            booster.add_valid(self.held_out, "held out")
        stop = False

        def measure(scores: np.ndarray, _: lgb.Dataset) -> tuple[str, float, bool]:
            nonlocal stop
            stop = watch.record(scores)
            return "watched", 0.0, True

        for number in range(self.n_rounds):
            if number % max(1, self.n_rounds // 20) == 0:
                watch.report(f"round {number} of {self.n_rounds}", number / self.n_rounds)
            finished = booster.update(fobj=objective)
            if self.held_out is None:
                booster.eval_train(measure)
            else:
                booster.eval_valid(measure)
            if stop or finished:
                break
        booster.best_iteration = watch.best + 1
        return BoostedScorer(model_text(booster))
