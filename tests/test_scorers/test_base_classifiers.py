"""Kernel machines, the linear SVM and extra trees against NumPy and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.svm import SVC

from metarank import _core
from metarank.scorers.classical.forest import ExtraTrees, _arrays_of, _joined
from metarank.scorers.classical.kernel_ridge import KernelRidge
from metarank.scorers.classical.kernel_svm import KernelSVM
from metarank.scorers.classical.kernels import METRICS, held_out_error
from metarank.scorers.crossfit import held_out_columns, nested_columns
from metarank.scorers.linear.linear_svm import LinearClassifier
from metarank.scorers.wrapped import BlockScorer, ObjectiveScorer
from metarank.types.block_columns import BlockColumns
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows

FIXED = {"gamma": 0.1, "alpha": 0.3, "scaling": "unit"}
FOREST = "extra trees: log-odds"
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


def test_choice_is_kept() -> None:
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
    # Columns blown up by the scaling: the labels follow the columns as they were given.
    assert KernelRidge(kernel="rbf").tuned(data.view()).scaling == "raw"


def test_svm_is_that_of_scikit_learn() -> None:
    X, Y = problem()
    data, pairs = training_set(X, Y), Candidates.all_labels(*Y.shape)
    fitted = KernelSVM(C=2.0).fit(data.view())
    scores = column(fitted.score, X, pairs).reshape(Y.shape)
    for label in range(3):
        svm = SVC(C=2.0, gamma=1 / X.shape[1]).fit(X, Y[:, [label]].toarray().ravel())
        np.testing.assert_allclose(scores[:, label], svm.decision_function(X), atol=2e-3)
    assert np.all(scores[:, 3] == -1)
    assert np.all(scores[:, 4] == 1)


def test_degenerate_training_sets() -> None:
    same = np.ones((6, 2), np.float32)
    Y = sp.csr_matrix(np.array([[1, 0]] * 3 + [[0, 1]] * 3, np.float32))
    for X in (same, 0 * same):
        for kernel in KERNELS:
            scorer = KernelRidge(kernel=kernel).fit(TrainingSet(X, Y, np.arange(6) % 3).view())
            assert np.all(np.isfinite(column(scorer.score, X, Candidates.all_labels(6, 2))))
    one_fold = KernelRidge().fit(TrainingSet(same, Y, np.zeros(6)).view())
    assert one_fold.alpha_ > 0


def some_pairs(n: int, L: int, share: float, seed: int = 0) -> Candidates:
    keep = np.random.default_rng(seed).random((n, L)) < share
    keep[0] = False  # a row without candidates
    return Candidates.from_csr(sp.csr_matrix(keep.astype(np.float32)))


def test_a_label_of_no_row_or_of_all_rows_has_one_margin() -> None:
    """What the others are, the squared hinge of `OneVsAll` tells, which is trained alike."""
    X, Y = problem()
    scorer = LinearClassifier(C=0.5).fit(training_set(X, Y).view())
    score = scorer.score(X, Candidates.all_labels(*Y.shape))["linear SVM: margin"].reshape(Y.shape)
    assert np.all(score[:, 3:] == [-1, 1])


@pytest.mark.parametrize("share", [0.02, 0.9])
def test_scores_equal_the_obvious_sum_dense_and_sparse_alike(share: float) -> None:
    rng = np.random.default_rng(0)
    X, _ = problem()
    scorer = LinearClassifier()
    scorer.weights_ = rng.normal(size=(9, 60)).astype(np.float32)
    scorer.bias_ = rng.normal(size=60).astype(np.float32)
    pairs = some_pairs(len(X), 60, share)
    full = X.astype(np.float64) @ scorer.weights_ + scorer.bias_
    dense = scorer.score(X, pairs)["linear SVM: margin"]
    np.testing.assert_allclose(dense, full[pairs.row_of_pair, pairs.labels], atol=1e-5)
    sparse = sp.csr_matrix(X)
    sparse.indices, sparse.indptr = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
    np.testing.assert_array_equal(scorer.score(sparse, pairs, n_jobs=3)["linear SVM: margin"], dense)
    everything = scorer.score(X, Candidates.all_labels(len(X), 60))["linear SVM: margin"].reshape(-1, 60)
    np.testing.assert_array_equal(everything[pairs.row_of_pair, pairs.labels], dense)


def forest_of(X: np.ndarray | sp.csr_matrix, Y: sp.csr_matrix) -> ExtraTrees:
    return ExtraTrees(n_trees=12).fit(training_set(X, Y).view())


@pytest.mark.parametrize("n_labels", [1, 5])
def test_extra_trees_are_those_of_scikit_learn(n_labels: int) -> None:
    X, Y = problem()
    Y = Y.toarray()[:, :n_labels]
    forest = ExtraTreesRegressor(n_estimators=20, random_state=0, max_features="sqrt")
    forest.fit(X[:100], Y[:100] if n_labels > 1 else Y[:100].ravel())
    scorer = ExtraTrees()
    scorer.n_features_ = X.shape[1]
    scorer.arrays_ = _joined([_arrays_of(tree.tree_) for tree in forest.estimators_])
    score = scorer.score(X, Candidates.all_labels(*Y.shape))[FOREST]
    share = np.clip(forest.predict(X).ravel(), 1 / 302, 301 / 302)
    np.testing.assert_allclose(score, np.log(share / (1 - share)), atol=1e-4)


def test_constant_labels_and_range() -> None:
    X, Y = problem()
    score = forest_of(X, Y).score(X, Candidates.all_labels(*Y.shape))[FOREST].reshape(Y.shape)
    assert np.all(score[:, 3] == score.min())
    assert np.all(score[:, 4] == score.max())
    assert np.isfinite(score).all()


def test_wide_indices_and_read_only_arrays() -> None:
    X, Y = problem()
    pairs = Candidates.all_labels(*Y.shape)
    narrow, wide = sp.csr_matrix(X), sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    scorer = forest_of(narrow, Y)
    expected = scorer.score(narrow, pairs)[FOREST]
    np.testing.assert_array_equal(forest_of(wide, Y).score(wide, pairs)[FOREST], expected)
    state = scorer.get_state()
    for array in state["arrays"].values():
        (array.data if sp.issparse(array) else array).setflags(write=False)
    np.testing.assert_array_equal(ExtraTrees.from_state(state).score(X, pairs)[FOREST], expected)


@pytest.mark.parametrize("prefix", ["", "all", "clicks"])
def test_quality_is_judged_with_a_third_of_the_trees_of_blocks_and_objectives_too(prefix):
    """So one fit does not describe its rows for the same ranker at two prices."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)).astype(np.float32)
    Y, clicks = (sp.csr_matrix(np.float32(rng.random((30, 2)) > 0.5)) for _ in range(2))
    blocks = [BlockColumns("all", "vector", 0, 3, True)]
    data = TrainingSet(X, Y, np.arange(30) % 3, seed=1, blocks=blocks, targets={"clicks": clicks})

    def trees(n: int):
        plain = ExtraTrees(n_trees=n)
        if prefix == "all":
            return BlockScorer(scorer=plain, block="all")
        return ObjectiveScorer(scorer=plain, objective="clicks") if prefix else plain

    every = Candidates.all_labels(30, 2)
    for part in nested_columns([trees(9)], data, every, 1, lambda part: part):
        rest = data.part(part.seen, data.fold[part.seen])
        for name, values in held_out_columns(trees(3), rest, every.rows(part.seen)).items():
            np.testing.assert_array_equal(part.described[0][name], values)
