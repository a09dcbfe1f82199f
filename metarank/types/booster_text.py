"""A LightGBM model from a saved text that need not be trusted, for the shares of features in its scores.

LightGBM's own parser follows the sizes, child numbers and parameters of a text without looking. So it never
sees that text: the trees are read here and checked, and the core computes the shares, with the bytes of
``booster.predict(X, pred_contrib=True)`` on x86-64, and with the same bytes on every other platform.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from metarank import _core
from metarank.types.arrays import joined_ids

# LightGBM reads a dense value of this size or less as zero.
_ZERO = float(np.float32(1e-35))


def contributions(text: str, X: np.ndarray) -> np.ndarray:
    """float64 (n, d + 1): the share of each feature in the score of each row and, last, the expected score.

    Raises
    ------
    ValueError
        If the text is no model in LightGBM's text format, is over another number of features, has categorical
        splits or linear leaves, or describes anything but binary trees at most 1,024 deep.

    Examples
    --------
    >>> contributions("num_tree_per_iteration=1\\nmax_feature_idx=4\\n\\nend of trees", np.zeros((1, 3)))
    Traceback (most recent call last):
    ValueError: a LightGBM text must be over 3 features with one tree a round, got '5' and '1'
    """
    n_features = X.shape[1]
    head, blocks = parts_of(text)
    most, rounds = head.get("max_feature_idx"), head.get("num_tree_per_iteration")
    if most != str(n_features - 1) or rounds != "1":
        found = None if most is None or not most.isdigit() else str(int(most) + 1)
        raise ValueError(
            f"a LightGBM text must be over {n_features} features with one tree a round, "
            f"got {found or most!r:.40} and {rounds!r:.40}"
        )
    trees = list(trees_of(blocks, n_features))
    if not trees:
        return np.zeros((len(X), n_features + 1))
    for number, tree in enumerate(trees):
        _check_children(tree["children"], number)
    sizes = [[len(tree[name]) for tree in trees] for name in ("feature", "leaf_value")]
    roots = [np.array([0 if len(tree["children"]) else ~0], np.int32) for tree in trees]
    joined = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0] if name != "children"}
    return _core.tree_shares(
        joined["feature"],
        outside_zero(joined["threshold"]),
        joined_ids([tree["children"] for tree in trees], *sizes),
        joined["missing"],
        joined_ids(roots, *sizes),
        joined["leaf_value"],
        joined["internal_count"],
        joined["leaf_count"],
        np.ascontiguousarray(X if X.dtype == np.float32 else X.astype(np.float64)),
        1,
    )


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


def outside_zero(threshold: np.ndarray) -> np.ndarray:
    """Thresholds moved out of LightGBM's zero interval, so that a value inside it splits as 0 does."""
    threshold = np.where((threshold >= -_ZERO) & (threshold < 0), np.nextafter(-_ZERO, -1.0), threshold)
    return np.where((threshold >= 0) & (threshold < _ZERO), _ZERO, threshold)


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
        "leaf_count": numbers("leaf_count", np.int32, n_leaves) if n else np.zeros(1, np.int32),
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


def _check_children(children: np.ndarray, number: int) -> None:
    """ValueError unless every node but the root and every leaf is a child once, of an earlier node."""
    n = len(children)
    if not n:
        return
    if not np.array_equal(np.sort(children.ravel()), np.r_[-n - 1 : 0, 1:n]):
        raise ValueError(f"tree {number} of a LightGBM text: each leaf and later node must be a child once")
    if np.any((children >= 0) & (children <= np.arange(n)[:, None])):
        raise ValueError(f"tree {number} of a LightGBM text: a child must be a leaf or a later node")
