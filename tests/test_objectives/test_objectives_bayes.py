"""Bayes-optimal scorers against brute force over all orders of small distributions."""

from itertools import permutations, product

import numpy as np
import pytest

from metarank.objectives import (
    inner_weights,
    label_aggregated_scorer,
    loss_aggregated_scorer,
    non_dominated,
    per_label_auc,
    product_scorer,
    uniform_cost_scorer,
)


class Distribution:
    """n points x of equal mass with a joint distribution of K labels each, binary ones by default."""

    def __init__(self, n, n_labels, seed, grades=((0, 1), (0, 1), (0, 1))):
        self.outcomes = np.array(list(product(*grades[:n_labels])), float)
        self.mass = np.random.default_rng(seed).dirichlet(np.full(len(self.outcomes), 0.5), n)
        self.eta = self.mass @ self.outcomes
        self.weights = np.random.default_rng(seed).random(n_labels) + 0.1
        self.orders = np.array(list(permutations(range(n))), float)

    def preference(self, grade, cost):
        """(n, n): cost-weighted probability that the first point's grade is the greater one."""
        c = np.array([[cost(a, b) if a > b else 0.0 for b in grade] for a in grade])
        return self.mass @ c @ self.mass.T

    def of_labels(self):
        return [self.preference(column, difference) for column in self.outcomes.T]

    def is_best(self, preference, scores):
        best = max(auc_of_scores(preference, order) for order in self.orders)
        return auc_of_scores(preference, scores) == pytest.approx(best, abs=1e-14)


def auc_of_scores(preference, scores):
    """Population AUC, from scores; ties count one half."""
    right = (scores[:, None] > scores) + (scores[:, None] == scores) / 2
    return (preference * right).sum() / preference.sum()


def difference(a, b):
    return a - b


def uniform(a, b):
    return 1.0


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_sums_are_optimal_and_not_dominated(n_labels, seed):
    d = Distribution(6, n_labels, seed)
    labels = d.of_labels()
    of_losses = sum(a * p / p.sum() for a, p in zip(d.weights, labels))
    of_labels = d.preference(d.outcomes @ d.weights, difference)
    for preference, scores in (
        (of_losses, loss_aggregated_scorer(d.eta, d.eta.mean(0), d.weights)),
        (of_labels, label_aggregated_scorer(d.eta, d.weights)),
    ):
        assert d.is_best(preference, scores)
        # Proposition 5.1: nothing dominates it.
        mine = [auc_of_scores(p, scores) for p in labels]
        others = [[auc_of_scores(p, order) for p in labels] for order in d.orders]
        assert non_dominated([mine, *others], 1e-12)[0]


@pytest.mark.parametrize("seed", range(5))
def test_uniform_costs_of_two_labels_and_the_product_are_optimal(seed):
    d = Distribution(6, 2, 200 + seed)
    both = d.mass[:, -1]
    assert d.is_best(d.preference(d.outcomes.sum(1), uniform), uniform_cost_scorer(d.eta, both))
    assert d.is_best(d.preference(d.outcomes.prod(1), uniform), product_scorer(d.eta, both))


def test_graded_labels_rank_by_conditional_means():
    """Difference costs and grades: sum_k a_k E[y_k | x] / spread_k maximises the sum of multipartite AUCs."""
    d = Distribution(6, 2, 10, grades=((0, 1, 2), (0, 1)))
    aggregated = sum(a * p / p.sum() for a, p in zip(d.weights, d.of_labels()))
    # Half the mean difference of the marginal distribution.
    gaps = np.abs(d.outcomes[:, None] - d.outcomes)
    spread = np.array([d.mass.mean(0) @ gaps[:, :, k] @ d.mass.mean(0) / 2 for k in range(2)])
    assert d.is_best(aggregated, d.eta @ (d.weights / spread))


def test_population_and_sample_auc_agree():
    """The brute force above measures what `per_label_auc` measures of a sample with the same shares."""
    d = Distribution(5, 2, 7)
    counts = np.random.default_rng(7).multinomial(20, [0.4, 0.3, 0.2, 0.1], size=5)
    d.mass, grade = counts / 20, d.outcomes.sum(1)
    scores, drawn = d.eta.sum(1), np.concatenate([np.repeat(grade, row) for row in counts])
    for cost in (difference, uniform):
        expected = auc_of_scores(d.preference(grade, cost), scores)
        assert per_label_auc(np.repeat(scores, 20), drawn, cost.__name__) == pytest.approx(expected)


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


ETA = [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inner_weights([0.5, 1.0]), "constant label has no AUC.* got 1 for label 1"),
        (lambda: inner_weights([]), r"pi must have shape \(K,\) with K >= 1"),
        (lambda: inner_weights([0.5, np.nan]), "pi must lie strictly .* got nan for label 1"),
        (lambda: inner_weights([0.5], [1.0, 2.0]), "weights must have 1 entries, got 2"),
        (lambda: inner_weights([0.5, 0.5], [0, 0]), "weights must be >= 0 and not sum to 0"),
        (lambda: label_aggregated_scorer(ETA, [1, -1]), "weights must be >= 0"),
        (lambda: label_aggregated_scorer([[-0.5, 0.5]]), "eta must be >= 0, got -0.5 at row 0, column 0"),
        (
            lambda: loss_aggregated_scorer([[0.5, 1.5]], [0.5, 0.5]),
            r"in \[0, 1\], got 1.5 at row 0, column 1",
        ),
        (lambda: loss_aggregated_scorer(ETA, [0.5]), "pi must have 2 entries, one per column of eta, got 1"),
        (lambda: loss_aggregated_scorer([0.5], [0.5]), r"eta must be a matrix \(n, K\)"),
        (lambda: product_scorer([[np.nan]]), r"eta must be finite, got nan at position \[0, 0\]"),
        (lambda: product_scorer(ETA, [0.6]), r"both must lie in \[0, 0.5\].* got 0.6 at row 0"),
        (lambda: product_scorer(ETA, [[0.6]]), r"both must have shape \(1,\)"),
        (lambda: uniform_cost_scorer([[0.5]]), "two columns, got 1"),
        (lambda: uniform_cost_scorer([[0.9, 0.9]], [0.1]), r"in \[0.8, 0.9\].* got 0.1"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message):
        call()
