"""One-vs-rest boosting: LightGBM's scores through the compiled evaluator."""

import numpy as np
import pytest
import scipy.sparse as sp

from metarank.scorers.classical.boosted_trees import BoostedTrees
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows


def problem(seed: int = 0, n: int = 200, d: int = 6, L: int = 5) -> tuple[np.ndarray, sp.csr_matrix]:
    """Label 3 has no row, label 4 has all."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)).astype(np.float32)
    Y = (X @ rng.normal(size=(d, L)) > 0.5).astype(np.float32)
    Y[:, 3], Y[:, 4] = 0, 1
    return X, sp.csr_matrix(Y)


def fit(X: np.ndarray | sp.csr_matrix, Y: sp.csr_matrix, n_jobs: int = 1) -> BoostedTrees:
    data = TrainingSet(X, Y, fold_of_rows(X.shape[0], 4, 0), seed=7)
    return BoostedTrees(n_rounds=10).fit(data.view(), n_jobs=n_jobs)


def test_separates_relevant_rows_and_constant_labels_score_their_log_odds() -> None:
    X, Y = problem()
    score = fit(X, Y).score(X, Candidates.all_labels(*Y.shape))["boosted_trees"].reshape(Y.shape)
    relevant = Y.toarray() > 0
    for label in range(3):
        assert score[relevant[:, label], label].mean() > score[~relevant[:, label], label].mean() + 0.5
    np.testing.assert_allclose(score[:, 3], np.log(0.5 / 200.5), rtol=1e-6)
    np.testing.assert_allclose(score[:, 4], np.log(200.5 / 0.5), rtol=1e-6)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_threads_and_batches_change_no_byte(container) -> None:
    X, Y = problem()
    X = container(X)
    keep = np.random.default_rng(0).random(Y.shape) < 0.6
    keep[5] = False
    pairs = Candidates.from_csr(sp.csr_matrix(keep.astype(np.float32)))
    one, three = (fit(X, Y, n_jobs=j) for j in (1, 3))
    whole = one.score(X, pairs)["boosted_trees"]
    np.testing.assert_array_equal(three.score(X, pairs, n_jobs=3)["boosted_trees"], whole)
    by_row = [
        one.score(X[i : i + 1], pairs.rows(slice(i, i + 1)))["boosted_trees"] for i in range(X.shape[0])
    ]
    np.testing.assert_array_equal(np.concatenate(by_row), whole)


def test_state_round_trip() -> None:
    X, Y = problem()
    scorer = fit(X, Y)
    pairs = Candidates.all_labels(*Y.shape)
    restored = BoostedTrees.from_state(scorer.get_state())
    np.testing.assert_array_equal(
        restored.score(X, pairs)["boosted_trees"], scorer.score(X, pairs)["boosted_trees"]
    )


def test_bad_input() -> None:
    X, Y = problem()
    view = TrainingSet(X, Y, np.zeros(200)).view()
    with pytest.raises(ValueError, match="n_rounds"):
        BoostedTrees(n_rounds=0).fit(view)
    scorer = fit(X, Y)
    with pytest.raises(ValueError, match=r"shape \(n, 6\)"):
        scorer.score(X[:, :2], Candidates.all_labels(*Y.shape))
