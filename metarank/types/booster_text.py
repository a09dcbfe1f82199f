"""A LightGBM model from a saved text that need not be trusted, for the shares of features in its scores.

LightGBM's own parser follows the sizes, child numbers and parameters of a text without looking. So it never
sees that text: the trees are read here, checked, and written anew, with nothing else of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

# TreeSHAP goes down a tree by recursion, with memory that grows with the square of the depth.
_DEEPEST = 1024
_HEADER = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx={most}
feature_names={names}
feature_infos={infos}

"""


def booster_of(text: str, n_features: int) -> Any:
    """A `lightgbm.Booster` with the trees of a model in LightGBM's text format.

    Raises
    ------
    ValueError
        If the text is none, is over another number of features, has categorical splits or linear leaves, or
        describes anything but binary trees at most 1,024 deep.
    """
    import lightgbm as lgb

    return lgb.Booster(model_str=rewritten(text, n_features))


def contributions(text: str, X: np.ndarray) -> np.ndarray:
    """float64 (n, d + 1): the share of each feature in the score of each row and, last, the expected score.

    Raises
    ------
    ValueError
        See `booster_of`.
    """
    booster = booster_of(text, X.shape[1])
    if X.shape[0] == 0:  # which LightGBM divides by
        return np.zeros((0, X.shape[1] + 1))
    return np.asarray(booster.predict(X, pred_contrib=True, num_threads=1))


def rewritten(text: str, n_features: int) -> str:
    """The trees of a model text, checked and written anew; see `booster_of`.

    Examples
    --------
    >>> rewritten("num_tree_per_iteration=1\\nmax_feature_idx=4\\n\\nend of trees", 3)
    Traceback (most recent call last):
    ValueError: a LightGBM text must be over 3 features with one tree a round, got '5' and '1'
    """
    head, blocks = parts_of(text)
    most, rounds = head.get("max_feature_idx"), head.get("num_tree_per_iteration")
    if most != str(n_features - 1) or rounds != "1":
        found = None if most is None or not most.isdigit() else str(int(most) + 1)
        raise ValueError(
            f"a LightGBM text must be over {n_features} features with one tree a round, "
            f"got {found or most!r:.40} and {rounds!r:.40}"
        )
    names = " ".join(f"Column_{i}" for i in range(n_features))
    out = [_HEADER.format(most=n_features - 1, names=names, infos=" ".join(["none"] * n_features))]
    for number, tree in enumerate(trees_of(blocks, n_features)):
        if len(tree["children"]) and _depth(tree["children"], number) > _DEEPEST:
            raise ValueError(f"tree {number} of a LightGBM text must be at most {_DEEPEST} deep")
        out.append(f"Tree={number}\n{_written_tree(tree)}\n\n")
    out.append("end of trees\n")
    return "".join(out)


def split_gains(text: str, n_features: int) -> np.ndarray:
    """float64 (n_features,): the gain of all splits by each feature, of a model in LightGBM's text format.

    Raises
    ------
    ValueError
        If a tree does not name a feature and a gain >= 0 for each split.
    """
    out = np.zeros(n_features)
    for number, block in enumerate(parts_of(text)[1]):
        entries = entries_of(block)
        try:
            feature = np.array(entries.get("split_feature", "").split(), np.int64)
            gain = np.array(entries.get("split_gain", "").split(), np.float64)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"tree {number} of a LightGBM text: {error}") from None
        good = feature.shape == gain.shape and np.isfinite(gain).all() and not np.any(gain < 0)
        if not good or np.any((feature < 0) | (feature >= n_features)):
            raise ValueError(
                f"tree {number} of a LightGBM text must have a feature and a gain for each split"
            )
        np.add.at(out, feature, gain)
    return out


def finite_thresholds(threshold: np.ndarray) -> np.ndarray:
    """The greatest finite number for infinity, by which LightGBM splits missing values from all others."""
    return np.minimum(threshold, np.finfo(np.float64).max)


def parts_of(text: str) -> tuple[dict[str, str], list[str]]:
    """The entries of the header, and the blocks of the trees."""
    header, *blocks = text.split("\nend of trees", 1)[0].split("\nTree=")
    return entries_of(header), blocks


def entries_of(block: str) -> dict[str, str]:
    """The lines "name=value" of a part of a text."""
    return dict(line.split("=", 1) for line in block.splitlines() if "=" in line)


def trees_of(blocks: list[str], n_features: int) -> Iterator[dict[str, np.ndarray]]:
    """The arrays of each tree, checked: a child is a node >= 0 or ``~leaf``, the first node the root.

    Raises
    ------
    ValueError
        Where a tree has categorical splits or linear leaves, or arrays that do not fit together.
    """
    for number, block in enumerate(blocks):
        try:
            yield _tree(entries_of(block), n_features)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"tree {number} of a LightGBM text: {error}") from None


def _tree(entries: dict[str, str], n_features: int) -> dict[str, np.ndarray]:
    if any(entries.get(name, "0").strip() != "0" for name in ("num_cat", "is_linear")):
        raise ValueError("it must have numerical splits and constant leaves only")

    def numbers(name: str, dtype: type, n: int | None = None) -> np.ndarray:
        words = entries.get(name, "").split()
        if n is not None and len(words) != n:
            raise ValueError(f"{name} must have {n} entries, got {len(words)}")
        values: np.ndarray = np.array(words, dtype=dtype)
        if name == "threshold":
            values = finite_thresholds(values)
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite")
        return values

    leaf_value = numbers("leaf_value", np.float64)
    n_leaves = len(leaf_value)
    n = n_leaves - 1
    if n < 0:
        raise ValueError("it must have a leaf")
    sides = [numbers(name, np.int32, n) for name in ("left_child", "right_child")]
    tree = {
        "feature": numbers("split_feature", np.int32, n),
        "threshold": numbers("threshold", np.float64, n),
        "missing": numbers("decision_type", np.uint8, n),
        "children": np.stack(sides, axis=1),
        "leaf_value": leaf_value,
        "leaf_count": numbers("leaf_count", np.int32, n_leaves if n else None),
        "internal_count": numbers("internal_count", np.int32, n),
    }
    if np.any(tree["feature"] < 0) or np.any(tree["feature"] >= n_features):
        raise ValueError(f"split_feature must lie in [0, {n_features})")
    # The kind says where missing values go; one that is categorical has the lowest bit.
    if np.any(tree["missing"] > 10) or np.any(tree["missing"] & 1):
        raise ValueError("decision_type must be one of numerical splits")
    if any(np.any(tree[name] < 0) for name in ("leaf_count", "internal_count")):
        raise ValueError("counts must not be negative")
    return tree


def _written_tree(tree: dict[str, np.ndarray]) -> str:
    n_leaves = len(tree["leaf_value"])
    n = n_leaves - 1
    rows: list[tuple[str, Any]] = [
        ("num_leaves", [n_leaves]),
        ("num_cat", [0]),
        ("split_feature", tree["feature"]),
        ("split_gain", [0] * n),
        ("threshold", tree["threshold"]),
        ("decision_type", tree["missing"]),
        ("left_child", tree["children"][:, 0]),
        ("right_child", tree["children"][:, 1]),
        ("leaf_value", tree["leaf_value"]),
        ("leaf_weight", [0] * n_leaves),
        ("leaf_count", tree["leaf_count"] if n else [0]),
        ("internal_value", [0] * n),
        ("internal_weight", [0] * n),
        ("internal_count", tree["internal_count"]),
        ("is_linear", [0]),
        ("shrinkage", [1]),
    ]
    return "".join(f"{name}={' '.join(map(_written, values))}\n" for name, values in rows)


def _written(value: Any) -> str:
    return repr(float(value)) if isinstance(value, np.floating) else str(int(value))


def _depth(children: np.ndarray, number: int) -> int:
    """Levels below the root; ValueError unless every node but the root and every leaf is a child once."""
    n = len(children)
    if not np.array_equal(np.sort(children.ravel()), np.r_[-n - 1 : 0, 1:n]):
        raise ValueError(f"tree {number} of a LightGBM text: each leaf and later node must be a child once")
    depth = np.zeros(n, np.int64)
    for node, pair in enumerate(children.tolist()):
        for child in pair:
            if 0 <= child <= node:
                raise ValueError(f"tree {number} of a LightGBM text: a child must be a leaf or a later node")
            if child > 0:
                depth[child] = depth[node] + 1
    return int(depth.max()) + 1
