"""A LightGBM model as flat arrays, evaluated in the compiled core.

LightGBM's own `predict` enters OpenMP, which costs milliseconds for a single row
on a busy machine. The arrays give the same bytes without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from metarank import _core
from metarank._util.threads import resolve_n_jobs
from metarank.persist.fields import Array, Declared
from metarank.persist.spec import Saved, Spec
from metarank.types.arrays import joined_ids
from metarank.types.booster_text import outside_zero, parts_of, trees_of

_NO_TREE: dict[str, np.ndarray] = {
    "feature": np.zeros(0, np.int32),
    "threshold": np.zeros(0),
    "children": np.zeros((0, 2), np.int32),
    "missing": np.zeros(0, np.uint8),
    "root": np.zeros(0, np.int32),
    "leaf_value": np.zeros(0),
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
    root : int32 array (n_trees,)
        A node, or ``~leaf`` for a tree without a split.
    leaf_value : float64 array (n_leaves,)
    output : int32 array (n_trees,)
    n_features, n_outputs : int

    Raises
    ------
    ValueError
        If an index leaves its array.

    Examples
    --------
    >>> stump = BoosterArrays(
    ...     feature=np.array([0], np.int32), threshold=np.array([0.5]),
    ...     children=np.array([[~0, ~1]], np.int32), missing=np.zeros(1, np.uint8),
    ...     root=np.array([0], np.int32), leaf_value=np.array([-1.0, 1.0]),
    ...     output=np.array([0], np.int32), n_features=1, n_outputs=1)
    >>> stump.predict(np.array([[0.5], [0.6]]))
    array([-1.,  1.])
    """

    feature: np.ndarray
    threshold: np.ndarray
    children: np.ndarray
    missing: np.ndarray
    root: np.ndarray
    leaf_value: np.ndarray
    output: np.ndarray
    n_features: int
    n_outputs: int
    _trees: Any = field(init=False, repr=False)

    saved: ClassVar[Spec] = Spec(
        Array("feature", np.int32, ("nodes",)),
        Array("threshold", np.float64, ("nodes",)),
        Array("children", np.int32, ("nodes", 2)),
        Array("missing", np.uint8, ("nodes",)),
        Array("root", np.int32, ("trees",)),
        Array("leaf_value", np.float64, ("leaves",)),
        Array("output", np.int32, ("trees",)),
        Declared("n_features", size="d"),
        Declared("n_outputs", size="outputs"),
    )

    def __post_init__(self) -> None:
        *arrays, n_features, n_outputs = self.get_state().values()
        parts: list[Any] = [*map(np.ascontiguousarray, arrays), n_features, n_outputs]
        trees = _core.BoostedTrees(*parts)
        object.__setattr__(self, "_trees", trees)

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
        return cls.from_text(booster.model_to_string())

    @classmethod
    def from_text(cls, text: str) -> BoosterArrays:
        """The trees of a model in LightGBM's text format (`Booster.model_to_string`, `save_model`)."""
        header, blocks = parts_of(text)
        if "num_tree_per_iteration" not in header:
            raise ValueError("text must be a model in LightGBM's text format, got no num_tree_per_iteration")
        n_features, n_outputs = int(header["max_feature_idx"]) + 1, int(header["num_tree_per_iteration"])
        trees = list(trees_of(blocks, n_features))
        for tree in trees:
            tree["threshold"] = outside_zero(tree["threshold"])
            tree["root"] = np.array([0 if len(tree["children"]) else ~0])
        return cls._joined(trees, np.arange(len(trees)) % n_outputs, n_features, n_outputs)

    @classmethod
    def constant(cls, value: float, n_features: int) -> BoosterArrays:
        """A single leaf."""
        leaf = _NO_TREE | {"root": np.array([~0]), "leaf_value": np.array([value])}
        return cls._joined([leaf], np.zeros(1), n_features, 1)

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
        parts = [_NO_TREE, *parts]
        n_nodes, n_leaves = ([len(part[name]) for part in parts] for name in ("feature", "leaf_value"))
        arrays = {
            name: joined_ids([part[name] for part in parts], n_nodes, n_leaves)
            if name in ("children", "root")
            else np.concatenate([part[name] for part in parts]).astype(none.dtype)
            for name, none in _NO_TREE.items()
        }
        return cls(**arrays, output=output.astype(np.int32), n_features=n_features, n_outputs=n_outputs)

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
        X = np.asarray(X)
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X must have shape (n, {self.n_features}), got {X.shape}")
        raw = self._trees.predict(np.ascontiguousarray(X), resolve_n_jobs(n_jobs))
        return raw[:, 0] if self.n_outputs == 1 else raw

    @property
    def in_core(self) -> Any:
        """The trees as the core holds them, a `metarank._core.BoostedTrees`."""
        return self._trees

    def __reduce__(self) -> tuple[Any, ...]:
        return self.from_state, (self.get_state(),)
