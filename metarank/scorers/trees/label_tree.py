"""Label trees: a hierarchy over the labels with a linear classifier on every edge.

Parabel (Prabhu et al. 2018) trains the edges from binary relevance, XReg (Prabhu et al. 2020,
"Extreme regression for dynamic search advertising") from graded relevance. Both are one core.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._util.elementary import log
from metarank._util.parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_random_state,
    check_real,
    with_parameters,
)
from metarank._util.progress import report
from metarank._util.threads import resolve_n_jobs
from metarank.persist.fields import Array, Declared, Flag, Group, Integer, Number, Object, Params
from metarank.persist.spec import Spec
from metarank.persist.trust import MOST
from metarank.scorers.base import Planned, PointProposer
from metarank.scorers.label_weights import FLOOR, LEAST, check_relevance, relevances
from metarank.scorers.trees.hierarchy import Hierarchy, learn_hierarchy
from metarank.scorers.trees.tree_ensemble import ShortlistingTrees
from metarank.types.arrays import csr_parts, unit_rows
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingView

LOSSES = {"hinge": 0, "squared_hinge": 1, "logistic": 2}
# Bounds of what is multiplied into float32 sums.
_LEAST, _MOST = 1e-12, 1e6
_LEAST_SCALE, _MOST_SCALE = 1e-38, 3e38
# The arrays of `weights_`, all of one dimension: what `WeightBlocks` takes.
_WEIGHTS: dict[str, type] = {
    "node_block": np.int64,
    "block_slot": np.int64,
    "bucket_start": np.int64,
    "data_start": np.int64,
    "shift": np.uint8,
    "bucket_offset": np.uint32,
    "data": np.uint8,
    "bias": np.float32,
    "scale": np.float32,
}
# Labels that each of several trees proposes at least: the best few of all are then the same for any k below.
_PROPOSED = 100
# What parameters left open become.
# Visitors: a leaf is also trained on the points that a beam of this width would bring there, so that its
# classifiers see the irrelevant points of a later search. Dual coordinate descent stops at this violation of
# the optimality conditions (tolerance), or after so many passes over the points (max_epochs), the first two
# of which omit visitors. The logistic loss, which estimates relevances, does best without visitors.
_HINGED = {"C": 1.0, "prune": 0.17, "visitors": 20, "tolerance": 0.1, "max_epochs": 5}
SOLVER: dict[str, dict[str, float]] = {
    "hinge": _HINGED,
    "squared_hinge": _HINGED,
    "logistic": {"C": 10.0, "prune": 0.6, "visitors": 0, "tolerance": 0.02, "max_epochs": 20},
}
# What is dropped of weights where relevances differ: small shares make for small weights.
_PRUNED_OF_GRADES = 0.2


@with_parameters
class LabelTree(PointProposer, ShortlistingTrees):
    """The base class of `Parabel` and `XReg`."""

    n_trees: int = 3
    branching: int = 16
    max_leaf: int = 100
    beam: int = 10
    loss: str = "auto"
    C: float | None = None
    prune: float | None = None
    hierarchy: Any = None
    label_vectors: Any = None
    random_state: Any = 0
    balanced: bool = True
    # With a hinge loss, the probability of an edge with margin z is exp(-max(0, 1 - z)^link_power), and the
    # log-probability of the path to a leaf counts path_weight of that of the label's own edge: visitors make
    # the classifiers of the leaves reliable by themselves.
    link_power: ClassVar[int] = 4
    path_weight: ClassVar[float] = 0.5
    solver: ClassVar[dict[str, dict[str, float]]] = SOLVER
    # Parameters of a class that gives them a place in `__init__`.
    relevance: str = field(init=False, default="binary")
    propensity: Any = field(init=False, default="default")
    cost: str = field(init=False, default="sum")
    normalize: str = field(init=False, default="label")

    column = "label trees: log-probability"
    _losses: ClassVar[tuple[str, ...]] = tuple(LOSSES)

    saved: ClassVar[Spec] = Spec(
        Params(
            without=("hierarchy", "label_vectors"),
            tuples=("propensity",),
            seeded=MOST,
            check=lambda trees: trees._check_params(),
        ),
        Declared("n_features_in_", key="n_features", size="d"),
        Declared("n_labels_", size="L"),
        Integer("link_", 0, 255),
        Number("path_weight_", 0, 1),
        Number("scale_", _LEAST_SCALE, _MOST_SCALE),
        Array("label_scale_", np.float32, ("L",), least=0),
        Object("hierarchy_", Hierarchy, ("L",)),
        Array(
            "row_share_", (np.float32, np.float64), (lambda known: known.hierarchy_.n_nodes,), least=0, most=1
        ),
        # Blocks and slots are compared with each other when the trees are built over them.
        Group("weights_", tuple(Array(name, dtype) for name, dtype in _WEIGHTS.items())),
        Flag("_given", key="given"),
    )

    def _check_params(self) -> None:
        check_integer("n_trees", self.n_trees, 1, 10_000)
        check_integer("branching", self.branching, 2, 256)
        check_integer("max_leaf", self.max_leaf, 1, 256)
        check_flag("balanced", self.balanced)
        check_integer("beam", self.beam, 1)
        check_choice("loss", self.loss, sorted(self._losses))
        check_random_state(self.random_state)
        check_choice("cost", self.cost, ("sum", "mean"))
        if self.C is not None:
            check_real("C", self.C, _LEAST, _MOST, "a positive number, at most 1e6")
        if self.prune is not None:
            check_real("prune", self.prune, 0, _MOST, "a non-negative number, at most 1e6")
        check_relevance(self.relevance, self.propensity)
        if self.hierarchy is not None and not isinstance(self.hierarchy, Hierarchy):
            raise TypeError(f"hierarchy must be a Hierarchy or None, got {self.hierarchy!r}")

    @property
    def _loss(self) -> str:
        """The loss, where "auto" leaves it open."""
        if self.loss != "auto":
            return self.loss
        return "logistic" if self.relevance == "graded" else "squared_hinge"

    def _grow(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        X = unit_rows(sp.csr_matrix(view.X))
        Y = relevances(view, self.relevance, self.propensity)
        seed = self._seed_on(view)
        label_scale = np.zeros(Y.shape[1], np.float32)  # the greatest relevance of each label
        np.maximum.at(label_scale, Y.indices, Y.data.astype(np.float32))
        if self.normalize != "label":
            label_scale[label_scale > 0] = label_scale.max(initial=0)
        Y.data = Y.data / label_scale[Y.indices]
        tree = self._tree_over(X, Y, seed, n_jobs)
        report("learning the classifiers of all trees", 0.5)
        by_label = Y.tocsc()
        by_label.sort_indices()
        weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        arrays = _core.train_label_trees(
            X=(*csr_parts(X), X.shape[1]),
            labels=(by_label.indptr.astype(np.int64), by_label.indices.astype(np.int32), by_label.data),
            row_cost=weight.astype(np.float32),
            hierarchy=(tree.roots, tree.child_start, tree.child),
            options=self._options(seed, graded=bool(np.any(Y.data != 1))),
            n_threads=n_jobs,
        )
        # Logistic probabilities multiply along the path, whatever else is asked of the powers of a hinge.
        self.link_: int = self._link
        self.path_weight_: float = 1.0 if self._loss == "logistic" else float(self.path_weight)
        self.label_scale_: np.ndarray = label_scale
        self.scale_: float = float(label_scale.max(initial=0.0)) or 1.0
        self.hierarchy_: Hierarchy = tree
        self.row_share_: np.ndarray = arrays["frac"]
        self.weights_: dict[str, Any] = {name: arrays[name] for name in _WEIGHTS}

    def _tree_over(self, X: sp.csr_matrix, Y: sp.csr_matrix, seed: int, n_jobs: int) -> Hierarchy:
        """The trees of the labels that have rows: the caller's, or learned."""
        if self.hierarchy is None:
            return learn_hierarchy(
                X,
                Y,
                n_trees=self.n_trees,
                branching=self.branching,
                max_leaf=self.max_leaf,
                balanced=self.balanced,
                label_vectors=self.label_vectors,
                seed=seed,
                n_jobs=n_jobs,
            )
        n_labels = Y.shape[1]
        if self.hierarchy.n_labels != n_labels:
            raise ValueError(f"hierarchy must hold the {n_labels} labels of Y, got {self.hierarchy.n_labels}")
        tree: Hierarchy = self.hierarchy.restricted_to(
            np.flatnonzero(np.bincount(Y.indices, minlength=n_labels))
        )
        return tree

    def _options(self, seed: int, *, graded: bool) -> Any:
        solver = self.solver[self._loss]
        prune = self.prune if self.prune is not None else _PRUNED_OF_GRADES if graded else solver["prune"]
        return _core.LabelTreeOptions(
            loss=LOSSES[self._loss],
            C=float(solver["C"] if self.C is None else self.C),
            mean_cost=self.cost == "mean",
            tolerance=float(solver["tolerance"]),
            max_epochs=int(solver["max_epochs"]),
            bias=1.0,
            threshold=float(prune),
            visitors=int(solver["visitors"]),
            link=self._link,
            seed=seed,
        )

    @property
    def _link(self) -> int:
        """The core's number for what makes a probability of a margin."""
        return 0 if self._loss == "logistic" else int(self.link_power)

    @cached_property
    def _trees(self) -> _core.LabelTrees:
        """The trees over the arrays of `weights_`, checked entry by entry: built when first asked."""
        tree = self.hierarchy_
        return _core.LabelTrees(
            tree.roots,
            tree.child_start,
            tree.child,
            tree.n_labels,
            _core.WeightBlocks(n_features=self.n_features_in_, **self.weights_),
            self.link_,
            self.path_weight_,
            self._label_cost,
        )

    @property
    def _label_cost(self) -> np.ndarray:
        """-log of the greatest relevance of a label, relative to that of all labels; () if they are equal."""
        share = self.label_scale_ / np.float32(self.scale_)
        if np.all((share == 1) | (share == 0)):
            return np.zeros(0, np.float32)
        return np.minimum(-log(np.where(share > 0, share, 1)), -FLOOR).astype(np.float32)

    def shortlist(
        self, X: Any, k: int = 100, *, beam: int | None = None, n_jobs: int | None = 1
    ) -> Candidates:
        """The k most relevant labels of each row, by beam search.

        Parameters
        ----------
        X : features (n, d)
        k : int
            At most this many labels per row; fewer if the beam finds fewer. Each tree contributes its max(k,
            100) best labels; any other label counts as 0 in that tree. So for k up to 100, a smaller k gives
            the head of a larger one.
        beam : int or None
            Open nodes per level; by default the parameter of the estimator.
        n_jobs : int or None
            Threads; None uses all cores.

        Returns
        -------
        Candidates
            Labels ascend within a row, as in a CSR matrix; ``Ranking.from_scores(found, k=5)`` orders them by
            score. The score is the mean over trees of the path's probability, times the largest relevance of
            the label in training. With the logistic loss it estimates the relevance. With a hinge loss it
            orders labels, but is not a probability. Ties at the end go to the
            smaller label id.
        """
        check_integer("k", k, 1)
        beam = self.beam if beam is None else beam
        check_integer("beam", beam, 1)
        rows, k = self._unit_parts(X), int(min(k, max(1, self.n_labels_)))
        proposed = k if self.hierarchy_.n_trees == 1 else max(k, _PROPOSED)
        return self._listed(*self._trees.beam(rows, int(beam), k, proposed, resolve_n_jobs(n_jobs)))

    def shortlist_points(
        self, X: Any, k: int = 10, *, factor: float = 4.0, n_jobs: int | None = 1
    ) -> Candidates:
        """The k rows of X most relevant to each label (XReg, algorithm 1).

        Node n passes on the ``ceil(factor * share(n) * len(X))`` rows of largest path probability, where
        share(n) is the share of training rows with a relevant label below n. Each of several trees finds
        max(k, 100) rows of a label; any other row counts as 0 in that tree.

        Returns
        -------
        Candidates
            Row l holds the rows of X for label l (in ``.labels``), ascending, with scores as in `shortlist`;
            ``transpose()`` gives the labels of each row.
        """
        check_integer("k", k, 1)
        check_real("factor", factor, _LEAST, _MOST, "a positive number, at most 1e6")
        rows = self._unit_parts(X)
        shares, n_threads = self.row_share_.astype(np.float64), resolve_n_jobs(n_jobs)
        indptr, points, scores = self._trees.points(rows, shares, float(factor), int(k), n_threads)
        return Candidates(indptr, points, len(rows[0]) - 1, {self.shown_as: scores * np.float32(self.scale_)})

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int | None = 1) -> dict[str, np.ndarray]:
        """float32 columns (m,): the log-probability of each pair, for the ensemble and, if there are several,
        for each tree.

        They come from the beam search: a label that it does not reach has the probability of its path as far
        as the search followed it, times that of an edge of margin -1. A row whose candidates are all labels
        is followed to all of them. The smallest value is -80, which labels without a training point get.
        """
        rows, indptr, labels = self._pairs(X, candidates)
        several, n_threads = self.hierarchy_.n_trees > 1, resolve_n_jobs(n_jobs)
        mean, by_tree = self._trees.score_pairs(rows, int(self.beam), indptr, labels, several, n_threads)
        columns = {self.column: log(np.maximum(mean, np.float32(LEAST)))}
        if by_tree is not None:
            columns |= {name: np.ascontiguousarray(of) for name, of in zip(self._by_tree(), by_tree.T)}
        return columns

    def _by_tree(self) -> list[str]:
        """The columns of each tree, if there are several."""
        n = self.hierarchy_.n_trees
        return [f"{self.column}, tree {t + 1}" for t in range(n)] if n > 1 else []

    def planned(self) -> Planned | None:
        scale = float(np.float32(self.scale_))
        core = _core.PlanTrees(self._trees, int(self.beam), _PROPOSED, scale, LEAST)
        return Planned(core, [self.column, *self._by_tree()])

    @property
    def _given(self) -> bool:
        """Whether the hierarchy is the caller's."""
        return self.hierarchy is not None

    @_given.setter
    def _given(self, given: bool) -> None:
        self.hierarchy = self.hierarchy_ if given else None
