"""The small sets of experiments/bench: systems and cuts against hand-worked cases and slow obvious twins."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from studies import study

from metarank.scorers.neighbors.centroids import Centroids
from metarank.scorers.neighbors.training_rows import training_rows
from metarank.scorers.neighbors.voting import LabelNeighbors
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet

with study("bench"):
    from systems import small_set
    from systems.small import KINDS, cuts, lambda_net, rankers
    from systems.small.base import folds_of, quality
    from systems.small.neighbors import label_counts, neighbors, neighbors_of_training_rows
    from systems.small.rank_svm import ROUNDING, learn


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
    given = sp.csr_matrix(X) if sparse else X
    index = training_rows(given)
    rows = np.arange(0, 30, 2).astype(np.int32)
    rows = np.union1d(rows, [3, 7])
    near = neighbors_of_training_rows(index, given, rows, 4)
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
    model = KINDS["MLkNN"](given={"k": 1}).fit(X, Y)
    prior = (1 + 2) / (2 + 3)
    count_one = prior * (1 + 2) / (2 + 2), (1 - prior) * (1 + 1) / (2 + 1)
    count_none = prior * (1 + 0) / (2 + 2), (1 - prior) * (1 + 0) / (2 + 1)
    expected = [[c[0] / sum(c)] for c in (count_one, count_none)]
    # -1 is nearest to row 0, which carries the label; 4 to row 2, which does not.
    np.testing.assert_allclose(model.scores(np.array([[-1.0], [4.0]], np.float32)), expected)
    np.testing.assert_allclose(model.training, [expected[0]] * 3)


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
    np.testing.assert_allclose(KINDS["MLkNN"](given={"k": k}).fit(X, Y).scores(Z), expected)


# --- IBLR -------------------------------------------------------------------------


@pytest.mark.parametrize("plus", [False, True])
def test_iblr_is_logistic_regression_on_the_neighbors_labels(plus):
    X, Y = toy(80)
    Z = toy(10, seed=1)[0]
    kind = KINDS["IBLRPlus" if plus else "IBLR"]
    model = kind(given={"k": 5}).fit(X, Y)
    index = training_rows(X)
    train = label_counts(neighbors_of_training_rows(index, X, np.arange(80), 5), Y).astype(float)
    test = label_counts(neighbors(index, Z, np.arange(80), 5), Y).astype(float)
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
    model = KINDS["RankSVM"](given={"C": 1.0}).fit(X, Y)
    kept = model.decide(model.scores(X))
    assert (kept == Y).mean() > 0.8


# --- all of them --------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for name, kind in KINDS.items() if not name.startswith("Paper")])
def test_every_baseline_ranks_better_than_chance_and_repeats_itself(kind):
    X, Y = toy(90)
    Y[:, 3] = False  # a label no row carries
    Z, truth = toy(40, seed=0)[0][:40] + np.float32(0.01), Y[:40]
    first = kind().fit(X, Y)
    scores = first.scores(Z)
    assert scores.shape == (40, 4)
    assert np.isfinite(scores).all()
    assert first.decide(scores).shape == (40, 4)
    assert quality(truth, scores) > 0.75
    np.testing.assert_array_equal(kind().fit(X, Y).scores(Z), scores)


# --- cuts -------------------------------------------------------------------------


def test_targets_are_those_of_a_search_through_all_cuts():
    rng = np.random.default_rng(1)
    for _ in range(100):
        n_labels = int(rng.integers(1, 6))
        scores, y = np.round(rng.random(n_labels), 1), rng.random(n_labels) < 0.4
        ranked = np.sort(scores)[::-1]
        found = []  # (mistakes, labels kept, the threshold)
        for kept in range(1, n_labels + 1):
            lower = ranked[-1] if kept == n_labels else ranked[kept]
            if ranked[kept - 1] > lower or kept == n_labels:
                mistakes = int(np.sum((scores >= ranked[kept - 1]) != y))
                found.append((mistakes, kept, (ranked[kept - 1] + lower) / 2))
        least = min(found)[0]
        expected = max((kept, cut) for mistakes, kept, cut in found if mistakes == least)[1]
        assert cuts.best_cuts(scores[None], y[None])[0] == pytest.approx(expected)


def test_the_cut_is_the_least_squares_fit():
    rng = np.random.default_rng(2)
    scores, Y, new = rng.normal(size=(80, 4)), rng.random((80, 4)) < 0.4, rng.normal(size=(30, 4))
    s, z = cuts.normalised(scores), cuts.normalised(new)
    np.testing.assert_allclose(s.sum(axis=1), 1)
    # Scores that sum to one make one column and the constant the same: leave a column out.
    X, Z = (np.column_stack([-np.sort(-part)[:, 1:], np.ones(len(part))]) for part in (s, z))
    # The worst score of a row is 0, so that it has no say.
    cut = Z @ np.linalg.pinv(X) @ cuts.best_cuts(s, Y)
    np.testing.assert_array_equal(cuts.by_regression(scores, Y, new), z >= cut[:, None])


@pytest.fixture
def folder(tmp_path):
    """Rare labels: a cut at probability .5 keeps almost none of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(450, 6)).astype(np.float32)
    Y = (X @ rng.normal(size=(6, 4)) + 3 * rng.normal(size=(450, 4)) > 4.5).astype(np.float32)
    for name, part in {"X": X[:300], "Y": Y[:300], "X_test": X[300:], "Y_test": Y[300:]}.items():
        sp.save_npz(tmp_path / f"{name}.npz", sp.csr_matrix(part))
    return tmp_path


@pytest.mark.parametrize("meta", [False, True])
def test_a_systems_answers_are_its_scores_and_its_sets_by_each_rule(folder, meta):
    system = small_set.System({"kind": "LogisticOneVsRest", "random_state": 0, "meta": meta}, 1)
    system.read(folder)
    system.train()
    rows = system.prepare(sp.load_npz(folder / "X_test.npz"))
    scores = system.predict(rows, 4)
    answers = system.arrays(scores, rows)
    assert set(answers) == {"scores", "own", "regression", *(f"learned {metric}" for metric in cuts.CUTS)}
    np.testing.assert_allclose(system.predict(rows[7:8], 4)[0], scores[7], rtol=1e-6)
    assert answers["learned micro-F1"].sum() > 3 * answers["own"].sum()
    inside, outside = folds_of(300, 0)[2]
    twin = KINDS["LogisticOneVsRest"](0, system.model.chosen).fit(system.rows[inside], system.Y[inside])
    again = system._fit_again(system.rows[inside], system.Y[inside])
    np.testing.assert_array_equal(again(system.rows[outside]), twin.scores(system.rows[outside]))


# --- meta-features without the row itself -----------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_described_by_all_others(sparse):
    X, Y = toy(30)
    Y[:, 3] = False
    Y[4, 3] = True  # a label of one row
    X[X < 0] = 0
    X[9] = X[2]
    given = sp.csr_matrix(X) if sparse else X
    near, centroid = rankers.MetaFeatures(given, Y, 3).of_training_rows()
    near, centroid = near.reshape(30, 4, 9), centroid.reshape(30, 4, 2)
    pairs = Candidates.all_labels(1, 4)
    for row in range(30):
        others = np.arange(30) != row
        labels = sp.csr_matrix(Y[others], dtype=np.float32)
        view = TrainingSet(given[others], labels, np.zeros(29, np.int32)).view()
        for found, scorer in ((near, LabelNeighbors(k=3, columns="raw")), (centroid, Centroids())):
            expected = np.column_stack(list(scorer.fit(view).score(given[[row]], pairs).values()))
            kept = np.ones(4, bool)
            # How far a label without a row is follows from the longest of all rows, here with the row itself.
            kept[3] = row != 4
            np.testing.assert_allclose(found[row][kept], expected[kept], rtol=1e-4, atol=2e-3)
    longest, own = (X * X).sum(axis=1).max(), (X[4] * X[4]).sum()
    np.testing.assert_allclose(near[4, 3, :3], np.sqrt(own + longest), rtol=1e-5)
    np.testing.assert_allclose(centroid[4, 3], [np.sqrt(own + longest), 1], rtol=1e-5)


@pytest.mark.parametrize("kind", [kind for name, kind in KINDS.items() if name.startswith("Paper")])
def test_the_papers_systems_rank_new_rows_and_choose_once(kind, monkeypatch):
    monkeypatch.setattr(kind, "grid", (10, 20))
    X, Y = toy(200, seed=3)
    model = kind().fit(X[:120], Y[:120])
    assert set(model.chosen) == {"k", kind.name_of_strength}
    scores = model.scores(X[120:])
    relevant = scores[Y[120:]].mean() - scores[~Y[120:]].mean()
    assert relevant > 0.5 * scores.std()
    again = kind(given=model.chosen).fit(X[:120], Y[:120])
    np.testing.assert_array_equal(again.scores(X[120:]), scores)
    assert model.decide(scores) is None


# --- LambdaRank -------------------------------------------------------------------


def test_lambdas_are_those_of_all_pairs():
    rng = np.random.default_rng(5)
    scores, Y = rng.normal(size=(20, 6)), rng.random((20, 6)) < 0.4
    Y[:, 0], Y[:, 1] = True, False

    def ndcg(order: np.ndarray, y: np.ndarray) -> float:
        discount = 1 / np.log2(2 + np.arange(6))
        return float((y[order] * discount).sum() / discount[: y.sum()].sum())

    for s, y, found in zip(scores, Y, lambda_net.lambdas(scores, Y)):
        order, expected = np.argsort(-s), np.zeros(6)
        for i, j in product(np.flatnonzero(y), np.flatnonzero(~y)):
            swapped = order.copy()
            a, b = np.flatnonzero(order == i)[0], np.flatnonzero(order == j)[0]
            swapped[a], swapped[b] = j, i
            pull = abs(ndcg(swapped, y) - ndcg(order, y)) / (1 + np.exp(s[i] - s[j]))
            expected[i] += pull
            expected[j] -= pull
        np.testing.assert_allclose(found, expected, atol=1e-6)
