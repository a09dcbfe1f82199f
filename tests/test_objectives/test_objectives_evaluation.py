"""Multipartite AUC against all pairs; AUC per label, Diff, Min, dominance; bad input."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from metarank.objectives import check_groups, diff_auc, dominates, min_auc, multipartite_auc, per_label_auc
from metarank.objectives.pair_terms import pair_terms
from metarank.objectives.pairwise import AucPairs


def slow_auc(scores, target, cost):
    """Definition 2.3, pair by pair."""
    won = whole = 0.0
    for i, y in enumerate(target):
        for j, other in enumerate(target):
            if y > other:
                c = cost(y, other)
                won += c * ((scores[i] > scores[j]) + (scores[i] == scores[j]) / 2)
                whole += c
    return won / whole


def slow_terms(scores, grades, cost, group):
    won, total = np.zeros(len(grades)), np.zeros(len(grades))
    for i in range(len(grades)):
        for j in range(len(grades)):
            if grades[i] > grades[j] and group[i] == group[j]:
                c = grades[i] - grades[j] if cost == "difference" else 1.0
                right = (scores[i] > scores[j]) + (scores[i] == scores[j]) / 2
                won[[i, j]] += c * right
                total[[i, j]] += c
    return won, total


COSTS = {"difference": lambda a, b: a - b, "uniform": lambda a, b: 1.0}


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6), n=st.integers(2, 40), n_grades=st.integers(2, 9), n_scores=st.integers(1, 12)
)
@pytest.mark.parametrize("cost", list(COSTS))
def test_equals_all_pairs(cost, seed, n, n_grades, n_scores):
    rng = np.random.default_rng(seed)
    target, scores = rng.integers(n_grades, size=n) * 0.5, rng.integers(n_scores, size=n) - 3.0
    if target.min() == target.max():
        target[0] += 1
    expected = slow_auc(scores, target, COSTS[cost])
    assert multipartite_auc(scores, target, cost) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("cost", list(COSTS))
@pytest.mark.parametrize("grouped", [False, True])
def test_terms_of_each_row_equal_all_pairs(cost, grouped):
    rng = np.random.default_rng(4)
    grades, scores = rng.normal(size=60).round(1), rng.integers(8, size=60).astype(float)
    group = rng.integers(5, size=60) if grouped else np.zeros(60, int)
    won, total = slow_terms(scores, grades, cost, group)
    terms = pair_terms(scores, grades, cost, group if grouped else None)
    np.testing.assert_allclose(terms.won, won, atol=1e-12)
    np.testing.assert_allclose(terms.cost, total, atol=1e-12)


def test_two_grades_are_the_plain_auc():
    rng = np.random.default_rng(0)
    y, s = rng.random(5000) < 0.2, rng.normal(size=5000).round(1)
    for cost in COSTS:
        assert multipartite_auc(s, y, cost) == pytest.approx(roc_auc_score(y, s), abs=1e-12)
        assert multipartite_auc(s, 7.0 * y, cost) == pytest.approx(roc_auc_score(y, s), abs=1e-12)


def test_cost_matrix():
    rng = np.random.default_rng(1)
    target, scores = rng.integers(4, size=50), rng.integers(9, size=50).astype(float)
    cost = rng.random((6, 6))  # more grades than the target holds
    expected = slow_auc(scores, target, lambda a, b: cost[a, b])
    assert multipartite_auc(scores, target, cost) == pytest.approx(expected, abs=1e-12)
    grades = np.arange(6)
    for name, matrix in (("uniform", np.ones((6, 6))), ("difference", grades[:, None] - grades)):
        assert multipartite_auc(scores, target, np.tril(matrix)) == pytest.approx(
            multipartite_auc(scores, target, name), abs=1e-12
        )


@pytest.mark.parametrize("cost", list(COSTS))
def test_agrees_with_the_compiled_surrogates(cost):
    rng = np.random.default_rng(6)
    target, scores = rng.gamma(2.0, size=2000).round(1), rng.integers(300, size=2000).astype(float)
    area = AucPairs(target, check_groups(2000), cost=cost).area(scores)
    assert area == pytest.approx(multipartite_auc(scores, target, cost), abs=1e-12)


def test_the_order_of_rows_does_not_show():
    rng = np.random.default_rng(2)
    target, scores = rng.gamma(2.0, size=3000), rng.normal(size=3000).round(2)
    shuffled = rng.permutation(3000)
    for cost in COSTS:
        assert multipartite_auc(scores, target, cost) == multipartite_auc(
            scores[shuffled], target[shuffled], cost
        )


def test_infinite_scores_and_far_grades():
    assert multipartite_auc([np.inf, 0.0, -np.inf], [1, 0, 0]) == 1.0
    assert multipartite_auc([1.0, 0.0], [1e6 + 1, 1e6]) == 1.0
    assert multipartite_auc([0.0, 1.0, 1.0], [-1, 0, 0]) == 1.0


def test_a_million_rows():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=10**6)
    target = (scores + rng.normal(size=10**6)).round(1)
    assert 0.7 < multipartite_auc(scores, target) < 0.9


def test_each_label_diff_and_min():
    rng = np.random.default_rng(5)
    Y, s = (rng.random((300, 3)) < [0.1, 0.5, 0.8]).astype(int), rng.normal(size=300)
    areas = [roc_auc_score(Y[:, k], s) for k in range(3)]
    np.testing.assert_allclose(per_label_auc(s, Y), areas)
    assert diff_auc(s, Y) == pytest.approx(max(areas) - min(areas))
    assert min_auc(s, Y) == pytest.approx(min(areas))
    # The labels are judged by the cost of their own pairs, and each apart from the others.
    graded = np.column_stack([Y[:, 0] * 3, Y[:, 1] + Y[:, 2]])
    expected = [roc_auc_score(Y[:, 0], s), multipartite_auc(s, graded[:, 1], "uniform")]
    np.testing.assert_allclose(per_label_auc(s, graded, "uniform"), expected)


def test_dominance():
    assert dominates([0.7919, 0.7599], [0.7860, 0.7533])
    assert not dominates([0.5, 0.5], [0.5, 0.5])
    assert not dominates([0.6, 0.4], [0.5, 0.5])
    assert not dominates([0.6, 0.5], [0.5, 0.5], tolerance=0.2)
    assert dominates([0.9, 0.49], [0.5, 0.5], tolerance=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: multipartite_auc([1.0, 2.0], [1, 1]), "target has one value in all rows: no AUC"),
        (lambda: multipartite_auc([1.0, np.nan], [0, 1]), "scores must not be NaN, got NaN at row 1"),
        (lambda: multipartite_auc([1.0], [0, 1]), r"scores must have shape \(2,\).* got \(1,\)"),
        (lambda: multipartite_auc([], []), r"target must have shape \(n,\) with n >= 1"),
        (lambda: multipartite_auc([1.0, 2.0], [0, np.inf]), "target must be finite, got inf at row 1"),
        (lambda: multipartite_auc([1.0, 2.0], [0, 1], "square"), "cost must be .* got 'square'"),
        (
            lambda: multipartite_auc([1.0, 2.0], [0, 1], np.ones(2)),
            r"shape \(G, G\) with G >= 2, got shape \(2,\)",
        ),
        (lambda: multipartite_auc([1.0, 2.0], [0, 2], np.ones((2, 2))), "integers from 0 to 1 .* got 2"),
        (lambda: multipartite_auc([1.0, 2.0], [0, 1], -np.ones((2, 2))), "finite and >= 0"),
        (lambda: multipartite_auc([1.0, 2.0], [0, 1], np.zeros((2, 2))), "above 0 for a pair of grades"),
        (
            lambda: per_label_auc([1.0, 2.0], [[0, 1], [1, 1]]),
            "'objective_1' has one value in all rows",
        ),
        (lambda: per_label_auc([1.0, 2.0], [[0, -1], [1, 1]]), "Y must be finite and >= 0.* -1 at row 0"),
        (lambda: per_label_auc([], np.ones((0, 2))), "Y must have at least one row"),
        (lambda: min_auc([1.0, 2.0], np.ones((2, 0))), r"at least one objective \(K >= 1\)"),
        (lambda: dominates([1.0], [1.0, 2.0]), "same shape"),
        (lambda: dominates([1.0], [np.nan]), "NaN"),
        (lambda: dominates([1.0], [2.0], tolerance=-1), "tolerance must be >= 0, got -1"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_table_names_its_labels():
    Y = pd.DataFrame({"relevance": [1, 0, 1], "clicks": [1, 1, 1]})
    with pytest.raises(ValueError, match="label 'clicks' has one value"):
        per_label_auc([1.0, 2.0, 3.0], Y)
