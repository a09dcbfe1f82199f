"""`FastXML` and `PfastXML`: forests of trees over the training points (Jain et al. 2016, 6.1)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._util.elementary import log
from metarank._util.parameters import (
    check_flag,
    check_integer,
    check_random_state,
    check_real,
    with_parameters,
)
from metarank._util.threads import resolve_n_jobs
from metarank.persist.fields import Array, Declared, Group, Known, Number, Params
from metarank.persist.spec import Spec
from metarank.persist.trust import MOST
from metarank.scorers.label_weights import LEAST, check_relevance, relevances
from metarank.scorers.trees.tree_ensemble import ShortlistingTrees
from metarank.types.arrays import csr_parts, unit_rows
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingView

# The arrays of `forest_`, all of one dimension: what `InstanceTrees` takes.
_FOREST: dict[str, type] = {
    "roots": np.int32,
    "child": np.int32,
    "bias": np.float32,
    "weight_start": np.int64,
    "feature": np.int32,
    "weight": np.float32,
    "leaf_start": np.int64,
    "leaf_label": np.int32,
    "leaf_value": np.float32,
}


# Gains and weights of rows, beside the greatest and the mean: no less, so that none vanishes in float32.
_LEAST_GAIN = 1e-30
# Bounds of what is multiplied into sums of losses.
_LEAST, _MOST = 1e-6, 1e6
# A path of more nodes ends in a leaf, however many points that holds.
_MAX_DEPTH = 10_000
_MOST_TREES = 10_000
# Coordinate descent of the splits: Newton steps, and passes in a step.
_STEPS, _PASSES = 20, 10


def _check_trees(known: Known) -> None:
    """ValueError where there are more trees than a fit grows."""
    n = len(known.forest_["roots"])
    if n > _MOST_TREES:
        raise ValueError(f"roots must be those of at most {_MOST_TREES} trees, got {n}")


@with_parameters
class FastXML(ShortlistingTrees):
    """Trees over points, whose splits rank the labels well on both sides (Prabhu and Varma 2014).

    A node splits its points by a sparse hyperplane. The hyperplane, the side of every point and a ranking of
    the labels for each side are learned alternately, to decrease

        min ||w||_1 + C sum_i log(1 + exp(-side_i w.x_i)) - sum_i nDCG(ranking of side_i, y_i)

    (Jain et al. 2016, eq. 4, with the bias treated like the other weights). A leaf holds the mean relevance
    of each label over its points. A prediction averages the leaves that a point reaches (eq. 3).

    Three details follow the authors' program (`split_node` and `calc_leaf_prob` of ``fastXML.cpp``, on the
    Extreme Classification Repository) rather than eq. 4: the costs that `balanced` gives, a single round of
    rankings and sides followed by a single fit of the hyperplane, and leaves of means.

    Prediction time grows with the logarithm of the number of points, not with the number of labels. Any
    relevances >= 0 can be learned. If labels have few points, label trees (`Parabel`) are usually far better.

    Parameters
    ----------
    n_trees : int
        Number of trees. Each starts from sides drawn with its own seed.
    max_leaf : int
        A node of at most this many points is a leaf.
    labels_per_leaf : int
        Number of labels that a leaf keeps, those of largest mean relevance.
    C : float
        Weight of the log loss; 1 is the published value. Larger values give more features per node, and
        deeper and larger trees. On held-out rows of three sets, 1.5 had a better P@5 (on two of them with a
        P@1 0.3 points lower). With few points, 2 to 4 were far better.
    balanced : bool
        Give both sides the same weight in the log loss: the loss of a point is divided by its side's share of
        the points. Otherwise small nodes learn little more than a bias, and trees end early.
    relevance : {"graded", "inverse-propensity", "binary"}
        Gain of a relevant label: its value in Y; ``1 / p_l``; or 1.
    propensity : "default", "wikipedia", "amazon" or (a, b)
        Curve of `metarank.metrics.propensity.inv_propensity`, of the training counts.
    tolerance : float
        The optimisation of a hyperplane stops when the violation of its optimality conditions has fallen to
        this share.
    random_state : int, None, RandomState or Generator

    Notes
    -----
    Rows of X are scaled to unit length, sample weights to mean 1. Labels without a training point are never
    proposed. As a source of `MetaRanker` its column is the log of the mean relevance.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2, 3]]
    >>> Y = [[0], [0], [1], [1], [2], [3]]
    >>> found = FastXML(n_trees=5, max_leaf=2, C=10.0).fit(X, Y).shortlist(X[:1], k=1)
    >>> found.labels
    array([0], dtype=int32)
    """

    n_trees: int = 50
    max_leaf: int = 10
    labels_per_leaf: int = 100
    C: float = 1.0
    balanced: bool = True
    relevance: str = "graded"
    propensity: Any = "default"
    tolerance: float = 0.1
    random_state: Any = 0

    column = "FastXML trees: log-relevance"

    saved: ClassVar[Spec] = Spec(
        Params(tuples=("propensity",), seeded=MOST, check=lambda trees: trees._check_params()),
        Declared("n_features_in_", key="n_features", size="d"),
        Declared("n_labels_", size="L"),
        Number("scale_", 1e-38, 1e38),
        # Nodes, leaves and their lists are compared with each other when the trees are built over them.
        Group("forest_", tuple(Array(name, dtype) for name, dtype in _FOREST.items())),
        check=_check_trees,
    )

    def _check_params(self) -> None:
        check_integer("n_trees", self.n_trees, 1, _MOST_TREES)
        for name in ("max_leaf", "labels_per_leaf"):
            check_integer(name, getattr(self, name), 1)
        check_random_state(self.random_state)
        check_real("C", self.C, _LEAST, _MOST, f"a number between {_LEAST:g} and {_MOST:g}")
        check_real("tolerance", self.tolerance, 1e-6, 1, "a number between 1e-06 and 1")
        check_flag("balanced", self.balanced)
        check_relevance(self.relevance, self.propensity)

    def _grow(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        X = unit_rows(sp.csr_matrix(view.X))
        Y = relevances(view, self.relevance, self.propensity)
        # Float32 sums of gains neither overflow nor vanish, whatever the unit of the relevances.
        scale = float(Y.data.max(initial=0.0)) or 1.0
        gains = np.maximum(Y.data.astype(np.float64) / scale, _LEAST_GAIN).astype(np.float32)
        split = _core.SplitOptions(
            log_cost=float(self.C),
            rank_cost=1.0,
            balanced=bool(self.balanced),
            rounds=1,
            ideal_normaliser=False,
            logistic=_core.L1LogisticOptions(
                tolerance=float(self.tolerance), max_steps=_STEPS, max_passes=_PASSES
            ),
        )
        grow = _core.GrowOptions(
            n_trees=self.n_trees,
            max_leaf=self.max_leaf,
            labels_per_leaf=self.labels_per_leaf,
            max_depth=_MAX_DEPTH,
            seed=self._seed_on(view),
        )
        row_weight = np.ones(X.shape[0], np.float32)
        if sample_weight is not None:  # only what they are beside each other matters
            beside = sample_weight / sample_weight.max()
            row_weight = np.clip(beside / beside.mean(), _LEAST_GAIN, None).astype(np.float32)
        forest = _core.train_instance_trees(
            X=(*csr_parts(X), X.shape[1]),
            Y=(*csr_parts(Y)[:2], gains, Y.shape[1]),
            row_weight=row_weight,
            split=split,
            grow=grow,
            n_threads=n_jobs,
        )
        self.scale_: float = scale
        self.forest_: dict[str, np.ndarray] = {name: forest[name] for name in _FOREST}

    @cached_property
    def _trees(self) -> _core.InstanceTrees:
        """The trees over the arrays of `forest_`: built when first asked."""
        return _core.InstanceTrees(self.n_features_in_, self.n_labels_, **self.forest_)

    def shortlist(self, X: Any, k: int = 100, *, n_jobs: int | None = 1) -> Candidates:
        """The k labels of each row with the largest mean relevance in the leaves that it reaches.

        Parameters
        ----------
        X : features (n, d)
        k : int
            At most this many labels per row; fewer if the leaves hold fewer.
        n_jobs : int or None
            Threads; None uses all cores.

        Returns
        -------
        Candidates
            Labels ascend within a row. The score is the mean over trees, which estimates the relevance of the
            label; with binary relevance, its probability. Ties at the end go to the smaller label id.
        """
        check_integer("k", k, 1)
        rows = self._unit_parts(X)
        k = int(min(k, max(1, self.n_labels_)))
        return self._listed(*self._trees.top(rows, k, resolve_n_jobs(n_jobs)))

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int | None = 1) -> dict[str, np.ndarray]:
        """One float32 column (m,): the log of a pair's mean relevance divided by the maximum of all, at least
        -80."""
        pairs = self._pairs(X, candidates)
        mean = self._trees.pairs(*pairs, resolve_n_jobs(n_jobs))
        return {self.column: log(np.maximum(mean, np.float32(LEAST)))}


@with_parameters
class PfastXML(FastXML):
    """`FastXML` trained for propensity-scored nDCG: a label has the weight ``1 / p_l`` (Jain et al. 2016, eq.
    4).

    Rare labels, which annotators miss more often, have more weight in the splits and in the leaves. The
    parameters are those of `FastXML`, but `relevance` is "inverse-propensity" by default.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2, 3]]
    >>> Y = [[0], [0], [1], [1], [2], [3]]
    >>> found = PfastXML(n_trees=5, max_leaf=2, C=10.0).fit(X, Y).shortlist(X[:1], k=1)
    >>> found.labels, bool(found.scores["PfastXML"] > 1)
    (array([0], dtype=int32), True)
    """

    relevance: str = "inverse-propensity"

    column = "PfastXML trees: log-relevance"
