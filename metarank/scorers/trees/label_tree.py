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
    check_flag,
    check_integer,
    check_random_state,
    check_real,
    with_parameters,
)
from metarank._util.threads import resolve_n_jobs
from metarank.persist.fields import Array, Declared, Entries, Flag, Integer, Number, Object, Params
from metarank.persist.limits import MOST
from metarank.persist.spec import Spec
from metarank.scorers.base import Planned
from metarank.scorers.label_weights import FLOOR, LEAST, check_relevance, relevances
from metarank.scorers.sizes import FitSizes, MemoryPart
from metarank.scorers.trees.hierarchy import Hierarchy, learn_hierarchy
from metarank.scorers.trees.tree_ensemble import (
    FEWER_TREES,
    ShortlistingTrees,
    TreeBlock,
    stacked,
    stacked_ids,
    stacked_starts,
)
from metarank.scorers.tuning import TUNED, Tunable
from metarank.types.arrays import csr_parts, unit_rows
from metarank.types.candidates import Candidates
from metarank.types.view import Features, View

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
# Those of them that say where something begins.
_STARTS = ("node_block", "block_slot", "bucket_start", "data_start")
# Labels that each of several trees proposes at least: the best few of all are then the same for any k below.
_PROPOSED = 100
# What parameters left open become.
_SUITED: dict[str, dict[str, float]] = {
    "hinge": {"C": 1.0, "visitors": 20, "tolerance": 0.1, "max_epochs": 5},
    "squared_hinge": {"C": 1.0, "visitors": 20, "tolerance": 0.1, "max_epochs": 5},
    "logistic": {"C": 10.0, "visitors": 0, "tolerance": 0.02, "max_epochs": 20},
}


def _n_nodes(known: Any) -> int:
    return int(known.hierarchy_.n_nodes)


# What is tried with a hinge loss.
_HINGED: tuple[dict[str, Any], ...] = (
    {},
    {
        "n_trees": 1,
        "max_leaf": 200,
        "C": 0.5,
        "max_epochs": 12,
        "visitors": 0,
        "link_power": 3,
        "prune": 0.05,
    },
    {"max_leaf": 256, "visitors": 0},
    {"max_leaf": 32},
    {"C": 0.3},
    {"C": 3.0},
    {"max_leaf": 256},
    {"max_epochs": 10, "tolerance": 0.05},
)


@with_parameters
class LabelTree(Tunable, ShortlistingTrees):
    """The common base of `Parabel` and `XReg`."""

    settings: ClassVar[dict[str, tuple[dict[str, Any], ...]]] = {
        "hinge": _HINGED,
        "squared_hinge": _HINGED,
        "logistic": (
            {},
            {"n_trees": 1},
            {"max_epochs": 5, "tolerance": 0.1},
            {"max_leaf": 32},
            {"C": 1.0},
            {"C": 3.0},
            {"C": 30.0},
            {"max_leaf": 256},
        ),
    }

    n_trees: int = 3
    branching: int = 16
    max_leaf: int = 100
    beam: int = 10
    loss: str = "auto"
    C: float | None = None
    visitors: int | None = None
    link_power: int = 4
    path_weight: float = 0.5
    prune: float = 0.1
    tolerance: float | None = None
    max_epochs: int | None = None
    hierarchy: Any = None
    label_vectors: Any = None
    random_state: Any = 0
    verbose: int = 0
    balanced: bool = True
    # Parameters of a class that gives them a place in `__init__`.
    relevance: str = field(init=False, default="binary")
    propensity: Any = field(init=False, default="default")
    cost: str = field(init=False, default="sum")
    normalize: str = field(init=False, default="label")

    column = "label_tree"
    _cheaper: ClassVar[dict[str, Any]] = {"n_trees": 1}
    _common: ClassVar[tuple[str, ...]] = ("label_scale",)

    _losses: ClassVar[tuple[str, ...]] = tuple(LOSSES)

    saved: ClassVar[Spec] = Spec(
        Params(
            without=("hierarchy", "label_vectors"),
            tuples=("propensity",),
            seeded=MOST,
            omits=("tune",),
            older=(("normalize", "label"), ("balanced", True)),
            check=lambda trees: trees._check_params(),
        ),
        Declared("n_features_in_", key="n_features", size="d"),
        Declared("n_labels_", size="L"),
        Integer("link_", 0, 255),
        Number("path_weight_", 0, 1),
        Number("scale_", _LEAST_SCALE, _MOST_SCALE),
        Array("label_scale_", np.float32, ("L",), least=0),
        Object("hierarchy_", Hierarchy, ("L",), inline=True),
        Array("row_share_", (np.float32, np.float64), (_n_nodes,), least=0, most=1),
        # Blocks and slots are compared with each other when the trees are built over them.
        Entries("weights_", *(Array(name, dtype) for name, dtype in _WEIGHTS.items())),
        Flag("_given", key="given"),
        *TUNED,
    )

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("n_trees", self.n_trees, 1, 10_000)
        check_integer("branching", self.branching, 2, 256)
        check_integer("max_leaf", self.max_leaf, 1, 256)
        check_flag("balanced", self.balanced)
        check_integer("beam", self.beam, 1)
        if self.loss not in self._losses:
            raise ValueError(f"loss must be one of {sorted(self._losses)}, got {self.loss!r}")
        check_integer("max_epochs", self._resolved("max_epochs"), 1)
        check_integer("visitors", self._resolved("visitors"), 0)
        check_integer("link_power", self.link_power, 1, 5)
        check_random_state(self.random_state)
        if self.cost not in ("sum", "mean"):
            raise ValueError(f"cost must be 'sum' or 'mean', got {self.cost!r}")
        for name in ("C", "tolerance"):
            check_real(name, self._resolved(name), _LEAST, _MOST, "a positive number, at most 1e6")
        check_real("prune", self.prune, 0, _MOST, "a non-negative number, at most 1e6")
        check_real("path_weight", self.path_weight, 0, 1, "a number in [0, 1]")
        check_relevance(self.relevance, self.propensity)
        if self.hierarchy is not None and not isinstance(self.hierarchy, Hierarchy):
            raise TypeError(f"hierarchy must be a Hierarchy or None, got {self.hierarchy!r}")

    @property
    def _loss(self) -> str:
        """The loss, where "auto" leaves it open."""
        if self.loss != "auto":
            return self.loss
        return "logistic" if self.relevance == "graded" else "squared_hinge"

    _loss_learned = _loss

    @property
    def _learned_as(self) -> tuple[str, Any]:
        return self.relevance, self.propensity

    def _work(self, view: View) -> float:
        """Terms of the rows that reach each classifier, those with a label below its node in each pass, and
        visitors of a leaf in all passes but two."""
        tree, rows = self.hierarchy_, view.n_rows
        width = np.diff(tree.child_start)
        is_leaf = np.zeros(len(width), bool)
        is_leaf[np.repeat(np.arange(len(width)), width)[tree.child < 0]] = True
        reached = float(self.row_share_ @ width) * rows
        leaves = is_leaf.sum() / tree.n_trees
        visits = min(self._resolved("visitors"), leaves) * width[is_leaf].mean() * tree.n_trees * rows
        passes = self._resolved("max_epochs")
        terms = sp.csr_matrix(view.X).nnz / rows
        return terms * (passes * reached + max(0, passes - 2) * visits)

    def _resolved(self, name: str) -> Any:
        """A parameter of training, or what suits the loss where it is None."""
        value = getattr(self, name)
        return _SUITED[self._loss][name] if value is None else value

    def memory(self, sizes: FitSizes, *, keeps_products: bool) -> list[MemoryPart]:
        # Measured: an edge has weights for the terms of the rows of its labels, up to a thousand or so. In
        # training they are there more than twice, beside the rows that visit each node.
        terms = sizes.n_terms
        saved = int(min(6 * terms * sizes.labels_per_row, 3000 * sizes.n_labels)) * self.n_trees
        visitors = max([self._resolved("visitors"), *(s.get("visitors", 0) for s in self.settings_tried())])
        training = int(1.4 * saved) + sizes.n_rows * (44 * visitors + 100) + 16 * terms
        return self._parts_of(sizes, saved, training, FEWER_TREES)

    def n_columns(self) -> int:
        return 1 + (self.n_trees if self.n_trees > 1 else 0)

    @property
    def tree_count(self) -> int:
        """The number of trees that a fit grows: that of `hierarchy`, if given."""
        return int(self.n_trees) if self.hierarchy is None else int(self.hierarchy.n_trees)

    def _grow(
        self, view: View, sample_weight: np.ndarray | None, first: int, count: int, n_jobs: int
    ) -> dict[str, Any]:
        if self.hierarchy is not None and self.hierarchy.n_labels != view.n_labels:
            raise ValueError(
                f"hierarchy must hold the {view.n_labels} labels of Y, got {self.hierarchy.n_labels}"
            )
        X = unit_rows(sp.csr_matrix(view.X))
        Y = relevances(view, self.relevance, self.propensity)
        seed = self._seed_on(view)
        label_scale = _greatest(Y)
        if self.normalize != "label":
            label_scale[label_scale > 0] = label_scale.max(initial=0)
        Y.data = Y.data / label_scale[Y.indices]
        # Classifiers are seeded by their slot's number in the whole ensemble. Balanced trees have equally
        # many slots; of others, the trees before tell.
        before = 0 if self.balanced else first
        if self.hierarchy is not None:
            before = first
            seen = np.flatnonzero(np.bincount(Y.indices, minlength=view.n_labels))
            tree = self.hierarchy.restricted_to(seen)
        else:
            tree = learn_hierarchy(
                X,
                Y,
                n_trees=before + count,
                first_tree=first - before,
                branching=self.branching,
                max_leaf=self.max_leaf,
                balanced=self.balanced,
                label_vectors=self.label_vectors,
                seed=seed,
                n_jobs=n_jobs,
            )
        first_slot = int(tree.child_start[tree.roots[before]])
        tree = tree.trees(before, count)
        first_slot += (first - before) * (tree.n_slots // count)
        by_label = Y.tocsc()
        by_label.sort_indices()
        weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        options = _core.LabelTreeOptions(
            loss=LOSSES[self._loss],
            C=float(self._resolved("C")),
            mean_cost=self.cost == "mean",
            tolerance=float(self._resolved("tolerance")),
            max_epochs=int(self._resolved("max_epochs")),
            bias=1.0,
            threshold=float(self.prune),
            visitors=int(self._resolved("visitors")),
            link=self._link,
            seed=seed,
            first_slot=first_slot,
        )
        arrays = _core.train_label_trees(
            X=(*csr_parts(X), X.shape[1]),
            labels=(by_label.indptr.astype(np.int64), by_label.indices.astype(np.int32), by_label.data),
            row_cost=weight.astype(np.float32),
            hierarchy=(tree.roots, tree.child_start, tree.child),
            options=options,
            n_threads=n_jobs,
        )
        nodes = {"roots": tree.roots, "child_start": tree.child_start, "child": tree.child}
        return {"label_scale": label_scale, "row_share": arrays.pop("frac"), **nodes, **arrays}

    @property
    def _link(self) -> int:
        """The core's number for what makes a probability of a margin."""
        return 0 if self._loss == "logistic" else int(self.link_power)

    def _take(self, blocks: list[TreeBlock]) -> None:
        super()._take(blocks)
        # Logistic probabilities multiply along the path, whatever else is asked of the powers of a hinge.
        self.link_: int = self._link
        self.path_weight_: float = 1.0 if self._loss == "logistic" else float(self.path_weight)
        self.label_scale_: np.ndarray = blocks[0].arrays["label_scale"]
        self.scale_: float = float(self.label_scale_.max(initial=0.0)) or 1.0
        n_nodes = [len(block.arrays["child_start"]) - 1 for block in blocks]
        no_leaves = [0] * len(blocks)  # labels, which are the same in all trees
        self.hierarchy_: Hierarchy = Hierarchy(
            stacked_ids(blocks, "roots", n_nodes, no_leaves),
            stacked_starts(blocks, "child_start"),
            stacked_ids(blocks, "child", n_nodes, no_leaves),
            self.n_labels_,
        )
        self.row_share_: np.ndarray = stacked(blocks, "row_share")
        self.weights_: dict[str, Any] = {}
        for name in _WEIGHTS:
            join = stacked_starts if name in _STARTS else stacked
            self.weights_[name] = _stacked_bytes(blocks) if name == "data" else join(blocks, name)

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

    def _relevance(self, probability: np.ndarray) -> np.ndarray:
        """What a score says, from the mean over trees of the probability of a label's path."""
        return probability * np.float32(self.scale_)

    def _log_probability(self, probability: np.ndarray) -> np.ndarray:
        return log(np.maximum(probability, np.float32(LEAST)))

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
            orders labels, but is not a probability unless calibrated (`Parabel`). Ties at the cut go to the
            smaller label id.
        """
        check_integer("k", k, 1)
        check_integer("beam", self.beam if beam is None else beam, 1)
        rows = self._unit_parts(X)
        k = int(min(k, max(1, self.n_labels_)))
        proposed = k if self.hierarchy_.n_trees == 1 else max(k, _PROPOSED)
        indptr, labels, scores, _ = self._trees.beam(
            *rows, int(self.beam if beam is None else beam), k, proposed, False, resolve_n_jobs(n_jobs)
        )
        return Candidates.of_core(indptr, labels, self.n_labels_, {self.column: self._relevance(scores)})

    def shortlist_points(
        self, X: Any, k: int = 10, *, factor: float = 4.0, n_jobs: int | None = 1
    ) -> Candidates:
        """The k rows of X most relevant to each label (XReg, algorithm 1).

        Node n passes on the ``ceil(factor * share(n) * len(X))`` rows of largest path probability, where
        share(n) is the share of training rows with a relevant label below n.

        Returns
        -------
        Candidates
            Row l holds the rows of X for label l (in ``.labels``), ascending, with scores as in `shortlist`;
            ``transpose()`` gives the labels of each row.
        """
        check_integer("k", k, 1)
        check_real("factor", factor, _LEAST, _MOST, "a positive number, at most 1e6")
        rows = self._unit_parts(X)
        indptr, points, scores = self._trees.points(
            *rows,
            self.row_share_.astype(np.float64),
            float(factor),
            int(k),
            resolve_n_jobs(n_jobs),
        )
        return Candidates(indptr, points, len(rows[0]) - 1, {self.column: self._relevance(scores)})

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int | None = 1) -> dict[str, np.ndarray]:
        """float32 columns (m,): the log-probability of each pair, for the ensemble and, if there are several,
        for each tree.

        Every tree scores every pair exactly, whether or not a beam search would find it. The smallest value
        is -80, which labels without a training point get.
        """
        pairs = self._pairs(X, candidates)
        mean, by_tree = self._trees.score_pairs(*pairs, self.hierarchy_.n_trees > 1, resolve_n_jobs(n_jobs))
        columns = {self.column: self._log_probability(mean)}
        if by_tree is not None:
            for t in range(self.hierarchy_.n_trees):
                columns[f"{self.column}{t + 1}"] = np.ascontiguousarray(by_tree[:, t])
        return columns

    def planned(self) -> Planned | None:
        n_trees = self.hierarchy_.n_trees
        columns = [self.column] + [f"{self.column}{t + 1}" for t in range(n_trees) if n_trees > 1]
        scale = float(self._relevance(np.ones(1, np.float32))[0])
        return Planned(_core.PlanTrees(self._trees, int(self.beam), _PROPOSED, scale, LEAST), columns)

    @property
    def _given(self) -> bool:
        """Whether the hierarchy is the caller's."""
        return self.hierarchy is not None

    @_given.setter
    def _given(self, given: bool) -> None:
        self.hierarchy = self.hierarchy_ if given else None


def _greatest(Y: sp.csr_matrix) -> np.ndarray:
    """The greatest value of each column, float32; 0 for one without any."""
    out = np.zeros(Y.shape[1], np.float32)
    np.maximum.at(out, Y.indices, Y.data.astype(np.float32))
    return out


def _stacked_bytes(blocks: list[TreeBlock]) -> np.ndarray:
    """The bytes of all weights, and once, behind the last of them, what look-ups may read beyond."""
    if len(blocks) == 1:
        return np.asarray(blocks[0].arrays["data"])
    own = [block.arrays["data"][: block.arrays["data_start"][-1]] for block in blocks]
    beyond = blocks[-1].arrays["data"][len(own[-1]) :]
    return np.concatenate([*own, beyond])
