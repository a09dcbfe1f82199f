"""`OneVsAll` against dense solutions, refits, and the laws of prediction."""

from __future__ import annotations

import makers
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from metarank.data import make_extreme
from metarank.metrics.propensity import inv_propensity
from metarank.scorers.linear.one_vs_all import OneVsAll, squared_hinge_weights
from metarank.scorers.linear.shared_ridge import SharedRidge, leave_one_out_ndcg, ridge_by_gradients
from metarank.scorers.linear.weight_index import WeightIndex
from metarank.types.arrays import csr_parts
from metarank.types.candidates import Candidates

BIAS = 0.3


def problem(n=50, d=80, L=12, seed=0):
    """Sparse rows; label 0 has no row, label 1 all of them."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.2, "csr", np.float32, random_state=rng)
    Y = rng.random((n, L)) < 0.15
    Y[:, 0], Y[:, 1] = False, True
    return X, sp.csr_matrix((Y * rng.integers(1, 4, Y.shape)).astype(np.float32))


def dense_ridge(X, T, C):
    """Weights with the bias feature's last, by the normal equations."""
    A = np.hstack([X.toarray(), np.full((X.shape[0], 1), BIAS)]).astype(float)
    return np.linalg.solve(A.T @ A + np.eye(A.shape[1]) / (2 * C), A.T @ T)


def targets(Y, relevance, rows=slice(None)):
    Y = Y[rows].toarray().astype(float)
    if relevance == "graded":
        return Y
    weight = inv_propensity(Y) if relevance == "inverse-propensity" else 1.0
    return (Y > 0) * weight


def exact(**params):
    return OneVsAll(
        **{"loss": "ridge", "C": 0.5, "intercept_scaling": BIAS, "weights_per_label": None, **params}
    )


def dense_scores(model, X):
    return model.score(X, Candidates.all_labels(X.shape[0], model.index_.n_labels))[model.column].reshape(
        X.shape[0], -1
    )


def top(scores, seen, k):
    order = np.lexsort((np.broadcast_to(seen, (len(scores), len(seen))), -scores[:, seen]), axis=1)
    return np.sort(seen[order[:, :k]], axis=1)


@pytest.mark.parametrize("relevance", ["binary", "graded", "inverse-propensity"])
@pytest.mark.parametrize("n", [50, 120])  # fewer rows than features, and more
def test_ridge_is_the_least_squares_solution(relevance, n):
    X, Y = problem(n)
    model = exact(relevance=relevance).fit(X, Y)
    W = dense_ridge(X, targets(Y, relevance), 0.5)
    expected = X @ W[:-1] + BIAS * W[-1]
    np.testing.assert_allclose(dense_scores(model, X), expected, atol=2e-3)
    assert np.all(dense_scores(model, X)[:, 0] == 0)


def test_conjugate_gradients_reach_the_same_solution():
    X, Y = problem(120)
    direct, iterated = (dense_scores(exact(max_size=s).fit(X, Y), X) for s in (1000, 10))
    np.testing.assert_allclose(iterated, direct, atol=1e-2)
    assert ridge_by_gradients(X, Y, 1.0, 1.0, 0, 1)[:, 0].nnz == 0  # a label without rows


@pytest.mark.parametrize("n", [30, 120])
def test_leave_one_out_is_a_refit_without_the_row(n):
    X, Y = problem(n)
    T = targets(Y, "binary")
    H = SharedRidge(X, 2.0).leave_one_out(np.array([0, 7]))
    for row, weights in zip((0, 7), H):
        others = np.delete(np.arange(n), row)
        A = X[others].toarray().astype(float)
        W = np.linalg.solve(A.T @ A + 2 * np.eye(A.shape[1]), A.T @ T[others])
        np.testing.assert_allclose(weights @ T, (X[row] @ W).ravel(), atol=1e-5)
        assert weights[row] == 0


def test_leave_one_out_quality_by_hand():
    """Row 0 is nearest to row 1, whose only label it shares; row 2 has no neighbour."""
    X = sp.csr_matrix(np.array([[1, 0], [1, 0], [0, 1]], np.float32))
    T = sp.csr_matrix(np.array([[1, 0], [1, 0], [0, 1]], np.float32))
    # Of three labels with scores 0 row 2 lists the first: its own, the second, comes at rank 2.
    expected = (1 + 1 + 1 / np.log2(3)) / 3
    assert leave_one_out_ndcg(SharedRidge(X, 1.0), T, np.ones(2), np.ones(2)) == pytest.approx(expected)


def hinge_objective(X, y, w, b, cost):
    """Primal objective at C = 1."""
    margin = np.maximum(0, 1 - y * (X @ w + b))
    return 0.5 * (w @ w + b * b) + np.sum(np.where(y > 0, cost, 1.0) * margin**2)


@pytest.mark.parametrize("cost", [1.0, 4.0])
@pytest.mark.parametrize(("n", "L"), [(60, 12), (200, 40)])
def test_squared_hinge_is_liblinear_s_solution(n, L, cost):
    X, Y = problem(n, 80, L)
    W, bias = hinge_weights(X, Y, cost, tolerance=1e-4, max_epochs=2000)
    for label in range(1, L):
        y = np.where(Y[:, [label]].toarray()[:, 0] > 0, 1, -1)
        if np.all(y > 0):
            continue
        svc = LinearSVC(C=1.0, class_weight={1: cost, -1: 1.0}, tol=1e-6, max_iter=100_000, random_state=0)
        svc.fit(X.astype(np.float64), y)
        np.testing.assert_allclose(W[:, [label]].toarray()[:, 0], svc.coef_[0], atol=2e-3)
        assert bias[label] == pytest.approx(svc.intercept_[0], abs=2e-3)
    assert W[:, 0].nnz == 0
    assert bias[0] == -1


def test_squared_hinge_with_few_rows_at_hand_is_near_the_solution():
    """Long rows, rare labels: most rows never join a working set."""
    ds = make_extreme(400, n_features=1500, n_labels=150, labels_per_row=3, nnz_per_row=30, seed=1)
    norm = np.sqrt(np.asarray(ds.X.multiply(ds.X).sum(axis=1)))
    X = sp.csr_matrix(ds.X.multiply(1 / norm).astype(np.float32))
    (rough, rough_bias), (fine, fine_bias) = (
        hinge_weights(X, ds.Y, 1.0, tolerance=t, max_epochs=e) for t, e in ((0.1, 6), (1e-4, 2000))
    )
    gaps = []
    for label in np.flatnonzero(np.bincount(ds.Y.indices, minlength=150)):
        y = np.where(ds.Y[:, [label]].toarray()[:, 0] > 0, 1, -1)
        a, b = (
            hinge_objective(X, y, W[:, [label]].toarray()[:, 0].astype(float), bias[label], 1.0)
            for W, bias in ((rough, rough_bias), (fine, fine_bias))
        )
        assert a >= b * (1 - 1e-4)
        gaps.append(a / b - 1)
    assert np.mean(gaps) < 0.05


def hinge_weights(X, Y, cost, **params):
    plain = {"C": 1.0, "weights_per_label": None, "seed": 0, "n_jobs": 1}
    return squared_hinge_weights(X, Y, positive_cost=np.full(Y.shape[1], cost), **plain, **params)


def test_C_is_chosen_on_the_view_and_settled_for_its_folds():
    X, Y = problem(60)
    data = makers.training_set(X, Y)
    chosen = OneVsAll(loss="ridge").tuned(data.view())
    assert chosen.C in (1 / 20, 1 / 6, 1 / 2, 3 / 2)
    assert OneVsAll(loss="ridge").fit(data.view()).C_ == chosen.C


@pytest.mark.parametrize("n", [50, 250])
def test_pruning_keeps_the_largest_weights(n):
    X, Y = problem(n, 200)
    ridge, d = SharedRidge(X, 2.0), X.shape[1]
    full, pruned = (ridge.weights(Y, density, 0, 1).toarray() for density in (1.0, 20 / d))
    kept = pruned != 0
    assert kept.sum() == pytest.approx(20 * Y.shape[1], rel=0.1)
    np.testing.assert_array_equal(pruned[kept], full[kept])
    squares, count = np.asarray(X.multiply(X).sum(axis=0))[0], np.diff(X.tocsc().indptr)
    size = np.abs(full) * np.sqrt(np.sqrt(squares / count))[:, None]
    assert size[~kept].max() < size[kept].min()
    by_gradients = ridge_by_gradients(X, Y, 2.0, 20 / d, 0, 1).toarray() != 0
    assert np.mean(by_gradients == kept) > 0.99


@pytest.mark.parametrize("loss", ["squared_hinge", "ridge"])
def test_shortlist_is_the_top_of_the_scores(loss):
    X, Y = problem(60)
    model = OneVsAll(loss=loss).fit(X, Y)
    seen = np.arange(1, Y.shape[1])
    found = model.shortlist(X, 5)
    np.testing.assert_array_equal(found.labels.reshape(-1, 5), top(dense_scores(model, X), seen, 5))
    everything = model.shortlist(X, 100)
    np.testing.assert_array_equal(everything.labels.reshape(-1, 11), np.tile(seen, (60, 1)))


def test_more_labels_than_a_band():
    rng = np.random.default_rng(0)
    L = 70_000
    W = sp.random(6, L, 0.3, "csr", np.float32, random_state=rng)
    bias = rng.normal(size=L).astype(np.float32)
    X = sp.random(4, 6, 0.7, "csr", np.float32, random_state=rng)
    expected = X @ W.toarray() + bias
    for index in (
        WeightIndex.quantised(W, bias, np.arange(L)),
        WeightIndex.exact(W, np.ones(L), bias, np.arange(L)),
    ):
        scores = index.scores(csr_parts(X), Candidates.all_labels(4, L), 2).reshape(4, L)
        np.testing.assert_allclose(scores, expected, atol=1e-4)
        np.testing.assert_array_equal(
            index.shortlist(csr_parts(X), 3, "s", 1).labels.reshape(4, 3), top(scores, np.arange(L), 3)
        )


@pytest.mark.parametrize("loss", ["squared_hinge", "ridge"])
@pytest.mark.parametrize("n", [1, 2])
def test_rows_too_few_for_propensities(loss, n):
    one, other = (
        OneVsAll(loss=loss, relevance=r).fit(np.eye(3)[:n], [[i] for i in range(n)])
        for r in ("inverse-propensity", "binary")
    )
    assert dense_scores(one, np.eye(3)).tobytes() == dense_scores(other, np.eye(3)).tobytes()
