"""Multipartite AUC against all pairs; AUC per label; bad input."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from metarank.objectives import check_groups, label_spread, per_label_auc


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
    assert per_label_auc(scores, target, cost) == pytest.approx([expected], abs=1e-12)


@pytest.mark.parametrize("sizes", [None, [7, 1, 32]])
def test_distances_within_groups_equal_all_pairs(sizes):
    values, grouping = np.random.default_rng(4).normal(size=40).round(1), check_groups(40, sizes)
    alike = grouping.group_of_row[:, None] == grouping.group_of_row
    expected = (np.abs(values[:, None] - values) * alike).sum(axis=1)
    np.testing.assert_allclose(grouping.distances(values), expected, atol=1e-12)
    assert not grouping.distances(np.full(40, 0.1)).any()


def test_two_grades_are_the_plain_auc():
    rng = np.random.default_rng(0)
    y, s = rng.random(5000) < 0.2, rng.normal(size=5000).round(1)
    for cost in COSTS:
        assert per_label_auc(s, y, cost) == pytest.approx([roc_auc_score(y, s)], abs=1e-12)
        assert per_label_auc(s, 7.0 * y, cost) == pytest.approx([roc_auc_score(y, s)], abs=1e-12)


def test_the_order_of_rows_does_not_show():
    rng = np.random.default_rng(2)
    target, scores = rng.gamma(2.0, size=3000), rng.normal(size=3000).round(2)
    shuffled = rng.permutation(3000)
    for cost in COSTS:
        assert per_label_auc(scores, target, cost) == per_label_auc(scores[shuffled], target[shuffled], cost)


def test_infinite_scores_and_far_grades():
    assert per_label_auc([np.inf, 0.0, -np.inf], [1, 0, 0]) == 1.0
    assert per_label_auc([1.0, 0.0], [1e6 + 1, 1e6]) == 1.0


def test_each_label():
    rng = np.random.default_rng(5)
    Y, s = (rng.random((300, 3)) < [0.1, 0.5, 0.8]).astype(int), rng.normal(size=300)
    areas = [roc_auc_score(Y[:, k], s) for k in range(3)]
    np.testing.assert_allclose(per_label_auc(s, Y), areas)
    # The labels are judged by the cost of their own pairs, and each apart from the others.
    graded = np.column_stack([Y[:, 0] * 3, Y[:, 1] + Y[:, 2]])
    expected = [roc_auc_score(Y[:, 0], s), *per_label_auc(s, graded[:, 1], "uniform")]
    np.testing.assert_allclose(per_label_auc(s, graded, "uniform"), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: per_label_auc([1.0, 2.0], [1, 1]), "Y is constant, 1 everywhere: no AUC"),
        (lambda: per_label_auc([1.0, np.nan], [0, 1]), r"scores must be 2 numbers.* got \[1.0, nan\]"),
        (lambda: per_label_auc([1.0], [0, 1]), "scores must be 2 numbers"),
        (lambda: per_label_auc([], []), "Y is constant: no AUC exists"),
        (lambda: per_label_auc([1.0, 2.0], [0, np.inf]), "contains infinity .inf. at row 1"),
        (lambda: per_label_auc([1.0, 2.0], [0, 1], "square"), "cost must be .* got 'square'"),
        (
            lambda: per_label_auc([1.0, 2.0], [[0, 1], [1, 1]]),
            "label 'objective_1' of Y is constant, 1 everywhere",
        ),
        (lambda: per_label_auc([1.0, 2.0], [[0, -1], [1, 1]]), "Y must be finite and >= 0.* -1 at row 0"),
        (lambda: per_label_auc([], np.ones((0, 2))), "label 'objective_0' of Y is constant"),
        (lambda: per_label_auc([1.0, 2.0], np.ones((2, 0))), r"at least one objective \(K >= 1\)"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_table_names_its_labels():
    Y = pd.DataFrame({"relevance": [1, 0, 1], "clicks": [1, 1, 1]})
    with pytest.raises(ValueError, match="label 'clicks' of Y is constant"):
        per_label_auc([1.0, 2.0, 3.0], Y)


def test_spread_is_half_the_mean_difference():
    rng = np.random.default_rng(9)
    Y = np.column_stack(
        [rng.random(200) < 0.3, rng.integers(5, size=200), rng.gamma(1, size=200), np.ones(200)]
    )
    slow = np.abs(Y[:, None] - Y).mean((0, 1)) / 2
    np.testing.assert_allclose(label_spread(Y), slow, atol=1e-12)
    pi = Y[:, 0].mean()
    assert label_spread(Y)[0] == pytest.approx(pi * (1 - pi), abs=1e-14)
    assert label_spread(Y)[3] == 0
    np.testing.assert_allclose(label_spread(Y + 1000), slow, atol=1e-9)
