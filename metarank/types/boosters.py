"""A LightGBM model as flat arrays, evaluated in the compiled core.

LightGBM's own `predict` enters OpenMP, which costs milliseconds for a single row
on a busy machine, and its parser trusts the text of a model. The arrays give the same
bytes without either; they are the only form in which a booster is saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from metarank import _core
from metarank._util.threads import resolve_n_jobs
from metarank.persist.fields import Array, Declared
from metarank.persist.spec import Saved
from metarank.types.arrays import joined_ids

# LightGBM reads a dense value of this size or less as zero.
_ZERO = float(np.float32(1e-35))
# What LightGBM's text calls the arrays of a tree, and their types.
_ARRAYS: dict[str, tuple[str, Any]] = {
    "feature": ("split_feature", np.int32),
    "threshold": ("threshold", np.float64),
    "missing": ("decision_type", np.uint8),
    "gain": ("split_gain", np.float64),
    "node_count": ("internal_count", np.int32),
    "leaf_value": ("leaf_value", np.float64),
    "leaf_count": ("leaf_count", np.int32),
}


@dataclass(frozen=True, eq=False)
class BoosterArrays(Saved):
    """Boosted trees: tree t adds the leaf that a row reaches to the raw score ``output[t]``.

    Parameters
    ----------
    feature : int32 array (n_nodes,)
    threshold : float64 array (n_nodes,)
        A row goes left where ``x[feature] <= threshold``.
    children : int32 array (n_nodes, 2)
        Left and right: a later node of the array, or ``~leaf``.
    missing : uint8 array (n_nodes,)
        LightGBM's decision type: 2 = default left; 4 = zero is missing, 8 = NaN is missing.
    gain : float64 array (n_nodes,)
        What each split gained.
    node_count : int32 array (n_nodes,)
        Training rows that reached each node.
    root : int32 array (n_trees,)
        A node, or ``~leaf`` for a tree without a split.
    leaf_value : float64 array (n_leaves,)
    leaf_count : int32 array (n_leaves,)
        Training rows that reached each leaf.
    output : int32 array (n_trees,)
    n_features, n_outputs : int

    Attributes
    ----------
    in_core : metarank._core.BoostedTrees
        The trees as the core holds them.

    Raises
    ------
    ValueError
        If an index leaves its array.

    Examples
    --------
    >>> stump = BoosterArrays(
    ...     feature=np.array([0], np.int32), threshold=np.array([0.5]),
    ...     children=np.array([[~0, ~1]], np.int32), missing=np.zeros(1, np.uint8), gain=np.ones(1),
    ...     node_count=np.array([4], np.int32), root=np.array([0], np.int32),
    ...     leaf_value=np.array([-1.0, 1.0]), leaf_count=np.array([2, 2], np.int32),
    ...     output=np.array([0], np.int32), n_features=1, n_outputs=1)
    >>> stump.predict(np.array([[0.5], [0.6]]))
    array([-1.,  1.])
    >>> stump.contributions(np.array([[0.5], [0.6]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """

    feature: Annotated[np.ndarray, Array("", np.int32, ("nodes",))]
    threshold: Annotated[np.ndarray, Array("", np.float64, ("nodes",))]
    children: Annotated[np.ndarray, Array("", np.int32, ("nodes", 2))]
    missing: Annotated[np.ndarray, Array("", np.uint8, ("nodes",))]
    gain: Annotated[np.ndarray, Array("", np.float64, ("nodes",), least=0)]
    node_count: Annotated[np.ndarray, Array("", np.int32, ("nodes",), least=0)]
    root: Annotated[np.ndarray, Array("", np.int32, ("trees",))]
    leaf_value: Annotated[np.ndarray, Array("", np.float64, ("leaves",))]
    leaf_count: Annotated[np.ndarray, Array("", np.int32, ("leaves",), least=0)]
    output: Annotated[np.ndarray, Array("", np.int32, ("trees",))]
    n_features: Annotated[int, Declared("", size="d")]
    n_outputs: Annotated[int, Declared("", size="outputs")]
    in_core: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = self.n_features, self.n_outputs
        trees = _core.BoostedTrees(*self._splits, self.root, self.leaf_value, self.output, *sizes)
        object.__setattr__(self, "in_core", trees)

    @property
    def _splits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.feature, self.threshold, self.children, self.missing

    @property
    def n_trees(self) -> int:
        return len(self.root)

    @classmethod
    def from_lightgbm(cls, booster: Any) -> BoosterArrays:
        """The trees of a `lightgbm.Booster`, up to its best iteration where it has one.

        Raises
        ------
        ValueError
            If a tree has categorical splits or linear leaves.
        """
        header, *blocks = booster.model_to_string().split("\nend of trees", 1)[0].split("\nTree=")
        n_outputs = int(_entries(header)["num_tree_per_iteration"])
        trees = [_tree(_entries(block)) for block in blocks]
        return cls._joined(trees, np.arange(len(trees)) % n_outputs, booster.num_feature(), n_outputs)

    @classmethod
    def without_trees(cls, n_features: int) -> BoosterArrays:
        """The score 0 for every row."""
        return cls._joined([], np.zeros(0), n_features, 1)

    @classmethod
    def stack(cls, models: Sequence[BoosterArrays]) -> BoosterArrays:
        """Several models over the same features as one; their outputs stand side by side."""
        if not models or len({model.n_features for model in models}) > 1:
            raise ValueError("models must be at least one and agree in n_features")
        first = np.cumsum([0, *(model.n_outputs for model in models)])
        output = np.concatenate([model.output + k for model, k in zip(models, first)])
        return cls._joined([vars(model) for model in models], output, models[0].n_features, int(first[-1]))

    @classmethod
    def _joined(
        cls, parts: Sequence[Mapping[str, Any]], output: np.ndarray, n_features: int, n_outputs: int
    ) -> BoosterArrays:
        """Trees, or lists of them, one after another: nodes and leaves of each are numbered from 0."""
        none: dict[str, np.ndarray] = {name: np.zeros(0, dtype) for name, (_, dtype) in _ARRAYS.items()}
        none |= {"children": np.zeros((0, 2), np.int32), "root": np.zeros(0, np.int32)}
        parts = [none, *parts]
        n_nodes, n_leaves = ([len(part[name]) for part in parts] for name in ("feature", "leaf_value"))
        arrays = {
            name: joined_ids([part[name] for part in parts], n_nodes, n_leaves)
            if name in ("children", "root")
            else np.concatenate([part[name] for part in parts]).astype(empty.dtype)
            for name, empty in none.items()
        }
        return cls(**arrays, output=output.astype(np.int32), n_features=n_features, n_outputs=n_outputs)

    def only(self, output: int) -> BoosterArrays:
        """The trees of one output alone."""
        kept = self.output == output
        return replace(self, root=self.root[kept], output=np.zeros(kept.sum(), np.int32), n_outputs=1)

    def predict(self, X: np.ndarray, *, n_jobs: int | None = 1) -> np.ndarray:
        """Raw scores, float64 (n,), or (n, n_outputs) where there are several outputs.

        The same bytes as ``booster.predict(X, raw_score=True)``: leaves are summed in tree
        order, missing values (NaN, or zero under ``zero_as_missing``) go the way LightGBM
        sends them. X is float32 or float64 (n, n_features); other dtypes become float64.

        Raises
        ------
        ValueError
            If X is not two-dimensional or has another number of columns.
        """
        raw = self.in_core.predict(self._checked(X), resolve_n_jobs(n_jobs))
        return raw[:, 0] if self.n_outputs == 1 else raw

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """float64 (n, n_features + 1): the share of each feature in the mean of the outputs and, last, its
        expectation.

        On x86-64 these are the bytes of ``booster.predict(X, pred_contrib=True)``, elsewhere those of x86-64.

        Raises
        ------
        ValueError
            If a node is no tree's alone, or a tree is more than 1,024 deep.
        """
        X, leaves = self._checked(X), (self.leaf_value, self.node_count, self.leaf_count)
        roots = [self.root[self.output == output] for output in range(self.n_outputs)]
        shares = [_core.tree_shares(*self._splits, root, *leaves, X, 1) for root in roots]
        return np.asarray(np.mean(shares, axis=0))

    def importances(self) -> np.ndarray:
        """float64 (n_features,): the gain of all splits by each feature, as LightGBM counts it."""
        out = np.zeros(self.n_features)
        np.add.at(out, self.feature, self.gain)
        return out

    def _checked(self, X: np.ndarray) -> np.ndarray:
        X = np.asarray(X)
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X must have shape (n, {self.n_features}), got {X.shape}")
        return np.ascontiguousarray(X)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.from_state, (self.get_state(),)


def _entries(block: str) -> dict[str, str]:
    """The lines "name=value" of a part of a text."""
    return dict(line.split("=", 1) for line in block.splitlines() if "=" in line)


def _tree(entries: dict[str, str]) -> dict[str, np.ndarray]:
    """The arrays of one tree."""
    if any(entries.get(name, "0").strip() != "0" for name in ("num_cat", "is_linear")):
        raise ValueError("trees must have numerical splits and constant leaves only")
    tree = {
        name: np.array(entries.get(called, "").split(), dtype) for name, (called, dtype) in _ARRAYS.items()
    }
    if not len(tree["leaf_count"]):  # of a tree that is one leaf
        tree["leaf_count"] = np.ones(len(tree["leaf_value"]), np.int32)
    tree["threshold"] = _as_split(tree["threshold"])
    sides = [np.array(entries.get(f"{side}_child", "").split(), np.int32) for side in ("left", "right")]
    tree["children"] = np.stack(sides, axis=1)
    tree["root"] = np.array([0 if len(tree["feature"]) else ~0], np.int32)
    return tree


def _as_split(threshold: np.ndarray) -> np.ndarray:
    """Thresholds by which a plain comparison splits as LightGBM does.

    Infinity, by which missing values are split from all others, becomes the greatest finite number. Within
    LightGBM's zero interval thresholds are moved out of it, so that a value inside it splits as 0 does.
    """
    threshold = np.minimum(threshold, np.finfo(np.float64).max)
    threshold = np.where((threshold >= -_ZERO) & (threshold < 0), np.nextafter(-_ZERO, -1.0), threshold)
    return np.where((threshold >= 0) & (threshold < _ZERO), _ZERO, threshold)
