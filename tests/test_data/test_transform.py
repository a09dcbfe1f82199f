"""Features at the door: what counts as ready, and how texts are weighted."""

import numpy as np
import pytest
import scipy.sparse as sp

from metarank.data.scaling import FeatureTransform
from metarank.types.checks import check_features, is_ready


def texts(seed=0, n=60, d=80, counts=True):
    rng = np.random.default_rng(seed)
    A = rng.integers(1, 9, (n, d)) if counts else rng.normal(size=(n, d))
    A = np.where(rng.random((n, d)) < 0.1, A, 0)
    A[3] = 0
    return sp.csr_matrix(A.astype(np.float32))


@pytest.mark.parametrize("counts", [True, False])
def test_sparse_rows_agree_with_slow_twin(counts):
    X = texts(counts=counts)
    before = X.copy()
    transform = FeatureTransform().fit(X)
    assert transform.kind == ("tfidf" if counts else "unit")
    got = transform.transform(X)
    dense = X.toarray().astype(np.float64)
    if counts:
        idf = 1 + np.log((1 + len(dense)) / (1 + (dense > 0).sum(axis=0)))
        dense = np.where(dense > 0, 1 + np.log(np.maximum(dense, 1)), 0) * idf.astype(np.float32)
    length = np.sqrt((dense**2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(got.toarray(), dense / np.where(length > 0, length, 1), rtol=1e-6)
    assert (before != X).nnz == 0
    assert got.dtype == np.float32
    assert got.has_canonical_format
    alone = [transform.transform(X[i]).data for i in range(X.shape[0])]
    assert np.concatenate(alone).tobytes() == got.data.tobytes()


def test_values_that_are_no_counts_weigh_nothing_where_counts_were_learned():
    transform = FeatureTransform().fit(texts())
    row = sp.csr_matrix(np.eye(1, 80, 5, dtype=np.float32) * 2 - np.eye(1, 80, 7, dtype=np.float32))
    assert transform.transform(row).toarray()[0, [5, 7]].tolist() == [1, 0]


def damaged(kind):
    X = texts()
    if kind == "unsorted":
        X.indices[:2] = X.indices[1::-1].copy()
        X.has_sorted_indices = False
    elif kind == "zero":
        X.data[4] = 0
    elif kind == "NaN":
        X.data[4] = np.nan
    elif kind == "duplicate":
        X.indices[1] = X.indices[0]
    elif kind == "out of range":
        X.indices[X.indptr[1] - 1] = 80
    elif kind == "float64":
        X = X.astype(np.float64)
    elif kind == "int64":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.mark.parametrize("kind", ["unsorted", "zero", "NaN", "duplicate", "out of range", "float64", "int64"])
def test_only_clean_matrices_are_ready(kind):
    for ready in (texts(), sp.csr_array(texts()), texts()[:0]):
        assert is_ready(ready)
    for other in (damaged(kind), texts().toarray(), texts().tocsc()):
        assert not is_ready(other)


def test_a_ready_matrix_is_passed_through_and_others_become_one():
    X = texts()
    assert check_features(X, layout="sparse") is X
    for kind in ("unsorted", "zero", "float64", "int64"):
        assert is_ready(check_features(damaged(kind), layout="sparse"))
    with pytest.raises(ValueError, match="contains NaN at row 0"):
        check_features(damaged("NaN"), layout="sparse")
