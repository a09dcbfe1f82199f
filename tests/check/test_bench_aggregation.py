"""experiments/bench, aggregation: against hand-worked cases and slow obvious twins; the page's verdicts."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from studies import study

from metarank.objectives import auc_gradients, per_label_auc

with study("bench"):
    from declared import Lines
    from studies import aggregation
    from systems.aggregation import banking, enumeration, perceptron, theory

LABEL, LOSS = banking.LABEL, banking.LOSS


def test_resampling_meets_the_rate_and_keeps_sides_apart():
    Y = (np.random.default_rng(0).random((5000, 2)) < [0.55, 0.16]).astype(float)
    for rate in banking.RATES:
        train, test = banking.resample(Y, rate, 0, 3)
        assert not set(train) & set(test)
        for part, size in ((train, 4000), (test, 1000)):
            assert len(set(part)) == len(part) <= size
            assert Y[part, 0].mean() == pytest.approx(rate, abs=2 / len(part))


def test_the_linear_model_minimises_its_objective():
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(400, 2)), (rng.random((400, 2)) < 0.4).astype(float)
    Y[:, 0] = X[:, 0] + rng.normal(size=400) > 0
    for objective in banking.OBJECTIVES:
        parts = banking.parts_of(objective, Y)

        def loss(w, parts=parts):
            return sum(a * auc_gradients(X @ w, target)[0] for a, target in parts)

        w = banking.fit_linear(X, parts)
        assert all(loss(w) <= loss(w + step) + 1e-9 for step in 0.05 * rng.normal(size=(20, 2)))
    assert [weight for weight, _ in banking.parts_of(LOSS, Y)] == [0.5, 0.5]


def test_expected_auc_is_that_of_many_draws():
    x = theory.grid(40)
    eta = theory.eta_of(x, 5.0, 0.4)
    scores = np.round(eta.sum(axis=1), 2)
    rng = np.random.default_rng(3)
    rows = rng.integers(len(x), size=400_000)
    y = rng.random(400_000) < eta[rows, 1]
    assert theory.expected_auc(scores, eta[:, 1]) == pytest.approx(roc_auc_score(y, scores[rows]), abs=0.003)
    assert theory.expected_auc(np.zeros(len(x)), eta[:, 0]) == pytest.approx(0.5)


def test_enumeration_tries_all_scorers_and_counts_as_the_library_does():
    sample = enumeration.draw(np.random.default_rng(4))
    m = len(sample.disagreeing)
    assert len(sample.hypotheses) == len({tuple(row) for row in sample.hypotheses.tolist()}) == 4**m
    assert (sample.hypotheses[:, sample.labels.all(axis=1)] == 3).all()
    assert (sample.hypotheses[:, ~sample.labels.any(axis=1)] == 0).all()
    grade = sample.labels.sum(axis=1)
    for cost in ("uniform", "difference"):
        won = sample.twice_won(grade, cost)
        total = np.maximum(grade[:, None] - grade, 0) if cost == "difference" else grade[:, None] > grade
        for i in range(0, len(won), 17):
            area = per_label_auc(sample.hypotheses[i].astype(float), grade, cost)
            assert won[i] / 2 / total.sum() == pytest.approx(area)
    a = sample.equal_weights()
    assert sample.kind_of(a) == "equal"
    assert sample.kind_of((a[0] + 1, a[1])) == "first dictates"


def test_the_counterexample_by_hand():
    uniform, difference = theory.counterexample()
    assert uniform["orders"] == 75
    assert uniform["best"] == [uniform["formula"]] == ["0 > 1 > 2 > 3"]
    assert uniform["AUC"] == pytest.approx([0.7860, 0.7533], abs=5e-5)
    assert difference["AUC"] == pytest.approx([0.7919, 0.7599], abs=5e-5)
    assert "1 > 0 > 3 > 2" in uniform["dominated by"]
    assert not difference["dominated by"]


def test_sums_and_shortfall_by_force():
    rng = np.random.default_rng(5)
    eta = rng.random((5, 3))
    outcomes = np.array(list(np.ndindex(2, 2, 2)))
    chance = np.where(outcomes, eta[:, None], 1 - eta[:, None]).prod(axis=2)
    slow = np.array([[row[outcomes.sum(1) == s].sum() for s in range(4)] for row in chance])
    np.testing.assert_allclose(theory.sums(eta), slow)
    won = np.array([[sum(p[a] * q[:a].sum() for a in range(4)) for q in slow] for p in slow])
    stake = (won + won.T)[np.triu_indices(5, 1)].sum()
    bound = np.maximum(won, won.T)[np.triu_indices(5, 1)].sum() / stake
    for order in permutations(range(5)):
        attained = sum(won[order[i], order[j]] for i in range(5) for j in range(i)) / stake
        scores = np.argsort(order).astype(float)
        assert theory.shortfall(eta, scores) == pytest.approx(bound - attained)
    adverse = theory.adverse(50, 64, rng)
    assert 0.1 - 1e-9 <= adverse.min() <= adverse.max() <= 0.9 + 1e-9
    assert np.abs(adverse.sum(axis=1) - 32).max() <= 0.05 + 1e-9


def test_perceptron_gradients_are_those_of_differences():
    rng = np.random.default_rng(6)
    scores, Y = rng.normal(size=12), rng.integers(2, size=(12, 2)).astype(float)

    def loss(s, targets):
        costs = [np.maximum(t[:, None] - t, 0) for t in targets.T]
        return np.mean([(c * np.logaddexp(0, s - s[:, None])).sum() / c.sum() for c in costs])

    for objective in perceptron.SEEDS:
        targets = perceptron.targets_of(objective, Y)
        slope = perceptron.pairwise_gradient(scores, targets)
        slow = [(loss(scores + e, targets) - loss(scores - e, targets)) / 2e-6 for e in 1e-6 * np.eye(12)]
        np.testing.assert_allclose(slope, slow, atol=1e-8)
    assert not perceptron.pairwise_gradient(scores, np.ones((12, 1))).any()

    model = perceptron.Perceptron(2, 5, 0, np.float64)
    X, found = rng.normal(size=(12, 2)), np.zeros_like(model.flat)
    model.backward(X, lambda s, rows: perceptron.pairwise_gradient(s, Y), np.arange(12), found)
    for i in range(0, len(found), 3):
        model.flat[i] += 1e-5
        above = loss(model.predict(X), Y)
        model.flat[i] -= 2e-5
        assert found[i] == pytest.approx((above - loss(model.predict(X), Y)) / 2e-5, abs=1e-6)
        model.flat[i] += 1e-5


def test_verdicts_are_those_of_intervals():
    rng = np.random.default_rng(7)
    less = rng.normal(-1, 0.1, 10)
    assert aggregation.verdict(less) == aggregation.REPRODUCED
    assert aggregation.verdict(-less) == aggregation.REFUTED
    assert aggregation.verdict(less - less.mean()) == aggregation.UNDECIDED
    low, high = aggregation.interval(np.array([1.0, 2.0, 3.0]))
    assert (low, high) == pytest.approx((2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5), abs=1e-4)


def test_the_page_is_that_of_its_lines(tmp_path):
    """Of the theory, and of a perceptron whose gaps are known; the others say that they did not run."""
    figures, arrays = theory.System({"random_state": 0}, 1).experiment(tmp_path)
    np.savez(tmp_path / "theory.npz", **arrays)
    lines = [{"system": "formulas", "answers": "theory.npz", **figures}]
    rng = np.random.default_rng(8)
    for name in aggregation.TRAINED:
        areas = {key: rng.uniform(0.4, 0.6, (seeds, 2)) for key, seeds in perceptron.SEEDS.items()}
        areas[LABEL], areas[LOSS] = areas[LABEL] + [0.0, 1.0], areas[LOSS] + [0.0, 2.0]
        np.savez(tmp_path / f"{name}.npz", **areas)
        lines.append({"system": name, "answers": f"{name}.npz"})
    page = aggregation.page(Lines(lines, {}, tmp_path))
    claims = [line for line in page.splitlines() if line.startswith("| Table 6: label aggregation has")]
    assert len(claims) == 4
    assert all(line.endswith("| **reproduced** |") for line in claims)
    assert "| of 18 skews, by slope: 0 at 5, " in page
    assert "four rows: 0 > 1 > 2 > 3, by 0 = 1 > 2 = 3; 1 > 0 > 3 > 2 | **reproduced** |" in page
    assert "Table 3: not run" in page
