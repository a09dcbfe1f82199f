"""The compiled forest against scikit-learn's own prediction."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesRegressor

from metarank.scorers.classical.forest import ExtraTrees, _arrays_of, _joined
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows


def problem(seed: int = 0, n: int = 150, d: int = 8, L: int = 5) -> tuple[np.ndarray, sp.csr_matrix]:
    """Label 3 has no row, label 4 has all."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)).astype(np.float32)
    Y = (X @ rng.normal(size=(d, L)) > 0.5).astype(np.float32)
    Y[:, 3], Y[:, 4] = 0, 1
    return X, sp.csr_matrix(Y)


def fit(X: np.ndarray | sp.csr_matrix, Y: sp.csr_matrix, n_jobs: int = 1, **params: object) -> ExtraTrees:
    data = TrainingSet(X, Y, fold_of_rows(X.shape[0], 4, 0), seed=7)
    return ExtraTrees(**({"n_trees": 12} | params)).fit(data.view(), n_jobs=n_jobs)


@pytest.mark.parametrize("n_labels", [1, 5])
def test_equals_scikit_learn(n_labels: int) -> None:
    X, Y = problem()
    Y = Y.toarray()[:, :n_labels]
    forest = ExtraTreesRegressor(n_estimators=20, random_state=0, max_features="sqrt")
    forest.fit(X[:100], Y[:100] if n_labels > 1 else Y[:100].ravel())
    scorer = ExtraTrees()
    scorer.n_features_ = X.shape[1]
    scorer.arrays_ = _joined([_arrays_of(tree.tree_) for tree in forest.estimators_])
    score = scorer.score(X, Candidates.all_labels(*Y.shape))["extra_trees"]
    share = np.clip(forest.predict(X).ravel(), 1 / 302, 301 / 302)
    np.testing.assert_allclose(score, np.log(share / (1 - share)), atol=1e-4)


def test_constant_labels_and_range() -> None:
    X, Y = problem()
    score = fit(X, Y).score(X, Candidates.all_labels(*Y.shape))["extra_trees"].reshape(Y.shape)
    assert np.all(score[:, 3] == score.min())
    assert np.all(score[:, 4] == score.max())
    assert np.isfinite(score).all()


def test_grades_count_as_relevant() -> None:
    X, Y = problem()
    pairs = Candidates.all_labels(*Y.shape)
    np.testing.assert_array_equal(
        fit(X, Y * 3).score(X, pairs)["extra_trees"], fit(X, Y).score(X, pairs)["extra_trees"]
    )


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_threads_batches_and_row_order_change_no_byte(container) -> None:
    X, Y = problem(n=300)
    X = container(X)
    keep = np.random.default_rng(0).random(Y.shape) < 0.6
    keep[5] = False
    pairs = Candidates.from_csr(sp.csr_matrix(keep.astype(np.float32)))
    one, four = (fit(X, Y, n_jobs=j) for j in (1, 4))
    whole = one.score(X, pairs)["extra_trees"]
    np.testing.assert_array_equal(four.score(X, pairs, n_jobs=4)["extra_trees"], whole)
    order = np.random.default_rng(1).permutation(X.shape[0])
    shuffled = one.score(X[order], pairs.rows(order))["extra_trees"]
    np.testing.assert_array_equal(
        shuffled, Candidates(pairs.indptr, pairs.labels, 5, {"s": whole}).rows(order).scores["s"]
    )
    by_row = [one.score(X[i : i + 1], pairs.rows(slice(i, i + 1)))["extra_trees"] for i in range(X.shape[0])]
    np.testing.assert_array_equal(np.concatenate(by_row), whole)
    np.testing.assert_array_equal(
        one.score(X.toarray() if sp.issparse(X) else X, pairs)["extra_trees"], whole
    )


def test_state_and_pickle() -> None:
    X, Y = problem()
    scorer = fit(X, Y)
    pairs = Candidates.all_labels(*Y.shape)
    expected = scorer.score(X, pairs)["extra_trees"]
    for copy in (ExtraTrees.from_state(scorer.get_state()), pickle.loads(pickle.dumps(scorer))):
        np.testing.assert_array_equal(copy.score(X, pairs)["extra_trees"], expected)
    np.testing.assert_array_equal(
        scorer.fit(TrainingSet(X, Y, np.zeros(150), seed=7).view()).score(X, pairs)["extra_trees"], expected
    )


def test_wide_indices_and_read_only_arrays() -> None:
    X, Y = problem()
    pairs = Candidates.all_labels(*Y.shape)
    narrow, wide = sp.csr_matrix(X), sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    scorer = fit(narrow, Y)
    expected = scorer.score(narrow, pairs)["extra_trees"]
    np.testing.assert_array_equal(fit(wide, Y).score(wide, pairs)["extra_trees"], expected)
    state = scorer.get_state()
    for array in state["arrays"].values():
        (array.data if sp.issparse(array) else array).setflags(write=False)
    np.testing.assert_array_equal(ExtraTrees.from_state(state).score(X, pairs)["extra_trees"], expected)


@pytest.mark.parametrize("bad", [{"n_trees": 0}, {"min_samples_leaf": 0}])
def test_bad_parameters(bad: dict) -> None:
    X, Y = problem(n=10)
    with pytest.raises(ValueError, match=next(iter(bad))):
        fit(X, Y, **bad)


def test_wrong_shapes() -> None:
    X, Y = problem()
    scorer = fit(X, Y)
    with pytest.raises(ValueError, match="must have 8 columns"):
        scorer.score(X[:, :3].copy(), Candidates.all_labels(*Y.shape))
    with pytest.raises(ValueError, match="must have 3 rows"):
        scorer.score(X, Candidates.all_labels(3, 5))
    with pytest.raises(ValueError, match="labels"):
        scorer.score(X, Candidates.all_labels(len(X), 6))
    assert scorer.score(X[:0], Candidates.all_labels(0, 5))["extra_trees"].shape == (0,)
