"""`ExtraTrees`: extremely randomised trees, trained by scikit-learn, evaluated in the compiled core."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor

from metarank import _core
from metarank._util.parameters import check_integer, with_parameters
from metarank.persist.fields import Array, Csr, Declared, Group, Params
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.types.arrays import csr_parts, dense_blocks, joined_ids, require_rows
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingView


@with_parameters
class ExtraTrees(LabelScorer):
    """The share of relevant training rows in the leaf a row falls into, averaged over random trees.

    One forest for all labels (Geurts et al. 2006): a split minimises the squared error summed over
    the labels' 0/1 columns, which is half the summed Gini impurity, so a leaf's mean is the label's
    probability, as in a multi-output classification forest.

    Parameters
    ----------
    n_trees : int
    min_samples_leaf : int
        Training rows in a leaf at least.
    max_features : float, int or "sqrt"
        Features tried at a split, as in scikit-learn.

    Notes
    -----
    Column: ``extra_trees``, the log-odds of the mean share p of relevant rows in the leaves, p held
    within [1, n_trees + 1] / (n_trees + 2). Sparse rows are made dense a block at a time.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from metarank.types.view import TrainingSet
    >>> X = np.array([[2.0], [1.0], [-1.0], [-2.0]], np.float32)
    >>> Y = sp.csr_matrix(np.array([[1], [1], [0], [0]], np.float32))
    >>> scorer = ExtraTrees(n_trees=10, min_samples_leaf=1).fit(TrainingSet(X, Y, np.zeros(4)).view())
    >>> scorer.score(X, Candidates.all_labels(4, 1))["extra trees: log-odds"].round(1)
    array([ 2.4,  2.4, -2.4, -2.4], dtype=float32)
    """

    n_trees: int = 300
    min_samples_leaf: int = 2
    max_features: float | int | str = "sqrt"

    is_classifier = True

    saved: ClassVar[Spec] = Spec(
        Params(check=lambda trees: trees._check_params()),
        Declared("n_features_", size="d"),
        Group(
            "arrays_",
            (
                Array("feature", np.int32, ("nodes",)),
                Array("threshold", np.float64, ("nodes",)),
                Array("children", np.int32, ("nodes", 2)),
                Array("root", np.int32),
                Csr("leaves", dims=("leaves", "L")),
            ),
        ),
    )

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> ExtraTrees:
        """Learn from the rows of the TrainingView. Returns self.

        Raises
        ------
        ValueError, TypeError
            If `n_trees` is not a positive integer, or `min_samples_leaf` not positive. scikit-learn checks
            `max_features`.
        """
        self._check_params()
        trees = self._grow(view, n_jobs)
        self.n_features_: int = view.n_features
        self.arrays_: dict[str, Any] = _joined([_arrays_of(tree) for tree in trees])
        self.__dict__.pop("_forest", None)
        return self

    def _check_params(self) -> None:
        check_integer("n_trees", self.n_trees, 1)
        if not self.min_samples_leaf >= 1:
            raise ValueError(f"min_samples_leaf must be positive, got {self.min_samples_leaf!r}")

    def cheaper(self) -> ExtraTrees:
        """A third of the trees."""
        return clone(self).set_params(n_trees=max(1, self.n_trees // 3))

    def _grow(self, view: TrainingView, n_jobs: int) -> list[Any]:
        """The trees of scikit-learn."""
        require_rows(view)
        seed = int(np.random.default_rng([view.seed, view.n_features]).integers(2**31))
        forest = ExtraTreesRegressor(
            self.n_trees,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            random_state=seed,
            n_jobs=n_jobs,
        )
        relevant = np.ascontiguousarray(view.Y.toarray() > 0, np.float64)
        X = view.X
        if sp.issparse(X):  # scikit-learn's trees read 32-bit indices only
            indptr, indices, values = csr_parts(X)
            X = sp.csr_matrix((values, indices, indptr.astype(np.int32)), shape=X.shape)
        forest.fit(X, relevant if relevant.shape[1] > 1 else relevant[:, 0])
        return [tree.tree_ for tree in forest.estimators_]

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        parts = [self._forest.score(*block, n_jobs) for block in dense_blocks(X, candidates)]
        share = np.concatenate([np.zeros(0, np.float32), *parts]).astype(np.float64)
        # Rankers add evidence up as log-odds; so many trees cannot tell a share of 0 from one below this.
        least = 1.0 / (self.n_trees + 2)
        share = np.clip(share, least, 1.0 - least)
        return {"extra trees: log-odds": _core.log_odds(share).astype(np.float32)}

    @cached_property
    def _forest(self) -> Any:
        names = ("feature", "threshold", "children", "root", "leaves")
        feature, threshold, children, root, leaves = (self.arrays_[name] for name in names)
        parts, n_labels = csr_parts(leaves), leaves.shape[1]
        return _core.Forest(feature, threshold, children, root, *parts, self.n_features_, n_labels)


def _arrays_of(tree: Any) -> dict[str, Any]:
    """Inner nodes and leaves of a scikit-learn tree, numbered apart: a child is a node or ``~leaf``."""
    is_leaf = tree.children_left < 0
    inner = ~is_leaf
    code = np.where(is_leaf, ~(np.cumsum(is_leaf) - 1), np.cumsum(inner) - 1)
    children = np.stack([tree.children_left[inner], tree.children_right[inner]], axis=1)
    return {
        "feature": tree.feature[inner].astype(np.int32),
        "threshold": tree.threshold[inner],
        "children": code[children],
        "root": code[:1],
        "leaves": sp.csr_matrix(tree.value[is_leaf, :, 0].astype(np.float32)),
    }


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The arrays of several trees, or lists of them, as those of one list."""
    n_nodes, n_leaves = ([part[name].shape[0] for part in parts] for name in ("feature", "leaves"))
    together = {
        name: joined_ids([part[name] for part in parts], n_nodes, n_leaves) for name in ("children", "root")
    }
    flat = {name: np.concatenate([part[name] for part in parts]) for name in ("feature", "threshold")}
    return flat | together | {"leaves": sp.vstack([part["leaves"] for part in parts], format="csr")}
