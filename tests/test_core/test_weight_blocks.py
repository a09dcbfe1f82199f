"""Weight blocks: what is stored is what was given, and altered arrays are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import _core


def random_weights(
    seed: int, n_slots: int, n_features: int, density: float, sizes: list[int] | None = None
) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Weights (S, d), biases (S,) and each node's first slot."""
    rng = np.random.default_rng(seed)
    W = sp.random_array((n_slots, n_features), density=density, rng=rng, format="csr", dtype=np.float32)
    W.data = rng.normal(size=W.nnz).astype(np.float32)
    W.sort_indices()
    W = sp.csr_array((W.data, W.indices.astype(np.int32), W.indptr.astype(np.int64)), shape=W.shape)
    starts = np.cumsum([0, *(sizes or [n_slots])]).astype(np.int64)
    assert starts[-1] == n_slots
    return W, rng.normal(size=n_slots).astype(np.float32), starts


def encode(W: sp.csr_array, bias: np.ndarray, node_start: np.ndarray) -> dict[str, np.ndarray]:
    return _core.encode_weights(
        W.indptr.astype(np.int64), W.indices.astype(np.int32), W.data.astype(np.float32), bias, node_start
    )


def rounded(W: sp.csr_array) -> np.ndarray:
    """The slow twin: each slot's weights as multiples of 1/32767 of its largest."""
    dense = W.toarray()
    scale = (np.abs(dense).max(1, initial=0) / np.float32(32767)).astype(np.float32)
    steps = np.rint(dense / np.where(scale > 0, scale, 1)[:, None])
    return steps.astype(np.float32) * scale[:, None]


CASES = [
    (16, 50, 0.5, None),
    (16, 5000, 0.02, None),
    (40, 1_000_000, 0.0001, [10, 1, 29]),
    (700, 300, 0.1, [1, 300, 399]),
    (600, 4, 1.0, None),
    (3, 1, 1.0, [1, 1, 1]),
    (5, 70_000, 0.00001, None),
]


@pytest.mark.parametrize("case", CASES)
def test_decode_returns_the_rounded_weights(case: tuple) -> None:
    W, bias, starts = random_weights(0, *case)
    arrays = encode(W, bias, starts)
    blocks = _core.WeightBlocks(n_features=W.shape[1], **arrays)
    indptr, indices, values = blocks.decode()
    back = sp.csr_array((values, indices, indptr), shape=W.shape)
    assert back.has_canonical_format
    if W.shape[1] <= 5000:
        np.testing.assert_array_equal(back.toarray(), rounded(W))
    assert np.abs(back - W).max() <= np.abs(W).max() / 65000
    np.testing.assert_array_equal(arrays["bias"], bias)
    sizes = np.diff(starts)
    np.testing.assert_array_equal(np.diff(arrays["node_block"]), -(-sizes // 256))
    assert arrays["block_slot"][-1] == W.shape[0]
    assert np.diff(arrays["block_slot"]).max() <= 256


@pytest.mark.parametrize("case", CASES)
def test_find_agrees_with_decode(case: tuple) -> None:
    W, bias, starts = random_weights(1, *case)
    arrays = encode(W, bias, starts)
    blocks = _core.WeightBlocks(n_features=W.shape[1], **arrays)
    indptr, indices, values = blocks.decode()
    back = sp.csr_array((values, indices, indptr), shape=W.shape).tocsc()
    rng = np.random.default_rng(2)
    present = rng.choice(W.indices, size=100)
    for f in {*present.tolist(), *rng.integers(0, W.shape[1], 50).tolist(), 0, W.shape[1] - 1}:
        column = back[:, [f]].toarray().ravel()
        for b in range(len(arrays["shift"])):
            first, last = arrays["block_slot"][b : b + 2]
            slots, weights = blocks.find(b, f)
            expected = np.flatnonzero(column[first:last])
            np.testing.assert_array_equal(slots, expected)
            np.testing.assert_array_equal(
                (weights * arrays["scale"][first:last][expected]).astype(np.float32),
                column[first:last][expected],
            )
    assert all(len(blocks.find(0, f)[0]) == 0 for f in (W.shape[1], 2**31 - 1))


def test_clustered_features_are_found() -> None:
    """Dense features beside a sparse tail crowd a few buckets."""
    d = 200_000
    dense = np.ones((20, 500), np.float32)
    tail = sp.random_array((20, d - 500), density=0.001, rng=np.random.default_rng(0), dtype=np.float32)
    W = sp.csr_array(sp.hstack([sp.csr_array(dense), tail], format="csr"))
    arrays = encode(W, np.zeros(20, np.float32), np.array([0, 20]))
    blocks = _core.WeightBlocks(n_features=d, **arrays)
    for f in (0, 3, 255, 256, 499):
        np.testing.assert_array_equal(blocks.find(0, f)[0], np.arange(20))
    assert len(blocks.find(0, 500)[0]) == np.count_nonzero(W[:, [500]].toarray())


def test_weights_too_small_to_scale_are_dropped() -> None:
    W = sp.csr_array(np.array([[1e-44, 0], [1, 1e-6]], np.float32))
    arrays = encode(W, np.zeros(2, np.float32), np.array([0, 2]))
    assert arrays["scale"][0] == 0
    indptr, indices, _ = _core.WeightBlocks(n_features=2, **arrays).decode()
    assert indptr.tolist() == [0, 0, 1]
    assert indices.tolist() == [0]


def test_no_slots_at_all() -> None:
    arrays = encode(sp.csr_array((0, 7), dtype=np.float32), np.zeros(0, np.float32), np.array([0, 0]))
    blocks = _core.WeightBlocks(n_features=7, **arrays)
    assert blocks.n_slots == 0
    assert blocks.decode()[0].tolist() == [0]


def test_model_is_small() -> None:
    W, bias, starts = random_weights(3, 16, 5000, 0.1)
    arrays = encode(W, bias, starts)
    per_weight = sum(a.nbytes for a in arrays.values()) / W.nnz
    assert per_weight < 5.2


def test_bad_weights_are_refused() -> None:
    W, bias, starts = random_weights(0, 4, 6, 0.5)
    W.data[0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        encode(W, bias, starts)
    W.data[0] = 1
    with pytest.raises(ValueError, match="bias"):
        encode(W, bias[:-1], starts)
    with pytest.raises(ValueError, match="node_start"):
        encode(W, bias, np.array([0, 3]))


def altered(arrays: dict[str, np.ndarray], name: str, at: int, value: Any) -> dict[str, np.ndarray]:
    copy = {k: a.copy() for k, a in arrays.items()}
    copy[name][at] = value
    return copy


def test_altered_arrays_are_refused_or_harmless() -> None:
    """Any one byte of any array changed: an error at the door, or a model that still decodes."""
    W, bias, starts = random_weights(4, 30, 600, 0.05, [10, 20])
    arrays = encode(W, bias, starts)
    rng = np.random.default_rng(0)
    refused = 0
    for name, array in arrays.items():
        raw = array.view(np.uint8)
        for at in rng.choice(len(raw), size=min(len(raw), 250), replace=False):
            copy = {k: a.copy() for k, a in arrays.items()}
            copy[name].view(np.uint8)[at] ^= rng.integers(1, 256, dtype=np.uint8)
            try:
                blocks = _core.WeightBlocks(n_features=600, **copy)
            except ValueError:
                refused += 1
                continue
            assert blocks.decode()[1].max(initial=0) < 600
            for f in range(0, 600, 7):
                blocks.find(0, f)
    assert refused > 300


@pytest.mark.parametrize(
    ("name", "at", "value", "message"),
    [
        ("node_block", -1, 3, "node_block"),
        ("block_slot", 1, 31, "block_slot"),
        ("bucket_start", 1, 0, "bucket"),
        ("data_start", 1, -1, "data_start"),
        ("shift", 0, 17, "shift"),
        ("bucket_offset", 0, 1, "bucket_offset"),
        ("bias", 0, np.inf, "finite"),
        ("scale", 0, np.nan, "finite"),
    ],
)
def test_errors_name_the_array(name: str, at: int, value: Any, message: str) -> None:
    W, bias, starts = random_weights(4, 30, 600, 0.05, [10, 20])
    arrays = encode(W, bias, starts)
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
