"""What is done once for a row, however many sources read it: its arrays, and the look for large numbers."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from metarank.types.arrays import csr_parts, remembered_parts, shallow, with_parts
from metarank.types.checks import ScoresNotFiniteError, finite_scores


def matrix() -> sp.csr_matrix:
    return sp.csr_matrix(np.float32([[0, 1, 2], [3, 0, 0]]))


def same(a, b) -> None:
    for x, y in zip(a, b, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def test_the_parts_of_a_matrix_are_made_once():
    X = with_parts(matrix())
    same(csr_parts(X), csr_parts(matrix()))
    assert csr_parts(X) is csr_parts(X) is remembered_parts(X)


@pytest.mark.parametrize("name", ["data", "indices", "indptr"])
def test_a_matrix_of_other_arrays_has_other_parts(name):
    X = with_parts(matrix())
    other = shallow(X)
    setattr(other, name, getattr(other, name)[::-1].copy() if name != "indptr" else np.int32([0, 1, 3]))
    assert remembered_parts(other) is None
    same(csr_parts(other), (other.indptr.astype(np.int64), other.indices, other.data))
    same(csr_parts(X), csr_parts(matrix()))


@pytest.mark.parametrize("derive", [lambda X: X[:1], lambda X: X * 2, lambda X: X.astype(np.float64)])
def test_what_is_derived_of_a_matrix_has_parts_of_its_own(derive):
    same(csr_parts(derive(with_parts(matrix()))), csr_parts(derive(matrix())))


def test_parts_survive_a_pickle():
    X = pickle.loads(pickle.dumps(with_parts(matrix())))
    assert remembered_parts(X) is not None
    same(csr_parts(X), csr_parts(matrix()))


@pytest.mark.parametrize("n", [1, 3, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2e30, -2e30])
def test_scores_out_of_range_are_refused_wherever_they_stand(n, dtype, bad):
    for place in {0, n // 2, n - 1}:
        for rest in (0, 1e20, -9e29):
            scores = np.full(n, rest, dtype)
            scores[place] = bad
            with pytest.raises(ScoresNotFiniteError, match="scores must be finite"):
                finite_scores(scores, 1e30)
            if np.isfinite(bad):
                assert finite_scores(scores) is scores


@pytest.mark.parametrize("shape", [(0,), (4,), (2, 3), (5000,)])
@pytest.mark.parametrize("value", [0, -1, 3e38, -3e38])
def test_scores_within_range_are_given_back(shape, value):
    scores = np.full(shape, value, np.float32)
    assert finite_scores(scores) is scores
