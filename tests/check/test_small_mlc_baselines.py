"""The baselines of experiments/small_mlc against hand-worked cases and slow obvious twins."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from studies import study

from metarank.scorers.neighbors.training_rows import training_rows

with study("small_mlc"):
    import baselines
    from baselines.neighbors import label_counts, neighbors, neighbors_of_training_rows
    from baselines.rank_svm import ROUNDING, learn


ALL = [getattr(baselines, name) for name in baselines.__all__ if name != "Baseline"]


def toy(n: int = 60, d: int = 5, n_labels: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    Y = X @ rng.normal(size=(d, n_labels)) + 0.5 * rng.normal(size=(n, n_labels)) > 0.3
    return X, Y


# --- neighbours -----------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_neighbors_of_training_rows_leave_the_row_out(sparse):
    X, _ = toy(30)
    X[X < 0] = 0
    X[7] = X[3]  # two equal rows are each other's nearest
    index = training_rows(sp.csr_matrix(X) if sparse else X)
    rows = np.arange(0, 30, 2).astype(np.int32)
    rows = np.union1d(rows, [3, 7])
    near = neighbors_of_training_rows(index, sp.csr_matrix(X) if sparse else X, rows, 4, 1)
    distance = ((X[:, None] - X[None]) ** 2).sum(-1)
    for row, found in zip(rows, near):
        others = [r for r in rows if r != row]
        expected = sorted(others, key=lambda r: distance[row, r])[:4]
        np.testing.assert_allclose(distance[row, found], distance[row, expected], rtol=1e-5, atol=1e-6)
        assert row not in found
    assert near[list(rows).index(3), 0] == 7


# --- ML-kNN -----------------------------------------------------------------------


def test_mlknn_posterior_by_hand():
    # Rows 0, 1, 2 at 0, 1, 3 on a line; the label is carried by rows 0 and 1. k = 1:
    # neighbours without the row itself: 0 -> 1, 1 -> 0, 2 -> 1, so the counts are 1, 1, 1.
    X = np.array([[0.0], [1.0], [3.0]], np.float32)
    Y = np.array([[True], [True], [False]])
    model = baselines.MLkNN(given={"k": 1}).fit(X, Y)
    prior = (1 + 2) / (2 + 3)
    count_one = prior * (1 + 2) / (2 + 2), (1 - prior) * (1 + 1) / (2 + 1)
    count_none = prior * (1 + 0) / (2 + 2), (1 - prior) * (1 + 0) / (2 + 1)
    expected = [[c[0] / sum(c)] for c in (count_one, count_none)]
    # -1 is nearest to row 0, which carries the label; 4 to row 2, which does not.
    np.testing.assert_allclose(model.scores(np.array([[-1.0], [4.0]], np.float32)), expected)
    np.testing.assert_allclose(model.training_scores(), [expected[0]] * 3)


def test_mlknn_against_loops():
    X, Y = toy(50)
    k = 7
    distance = ((X[:, None].astype(float) - X[None]) ** 2).sum(-1)
    near = [[j for j in np.argsort(distance[i], kind="stable") if j != i][:k] for i in range(50)]
    Z = toy(8, seed=1)[0]
    expected = np.zeros((8, 4))
    for label in range(4):
        present, absent = np.ones(k + 1), np.ones(k + 1)
        for i in range(50):
            (present if Y[i, label] else absent)[sum(Y[j, label] for j in near[i])] += 1
        prior = (1 + Y[:, label].sum()) / (2 + 50)
        for q in range(8):
            to_q = np.argsort(((X - Z[q]) ** 2).sum(1), kind="stable")[:k]
            c = Y[to_q, label].sum()
            yes, no = prior * present[c] / present.sum(), (1 - prior) * absent[c] / absent.sum()
            expected[q, label] = yes / (yes + no)
    np.testing.assert_allclose(baselines.MLkNN(given={"k": k}).fit(X, Y).scores(Z), expected)


# --- IBLR -------------------------------------------------------------------------


@pytest.mark.parametrize("plus", [False, True])
def test_iblr_is_logistic_regression_on_the_neighbors_labels(plus):
    X, Y = toy(80)
    Z = toy(10, seed=1)[0]
    kind = baselines.IBLRPlus if plus else baselines.IBLR
    model = kind(given={"k": 5}).fit(X, Y)
    index = training_rows(X)
    train = label_counts(neighbors_of_training_rows(index, X, np.arange(80), 5, 1), Y).astype(float)
    test = label_counts(neighbors(index, Z, np.arange(80), 5, 1), Y).astype(float)
    if plus:
        train, test = np.hstack([train, X]), np.hstack([test, Z])
    for label in range(4):
        twin = LogisticRegression(tol=1e-10, max_iter=10_000).fit(train, Y[:, label])
        np.testing.assert_allclose(model.scores(Z)[:, label], twin.predict_proba(test)[:, 1], atol=1e-4)


# --- Rank-SVM -----------------------------------------------------------------------


def hinge_objective(W: np.ndarray, X: np.ndarray, Y: np.ndarray, C: float) -> float:
    """The sum of Elisseeff & Weston, pair by pair."""
    scores = X @ W[:-1] + W[-1]
    loss = 0.0
    for s, y in zip(scores, Y):
        pairs = [max(0.0, 1 - (s[k] - s[j])) for k in np.flatnonzero(y) for j in np.flatnonzero(~y)]
        loss += sum(pairs) / len(pairs) if pairs else 0.0
    return C * loss + 0.5 * (W[:-1] ** 2).sum()


def test_rank_svm_reaches_the_optimum_of_a_generic_solver():
    X, Y = toy(15, d=2, n_labels=3)
    Y[0], Y[1] = False, True  # rows without a pair say nothing
    C = 0.7
    found = hinge_objective(learn(X, Y, C), X, Y, C)

    # The same as a quadratic programme: one slack a pair.
    pairs = [(i, k, j) for i in range(15) for k in np.flatnonzero(Y[i]) for j in np.flatnonzero(~Y[i])]
    weight = np.array([C / (Y[i].sum() * (~Y[i]).sum()) for i, _, _ in pairs])
    A = np.zeros((len(pairs), 9 + len(pairs)))
    for p, (i, k, j) in enumerate(pairs):
        W = np.zeros((3, 3))
        W[:2, k], W[2, k], W[:2, j], W[2, j] = X[i], 1, -X[i], -1
        A[p, :9], A[p, 9 + p] = W.ravel(), 1
    ridge = np.concatenate([np.ones(6), np.zeros(3 + len(pairs))])
    cost = np.concatenate([np.zeros(9), weight])
    solution = minimize(
        lambda v: 0.5 * (ridge * v * v).sum() + cost @ v,
        np.concatenate([np.zeros(9), np.ones(len(pairs))]),
        jac=lambda v: ridge * v + cost,
        constraints={"type": "ineq", "fun": lambda v: A @ v - 1, "jac": lambda v: A},
        bounds=[(None, None)] * 9 + [(0, None)] * len(pairs),
        method="SLSQP",
        options={"maxiter": 500},
    )
    assert solution.success
    assert solution.fun - 1e-6 <= found <= solution.fun + C * 13 * ROUNDING / 4


def test_rank_svm_threshold_moves_with_the_scores():
    X, Y = toy(100)
    model = baselines.RankSVM(given={"C": 1.0}).fit(X, Y)
    kept = model.decide(model.scores(X))
    assert (kept == Y).mean() > 0.8


# --- all of them --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_baseline_ranks_better_than_chance_and_repeats_itself(kind):
    X, Y = toy(90)
    Y[:, 3] = False  # a label no row carries
    Z, truth = toy(40, seed=0)[0][:40] + np.float32(0.01), Y[:40]
    first = kind(quick=True).fit(X, Y)
    scores = first.scores(Z)
    assert scores.shape == (40, 4)
    assert np.isfinite(scores).all()
    assert first.decide(scores).shape == (40, 4)
    assert baselines.base.quality(truth, scores) > 0.75
    np.testing.assert_array_equal(kind(quick=True).fit(X, Y).scores(Z), scores)
