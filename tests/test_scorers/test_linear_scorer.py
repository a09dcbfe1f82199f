"""The linear SVM against LIBLINEAR, its scores against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from metarank.scorers.linear.linear_svm import LinearClassifier
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows


def problem(seed: int = 0, n: int = 200, d: int = 12, L: int = 5) -> tuple[np.ndarray, sp.csr_matrix]:
    """Sparse-ish features and linear labels with noise; label 3 has no row, label 4 has all."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)).astype(np.float32)
    Y = (X @ rng.normal(size=(d, L)) + rng.normal(size=(n, L)) > 0.5).astype(np.float32)
    Y[:, 3], Y[:, 4] = 0, 1
    return X, sp.csr_matrix(Y)


def view_of(X: np.ndarray | sp.csr_matrix, Y: sp.csr_matrix, seed: int = 0):
    return TrainingSet(X, Y, fold_of_rows(X.shape[0], 4, seed), seed=seed).view()


def some_pairs(n: int, L: int, share: float, seed: int = 0) -> Candidates:
    keep = np.random.default_rng(seed).random((n, L)) < share
    keep[0] = False  # a row without candidates
    return Candidates.from_csr(sp.csr_matrix(keep.astype(np.float32)))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_agrees_with_liblinear(container) -> None:
    X, Y = problem()
    scorer = LinearClassifier(C=0.5, tolerance=1e-4, max_epochs=2000).fit(view_of(container(X), Y))
    score = scorer.score(container(X), Candidates.all_labels(*Y.shape))["linear"].reshape(Y.shape)
    for label in range(3):
        reference = LinearSVC(C=0.5, tol=1e-6, max_iter=100_000).fit(X, Y[:, [label]].toarray().ravel())
        np.testing.assert_allclose(score[:, label], reference.decision_function(X), atol=2e-3)


def test_constant_labels() -> None:
    X, Y = problem()
    scorer = LinearClassifier(C=1.0).fit(view_of(X, Y))
    score = scorer.score(X, Candidates.all_labels(*Y.shape))["linear"].reshape(Y.shape)
    assert np.all(score[:, 3] == -1)
    assert np.all(score[:, 4] == 1)


@pytest.mark.parametrize("share", [0.02, 0.9])
def test_scores_equal_the_obvious_sum_dense_and_sparse_alike(share: float) -> None:
    rng = np.random.default_rng(0)
    X, _ = problem()
    scorer = LinearClassifier()
    scorer.weights_ = rng.normal(size=(12, 60)).astype(np.float32)
    scorer.bias_ = rng.normal(size=60).astype(np.float32)
    pairs = some_pairs(len(X), 60, share)
    full = X.astype(np.float64) @ scorer.weights_ + scorer.bias_
    dense = scorer.score(X, pairs)["linear"]
    np.testing.assert_allclose(dense, full[pairs.row_of_pair, pairs.labels], atol=1e-5)
    sparse = sp.csr_matrix(X)
    sparse.indices, sparse.indptr = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
    np.testing.assert_array_equal(scorer.score(sparse, pairs, n_jobs=3)["linear"], dense)
    everything = scorer.score(X, Candidates.all_labels(len(X), 60))["linear"].reshape(-1, 60)
    np.testing.assert_array_equal(everything[pairs.row_of_pair, pairs.labels], dense)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_threads_batches_and_row_order_change_no_byte(container) -> None:
    X, Y = problem()
    X = container(X)
    one, four = (LinearClassifier(C="auto").fit(view_of(X, Y), n_jobs=j) for j in (1, 4))
    assert one.C_ == four.C_
    np.testing.assert_array_equal(one.weights_, four.weights_)
    pairs = some_pairs(*Y.shape, 0.7)
    whole = one.score(X, pairs)["linear"]
    order = np.random.default_rng(1).permutation(X.shape[0])
    shuffled = pairs.rows(order)
    expected = pairs.to_csr(whole)[order]
    np.testing.assert_array_equal(
        shuffled.to_csr(one.score(X[order], shuffled)["linear"]).toarray(), expected.toarray()
    )
    by_row = [one.score(X[i : i + 1], pairs.rows(slice(i, i + 1)))["linear"] for i in range(X.shape[0])]
    np.testing.assert_array_equal(np.concatenate(by_row), whole)


def test_state_round_trip_and_choice() -> None:
    X, Y = problem()
    scorer = LinearClassifier(C="auto").fit(view_of(X, Y))
    pairs = Candidates.all_labels(*Y.shape)
    restored = LinearClassifier.from_state(scorer.get_state())
    np.testing.assert_array_equal(restored.score(X, pairs)["linear"], scorer.score(X, pairs)["linear"])
    assert LinearClassifier(C="auto").tuned(view_of(X, Y)).C == scorer.C_


@pytest.mark.parametrize("bad", [{"C": 0}, {"C": "big"}, {"C": np.nan}, {"tolerance": 0}, {"max_epochs": 0}])
def test_bad_parameters(bad: dict) -> None:
    X, Y = problem(n=10)
    with pytest.raises(ValueError, match=next(iter(bad))):
        LinearClassifier(**bad).fit(view_of(X, Y))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_wrong_shapes(container) -> None:
    X, Y = problem()
    scorer = LinearClassifier(C=1.0).fit(view_of(X, Y))
    with pytest.raises(ValueError, match="must have 12 columns"):
        scorer.score(container(X[:, :5]), Candidates.all_labels(*Y.shape))
    with pytest.raises(ValueError, match="must have 3 rows"):
        scorer.score(container(X), Candidates.all_labels(3, 5))
    with pytest.raises(ValueError, match="labels"):
        scorer.score(container(X), Candidates.all_labels(len(X), 6))
