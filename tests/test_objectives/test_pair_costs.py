"""Costs of pairs of grades: all pairs spelled out, all orders of small distributions, rankers."""

from itertools import permutations, product

import numpy as np
import pytest
from sklearn.base import clone

import metarank
from metarank import MultiObjectiveRanker
from metarank.objectives import (
    LabelAggregation,
    LossAggregation,
    auc_gradients,
    label_aggregated_scorer,
    multipartite_auc,
    pair_cost_scorer,
    per_label_auc,
    scale_costs,
    uniform_cost_scorer,
)

SQUARES = np.subtract.outer(np.arange(4.0), np.arange(4.0)) ** 2
# Scale and weights of four grades: the families of condition (2).
SCALES = {
    "difference": ([0, 1, 2, 3], None),
    "squares of grades": ([0, 1, 4, 9], None),
    "gains 2^y - 1": ([0, 1, 3, 7], None),
    "a step": ([0, 0, 1, 1], None),
    "product with weights": ([0, 1, 2, 3], [1, 2, 3, 4]),
    "rare grades count": ([0, 1, 2, 3], [1.2, 3, 10, 40]),
    "a grade that does not count": ([0, 1, 2, 3], [1, 0, 1, 2]),
    "harmonic": ([0, 1, 1.5, 1.5 + 1 / 3], [1, 2, 2, 1]),
}


def slow_loss(scores, target, cost, surrogate, groups):
    """Loss, gradient and Hessian, pair by pair."""
    loss, gradient, hessian, counted = 0.0, np.zeros(len(scores)), np.zeros(len(scores)), 0
    for g in np.unique(groups):
        rows = [i for i in range(len(scores)) if groups[i] == g]
        pairs = [(i, j, cost[target[i], target[j]]) for i in rows for j in rows if target[i] > target[j]]
        whole = sum(c for _, _, c in pairs)
        counted += whole > 0
        for i, j, c in pairs if whole > 0 else ():
            z, c = scores[i] - scores[j], c / whole
            slope = 1 / (1 + np.exp(z)) if surrogate == "logistic" else float(z < 1)
            bend = slope * (1 - slope) if surrogate == "logistic" else 1.0
            loss += c * (np.log1p(np.exp(-z)) if surrogate == "logistic" else max(0.0, 1 - z))
            gradient[i] -= c * slope
            gradient[j] += c * slope
            hessian[i] += c * bend
            hessian[j] += c * bend
    return loss / counted, gradient / counted, hessian / counted


@pytest.mark.parametrize("surrogate", ["logistic", "hinge"])
@pytest.mark.parametrize("n_groups", [1, 9])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_equal_all_pairs(surrogate, n_groups, seed):
    rng = np.random.default_rng(seed)
    target, scores, groups = rng.integers(0, 4, 80), rng.normal(size=80), rng.integers(0, n_groups, 80)
    cost = rng.random((5, 5)) * (rng.random((5, 5)) < 0.7)
    expected = slow_loss(scores, target, cost, surrogate, groups)
    qid = groups if n_groups > 1 else None
    for threads in (1, 2):
        found = auc_gradients(scores, target, surrogate=surrogate, cost=cost, qid=qid, n_jobs=threads)
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_words_are_matrices():
    rng = np.random.default_rng(0)
    target, scores = rng.integers(0, 4, 500), rng.normal(size=500)
    steps = np.subtract.outer(np.arange(4), np.arange(4))
    for word, matrix in (
        ("difference", steps),
        ("uniform", np.ones((4, 4))),
        ("uniform", np.ones((4, 4)).tolist()),
    ):
        for a, b in zip(auc_gradients(scores, target, cost=word), auc_gradients(scores, target, cost=matrix)):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
        assert multipartite_auc(scores, target, word) == pytest.approx(
            multipartite_auc(scores, target, matrix)
        )


def test_a_matrix_by_hand():
    """Grades 2, 0, 1 scored 3, 2, 1: of the pairs 2-0, 2-1 and 1-0 the last is in the wrong order."""
    cost = [[0, 0, 0], [5, 0, 0], [2, 3, 0]]
    assert multipartite_auc([3.0, 2.0, 1.0], [2, 0, 1], cost) == pytest.approx(0.5)
    gradient = auc_gradients(np.zeros(3), [2, 0, 1], cost=cost, surrogate="hinge")[1]
    np.testing.assert_allclose(gradient, [-0.5, 0.7, -0.2], rtol=1e-12)


# --- Bayes-optimal scorers ---


def regret(shares, cost, scores):
    """What the scores' expected AUC, in parts of the whole cost, falls short of the best of all orders."""
    below = np.tril(cost, -1)
    won = shares @ below @ shares.T  # expected cost of pairs that the first point wins

    def value(s):
        return (won * ((s[:, None] > s) + (s[:, None] == s) / 2)).sum() / won.sum()

    return max(value(np.array(order)) for order in permutations(range(len(shares)))) - value(scores)


def distributions(n, n_labels, seed):
    """Joint distributions of labels at each point, and the distributions of their sums."""
    joint = np.random.default_rng(seed).dirichlet(np.full(2**n_labels, 0.5), n)
    outcomes = np.array(list(product((0, 1), repeat=n_labels)))
    sums = outcomes.sum(axis=1)
    return joint @ outcomes, np.column_stack([joint[:, sums == g].sum(axis=1) for g in range(n_labels + 1)])


@pytest.mark.parametrize("family", SCALES)
@pytest.mark.parametrize("seed", range(3))
def test_costs_of_a_scale_leave_no_regret(family, seed):
    scale, weights = SCALES[family]
    _, shares = distributions(6, 3, seed)
    cost = scale_costs(scale, weights)
    scores = pair_cost_scorer(shares, cost)
    assert regret(shares, cost, scores) == pytest.approx(0, abs=1e-12)
    # The paper's form of it.
    s, w = np.array(scale, float), np.ones(4) if weights is None else np.array(weights)
    np.testing.assert_array_equal(np.argsort(scores), np.argsort((shares @ (w * s)) / (shares @ w)))


@pytest.mark.parametrize("seed", range(12))
def test_any_costs_of_three_grades_leave_no_regret(seed):
    rng = np.random.default_rng(seed)
    _, shares = distributions(6, 2, seed)
    cost = rng.random((3, 3)) * ((rng.random((3, 3)) < 0.8) | (np.arange(9).reshape(3, 3) == 6))
    assert regret(shares, cost, pair_cost_scorer(shares, cost)) == pytest.approx(0, abs=1e-12)


def test_words_have_the_scorers_that_are_known():
    eta, shares = distributions(50, 2, 1)
    np.testing.assert_allclose(
        pair_cost_scorer(shares, "uniform"), uniform_cost_scorer(eta, shares[:, 2]), atol=1e-12
    )
    eta, shares = distributions(50, 4, 1)
    np.testing.assert_allclose(4 * pair_cost_scorer(shares), label_aggregated_scorer(eta), atol=1e-12)


@pytest.mark.parametrize(
    ("cost", "breaks"),
    [
        (SQUARES, True),
        (np.sqrt(SQUARES) ** 0.5, True),
        (np.minimum(np.sqrt(SQUARES), 2), True),
        (np.ones((4, 4)), True),
        (np.sqrt(SQUARES), False),
    ],
)
def test_costs_without_a_scale_have_no_closed_form(cost, breaks):
    """Three points each of which belongs above the next: no score of a point can do."""
    _, shares = distributions(60, 3, 0)
    won = shares @ np.tril(cost, -1) @ shares.T
    above = (won - won.T > 1e-9).astype(int)
    assert bool(np.trace(above @ above @ above)) == breaks
    if breaks:
        with pytest.raises(ValueError, match=r"condition \(2\): of grades 2 and 1 .* no closed form"):
            pair_cost_scorer(shares, cost)


def test_rows_whose_pairs_cost_nothing_are_in_the_middle():
    cost = scale_costs([0, 1, 2], [1, 0, 1])
    assert pair_cost_scorer([[0, 1, 0], [1, 0, 0], [0, 0, 1]], cost).tolist() == [0.5, 0, 1]


# --- where a user chooses the cost ---


def two_labels(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    chance = 1 / (1 + np.exp(-2 * X[:, :2] + [0, 2]))
    return X, (rng.random((n, 2)) < chance).astype(float)


COST = np.array([[0.0, 0, 0], [1, 0, 0], [9, 8, 0]])


def test_label_aggregation_is_the_loss_of_the_aggregated_label():
    X, Y = two_labels()
    found = LabelAggregation(Y, cost=COST).mean_loss(X[:, 0])
    expected = auc_gradients(X[:, 0], Y.sum(axis=1), cost=COST)
    assert found[0] == expected[0]
    assert found[1].tobytes() == expected[1].tobytes()


def test_binary_labels_have_one_cost():
    X, Y = two_labels()
    a, b = (LossAggregation(Y, cost=cost).mean_loss(X[:, 0]) for cost in (COST, "uniform"))
    np.testing.assert_allclose(a[1], b[1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(per_label_auc(X[:, 0], Y, COST), per_label_auc(X[:, 0], Y), rtol=1e-12)


@pytest.mark.parametrize("model", ["linear", "lightgbm"])
def test_a_ranker_learns_the_order_of_its_cost_and_keeps_it(model, tmp_path):
    X, Y = two_labels(1500)
    options = {"metric": "auc", "n_rounds": 20, "n_jobs": 1}
    cost = COST.tolist()
    ranker = MultiObjectiveRanker("label", model, cost=cost, **options).fit(X, Y)
    scores = ranker.predict(X)
    other = MultiObjectiveRanker("label", model, **options).fit(X, Y).predict(X)
    total = Y.sum(axis=1)
    assert multipartite_auc(scores, total, COST) > multipartite_auc(other, total, COST)
    assert clone(ranker).fit(X, Y).predict(X).tobytes() == scores.tobytes()
    cost[1][0] = 100.0  # what was given is overwritten
    ranker.save(tmp_path / "model")
    loaded = metarank.load(tmp_path / "model")
    assert loaded.predict(X).tobytes() == scores.tobytes()
    np.testing.assert_array_equal(loaded.cost, COST)
    np.testing.assert_array_equal(loaded.fit(X, Y).predict(X), scores)


def test_a_ranker_watches_stops_and_chooses_with_a_matrix():
    X, Y = two_labels()
    held_out = two_labels(seed=1)
    options = {"metric": "auc", "n_rounds": 5, "n_jobs": 1, "cost": COST}
    stopped = MultiObjectiveRanker(early_stopping=2, **options).fit(X, Y, eval_set=held_out)
    areas = per_label_auc(stopped.predict(held_out[0]), held_out[1])
    np.testing.assert_allclose(stopped.attained_, areas, rtol=1e-12)
    assert stopped.score(*held_out) == pytest.approx(areas.mean())
    assert MultiObjectiveRanker(model="auto", **options).fit(X, Y).choices_
    grouped = MultiObjectiveRanker(**options).fit(X, Y, qid=np.arange(len(X)) // 20)
    assert np.isfinite(grouped.predict(X)).all()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: scale_costs([0.0]), "scale must be of two grades or more"),
        (lambda: scale_costs([1.0, 0.0]), "nowhere fall"),
        (lambda: scale_costs([0.0, 1.0], [1.0]), "weights must have 2 entries, got 1"),
        (lambda: scale_costs([0.0, 1.0], [1.0, -1.0]), "weights must be >= 0"),
        (lambda: scale_costs([1.0, 1.0]), "cost must be above 0 for a pair"),
        (lambda: pair_cost_scorer([[0.5, 0.6]]), "each row >= 0, with sum 1"),
        (lambda: pair_cost_scorer([[1.0]]), "two grades or more"),
        (lambda: pair_cost_scorer([[0.5, 0.5]], SQUARES), r"cost must have shape \(2, 2\).* \(4, 4\)"),
        (lambda: pair_cost_scorer([[0.5, 0.5]], "square"), "cost must be .* got 'square'"),
        (
            lambda: pair_cost_scorer([[1, 0, 0]], [[0, 0, 0], [1, 0, 0], [0, 1, 0]]),
            "between the smallest and the greatest grade, got 0",
        ),
        (lambda: auc_gradients([0.0, 1.0], [0, 1], cost=np.ones((2, 3))), r"got shape \(2, 3\)"),
        (lambda: auc_gradients([0.0, 1.0], [0, 1], cost=[["a", 1], [1, 1]]), "cost must be .* got .*a"),
        (lambda: auc_gradients([0.0, 1.0], [0, 1], cost=-np.ones((2, 2))), "finite and >= 0 below"),
        (lambda: auc_gradients([0.0, 1.0], [0, 1], cost=None), "cost must be"),
        (lambda: auc_gradients([0.0, 1.0], [0, 1.5], cost=COST), "must hold integers from 0 to 2 .* got 1.5"),
        (
            lambda: auc_gradients([0.0, 1.0], [0, 1], cost=[[0, 0, 0], [0, 0, 0], [1, 0, 0]]),
            "target has no pair of grades that costs something",
        ),
        (
            lambda: LabelAggregation([[0, 1], [1, 0], [1, 1]], weights=[1, 0.5], cost=COST),
            "aggregated label .* must hold integers from 0 to 2 for this cost, got 0.5",
        ),
        (
            lambda: LabelAggregation([[0, 1], [1, 0], [1, 1]], cost=COST, propensities=[0.5, 1.0]),
            "cost must be 'difference' with propensities, got a matrix",
        ),
        (
            lambda: MultiObjectiveRanker("plug-in-label", cost=COST).fit(*two_labels()),
            "cost must be 'difference' or 'uniform' with aggregation='plug-in-label', got a matrix",
        ),
        (lambda: MultiObjectiveRanker(cost="cubic").fit(*two_labels()), "cost must be .* got 'cubic'"),
        (
            lambda: MultiObjectiveRanker(metric="auc", cost=np.ones((2, 2))).fit(*two_labels()),
            "aggregated label .* must hold integers from 0 to 1 for this cost, got 2",
        ),
    ],
)  # fmt: skip
def test_bad_costs_are_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()
