"""Kernel machines against plain NumPy solutions, and their held-out scores against refits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import SVC

from metarank import _core
from metarank.scorers.classical.kernel_ridge import KernelRidge
from metarank.scorers.classical.kernel_svm import KernelSVM
from metarank.scorers.classical.kernels import METRICS, held_out_error
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows

FIXED = {"gamma": 0.1, "alpha": 0.3, "scaling": "unit"}
KERNELS = ["rbf", "laplacian", "linear"]


def column(score, *args, **kwargs) -> np.ndarray:
    """The one column of a kernel machine."""
    (values,) = score(*args, **kwargs).values()
    return values


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
    difference = A[:, None] - B[None]
    distance = np.abs(difference) if kernel == "laplacian" else difference**2
    return np.exp(-gamma * distance.sum(axis=2))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [1e-6, 0.1, 3.0, 1e4])
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (5, 70, 33), (40, 31, 16)])
def test_kernel_matrix(n: int, m: int, d: int, gamma: float, kernel: str) -> None:
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(n, d)).astype(np.float32), rng.normal(size=(m, d)).astype(np.float32)
    B[0] = A[0]
    K = _core.kernel_matrix(A, B, METRICS[kernel], gamma, 2)
    assert K[0, 0] == 1.0
    expected = slow_kernel(A, B, kernel, float(np.float32(gamma)))
    np.testing.assert_allclose(K, expected, rtol=1e-4, atol=1e-30)
    distance = -np.log(slow_kernel(A, B, kernel, 1e-3)) / 1e-3
    np.testing.assert_allclose(
        _core.kernel_matrix(A, B, METRICS[kernel], 0.0, 2), distance, rtol=1e-4, atol=1e-9
    )


def test_closed_form_error_is_that_of_refits() -> None:
    X, Y = problem()
    fold = fold_of_rows(len(X), 4, 0)
    K, relevant = slow_kernel(X, X, "rbf", 0.1), Y.toarray()
    expected = 0.0
    for f in range(4):
        train, test = fold != f, fold == f
        dual = np.linalg.solve(K[np.ix_(train, train)] + 1 + 0.3 * np.eye(train.sum()), relevant[train])
        expected += np.sum(((K[np.ix_(test, train)] + 1) @ dual - relevant[test]) ** 2)
    assert held_out_error(K, relevant, fold, 0.3) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_equals_the_plain_solution(kernel: str, container) -> None:
    X, Y = problem()
    scorer = KernelRidge(kernel=kernel, **FIXED).fit(training_set(container(X), Y).view())
    score = column(scorer.score, container(X), Candidates.all_labels(*Y.shape)).reshape(Y.shape)
    K = slow_kernel(X, X, kernel, 0.1)
    dual = np.linalg.solve(K + 1 + 0.3 * np.diag(K).mean() * np.eye(len(K)), Y.toarray())
    np.testing.assert_allclose(score[:, :4], ((K + 1) @ dual)[:, :4], atol=1e-4)
    assert np.all(score[:, 3] == 0)
    assert np.all(score[:, 4] == 1)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_held_out_scores_are_those_of_refits(kernel: str, container) -> None:
    X, Y = problem()
    data = training_set(container(X), Y)
    scorer = KernelRidge(kernel=kernel, **FIXED)
    pairs = Candidates.all_labels(*Y.shape)
    held_out = column(scorer.score_held_out, data, pairs).reshape(Y.shape)
    for fold in range(4):
        inside = np.flatnonzero(data.fold == fold)
        refit = clone(scorer).fit(data.without_fold(fold))
        expected = column(refit.score, data.X[inside], pairs.rows(inside)).reshape(-1, 5)
        np.testing.assert_array_equal(held_out[inside], expected)
    np.testing.assert_array_equal(column(scorer.score_held_out, data, pairs, n_jobs=4), held_out.ravel())
    rows = np.array([7, 3, 50])
    some = column(scorer.score_held_out, data, pairs.rows(rows), rows=rows, n_jobs=2)
    np.testing.assert_array_equal(some.reshape(-1, 5), held_out[rows])


def test_own_labels_never_reach_a_held_out_score() -> None:
    X, Y = problem()
    pairs = Candidates.all_labels(*Y.shape)
    scorer = KernelRidge(**FIXED)
    before = column(scorer.score_held_out, training_set(X, Y), pairs).reshape(Y.shape)
    flipped = Y.toarray()
    flipped[11] = 1 - flipped[11]
    after = column(scorer.score_held_out, training_set(X, sp.csr_matrix(flipped)), pairs).reshape(Y.shape)
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
    for kernel in KERNELS:
        one, four = (KernelRidge(kernel=kernel).fit(data.view(), n_jobs=j) for j in (1, 4))
        assert one.alpha_ == four.alpha_
        whole = column(one.score, X, pairs)
        np.testing.assert_array_equal(column(four.score, X, pairs, n_jobs=4), whole)
        by_row = [column(one.score, X[i : i + 1], pairs.rows(slice(i, i + 1))) for i in range(X.shape[0])]
        np.testing.assert_array_equal(np.concatenate(by_row), whole)
        order = np.random.default_rng(1).permutation(X.shape[0])
        shuffled = column(one.score, X[order], pairs.rows(order))
        carried = Candidates(pairs.indptr, pairs.labels, 5, {"s": whole}).rows(order)
        np.testing.assert_array_equal(shuffled, carried.scores["s"])


def test_choice_is_kept_and_state_restores() -> None:
    X, Y = problem()
    scale = np.float32([1, 100, 1, 1, 1, 0.01, 1, 1, 1])
    data = TrainingSet(X * scale, Y, fold_of_rows(len(X), 4, 0), seed=3, feature_scale=scale)
    pairs = Candidates.all_labels(*Y.shape)
    for kernel in KERNELS:
        chosen = KernelRidge(kernel=kernel).tuned(data.view())
        assert chosen.get_params() == chosen.tuned(data.view()).get_params()
        fitted, again = KernelRidge(kernel=kernel).fit(data.view()), chosen.fit(data.view())
        np.testing.assert_array_equal(
            column(fitted.score, X * scale, pairs), column(again.score, X * scale, pairs)
        )
        restored = KernelRidge.from_state(fitted.get_state())
        np.testing.assert_array_equal(column(restored.score, X, pairs), column(fitted.score, X, pairs))
    # Columns blown up by the scaling: the labels follow the columns as they were given.
    assert KernelRidge(kernel="rbf").tuned(data.view()).scaling == "raw"


def test_svm_is_that_of_scikit_learn_and_its_held_out_scores_those_of_refits() -> None:
    X, Y = problem()
    data, pairs = training_set(X, Y), Candidates.all_labels(*Y.shape)
    fitted = KernelSVM(C=2.0).fit(data.view())
    scores = column(fitted.score, X, pairs).reshape(Y.shape)
    for label in range(3):
        svm = SVC(C=2.0, gamma=1 / X.shape[1]).fit(X, Y[:, [label]].toarray().ravel())
        np.testing.assert_allclose(scores[:, label], svm.decision_function(X), atol=2e-3)
    assert np.all(scores[:, 3] == -1)
    assert np.all(scores[:, 4] == 1)
    held_out = column(KernelSVM().score_held_out, data, pairs, n_jobs=4).reshape(Y.shape)
    for f in range(4):
        inside = np.flatnonzero(data.fold == f)
        refit = KernelSVM().fit(data.without_fold(f))
        np.testing.assert_array_equal(
            held_out[inside].ravel(), column(refit.score, X[inside], pairs.rows(inside))
        )
    restored = KernelSVM.from_state(fitted.get_state())
    np.testing.assert_array_equal(column(restored.score, X, pairs).reshape(Y.shape), scores)


def test_degenerate_training_sets() -> None:
    same = np.ones((6, 2), np.float32)
    Y = sp.csr_matrix(np.array([[1, 0]] * 3 + [[0, 1]] * 3, np.float32))
    for X in (same, 0 * same):
        for kernel in KERNELS:
            scorer = KernelRidge(kernel=kernel).fit(TrainingSet(X, Y, np.arange(6) % 3).view())
            assert np.all(np.isfinite(column(scorer.score, X, Candidates.all_labels(6, 2))))
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
        column(scorer.score, X[:, :3].copy(), Candidates.all_labels(*Y.shape))
    with pytest.raises(ValueError, match="must have 3 rows"):
        column(scorer.score, X, Candidates.all_labels(3, 5))
    with pytest.raises(ValueError, match="labels"):
        column(scorer.score, X, Candidates.all_labels(len(X), 6))
