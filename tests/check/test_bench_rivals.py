"""The rivals of experiments/bench: laws of all, and a step of each against hand-worked cases."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC
from studies import study

from metarank import data, metrics
from metarank.types.arrays import unit_rows

with study("bench"):
    from systems.rivals import KINDS, base
    from systems.rivals.annexml import ranking
    from systems.rivals.base import Ridge, chosen
    from systems.rivals.compressed_sensing import matching_pursuit
    from systems.rivals.cplst import CPLST
    from systems.rivals.cssp import CSSP
    from systems.rivals.leml import LEML
    from systems.rivals.proxml import largest_square, robust_weights, with_bias
    from systems.rivals.sleec import embeddings, neighbor_products
    from systems.rivals.wsabie import warp

LEARNERS = [name for name in KINDS if name != "Popularity"]


@pytest.fixture(scope="module")
def made() -> tuple[sp.csr_matrix, sp.csr_matrix, sp.csr_matrix, sp.csr_matrix]:
    """X, Y, X_test, Y_test, of labels with words of their own."""
    both = data.make_extreme(400, 80, 30, labels_per_row=2, nnz_per_row=8, seed=3)
    X, Y = unit_rows(sp.csr_matrix(both.X)), sp.csr_matrix(both.Y)
    return X[:300], Y[:300], X[300:], Y[300:]


@pytest.fixture(scope="module")
def fitted(made) -> Callable[[str], Any]:
    X, Y, _, _ = made
    return cache(lambda name: KINDS[name](**dict(KINDS[name].in_trials)).fit(X, Y))


@pytest.mark.parametrize("name", KINDS)
def test_lists_hold_the_k_largest_scores_and_ties_go_to_the_lower_label(made, fitted, name):
    _, Y, X_test, _ = made
    scores = np.asarray(fitted(name).scores(X_test), np.float32)
    assert scores.shape == (X_test.shape[0], Y.shape[1])
    assert np.isfinite(scores).all()
    found = fitted(name).shortlist(X_test, 4)
    best = np.sort(np.argsort(-scores, axis=1, kind="stable")[:, :4], axis=1)
    assert np.array_equal(found.labels.reshape(-1, 4), best)
    assert np.array_equal(found.scores["score"], np.take_along_axis(scores, best, axis=1).ravel())


@pytest.mark.parametrize("name", LEARNERS)
def test_it_beats_popularity(made, fitted, name):
    ours, theirs = (fitted(row).shortlist(made[2], 5) for row in (name, "Popularity"))
    better = [metrics.evaluate(made[3], lists, ["P@1", "nDCG@5"]) for lists in (ours, theirs)]
    assert all(better[0][metric] > better[1][metric] for metric in better[0])


@pytest.mark.parametrize("name", LEARNERS)
def test_labels_without_a_row_and_rows_without_labels_or_words_do_no_harm(made, name):
    X, Y, _, _ = made
    X, Y = X[:60].tolil(), sp.hstack([Y[:60], sp.csr_matrix((60, 3))]).tolil()
    Y[:5] = 0
    X[5:8] = 0
    X, Y = sp.csr_matrix(X, dtype=np.float32), sp.csr_matrix(Y, dtype=np.float32)
    model = KINDS[name](**dict(KINDS[name].in_trials)).fit(X, Y)
    assert np.isfinite(np.asarray(model.scores(X))).all()


def test_the_setting_chosen_is_the_best_on_held_out_rows(made, monkeypatch):
    X, Y, _, _ = made
    # Of these ranks the first is too low for 30 labels, and of equal ones the first is taken.
    monkeypatch.setattr(LEML, "grid", (("rank", (1, 30)), ("penalty", (1.0, 1.0 + 1e-12))))
    assert chosen(LEML, X, Y, 0) == {"rank": 30, "penalty": 1.0}
    monkeypatch.setattr(LEML, "grid", ())
    assert chosen(LEML, X, Y, 0) == {}


@pytest.mark.parametrize("shape", [(40, 15), (15, 40)])
def test_ridge_in_each_of_its_forms_is_the_normal_equations(monkeypatch, shape):
    X = sp.random(*shape, 0.5, "csr", random_state=0)
    T = np.random.default_rng(1).standard_normal((shape[0], 3))
    A = X.toarray()
    expected = np.linalg.solve(A.T @ A + 0.7 * np.eye(shape[1]), A.T @ T)
    assert np.allclose(Ridge(X, 0.7).solve(T), expected)
    monkeypatch.setattr(base, "_LARGEST_FACTOR", 0)
    assert np.allclose(Ridge(X, 0.7).solve(T), expected)


def test_methods_of_low_rank_are_ridge_regression_at_full_rank(made):
    X, Y, X_test, _ = made
    dense = Y.toarray().astype(np.float64)
    mean, ridge = dense.mean(axis=0), Ridge(X, 1.0)
    centred = X_test @ ridge.solve(dense - mean) + mean
    assert np.allclose(CPLST(rank=30).fit(X, Y).scores(X_test), centred, atol=1e-5)
    assert np.allclose(CSSP(columns=30).fit(X, Y).scores(X_test), X_test @ ridge.solve(dense), atol=1e-4)
    # The two penalties of LEML are a nuclear norm; with tiny ones, least squares.
    A = X.toarray().astype(np.float64)
    expected = A @ np.linalg.lstsq(A, dense, rcond=None)[0]
    model = LEML(rank=30, penalty=1e-6, rounds=30, steps=200).fit(X, Y)
    assert np.abs(model.scores(X) - expected).max() < 1e-2


def test_pairwise_ranker_orders_labels_that_have_words_of_their_own():
    X = sp.csr_matrix(np.eye(6, dtype=np.float32).repeat(5, axis=0))
    found = KINDS["RankingSVM"](passes=5).fit(X, X).shortlist(X, 1)
    assert found.labels.tolist() == np.arange(6).repeat(5).tolist()


def test_matching_pursuit_recovers_a_sparse_vector():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((90, 120)) / np.sqrt(90)
    for _ in range(20):
        labels = rng.choice(120, 3, replace=False)
        values = rng.uniform(0.5, 2, 3)
        found, coefficient = matching_pursuit(A, (A[:, labels] @ values)[None], 3)
        order = np.argsort(labels)
        assert np.sort(found[0]).tolist() == labels[order].tolist()
        assert np.allclose(coefficient[0][np.argsort(found[0])], values[order], atol=1e-4)


def test_gradients_of_losses_by_finite_differences():
    rng = np.random.default_rng(0)
    X = sp.random(6, 9, 0.4, "csr", random_state=1)
    U, V = rng.standard_normal((9, 4)), rng.standard_normal((7, 4))
    pairs = (X, rng.integers(7, size=6), rng.integers(7, size=6), rng.random(6) + 0.5)
    near, W = sp.random(6, 9, 0.6, "csr", random_state=2), rng.standard_normal((9, 3))
    _, of_U, of_V = warp(U, V, *pairs)
    of_warp, of_softmax = (lambda: warp(U, V, *pairs)[0]), (lambda: ranking(W, X, near, 4.0)[0])
    of_W = ranking(W, X, near, 4.0)[1:]
    for loss, M, (at, gradient) in ((of_warp, U, of_U), (of_warp, V, of_V), (of_softmax, W, of_W)):
        dense = np.zeros_like(M)
        dense[at] = gradient
        assert np.allclose(dense, differences(loss, M), atol=1e-5)


def differences(value: Callable[[], float], M: np.ndarray, h: float = 1e-6) -> np.ndarray:
    out = np.zeros_like(M)
    for at in np.ndindex(*M.shape):
        before = M[at]
        M[at] = before + h
        above = value()
        M[at] = before - h
        out[at] = (above - value()) / (2 * h)
        M[at] = before
    return out


def test_embeddings_of_all_pairs_are_those_of_the_eigenvectors():
    Y = sp.csr_matrix((np.random.default_rng(0).random((12, 9)) < 0.4).astype(np.float64))
    known = neighbor_products(Y, 12)
    products = (Y @ Y.T).toarray()
    assert np.array_equal(known.toarray(), products)
    values, vectors = np.linalg.eigh(products)
    best = (vectors[:, -3:] * values[-3:]) @ vectors[:, -3:].T
    stored = products != 0
    Z = embeddings(known, 3, 60, 0)
    # Pairs without a common label are not asked for: on the others the fit is no worse.
    assert ((Z @ Z.T - products)[stored] ** 2).sum() <= ((best - products)[stored] ** 2).sum() + 1e-6


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
def test_robust_weights_are_the_l1_penalised_squared_hinge(made):
    X, Y, _, _ = made
    X = with_bias(X)
    sign = np.where(Y[:, :3].toarray() > 0, 1, -1).astype(np.float32)
    W = robust_weights(X, sign, 1.0, 2 * largest_square(X, 0), 2000)

    def objective(w: np.ndarray, s: np.ndarray) -> float:
        return np.abs(w[:-1]).sum() + (np.maximum(0, 1 - s * (X @ w)) ** 2).sum()

    for label in range(3):
        svm = LinearSVC(penalty="l1", dual=False, tol=1e-8, max_iter=20_000, intercept_scaling=1e3)
        svm.fit(X[:, :-1], sign[:, label])
        theirs = np.append(svm.coef_.ravel(), svm.intercept_)
        assert objective(W[:, label], sign[:, label]) <= objective(theirs, sign[:, label]) * 1.001
