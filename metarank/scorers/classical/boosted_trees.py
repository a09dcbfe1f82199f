"""`BoostedTrees`: one-vs-rest gradient boosting, trained by LightGBM, evaluated in the compiled core."""

from __future__ import annotations

import math
from typing import ClassVar

import lightgbm as lgb
import numpy as np

from metarank._util.parameters import with_parameters
from metarank._util.progress import report
from metarank._util.threads import in_threads
from metarank.persist.fields import Object, Params
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.types.arrays import dense_blocks, require_rows
from metarank.types.boosters import BoosterArrays
from metarank.types.candidates import Candidates
from metarank.types.view import Features, View


@with_parameters
class BoostedTrees(LabelScorer):
    """The log-odds of each label from a small LightGBM model of its own.

    Parameters
    ----------
    n_rounds : int
    num_leaves : int
    learning_rate : float
    min_data_in_leaf : int
    feature_fraction : float
        Share of the features each tree may use, drawn from (seed, label).

    Notes
    -----
    Column: ``boosted_trees``. A label without relevant (or without irrelevant) rows in the View
    scores the log-odds of its count with half a row added on each side. Labels train side by
    side, LightGBM itself with one thread. Sparse rows are made dense a block at a time to be scored.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from metarank.types.view import TrainingSet
    >>> X = np.arange(40, dtype=np.float32)[:, None]
    >>> Y = sp.csr_matrix((X >= 20).astype(np.float32))
    >>> scorer = BoostedTrees().fit(TrainingSet(X, Y, np.zeros(40)).view())
    >>> scorer.score(X[[0, 39]], Candidates.all_labels(2, 1))["boosted_trees"] > 0
    array([False,  True])
    """

    n_rounds: int = 60
    num_leaves: int = 7
    learning_rate: float = 0.1
    min_data_in_leaf: int = 10
    feature_fraction: float = 0.3

    is_classifier = True

    saved: ClassVar[Spec] = Spec(
        Params(), Object("trees_", BoosterArrays, {"d": "d", "outputs": "L"}, inline=True)
    )

    def fit(self, view: View, *, n_jobs: int = 1) -> BoostedTrees:
        """Learn from the rows of the View. Returns self.

        Raises
        ------
        ValueError
            If `n_rounds` is not positive. LightGBM checks the other parameters.
        """
        if not self.n_rounds >= 1:
            raise ValueError(f"n_rounds must be positive, got {self.n_rounds!r}")
        require_rows(view)
        params = {
            "objective": "binary",
            "num_leaves": self.num_leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": self.min_data_in_leaf,
            "feature_fraction": self.feature_fraction,
            "max_bin": 63,
            "min_data_in_bin": 1,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbose": -1,
        }
        X, n = view.X, view.n_rows
        relevant = view.Y.tocsc()
        # The bins are label-free: found once, then shared by reference.
        bins = lgb.Dataset(X, np.zeros(n), params=params, free_raw_data=False).construct()

        def one_label(label: int) -> BoosterArrays:
            y = np.zeros(n)
            y[relevant.indices[relevant.indptr[label] : relevant.indptr[label + 1]]] = 1.0
            count = int(y.sum())
            if count in (0, n):
                return BoosterArrays.constant(math.log((count + 0.5) / (n - count + 0.5)), view.n_features)
            seed = int(np.random.default_rng([view.seed, label]).integers(2**31))
            data = lgb.Dataset(X, y, reference=bins, params=params)
            booster = lgb.train(params | {"seed": seed}, data, self.n_rounds)
            return BoosterArrays.from_lightgbm(booster)

        trees = []
        for label, found in enumerate(in_threads(one_label, range(view.n_labels), n_jobs=n_jobs)):
            report(f"label {label} of {view.n_labels}", label / view.n_labels)
            trees.append(found)
        self.trees_: BoosterArrays = BoosterArrays.stack(trees)
        return self

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        parts = [np.zeros(0, np.float32)]
        for block, indptr, labels in dense_blocks(X, candidates):
            raw = self.trees_.predict(block, n_jobs=n_jobs).reshape(len(block), -1)
            row = np.repeat(np.arange(len(block)), np.diff(indptr))
            parts.append(raw[row, labels].astype(np.float32))
        return {"boosted_trees": np.concatenate(parts)}
