"""Weight blocks: what a tree is trained to is stored as described, and altered arrays are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from weight_blocks import NAMES, decode, encode

from metarank import _core
from metarank.shortlist import Parabel
from metarank.types.arrays import csr_parts


def random_weights(
    seed: int, n_slots: int, n_features: int, density: float, sizes: list[int] | None = None
) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Weights (S, d), biases (S,) and each node's first slot."""
    rng = np.random.default_rng(seed)
    W = sp.random_array((n_slots, n_features), density=density, rng=rng, format="csr", dtype=np.float32)
    W.data = rng.normal(size=W.nnz).astype(np.float32)
    W.sort_indices()
    starts = np.cumsum([0, *(sizes or [n_slots])]).astype(np.int64)
    return W, rng.normal(size=n_slots).astype(np.float32), starts


@pytest.mark.parametrize(
    ("n_features", "density", "max_leaf"), [(30, 0.5, 256), (3000, 0.02, 40), (200_000, 0.0005, 40)]
)
def test_trained_weights_are_packed_like_the_twins(n_features: int, density: float, max_leaf: int) -> None:
    rng = np.random.default_rng(0)
    X = sp.random(200, n_features, density, "csr", np.float32, random_state=rng)
    Y = sp.csr_matrix((rng.random((200, 400)) < 0.01).astype(np.float32))
    weights = Parabel(n_trees=1, branching=200, max_leaf=max_leaf).fit(X, Y).weights_
    W = decode(weights, n_features)
    assert W.nnz > 1000
    slots = weights["block_slot"][weights["node_block"]]
    packed = encode(W, weights["bias"], slots)
    assert all(a.dtype == weights[name].dtype for name, a in packed.items())
    for name in set(NAMES) - {"scale"}:  # the largest weight of a slot, and so its scale, is stored rounded
        np.testing.assert_array_equal(packed[name], weights[name], err_msg=name)
    np.testing.assert_allclose(packed["scale"], weights["scale"], rtol=1e-6)
    assert sum(weights[name].nbytes for name in NAMES) / W.nnz < 7


def altered(arrays: dict[str, np.ndarray], name: str, at: int, value: Any) -> dict[str, np.ndarray]:
    copy = {k: a.copy() for k, a in arrays.items()}
    copy[name][at] = value
    return copy


def tree_over(arrays: dict[str, np.ndarray], n_features: int) -> _core.LabelTrees:
    """A node of 10 slots, the first of which leads to one of 20."""
    child = np.array([1, *range(-1, -10, -1), *range(-10, -30, -1)], np.int32)
    blocks = _core.WeightBlocks(n_features=n_features, **arrays)
    roots, starts, no_costs = np.zeros(1, np.int32), np.array([0, 10, 30]), np.zeros(0, np.float32)
    return _core.LabelTrees(roots, starts, child, 29, blocks, 0, 1.0, no_costs)


def test_altered_arrays_are_refused_or_harmless() -> None:
    """Any one byte of any array changed: an error at the interface, or a model that still answers."""
    W, bias, starts = random_weights(4, 30, 600, 0.05, [10, 20])
    arrays = encode(W, bias, starts)
    rng = np.random.default_rng(0)
    X = csr_parts(sp.csr_matrix(rng.random((3, 600), np.float32)))
    refused = 0
    for name, array in arrays.items():
        raw = array.view(np.uint8)
        for at in rng.choice(len(raw), size=min(len(raw), 150), replace=False):
            copy = {k: a.copy() for k, a in arrays.items()}
            copy[name].view(np.uint8)[at] ^= rng.integers(1, 256, dtype=np.uint8)
            try:
                trees = tree_over(copy, 600)
            except ValueError:
                refused += 1
                continue
            assert trees.beam(X, 2, 5, 5, 1)[1].max(initial=0) < 29
    assert refused > 200


@pytest.mark.parametrize(
    ("name", "at", "value", "message"),
    [
        ("node_block", -1, 3, "node_block"),
        ("block_slot", 1, 31, "block_slot"),
        ("bucket_start", 1, 0, "bucket"),
        ("data_start", 1, -1, "data_start"),
        ("shift", 0, 17, "shift"),
        ("bias", 0, np.inf, "finite"),
    ],
)
def test_errors_name_the_array(name: str, at: int, value: Any, message: str) -> None:
    arrays = encode(*random_weights(4, 30, 600, 0.05, [10, 20]))
    with pytest.raises(ValueError, match=message):
        _core.WeightBlocks(n_features=600, **altered(arrays, name, at, value))


def test_arrays_cut_short_and_wrong_widths_are_refused() -> None:
    W, bias, starts = random_weights(4, 30, 600, 0.05, [10, 20])
    arrays = encode(W, bias, starts)
    for name in arrays:
        with pytest.raises(ValueError):
            _core.WeightBlocks(n_features=600, **{**arrays, name: arrays[name][:-1]})
    with pytest.raises(ValueError, match="n_features"):
        _core.WeightBlocks(n_features=int(W.indices.max()), **arrays)
    with pytest.raises(TypeError):
        _core.WeightBlocks(n_features=600, **{**arrays, "bias": arrays["bias"].astype(np.float64)})
