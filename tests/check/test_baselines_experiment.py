"""experiments/baselines: the baselines do what they say, and the command writes its page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC
from studies import EXPERIMENTS, study

from metarank import data, metrics
from metarank.data.dataset import Dataset
from metarank.metrics.propensity import inv_propensity
from metarank.shortlist import OneVsAll
from metarank.types.arrays import unit_rows

FOLDER = EXPERIMENTS / "baselines"

with study("baselines"):
    import protocol
    from annexml import ranking
    from compressed_sensing import matching_pursuit
    from cplst import CPLST
    from cssp import CSSP
    from least_squares import LeastSquares
    from protocol import Ridge, shortlist
    from proxml import largest_square, robust_weights, with_bias
    from rows import BASELINES
    from sleec import embeddings, neighbor_products
    from wsabie import warp


LEARNERS = [name for name in BASELINES if name != "Popularity"]


@pytest.fixture(scope="module")
def made() -> tuple[sp.csr_matrix, sp.csr_matrix, sp.csr_matrix, sp.csr_matrix]:
    """X, Y, X_test, Y_test, of labels with words of their own."""
    both = data.make_extreme(400, 80, 30, labels_per_row=2, nnz_per_row=8, seed=3)
    X, Y = unit_rows(sp.csr_matrix(both.X)), sp.csr_matrix(both.Y)
    return X[:300], Y[:300], X[300:], Y[300:]


@pytest.fixture(scope="module")
def fitted(made) -> Callable[[str], Any]:
    X, Y, _, _ = made
    return cache(lambda name: BASELINES[name]().fit(X, Y))


# --- laws of all --------------------------------------------------------------


@pytest.mark.parametrize("name", BASELINES)
def test_lists_hold_the_k_largest_scores_and_ties_go_to_the_lower_label(made, fitted, name):
    _, Y, X_test, _ = made
    model = fitted(name)
    scores = np.asarray(model.scores(X_test), np.float32)
    assert scores.shape == (X_test.shape[0], Y.shape[1])
    assert np.isfinite(scores).all()
    found = shortlist(model, X_test, 4)
    best = np.sort(np.argsort(-scores, axis=1, kind="stable")[:, :4], axis=1)
    assert np.array_equal(found.labels.reshape(-1, 4), best)
    assert np.array_equal(found.scores["relevance"], np.take_along_axis(scores, best, axis=1).ravel())
    assert len(shortlist(model, X_test, 100).labels) == scores.size


@pytest.mark.parametrize("name", LEARNERS)
def test_it_beats_popularity(made, fitted, name):
    _, _, X_test, Y_test = made
    by = {
        row: metrics.evaluate(Y_test, shortlist(fitted(row), X_test, 5), ["P@1", "nDCG@5"])
        for row in (name, "Popularity")
    }
    assert all(by[name][metric] > by["Popularity"][metric] for metric in by[name]), by


@pytest.mark.parametrize("name", LEARNERS)
def test_labels_without_a_row_and_rows_without_labels_or_words_do_no_harm(made, name):
    X, Y, _, _ = made
    X, Y = X[:60].tolil(), sp.hstack([Y[:60], sp.csr_matrix((60, 3))]).tolil()
    Y[:5] = 0
    X[5:8] = 0
    X, Y = sp.csr_matrix(X, dtype=np.float32), sp.csr_matrix(Y, dtype=np.float32)
    assert np.isfinite(np.asarray(BASELINES[name]().fit(X, Y).scores(X))).all()


# --- a step of each, by hand -----------------------------------------------------


@pytest.mark.parametrize("shape", [(40, 15), (15, 40)])
def test_ridge_in_each_of_its_forms_is_the_normal_equations(monkeypatch, shape):
    X = sp.random(*shape, 0.5, "csr", random_state=0)
    T = np.random.default_rng(1).standard_normal((shape[0], 3))
    A = X.toarray()
    expected = np.linalg.solve(A.T @ A + 0.7 * np.eye(shape[1]), A.T @ T)
    assert np.allclose(Ridge(X, 0.7).solve(T), expected)
    monkeypatch.setattr(protocol, "_LARGEST_FACTOR", 0)
    assert np.allclose(Ridge(X, 0.7).solve(T), expected)


def test_least_squares_is_the_ridge_of_one_vs_all_without_a_bias(made):
    X, Y, X_test, _ = made
    ours = LeastSquares(penalty=2.0).fit(X, Y).scores(X_test)
    ridge = OneVsAll(loss="ridge", C=0.25, weights_per_label=None, intercept_scaling=0).fit(X, Y)
    found = ridge.shortlist(X_test, k=30)
    theirs = found.to_csr(found.scores["ova_ridge"]).toarray()
    # The index of OneVsAll holds its weights as bytes.
    assert np.abs(ours - theirs).max() < 0.02 * np.abs(ours).max()
    assert np.array_equal(
        LeastSquares(propensity=None).fit(X, Y @ sp.diags(inv_propensity(Y))).scores(X_test),
        LeastSquares().fit(X, Y).scores(X_test),
    )


def test_cplst_of_full_rank_is_ridge_regression_of_centred_labels(made):
    X, Y, X_test, _ = made
    mean = Y.toarray().mean(axis=0)
    expected = X_test @ Ridge(X, 1.0).solve(Y.toarray() - mean) + mean
    assert np.allclose(CPLST(rank=30).fit(X, Y).scores(X_test), expected, atol=1e-5)


def test_column_selection_of_all_columns_is_ridge_regression(made):
    X, Y, X_test, _ = made
    expected = X_test @ Ridge(X, 1.0).solve(Y.toarray().astype(np.float64))
    assert np.allclose(CSSP(columns=30).fit(X, Y).scores(X_test), expected, atol=1e-4)


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


def test_gradients_of_warp_by_finite_differences():
    rng = np.random.default_rng(0)
    X = sp.random(6, 9, 0.4, "csr", random_state=1)
    U, V = rng.standard_normal((9, 4)), rng.standard_normal((7, 4))
    relevant, drawn, weight = rng.integers(7, size=6), rng.integers(7, size=6), rng.random(6) + 0.5
    pairs = (X, relevant, drawn, weight)
    _, *gradients = warp(U, V, *pairs)
    for M, (at, gradient) in zip((U, V), gradients):
        dense = np.zeros_like(M)
        dense[at] = gradient
        assert np.allclose(dense, differences(lambda: warp(U, V, *pairs)[0], M), atol=1e-6)


def test_gradient_of_the_softmax_over_cosines_by_finite_differences():
    rng = np.random.default_rng(0)
    X, near = (sp.random(5, 8, 0.6, "csr", random_state=seed) for seed in (1, 2))
    W = rng.standard_normal((8, 3))
    _, at, gradient = ranking(W, X, near, 4.0)
    dense = np.zeros_like(W)
    dense[at] = gradient
    assert np.allclose(dense, differences(lambda: ranking(W, X, near, 4.0)[0], W), atol=1e-5)


def differences(value, M: np.ndarray, h: float = 1e-6) -> np.ndarray:
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

    def objective(w, s):
        return np.abs(w[:-1]).sum() + (np.maximum(0, 1 - s * (X @ w)) ** 2).sum()

    for label in range(3):
        svm = LinearSVC(penalty="l1", dual=False, tol=1e-8, max_iter=20_000, intercept_scaling=1e3)
        svm.fit(X[:, :-1], sign[:, label])
        theirs = np.append(svm.coef_.ravel(), svm.intercept_)
        assert objective(W[:, label], sign[:, label]) <= objective(theirs, sign[:, label]) * 1.001


# --- the page ------------------------------------------------------------------


def test_the_command_writes_all_tables_of_a_tiny_set(tmp_path, made):
    folder = tmp_path / "data" / "xmlc" / "LastFM-ArtistTags"
    folder.mkdir(parents=True)
    X, Y, X_test, Y_test = made
    for part, taken in (("train", Dataset(X, Y)), ("test", Dataset(X_test, Y_test))):
        data.write_xc(folder / f"{part}.txt", taken)
    out, cache = tmp_path / "results.md", tmp_path / "cache"
    sets = "LastFM-ArtistTags,bibtex"
    command = [sys.executable, FOLDER / "run.py", "--sets", sets, "--out", out, "--cache", cache]
    env = {**os.environ, "METARANK_DATA": str(tmp_path / "data")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "bibtex is left out" in done.stderr
    page = out.read_text()
    assert all(f"| {name} |" in page for name in BASELINES)
    assert "| LastFM-ArtistTags | 100 ways, not balanced (Bonsai) |" in page
    again = subprocess.run([*command, "--kept"], env=env, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert out.read_text() == page
