"""Inner products of all pairs of sparse rows, and label means over many terms, against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import _core
from metarank.types.arrays import csr_parts


def rows_of(n, d, density, seed=0):
    X = sp.random(n, d, density, format="csr", dtype=np.float32, random_state=seed)
    X.sort_indices()
    return X


def gram(X, dtype=np.float64, n_jobs=1):
    out = np.full((X.shape[0], X.shape[0]), np.nan, dtype)
    _core.sparse_gram((*csr_parts(X), X.shape[1]), out, n_jobs)
    return out


def by_hand(X):
    """Each pair on its own, features ascending, in double."""
    rows = X.toarray().astype(np.float64)
    return np.array([[np.cumsum(a * b)[-1] for b in rows] for a in rows])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "density"), [(40, 300, 0.05), (70, 20, 0.6), (130, 9, 0.97), (1, 5, 0.5)])
def test_gram_is_that_of_pairs_one_by_one(n, d, density, dtype):
    X = rows_of(n, d, density)
    assert np.array_equal(gram(X, dtype), by_hand(X).astype(dtype))


def test_gram_for_any_number_of_threads_and_order_of_rows_and_without_terms():
    X = sp.csr_matrix(np.float32([[0, 0], [1, 2], [0, 0]]))
    assert gram(X).tolist() == [[0, 0, 0], [0, 5, 0], [0, 0, 0]]
    assert gram(sp.csr_matrix((0, 4), dtype=np.float32)).shape == (0, 0)
    X = rows_of(150, 400, 0.1)
    K = gram(X)
    assert gram(X, n_jobs=4).tobytes() == K.tobytes()
    order = np.random.default_rng(0).permutation(150)
    assert np.array_equal(gram(X[order]), K[np.ix_(order, order)])


def test_gram_refuses_what_it_could_not_follow():
    indptr, indices, data = csr_parts(rows_of(5, 10, 0.5))
    with pytest.raises(ValueError, match="square matrix"):
        _core.sparse_gram((indptr, indices, data, 10), np.empty((4, 5)), 1)
    with pytest.raises(ValueError, match=r"X.indices must lie in \[0, 9\)"):
        _core.sparse_gram((indptr, np.full_like(indices, 9), data, 9), np.empty((5, 5)), 1)
    with pytest.raises(TypeError):
        _core.sparse_gram((indptr, indices, data, 10), np.empty((5, 5), np.int32), 1)
