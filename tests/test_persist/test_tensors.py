"""Named arrays in a safetensors file: what is written is read, and damage is told."""

from __future__ import annotations

import numpy as np
import pytest

from metarank.persist.tensors import read_tensors, write_tensors

pytest.importorskip("safetensors")

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b/c": np.array([1, -2], np.int64),
    "none": np.zeros((0, 4), np.float64),
    "one": np.array(7, np.int32),
}


@pytest.fixture
def path(tmp_path):
    with open(tmp_path / "t", "wb") as f:
        write_tensors(f, ARRAYS)
    return tmp_path / "t"


def test_what_is_written_is_read(path):
    tensors = read_tensors(path)
    assert set(tensors) == set(ARRAYS)
    for name, values in ARRAYS.items():
        assert (tensors[name].dtype, tensors[name].shape) == (values.dtype, values.shape)
        np.testing.assert_array_equal(tensors[name], values)


def test_what_cannot_be_read(path):
    content = path.read_bytes()
    for keep in (0, 5, 100, len(content) - 1):
        path.write_bytes(content[:keep])
        with pytest.raises(ValueError, match="is not a safetensors file"):
            read_tensors(path)
