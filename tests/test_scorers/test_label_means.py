"""Means of labels: distances to them, tail classifiers over them; and the prior, which counts rows alone."""

import pickle

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker
from metarank.scorers.neighbors import label_means
from metarank.scorers.neighbors.centroids import Centroids
from metarank.scorers.neighbors.label_means import LabelMeans, sq_norms
from metarank.scorers.neighbors.prior import PRIOR, LabelPrior
from metarank.scorers.trees.tail import COLUMN, TailClassifiers, unit_rows
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows

KINDS = pytest.mark.parametrize("kind", ["dense", "sparse"])


def problem(kind, seed=0, n=60, n_queries=20, d=37, L=9):
    rng = np.random.default_rng(seed)
    A = rng.gamma(1.0, size=(n + n_queries, d)).astype(np.float32)
    if kind == "sparse":
        A[rng.random(A.shape) < 0.8] = 0
    A[1] = 0
    Y = (rng.random((n, L)) < 0.15) * rng.integers(1, 4, (n, L)).astype(np.float32)
    Y[:, 4] = 0
    X, Q = A[:n], np.concatenate([A[n:], A[:2]])
    if kind == "sparse":
        X, Q = sp.csr_matrix(X), sp.csr_matrix(Q)
    return TrainingSet(X, sp.csr_matrix(Y), fold_of_rows(n, 3, seed)), Q


def to_dense(A):
    return np.asarray(A.todense() if sp.issparse(A) else A, np.float64)


def some_pairs(n_rows):
    mask = sp.csr_matrix(np.random.default_rng(0).random((n_rows, 9)) < 0.5)
    return Candidates(mask.indptr, mask.indices, 9)


def slow(X, Y, Q, candidates, gamma, unit_means):
    """Eq. 5 and 7, one pair at a time, in double."""

    def unit(A):
        length = np.linalg.norm(A, axis=1, keepdims=True)
        return A / np.where(length > 0, length, 1)

    X, Q, Y = unit(to_dense(X)), unit(to_dense(Q)), to_dense(Y)
    out = np.empty(candidates.n_pairs)
    for p, (i, label) in enumerate(zip(candidates.row_of_pair, candidates.labels)):
        mean = X[Y[:, label] > 0].sum(axis=0) / max(1, np.sum(Y[:, label] > 0))
        if unit_means:
            sq = 2 * (1 - Q[i] @ mean / max(np.linalg.norm(mean), 1e-30))
        else:
            sq = np.sum((Q[i] - mean) ** 2) if mean.any() else Q[i] @ Q[i] + 1
        out[p] = -np.log1p(np.exp(gamma / 2 * sq))
    return out


def slow_distances(X, Y, Q, candidates):
    """Eq. 1 of the paper, one pair at a time, in double."""
    X, Q, Y = to_dense(X), to_dense(Q), to_dense(Y)
    longest = (X**2).sum(axis=1).max()
    out = np.empty((2, candidates.n_pairs))
    for p, (i, label) in enumerate(zip(candidates.row_of_pair, candidates.labels)):
        x, points = Q[i], X[Y[:, label] > 0]
        if len(points) == 0:
            out[:, p] = np.sqrt(x @ x + longest), 1
            continue
        c = points.mean(axis=0)
        lengths = np.linalg.norm(x) * np.linalg.norm(c)
        out[:, p] = np.linalg.norm(x - c), 1 - (x @ c / lengths if lengths > 0 else 0)
    return out


@KINDS
@pytest.mark.parametrize("fold", [None, 0, 2])
def test_distances_agree_with_slow_twin(kind, fold):
    data, Q = problem(kind)
    view = data.view() if fold is None else data.without_fold(fold)
    pairs = some_pairs(Q.shape[0])
    columns = Centroids().fit(view).score(Q, pairs)
    assert list(columns) == ["label centroid: L2 distance", "label centroid: cosine distance"]
    expected = slow_distances(data.X, data.Y.multiply(view.mask[:, None]), Q, pairs)
    # The largest row of the whole training set, not of the TrainingView, bounds unknown labels.
    for got, want in zip(columns.values(), expected):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("row_density", [0.002, 0.02, 0.5])
def test_every_way_to_a_sparse_product_gives_the_same_bits(row_density, monkeypatch):
    """Looked up, run down, by the words of a long mean, by postings, of few rows: after many pairs or few."""
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
    for column, want in zip(columns.values(), slow_distances(X, Y, Q, whole)):
        np.testing.assert_allclose(column, want, rtol=1e-5, atol=1e-6)
    again = scorer.score(Q, few, n_jobs=2)
    at = few.row_of_pair * n_labels + few.labels
    for name, column in columns.items():
        assert column[at].tobytes() == singly[name].tobytes() == again[name].tobytes(), name
    monkeypatch.setattr(label_means, "_MOST_TERMS", 0)
    lean = Centroids.from_state(Centroids().fit(data.view()).get_state())
    assert 0 < lean.means_.means.nnz < scorer.means_.means.nnz
    assert all(column.tobytes() == columns[name].tobytes() for name, column in lean.score(Q, whole).items())


def test_huge_values_stay_finite():
    X = np.full((2, 3), 3e38, np.float32)
    data = TrainingSet(X, sp.csr_matrix(np.eye(2, dtype=np.float32)), np.zeros(2, np.int32))
    for scorer_input in (X, -X):
        for column in Centroids().fit(data.view()).score(scorer_input, Candidates.all_labels(2, 2)).values():
            assert np.isfinite(column).all()


def test_the_prior_counts_the_view_only():
    Y = sp.csr_matrix(np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1], [1, 0, 0]], np.float32))
    data = TrainingSet(np.zeros((4, 2), np.float32), Y, np.array([0, 0, 1, 1], np.int32))
    pairs, x = Candidates.all_labels(1, 3), np.zeros((1, 2), np.float32)
    for view, expected in (
        (data.view(), np.array([3.5, 0.5, 2.5]) / 5),
        (data.without_fold(0), np.array([1.5, 0.5, 1.5]) / 3),
    ):
        prior = LabelPrior().fit(view).score(x, pairs)[PRIOR]
        np.testing.assert_allclose(prior, np.log(expected), rtol=1e-6)


@KINDS
@pytest.mark.parametrize("gamma", [30.0, 2])
@pytest.mark.parametrize("unit_means", [True, False])
@pytest.mark.parametrize("fold", [None, 1])
def test_agrees_with_slow_twin(kind, gamma, unit_means, fold):
    data, Q = problem(kind)
    view = data.view() if fold is None else data.without_fold(fold)
    pairs = some_pairs(Q.shape[0])
    columns = TailClassifiers(gamma=gamma, unit_means=unit_means).fit(view).score(Q, pairs)
    assert list(columns) == [COLUMN]
    assert columns[COLUMN].dtype == np.float32
    expected = slow(data.X, data.Y.multiply(view.mask[:, None]), Q, pairs, gamma, unit_means)
    np.testing.assert_allclose(columns[COLUMN], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("unit_means", [True, False])
def test_products_are_the_same_bits_by_postings_and_pair_by_pair(unit_means):
    """Features that many means have, and rare ones: a mean is run down, or all are added up at once."""
    rng = np.random.default_rng(8)
    X = sp.random(400, 60, 0.05, "csr", dtype=np.float32, random_state=rng).tolil()
    X[:, :10] = rng.random((400, 10)) + 0.1  # in every mean
    data = TrainingSet(X.tocsr(), sp.random(400, 150, 0.02, "csr", random_state=rng), np.zeros(400, np.int32))
    tail = TailClassifiers(unit_means=unit_means, gamma=3).fit(data.view())
    whole = Candidates.all_labels(40, 150)
    Q = data.X[:40]
    at_once = tail.score(Q, whole)[COLUMN]
    expected = slow(data.X, data.Y, Q, whole, 3, unit_means)
    np.testing.assert_allclose(at_once, expected, rtol=1e-5, atol=1e-5)
    fresh = TailClassifiers.from_state(tail.get_state())  # nothing was asked of it yet: no postings
    few = Candidates(np.array([0, 3]), np.array([2, 70, 149], np.int32), 150)
    for i in range(40):
        singly = fresh.score(Q[i], few)[COLUMN]
        assert singly.tobytes() == at_once.reshape(40, 150)[i, few.labels].tobytes()
    copied = pickle.loads(pickle.dumps(tail))
    assert copied.score(Q, whole, n_jobs=3)[COLUMN].tobytes() == at_once.tobytes()


@KINDS
def test_lengths_of_rows_play_no_part(kind):
    data, Q = problem(kind)
    pairs = Candidates.all_labels(Q.shape[0], 9)
    unit = TrainingSet(unit_rows(data.X), data.Y, data.fold)
    values = [X.data if kind == "sparse" else X for X in (unit.X, unit_rows(unit.X))]
    assert np.shares_memory(*values)  # nothing to do
    a = TailClassifiers().fit(data.view()).score(Q, pairs)[COLUMN]
    b = TailClassifiers().fit(unit.view()).score(unit_rows(Q), pairs)[COLUMN]
    assert a.tobytes() == b.tobytes()
    lengths = np.linalg.norm(to_dense(unit.X), axis=1)
    np.testing.assert_allclose(lengths, np.arange(60) != 1, rtol=1e-6)
    huge = sp.csr_matrix(np.array([[3e38, 3e38]], np.float32)) if kind == "sparse" else np.full((1, 2), 1e18)
    np.testing.assert_allclose(to_dense(unit_rows(huge)), np.sqrt(0.5), rtol=1e-6)


def test_sparse_means_add_rows_in_order():
    rng = np.random.default_rng(2)
    X = sp.random(300, 80, 0.1, "csr", dtype=np.float32, random_state=rng)
    Y = sp.random(300, 150, 0.03, "csc", random_state=rng)
    indptr, rows = Y.indptr.astype(np.int64), Y.indices.astype(np.int32)
    members = sp.csr_matrix((np.ones(len(rows)), rows, indptr), shape=(150, 300))
    sums = members @ X  # SciPy adds the rows of each label in the order given, in double
    sums.sort_indices()
    counts = np.diff(indptr)
    expected = (sums.data / np.repeat(counts, np.diff(sums.indptr))).astype(np.float32)
    means = LabelMeans.of_rows(X, indptr, rows, 1.0)
    np.testing.assert_array_equal(means.means.indptr, sums.indptr)
    np.testing.assert_array_equal(means.means.indices, sums.indices)
    assert means.means.data.tobytes() == expected.tobytes()
    np.testing.assert_array_equal(means.known, counts > 0)
    np.testing.assert_array_equal(means.sq_norm, sq_norms(means.means))
    short = LabelMeans.of_rows(X, indptr, rows, 1.0, max_terms=6)
    assert np.diff(short.means.indptr).max() == 6
    assert short.means.has_sorted_indices
    np.testing.assert_array_equal(short.sq_norm, means.sq_norm)
    for whole, kept in zip(means.means.toarray(), short.means.toarray()):
        largest = np.lexsort((np.arange(80), -np.abs(whole)))[:6]
        np.testing.assert_array_equal(np.flatnonzero(kept), np.sort(largest[whole[largest] != 0]))
        np.testing.assert_array_equal(kept[kept != 0], whole[kept != 0])


@KINDS
def test_a_model_with_it_is_explained(kind):
    ds = makers.MAKERS[kind]()
    model = MetaRanker(**{**makers.QUICK, "features": ["tail"]}).fit(ds)
    assert any(COLUMN in name for name in model.feature_columns_)
    assert "tail classifier" in model.explain(ds.take([0]), 0).reasons()[0].text
