"""Ways to leave-fold-out scores: scorers that differ from the plain one in their fits without a fold only."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from metarank.scorers.linear.one_vs_all import OneVsAll
from metarank.scorers.trees.hierarchy import learn_hierarchy
from metarank.scorers.trees.label_tree import SOLVER
from metarank.scorers.trees.parabel import Parabel
from metarank.types.arrays import unit_rows
from metarank.types.view import Features, TrainingView


class SharedHierarchy(Parabel):
    """The labels are clustered once on all rows; classifiers are refitted without each fold.

    A row's labels then reach its own scores through one thing: where in the trees labels stand.
    """

    def tuned(self, view: TrainingView, *, n_jobs: int = 1) -> SharedHierarchy:
        trees = learn_hierarchy(
            unit_rows(view.X),
            view.Y,
            n_trees=self.n_trees,
            branching=self.branching,
            max_leaf=self.max_leaf,
            seed=view.seed,
            n_jobs=n_jobs,
        )
        return type(self)(**{**self.get_params(deep=False), "hierarchy": trees})


class LighterFolds(Parabel):
    """Fits without a fold are given other parameters than the fit on all rows."""

    in_folds: ClassVar[dict[str, Any]] = {}

    def _learn(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        if not view.mask.all():
            vars(self).update(self.in_folds)
        super()._learn(view, sample_weight, n_jobs)


class FewerVisitors(LighterFolds):
    in_folds: ClassVar[dict[str, Any]] = {
        "solver": {"squared_hinge": SOLVER["squared_hinge"] | {"visitors": 5}}
    }


class FewerPasses(LighterFolds):
    """Also what warm starts could save at most, if they spared three passes of five at no cost."""

    in_folds: ClassVar[dict[str, Any]] = {
        "solver": {"squared_hinge": SOLVER["squared_hinge"] | {"max_epochs": 2}}
    }


class OneTree(LighterFolds):
    """Training rows are scored by one tree, new rows by three; scores of single trees are left out."""

    in_folds: ClassVar[dict[str, Any]] = {"n_trees": 1}

    def score(self, X: Features, candidates: Any, *, n_jobs: int | None = 1) -> dict[str, np.ndarray]:
        return {self.column: super().score(X, candidates, n_jobs=n_jobs)[self.column]}


PLAIN = "plain refits"
RIDGE = "ridge, closed form"
SHARED = "shared hierarchy"
SCHEMES: dict[str, Any] = {
    PLAIN: Parabel,
    SHARED: SharedHierarchy,
    RIDGE: lambda: OneVsAll(loss="ridge"),
    "one tree in folds": OneTree,
    "5 visitors in folds": FewerVisitors,
    "2 passes in folds": FewerPasses,
}
