"""Label vectors: eq. 3, exactly and within a subspace."""

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import _core
from metarank.scorers.trees.hierarchy import given_label_vectors, principal_label_vectors
from metarank.types.arrays import csr_parts


def problem(n=3000, d=150, L=40, seed=0):
    """More rows than one block; label 5 has no point, row 1 no label, row 2 no feature."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.05, "lil", np.float32, random_state=rng)
    Y = sp.random(n, L, 0.05, "lil", np.float32, random_state=rng)
    Y[:, 5], Y[1], X[2] = 0, 0, 0
    return sp.csr_matrix(X), sp.csr_matrix(Y)


def slow(X, Y):
    """Eq. 3, one label at a time, in double."""
    X, Y = X.toarray().astype(float), Y.toarray().astype(float)
    out = np.zeros((Y.shape[1], X.shape[1]))
    for label, y in enumerate(Y.T):
        v = sum(y_i * x for y_i, x in zip(y, X) if y_i > 0)
        if np.any(v):
            out[label] = v / np.linalg.norm(v)
    return out


def test_few_features_are_kept_as_they_are():
    X, Y = problem(d=50)
    V = principal_label_vectors(X, Y, n_dims=64, seed=0, n_jobs=1)
    np.testing.assert_allclose(V[:, :50], slow(X, Y), atol=1e-5)
    assert not V[:, 50:].any()


def test_subspace_keeps_what_the_vectors_share():
    # Fewer topics than dimensions: nothing but rounding may be lost.
    rng = np.random.default_rng(0)
    topics = rng.random((20, 300))
    X = sp.csr_matrix(rng.random((500, 20)) @ topics, dtype=np.float32)
    Y = sp.random(500, 30, 0.1, "csr", np.float32, random_state=rng)
    V = principal_label_vectors(X, Y, n_dims=32, seed=0, n_jobs=1)
    want = slow(X, Y)
    np.testing.assert_allclose(V @ V.T, want @ want.T, atol=1e-3)


def test_the_kernel_agrees_with_matrix_products():
    X, Y = problem()
    D = np.random.default_rng(1).normal(size=(40, 96)).astype(np.float32)
    rows, relevance = ((*csr_parts(A), A.shape[1]) for A in (X, Y))
    one, four = (_core.transposed_product(rows, relevance, D, n) for n in (1, 4))
    np.testing.assert_allclose(one, (X.T @ Y) @ D.astype(float), rtol=1e-4, atol=1e-4)
    assert one.tobytes() == four.tobytes()
    for width in (0, 31, 33):
        with pytest.raises(ValueError, match="multiple of 32"):
            _core.transposed_product(rows, relevance, np.zeros((40, width), np.float32), 1)


def test_laws():
    X, Y = problem()
    one, four = (principal_label_vectors(X, Y, n_dims=64, seed=3, n_jobs=k) for k in (1, 4))
    assert one.tobytes() == four.tobytes()
    order = np.random.default_rng(0).permutation(X.shape[0])
    mixed = principal_label_vectors(X[order], Y[order], n_dims=64, seed=3, n_jobs=1)
    np.testing.assert_allclose(mixed @ mixed.T, one @ one.T, atol=1e-3)
    # Large values do not overflow; without a point there is nothing.
    big = principal_label_vectors(X * np.float32(1e37), Y * np.float32(1e37), n_dims=64, seed=3, n_jobs=1)
    np.testing.assert_allclose(big @ big.T, one @ one.T, atol=1e-3)
    assert not principal_label_vectors(X * 0, Y * 0, n_dims=32, seed=0, n_jobs=1).any()


def test_given_vectors_become_unit_rows():
    V = np.array([[3.0, 4.0], [0, 0], [0, 2]])
    want = [[0.6, 0.8], [0, 0], [0, 1]]
    np.testing.assert_allclose(given_label_vectors(V, 3), want, rtol=1e-6)
    wide = sp.csr_matrix((V.ravel(), (np.repeat([0, 1, 2], 2), np.tile([0, 99], 3))), shape=(3, 100))
    np.testing.assert_allclose(given_label_vectors(wide, 3)[:, [0, 99]].toarray(), want, rtol=1e-6)
    with pytest.raises(ValueError, match="label_vectors must have 4 rows"):
        given_label_vectors(V, 4)
