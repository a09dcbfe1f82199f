"""Named arrays in a safetensors file: what is written is read, and damage is told."""

from __future__ import annotations

import numpy as np
import pytest

from metarank.persist.tensors import read_tensors, write_tensors

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b/c": np.array([1, -2], np.int64),
    "none": np.zeros((0, 4), np.float64),
    "one": np.array(7, np.int32),
}


@pytest.fixture
def path(tmp_path):
    with open(tmp_path / "t", "wb") as f:
        write_tensors(f, ARRAYS, {"k": "v"})
    return tmp_path / "t"


def test_what_is_written_is_read(path):
    tensors, metadata = read_tensors(path)
    assert metadata == {"k": "v"}
    assert list(tensors) == list(ARRAYS)
    for name, values in ARRAYS.items():
        assert (tensors[name].dtype, tensors[name].shape) == (values.dtype, values.shape)
        np.testing.assert_array_equal(tensors[name], values)
    assert not tensors["a"].flags.writeable


def test_the_library_reads_it(path):
    theirs = pytest.importorskip("safetensors.numpy").load_file(path)
    for name, values in ARRAYS.items():
        np.testing.assert_array_equal(theirs[name], values)


def test_what_cannot_be_written(tmp_path):
    with open(tmp_path / "t", "wb") as f, pytest.raises(TypeError, match="a: a tensor of dtype <U1"):
        write_tensors(f, {"a": np.array(["x"])})


@pytest.mark.parametrize("keep", [0, 5, 100])
def test_a_cut_file_is_told(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match="no end"):
        read_tensors(path)


def test_missing_values_are_told(path):
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="outside the file"):
        read_tensors(path)
