"""Kernel ridge regression against a plain NumPy solution, and its held-out scores against refits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from metarank import _core
from metarank.candidates import Candidates
from metarank.scorers.kernel_ridge import KernelRidge
from metarank.view import TrainingSet, fold_of_rows

FIXED = {"gamma": 0.1, "alpha": 0.3}


def problem(seed: int = 0, n: int = 120, d: int = 9, L: int = 5) -> tuple[np.ndarray, sp.csr_matrix]:
    """Label 3 has no row, label 4 has all."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)).astype(np.float32)
    Y = (X @ rng.normal(size=(d, L)) + rng.normal(size=(n, L)) > 0.5).astype(np.float32)
    Y[:, 3], Y[:, 4] = 0, 1
    return X, sp.csr_matrix(Y)


def training_set(X: np.ndarray | sp.csr_matrix, Y: sp.csr_matrix) -> TrainingSet:
    return TrainingSet(X, Y, fold_of_rows(X.shape[0], 4, 0), seed=3)


def slow_kernel(A: np.ndarray, B: np.ndarray, kernel: str, gamma: float) -> np.ndarray:
    A, B = A.astype(np.float64), B.astype(np.float64)
    if kernel == "linear":
        return A @ B.T
    return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("gamma", [1e-6, 0.1, 3.0, 1e4])
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (5, 70, 33), (40, 31, 16)])
def test_gaussian_kernel(n: int, m: int, d: int, gamma: float) -> None:
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(n, d)).astype(np.float32), rng.normal(size=(m, d)).astype(np.float32)
    B[0] = A[0]
    K = _core.gaussian_kernel(A, B, gamma, 2)
    assert K[0, 0] == 1.0
    expected = slow_kernel(A, B, "rbf", float(np.float32(gamma)))
    np.testing.assert_allclose(K, expected, rtol=1e-4, atol=1e-30)
    np.testing.assert_allclose(
        _core.squared_distances(A, B, 2), ((A[:, None] - B[None]) ** 2).sum(2), rtol=1e-5
    )


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_equals_the_plain_solution(kernel: str, container) -> None:
    X, Y = problem()
    scorer = KernelRidge(kernel=kernel, **FIXED).fit(training_set(container(X), Y).view())
    score = scorer.score(container(X), Candidates.all_labels(*Y.shape))["kernel_ridge"].reshape(Y.shape)
    K = slow_kernel(X, X, kernel, 0.1)
    dual = np.linalg.solve(K + 1 + 0.3 * np.diag(K).mean() * np.eye(len(K)), Y.toarray())
    np.testing.assert_allclose(score[:, :4], ((K + 1) @ dual)[:, :4], atol=1e-4)
    assert np.all(score[:, 3] == 0)
    assert np.all(score[:, 4] == 1)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_held_out_scores_are_those_of_refits(kernel: str, container) -> None:
    X, Y = problem()
    data = training_set(container(X), Y)
    scorer = KernelRidge(kernel=kernel, **FIXED)
    pairs = Candidates.all_labels(*Y.shape)
    held_out = scorer.score_held_out(data, pairs)["kernel_ridge"].reshape(Y.shape)
    for fold in range(4):
        inside = np.flatnonzero(data.fold == fold)
        refit = clone(scorer).fit(data.without_fold(fold))
        expected = refit.score(data.X[inside], pairs.rows(inside))["kernel_ridge"].reshape(-1, 5)
        np.testing.assert_array_equal(held_out[inside], expected)
    np.testing.assert_array_equal(
        scorer.score_held_out(data, pairs, n_jobs=4)["kernel_ridge"], held_out.ravel()
    )
    rows = np.array([7, 3, 50])
    some = scorer.score_held_out(data, pairs.rows(rows), rows=rows, n_jobs=2)["kernel_ridge"]
    np.testing.assert_array_equal(some.reshape(-1, 5), held_out[rows])


def test_own_labels_never_reach_a_held_out_score() -> None:
    X, Y = problem()
    pairs = Candidates.all_labels(*Y.shape)
    scorer = KernelRidge(**FIXED)
    before = scorer.score_held_out(training_set(X, Y), pairs)["kernel_ridge"].reshape(Y.shape)
    flipped = Y.toarray()
    flipped[11] = 1 - flipped[11]
    after = scorer.score_held_out(training_set(X, sp.csr_matrix(flipped)), pairs)["kernel_ridge"].reshape(
        Y.shape
    )
    fold = fold_of_rows(len(X), 4, 0)
    np.testing.assert_array_equal(after[fold == fold[11]], before[fold == fold[11]])
    assert np.any(after != before)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_threads_batches_and_row_order_change_no_byte(container) -> None:
    X, Y = problem()
    X = container(X)
    data = training_set(X, Y)
    keep = np.random.default_rng(0).random(Y.shape) < 0.6
    keep[5] = False
    pairs = Candidates.from_csr(sp.csr_matrix(keep.astype(np.float32)))
    for kernel in ("rbf", "linear"):
        one, four = (KernelRidge(kernel=kernel).fit(data.view(), n_jobs=j) for j in (1, 4))
        assert (one.gamma_, one.alpha_) == (four.gamma_, four.alpha_)
        whole = one.score(X, pairs)["kernel_ridge"]
        np.testing.assert_array_equal(four.score(X, pairs, n_jobs=4)["kernel_ridge"], whole)
        by_row = [
            one.score(X[i : i + 1], pairs.rows(slice(i, i + 1)))["kernel_ridge"] for i in range(X.shape[0])
        ]
        np.testing.assert_array_equal(np.concatenate(by_row), whole)
        order = np.random.default_rng(1).permutation(X.shape[0])
        shuffled = one.score(X[order], pairs.rows(order))["kernel_ridge"]
        carried = Candidates(pairs.indptr, pairs.labels, 5, {"s": whole}).rows(order)
        np.testing.assert_array_equal(shuffled, carried.scores["s"])


def test_choice_is_kept_and_state_restores() -> None:
    X, Y = problem()
    data = training_set(X, Y)
    scorer = KernelRidge().fit(data.view())
    assert scorer.kernel_ == "rbf"
    pairs = Candidates.all_labels(*Y.shape)
    chosen = KernelRidge().with_choice_of(scorer)
    assert (chosen.gamma, chosen.alpha) == (scorer.gamma_, scorer.alpha_)
    np.testing.assert_array_equal(
        chosen.score_held_out(data, pairs)["kernel_ridge"],
        KernelRidge().score_held_out(data, pairs)["kernel_ridge"],
    )
    for fitted in (scorer, KernelRidge(kernel="linear").fit(data.view())):
        restored = KernelRidge.from_state(fitted.get_state())
        np.testing.assert_array_equal(
            restored.score(X, pairs)["kernel_ridge"], fitted.score(X, pairs)["kernel_ridge"]
        )


def test_degenerate_training_sets() -> None:
    same = np.ones((6, 2), np.float32)
    Y = sp.csr_matrix(np.array([[1, 0]] * 3 + [[0, 1]] * 3, np.float32))
    for X in (same, 0 * same):
        for kernel in ("rbf", "linear"):
            scorer = KernelRidge(kernel=kernel).fit(TrainingSet(X, Y, np.arange(6) % 3).view())
            assert np.all(np.isfinite(scorer.score(X, Candidates.all_labels(6, 2))["kernel_ridge"]))
    one_fold = KernelRidge().fit(TrainingSet(same, Y, np.zeros(6)).view())
    assert one_fold.alpha_ > 0


@pytest.mark.parametrize(
    "bad", [{"kernel": "poly"}, {"gamma": 0.0}, {"alpha": -1.0}, {"alpha": "x"}, {"max_rows": 10}]
)
def test_bad_parameters(bad: dict) -> None:
    X, Y = problem()
    with pytest.raises(ValueError, match=next(iter(bad))):
        KernelRidge(**bad).fit(training_set(X, Y).view())


def test_empty_view() -> None:
    X, Y = problem(n=3)
    with pytest.raises(ValueError, match="at least one row"):
        KernelRidge().fit(TrainingSet(X, Y, np.zeros(3)).without_fold(0))


def test_wrong_shapes() -> None:
    X, Y = problem()
    scorer = KernelRidge(**FIXED).fit(training_set(X, Y).view())
    with pytest.raises(ValueError, match="same number of columns"):
        scorer.score(X[:, :3].copy(), Candidates.all_labels(*Y.shape))
    with pytest.raises(ValueError, match="must have 3 rows"):
        scorer.score(X, Candidates.all_labels(3, 5))
    with pytest.raises(ValueError, match="labels"):
        scorer.score(X, Candidates.all_labels(len(X), 6))
