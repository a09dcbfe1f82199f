"""experiments/aggregation: its pieces do what they say, and the command writes its page."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import permutations
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from studies import EXPERIMENTS, study

from metarank.objectives import auc_gradients, per_label_auc

FOLDER = EXPERIMENTS / "aggregation"

with study("aggregation"):
    import bank_data
    import banking
    import bayes_curves
    import counterexample
    import enumeration
    import growth
    import perceptron
    from chapter import Settings


# --- banking -----------------------------------------------------------------


def test_resampling_meets_the_rate_and_keeps_sides_apart():
    Y = (np.random.default_rng(0).random((5000, 2)) < [0.55, 0.16]).astype(float)
    for rate in bank_data.RATES:
        rows = bank_data.resample(Y, rate, 0, 3)
        assert not set(rows.train) & set(rows.test)
        for part, size in ((rows.train, 4000), (rows.test, 1000)):
            assert len(set(part)) == len(part) <= size
            assert Y[part, 0].mean() == pytest.approx(rate, abs=2 / len(part))
        again = bank_data.resample(Y, rate, 0, 3)
        assert (again.train == rows.train).all()
        assert not np.array_equal(bank_data.resample(Y, rate, 0, 4).train, rows.train)


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
    assert banking.parts_of(banking.LOSS, Y)[0][0] == 0.5


# --- theory ------------------------------------------------------------------


def test_expected_auc_is_that_of_many_draws():
    x = bayes_curves.grid(40)
    eta = bayes_curves.eta_of(x, 5.0, 0.4)
    scores = np.round(eta.sum(axis=1), 2)
    rng = np.random.default_rng(3)
    rows = rng.integers(len(x), size=400_000)
    y = rng.random(400_000) < eta[rows, 1]
    assert bayes_curves.expected_auc(scores, eta[:, 1]) == pytest.approx(
        roc_auc_score(y, scores[rows]), abs=0.003
    )
    assert bayes_curves.expected_auc(np.zeros(len(x)), eta[:, 0]) == pytest.approx(0.5)


def test_enumeration_tries_all_scorers_and_counts_as_the_library_does():
    sample = enumeration.draw(np.random.default_rng(4))
    m = len(sample.disagreeing)
    assert len(sample.hypotheses) == len({tuple(row) for row in sample.hypotheses.tolist()}) == 4**m
    both, none = sample.labels.all(axis=1), ~sample.labels.any(axis=1)
    assert (sample.hypotheses[:, both] == 3).all()
    assert (sample.hypotheses[:, none] == 0).all()
    grade = sample.labels.sum(axis=1)
    for cost in ("uniform", "difference"):
        won = sample.label_aggregated("sum", cost)
        total = np.maximum(grade[:, None] - grade, 0) if cost == "difference" else grade[:, None] > grade
        for i in range(0, len(won), 17):
            area = per_label_auc(sample.hypotheses[i].astype(float), grade, cost)
            assert won[i] / 2 / total.sum() == pytest.approx(area)
    a = enumeration.equal_weights(sample)
    assert enumeration.kind_of(sample, a) == "equal"
    assert enumeration.kind_of(sample, (a[0] + 1, a[1])) == "first dictates"


def test_all_claims_of_the_enumeration_and_of_the_counterexample_hold(tmp_path):
    for made in (
        enumeration.chapter(Settings(tmp_path, quick=True)),
        counterexample.chapter(Settings(tmp_path)),
    ):
        assert made.claims
        assert all(holds for _, holds in made.claims), made.claims


def test_sums_and_shortfall_by_force():
    rng = np.random.default_rng(5)
    eta = rng.random((5, 3))
    outcomes = np.array(list(np.ndindex(2, 2, 2)))
    chance = np.where(outcomes, eta[:, None], 1 - eta[:, None]).prod(axis=2)
    slow = np.array([[row[outcomes.sum(1) == s].sum() for s in range(4)] for row in chance])
    np.testing.assert_allclose(growth.sums(eta), slow)
    won = growth.greater(slow)
    np.testing.assert_allclose(won[1, 2], sum(slow[1, a] * slow[2, b] for a in range(4) for b in range(a)))
    stake = (won + won.T)[np.triu_indices(5, 1)].sum()
    attained = [
        sum(won[order[i], order[j]] for i in range(5) for j in range(i)) / stake
        for order in permutations(range(5))
    ]
    # The bound is not below what the best order attains.
    for order in permutations(range(5)):
        scores = np.argsort(order).astype(float)
        assert growth.shortfall(eta, scores) >= -1e-12
    best = max(range(len(attained)), key=attained.__getitem__)
    order = list(permutations(range(5)))[best]
    bound = attained[best] + growth.shortfall(eta, np.argsort(order).astype(float))
    assert bound == pytest.approx(np.maximum(won, won.T)[np.triu_indices(5, 1)].sum() / stake)
    adverse = growth.adverse(50, 64, rng)
    assert adverse.min() >= 0.1 - 1e-9
    assert adverse.max() <= 0.9 + 1e-9
    assert np.abs(adverse.sum(axis=1) - 32).max() <= 0.05 + 1e-9


# --- training ----------------------------------------------------------------


def test_perceptron_gradients_are_those_of_differences():
    rng = np.random.default_rng(6)
    scores, target = rng.normal(size=12), rng.integers(3, size=12).astype(float)

    def loss(s):
        cost = np.maximum(target[:, None] - target, 0)
        return (cost * np.logaddexp(0, s - s[:, None])).sum() / cost.sum()

    slope = perceptron.pairwise_gradient(scores, target)
    eps = 1e-6
    slow = [(loss(scores + eps * e) - loss(scores - eps * e)) / (2 * eps) for e in np.eye(12)]
    np.testing.assert_allclose(slope, slow, atol=1e-8)
    assert not perceptron.pairwise_gradient(scores, np.ones(12)).any()

    model = perceptron.Perceptron(2, 5, 0)
    model.weights = [w.astype(np.float64) for w in model.weights]
    X = rng.normal(size=(12, 2))
    found = model._backward(X, lambda s, rows: perceptron.pairwise_gradient(s, target), np.arange(12))
    for w, g in zip(model.weights[:-1], found):
        w.flat[0] += 1e-3
        above = loss(model._forward(X)[-1][:, 0])
        w.flat[0] -= 2e-3
        below = loss(model._forward(X)[-1][:, 0])
        w.flat[0] += 1e-3
        assert g.flat[0] == pytest.approx((above - below) / 2e-3, abs=1e-4)


# --- the command -------------------------------------------------------------


def test_the_command_writes_page_and_figures(tmp_path):
    environment = os.environ | {"METARANK_DATA": str(tmp_path / "nothing")}
    command = [sys.executable, str(FOLDER / "run.py"), "--quick", "--out", str(tmp_path / "page.md")]
    command += ["--cache", str(tmp_path / "cache"), "--only", "banking,bayes_curves,counterexample,growth"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.md").read_text()
    assert "## Banking: Table 3 and Figure 3\n\nLeft out: `" in page
    assert "bank_marketing/bank-full.csv` is not in the data folder" in page
    assert "0 > 1 > 2 > 3: AUCs 0.7860 and 0.7533: **holds**" in page
    assert "seed 0, quick: proves nothing" in page
    for name in ("bayes_diff.svg", "bayes_auc.svg", "growth.svg"):
        assert ElementTree.parse(tmp_path / name).getroot().tag.endswith("svg")
        assert name in page
    wrong = subprocess.run([*command[:-1], "nonsense"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "nonsense" in wrong.stderr
