"""Bayes-optimal scorers against brute force over all orders of small distributions."""

from itertools import permutations, product

import numpy as np
import pytest

from metarank.objectives import (
    dominates,
    inner_weights,
    label_aggregated_scorer,
    label_spread,
    loss_aggregated_scorer,
    multipartite_auc,
    product_scorer,
    uniform_cost_scorer,
)


class Distribution:
    """n points x of equal mass with a joint distribution of K binary labels each."""

    def __init__(self, joint):
        self.joint = joint  # (n, 2, ..., 2)
        self.n, self.n_labels = len(joint), joint.ndim - 1
        self.outcomes = np.array(list(product((0, 1), repeat=self.n_labels)))
        self.mass = joint.reshape(self.n, -1)
        self.eta = self.mass @ self.outcomes
        self.pi = self.eta.mean(0)
        self.all_one = self.mass[:, -1]

    @classmethod
    def random(cls, n, n_labels, seed):
        rng = np.random.default_rng(seed)
        return cls(rng.dirichlet(np.full(2**n_labels, 0.5), n).reshape(n, *[2] * n_labels))

    def preference(self, grade, cost):
        """(n, n): cost-weighted probability that the first point's grade is the greater one."""
        c = np.array([[cost(a, b) if a > b else 0.0 for b in grade] for a in grade])
        return self.mass @ c @ self.mass.T

    def preferences_of_labels(self):
        return [self.preference(column, lambda a, b: 1.0) for column in self.outcomes.T]


def auc_of_scores(preference, scores):
    """Population AUC, from scores; ties count one half."""
    right = (scores[:, None] > scores) + (scores[:, None] == scores) / 2
    return (preference * right).sum() / preference.sum()


def best_auc(preference):
    """Over all orders of the points."""
    n = len(preference)
    return max(auc_of_scores(preference, np.array(order, float)) for order in permutations(range(n)))


def difference(a, b):
    return a - b


def uniform(a, b):
    return 1.0


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_loss_aggregation_is_optimal(n_labels, seed):
    d = Distribution.random(6, n_labels, seed)
    weights = np.random.default_rng(seed).random(n_labels) + 0.1
    labels = d.preferences_of_labels()
    aggregated = sum(a * p / p.sum() for a, p in zip(weights, labels))
    scores = loss_aggregated_scorer(d.eta, d.pi, weights)
    assert auc_of_scores(aggregated, scores) == pytest.approx(best_auc(aggregated), abs=1e-14)
    # Proposition 5.1: nothing dominates it.
    mine = [auc_of_scores(p, scores) for p in labels]
    for order in permutations(range(d.n)):
        others = [auc_of_scores(p, np.array(order, float)) for p in labels]
        assert not dominates(others, mine, tolerance=1e-12)


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_label_aggregation_with_difference_costs_is_optimal(n_labels, seed):
    d = Distribution.random(6, n_labels, 100 + seed)
    weights = np.random.default_rng(seed).random(n_labels) + 0.1
    preference = d.preference(d.outcomes @ weights, difference)
    scores = label_aggregated_scorer(d.eta, weights)
    assert auc_of_scores(preference, scores) == pytest.approx(best_auc(preference), abs=1e-14)
    mine = [auc_of_scores(p, scores) for p in d.preferences_of_labels()]
    for order in permutations(range(d.n)):
        others = [auc_of_scores(p, np.array(order, float)) for p in d.preferences_of_labels()]
        assert not dominates(others, mine, tolerance=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_uniform_costs_and_two_labels_are_optimal(seed):
    d = Distribution.random(6, 2, 200 + seed)
    preference = d.preference(d.outcomes.sum(1), uniform)
    scores = uniform_cost_scorer(d.eta, d.all_one)
    assert auc_of_scores(preference, scores) == pytest.approx(best_auc(preference), abs=1e-14)
    # It is the ratio, as a share.
    ratio = (1 - d.joint[:, 0, 0]) / (1 - d.joint[:, 1, 1])
    np.testing.assert_allclose(scores, ratio / (1 + ratio), atol=1e-14)


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_the_product_is_optimal(n_labels, seed):
    d = Distribution.random(6, n_labels, 300 + seed)
    preference = d.preference(d.outcomes.prod(1), uniform)
    scores = product_scorer(d.eta, d.all_one)
    assert auc_of_scores(preference, scores) == pytest.approx(best_auc(preference), abs=1e-14)


def test_uniform_costs_can_be_dominated():
    """Proposition 5.3, with the figures of four rows whose labels are independent given x."""
    eta = np.array([[0.6, 0.88], [0.5, 1.0], [0.0, 0.6], [0.12, 0.5]])
    joint = np.einsum("na,nb->nab", *(np.column_stack([1 - e, e]) for e in eta.T))
    d = Distribution(joint)
    preference = d.preference(d.outcomes.sum(1), uniform)
    scores = uniform_cost_scorer(eta)
    assert np.argsort(-scores).tolist() == [0, 1, 2, 3]
    assert auc_of_scores(preference, scores) == pytest.approx(best_auc(preference), abs=1e-14)
    labels = d.preferences_of_labels()
    found = [auc_of_scores(p, scores) for p in labels]
    other = [auc_of_scores(p, np.array([2.0, 3.0, 0.0, 1.0])) for p in labels]
    np.testing.assert_allclose(found, [0.7860, 0.7533], atol=5e-5)
    np.testing.assert_allclose(other, [0.7919, 0.7599], atol=5e-5)
    assert dominates(other, found)


def test_population_and_sample_auc_agree():
    """The brute force above measures what `multipartite_auc` measures of a sample with the same shares."""
    counts = np.random.default_rng(7).multinomial(20, [0.4, 0.3, 0.2, 0.1], size=5)
    d = Distribution((counts / 20).reshape(5, 2, 2))
    scores, grade = label_aggregated_scorer(d.eta), d.outcomes.sum(1)
    x = np.repeat(np.arange(5), 20)
    drawn = np.concatenate([np.repeat(grade, row) for row in counts])
    for cost in (difference, uniform):
        expected = auc_of_scores(d.preference(grade, cost), scores)
        assert multipartite_auc(scores[x], drawn, cost.__name__) == pytest.approx(expected, abs=1e-12)


def test_deterministic_labels():
    """Section 6: the larger inner weight dictates, the sum has no dictator, the product orders less."""
    eta = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float)
    assert np.argsort(loss_aggregated_scorer(eta, [0.5, 0.1])).tolist() == [0, 2, 1, 3]
    assert np.argsort(loss_aggregated_scorer(eta, [0.5, 0.1], [3.0, 1.0])).tolist() == [0, 1, 2, 3]
    added, multiplied = label_aggregated_scorer(eta), product_scorer(eta)
    assert added[1] == added[2]
    assert multiplied.tolist() == [0, 0, 0, 1]
    np.testing.assert_allclose(uniform_cost_scorer(eta), [0, 0.5, 0.5, 1])
    above = added[:, None] > added
    assert not ((multiplied[:, None] > multiplied) & ~above).any()


def test_anticorrelation_leaves_nothing_to_rank():
    """D.1: eta_1 + eta_2 = 1 + P(both) - P(neither), constant where one label is the other's complement."""
    first = np.array([0.1, 0.4, 0.9])
    np.testing.assert_allclose(label_aggregated_scorer(np.column_stack([first, 1 - first])), 1.0)
    d = Distribution.random(20, 2, 8)
    np.testing.assert_allclose(
        label_aggregated_scorer(d.eta), 1 + d.joint[:, 1, 1] - d.joint[:, 0, 0], atol=1e-14
    )
    np.testing.assert_allclose(
        uniform_cost_scorer(np.column_stack([first, 1 - first]), np.zeros(3)), 0.5, atol=1e-15
    )


def test_spread_is_half_the_mean_difference():
    rng = np.random.default_rng(9)
    Y = np.column_stack(
        [rng.random(200) < 0.3, rng.integers(5, size=200), rng.normal(size=200), np.ones(200)]
    )
    slow = np.abs(Y[:, None] - Y).mean((0, 1)) / 2
    np.testing.assert_allclose(label_spread(Y), slow, atol=1e-12)
    pi = Y[:, 0].mean()
    assert label_spread(Y)[0] == pytest.approx(pi * (1 - pi), abs=1e-14)
    assert label_spread(Y)[3] == 0
    np.testing.assert_allclose(label_spread(Y + 1000), slow, atol=1e-9)


def test_graded_labels_rank_by_conditional_means():
    """Difference costs and grades: sum_k a_k E[y_k | x] / spread_k maximises the sum of multipartite AUCs."""
    rng = np.random.default_rng(10)
    mass = rng.dirichlet(np.ones(6), 6)  # joint of a label in 0, 1, 2 and a binary one
    outcomes = np.array([[a, b] for a in range(3) for b in range(2)], float)
    d = Distribution(np.ones((6, 2)))
    d.mass, d.outcomes = mass, outcomes
    weights = np.array([0.7, 0.4])
    labels = [d.preference(column, difference) for column in outcomes.T]
    aggregated = sum(a * p / p.sum() for a, p in zip(weights, labels))
    # Half the mean difference of the marginal distribution.
    gaps = np.abs(outcomes[:, None] - outcomes)
    spread = np.array([mass.mean(0) @ gaps[:, :, k] @ mass.mean(0) / 2 for k in range(2)])
    scores = label_aggregated_scorer(mass @ outcomes, weights / spread)
    assert auc_of_scores(aggregated, scores) == pytest.approx(best_auc(aggregated), abs=1e-14)


def test_rows_do_not_depend_on_each_other():
    rng = np.random.default_rng(11)
    eta, w = rng.random((1000, 7)), rng.random(7)
    for score in (
        lambda e: loss_aggregated_scorer(e, np.linspace(0.1, 0.9, 7), w),
        lambda e: label_aggregated_scorer(e, w),
        product_scorer,
        lambda e: uniform_cost_scorer(e[:, :2]),
    ):
        whole, shuffled = score(eta), rng.permutation(1000)
        assert score(eta[shuffled]).tobytes() == whole[shuffled].tobytes()
        assert score(np.asfortranarray(eta)[:3]).tobytes() == whole[:3].tobytes()


def test_scaling_the_weights_scales_the_score():
    eta = np.random.default_rng(12).random((50, 3))
    w = np.array([1.0, 2.0, 0.5])
    np.testing.assert_allclose(label_aggregated_scorer(eta, 4 * w), 4 * label_aggregated_scorer(eta, w))
    np.testing.assert_allclose(inner_weights([0.2, 0.5, 0.7], 4 * w), 4 * inner_weights([0.2, 0.5, 0.7], w))
    np.testing.assert_allclose(inner_weights([0.2]), inner_weights([0.8]))


ETA = [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inner_weights([0.5, 1.0]), "constant label has no AUC.* got 1 for label 1"),
        (lambda: inner_weights([]), r"pi must have shape \(K,\) with K >= 1"),
        (lambda: inner_weights([0.5, np.nan]), "pi must lie strictly .* got nan for label 1"),
        (lambda: inner_weights([0.5], [1.0, 2.0]), "weights must have one entry an objective"),
        (lambda: inner_weights([0.5, 0.5], [0, 0]), "weights must not sum to 0"),
        (lambda: label_aggregated_scorer(ETA, [1, -1]), "weights must be finite and >= 0"),
        (lambda: label_aggregated_scorer([[-0.5, 0.5]]), "eta must be >= 0, got -0.5 at row 0, column 0"),
        (
            lambda: loss_aggregated_scorer([[0.5, 1.5]], [0.5, 0.5]),
            r"in \[0, 1\], got 1.5 at row 0, column 1",
        ),
        (lambda: loss_aggregated_scorer(ETA, [0.5]), "pi must have 2 entries, one a column of eta, got 1"),
        (lambda: loss_aggregated_scorer([0.5], [0.5]), r"eta must have shape \(n, K\)"),
        (lambda: product_scorer([[np.nan]]), "eta must be finite, got nan at row 0, column 0"),
        (lambda: product_scorer(ETA, [0.6]), r"both must lie in \[0, 0.5\].* got 0.6 at row 0"),
        (lambda: product_scorer(ETA, [[0.6]]), r"both must have shape \(1,\)"),
        (lambda: uniform_cost_scorer([[0.5]]), "two columns, got 1"),
        (lambda: uniform_cost_scorer([[0.9, 0.9]], [0.1]), r"in \[0.8, 0.9\].* got 0.1"),
        (lambda: label_spread(np.ones((3, 0))), r"Y must have shape \(n, K\)"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message):
        call()
