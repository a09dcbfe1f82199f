"""Distances to label centroids."""

import numpy as np
import pytest
import scipy.sparse as sp

from metarank.scorers.neighbors.centroids import Centroids
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows


def slow(X, Y, Q, candidates):
    """Eq. 1 of the paper, one pair at a time, in double."""
    X, Q = (np.asarray(A.todense() if sp.issparse(A) else A, np.float64) for A in (X, Q))
    longest = (X**2).sum(axis=1).max()
    out = np.empty((2, candidates.n_pairs))
    for p, (i, label) in enumerate(zip(candidates.row_of_pair, candidates.labels)):
        x, points = Q[i], X[np.asarray(Y[:, [label]].todense()).ravel() > 0]
        if len(points) == 0:
            out[:, p] = np.sqrt(x @ x + longest), 1
            continue
        c = points.mean(axis=0)
        lengths = np.linalg.norm(x) * np.linalg.norm(c)
        out[:, p] = np.linalg.norm(x - c), 1 - (x @ c / lengths if lengths > 0 else 0)
    return out


def problem(kind, seed=0, n=60, n_queries=20, d=37, L=9):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n + n_queries, d)).astype(np.float32)
    if kind == "sparse":
        A[rng.random(A.shape) < 0.8] = 0
    A[1] = 0
    Y = (rng.random((n, L)) < 0.15).astype(np.float32)
    Y[:, 4] = 0
    X, Q = A[:n], np.concatenate([A[n:], A[:2]])
    if kind == "sparse":
        X, Q = sp.csr_matrix(X), sp.csr_matrix(Q)
    return TrainingSet(X, sp.csr_matrix(Y), fold_of_rows(n, 3, seed)), Q


def some_pairs(n_rows, L, seed=0):
    rng = np.random.default_rng(seed)
    mask = sp.csr_matrix(rng.random((n_rows, L)) < 0.5)
    return Candidates(mask.indptr, mask.indices, L)


KINDS = pytest.mark.parametrize("kind", ["dense", "sparse"])


@KINDS
@pytest.mark.parametrize("fold", [None, 0, 2])
def test_agrees_with_slow_twin(kind, fold):
    data, Q = problem(kind)
    view = data.view() if fold is None else data.without_fold(fold)
    pairs = some_pairs(Q.shape[0], 9)
    columns = Centroids().fit(view).score(Q, pairs)
    assert list(columns) == ["centroid_l2", "centroid_cosine"]
    expected = slow(data.X, data.Y.multiply(view.mask[:, None]).tocsr(), Q, pairs)
    # The largest row of the whole training set, not of the View, bounds unknown labels.
    for got, want in zip(columns.values(), expected):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@KINDS
def test_laws(kind):
    data, Q = problem(kind)
    fitted = Centroids().fit(data.view())
    pairs = some_pairs(Q.shape[0], 9)
    whole = np.stack(list(fitted.score(Q, pairs).values()))
    assert np.stack(list(fitted.score(Q, pairs, n_jobs=4).values())).tobytes() == whole.tobytes()
    again = Centroids.from_state(fitted.get_state())
    assert np.stack(list(again.score(Q, pairs).values())).tobytes() == whole.tobytes()
    order = np.random.default_rng(1).permutation(Q.shape[0])
    mixed = np.stack(list(fitted.score(Q[order], pairs.rows(order)).values()))
    keys = [c.row_of_pair * 9 + c.labels for c in (pairs.rows(order), pairs)]
    back = np.searchsorted(keys[1], order[keys[0] // 9] * 9 + keys[0] % 9)
    assert mixed.tobytes() == np.ascontiguousarray(whole[:, back]).tobytes()


@KINDS
def test_labels_outside_the_view_leave_no_trace(kind):
    data, Q = problem(kind)
    Y = data.Y.toarray()
    Y[data.fold == 1] = 1 - Y[data.fold == 1]
    other = TrainingSet(data.X, sp.csr_matrix(Y), data.fold)
    pairs = Candidates.all_labels(Q.shape[0], 9)
    a, b = (Centroids().fit(d.without_fold(1)).score(Q, pairs) for d in (data, other))
    assert all(a[name].tobytes() == b[name].tobytes() for name in a)


def test_long_centroids_and_short_queries_agree():
    """Both ways to a sparse product, by look-up and by running down the centroid, give the same sum."""
    rng = np.random.default_rng(3)
    X = sp.random(400, 3000, density=0.02, format="csr", dtype=np.float32, random_state=rng)
    Y = sp.csr_matrix(np.repeat(np.eye(2, dtype=np.float32), [399, 1], axis=0))
    data = TrainingSet(X, Y, np.zeros(400, np.int32))
    long_rows = sp.random(3, 3000, density=0.9, format="csr", dtype=np.float32, random_state=rng)
    Q = sp.vstack([X[:3], long_rows]).tocsr()
    pairs = Candidates.all_labels(6, 2)
    got = Centroids().fit(data.view()).score(Q, pairs)
    for column, want in zip(got.values(), slow(X, Y, Q, pairs)):
        np.testing.assert_allclose(column, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("row_density", [0.002, 0.02, 0.5])
def test_every_way_to_a_sparse_product_gives_the_same_bits(row_density):
    """Looked up, run down, by the words of a long centroid, by postings: after many pairs or few."""
    rng = np.random.default_rng(5)
    n_labels = 40
    X = sp.random(600, 2000, density=0.01, format="csr", dtype=np.float32, random_state=rng)
    rows_of_label = rng.integers(1, [2, 5, 30, 200] * (n_labels // 4))
    Y = np.zeros((600, n_labels), np.float32)
    for label, size in enumerate(rows_of_label):
        Y[rng.choice(600, size, replace=False), label] = 1
    data = TrainingSet(X, sp.csr_matrix(Y), np.zeros(600, np.int32))
    Q = sp.random(12, 2000, density=row_density, format="csr", dtype=np.float32, random_state=rng)
    scorer = Centroids().fit(data.view())
    whole = Candidates.all_labels(12, n_labels)
    drawn = np.array([np.sort(rng.choice(n_labels, 3, replace=False)) for _ in range(12)], np.int32)
    few = Candidates(np.arange(13) * 3, drawn.ravel(), n_labels)
    singly = scorer.score(Q, few)
    columns = scorer.score(Q, whole)
    for column, want in zip(columns.values(), slow(X, sp.csr_matrix(Y), Q, whole)):
        np.testing.assert_allclose(column, want, rtol=1e-5, atol=1e-6)
    again = scorer.score(Q, few, n_jobs=2)
    at = few.row_of_pair * n_labels + few.labels
    for name, column in columns.items():
        assert column[at].tobytes() == singly[name].tobytes() == again[name].tobytes(), name


def test_huge_values_stay_finite():
    X = np.full((2, 3), 3e38, np.float32)
    data = TrainingSet(X, sp.csr_matrix(np.eye(2, dtype=np.float32)), np.zeros(2, np.int32))
    for scorer_input in (X, -X):
        for column in Centroids().fit(data.view()).score(scorer_input, Candidates.all_labels(2, 2)).values():
            assert np.isfinite(column).all()


@KINDS
def test_bad_input(kind):
    data, Q = problem(kind)
    fitted = Centroids().fit(data.view())
    with pytest.raises(ValueError, match="X must have 37 features"):
        fitted.score(Q[:, :5], Candidates.all_labels(Q.shape[0], 9))
    with pytest.raises(ValueError, match="one list a row"):
        fitted.score(Q, Candidates.all_labels(2, 9))
    with pytest.raises(ValueError, match="candidates must be of 9 labels, got 10"):
        fitted.score(Q, Candidates.all_labels(Q.shape[0], 10))


def test_whole_lists_have_the_bytes_of_single_pairs():
    """An index over the centroids, made where most pairs are asked for, changes no bit."""
    data, Q = problem("sparse")
    scorer = Centroids().fit(data.view())
    whole = Candidates.all_labels(Q.shape[0], 9)
    columns = scorer.score(Q, whole)
    for i in range(Q.shape[0]):
        for label in range(9):
            pair = Candidates(np.array([0, 1]), np.array([label], np.int32), 9)
            for name, values in scorer.score(Q[i], pair).items():
                assert values.tobytes() == columns[name][9 * i + label : 9 * i + label + 1].tobytes()
