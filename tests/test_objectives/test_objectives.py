"""Objectives: aggregated labels and gradients against slow twins, LightGBM parity, laws, bad input."""

from itertools import combinations

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from makers import same_bytes

from metarank import _core
from metarank.objectives import (
    Aggregation,
    aggregate_labels,
    auc_gradients,
    check_groups,
    check_targets,
    check_weights,
    ndcg_gradients,
)
from metarank.objectives.ndcg import NdcgLists
from metarank.objectives.pairwise import AucPairs

# --- AUC surrogates ----------------------------------------------------------

TARGETS = {
    "binary": lambda rng, n: (rng.random(n) < 0.3).astype(float),
    "rare": lambda rng, n: (np.arange(n) < 3).astype(float),
    "graded": lambda rng, n: rng.integers(0, 5, n) * 1.5,
    "continuous": lambda rng, n: rng.random(n),
    "far from zero": lambda rng, n: 1e6 + rng.integers(0, 3, n),
}


def slow_auc(scores, target, surrogate, cost, groups=None):
    """All pairs, spelled out."""
    if groups is not None:
        parts = [np.flatnonzero(groups == g) for g in np.unique(groups)]
        parts = [rows for rows in parts if np.ptp(target[rows]) > 0]
        loss, gradient, hessian = 0.0, np.zeros(len(scores)), np.zeros(len(scores))
        for rows in parts:
            part = slow_auc(scores[rows], target[rows], surrogate, cost)
            loss += part[0] / len(parts)
            gradient[rows] = part[1] / len(parts)
            hessian[rows] = part[2] / len(parts)
        return loss, gradient, hessian
    better = target[:, None] > target
    weight = np.where(better, target[:, None] - target if cost == "difference" else 1.0, 0.0)
    weight /= weight.sum()
    z = scores[:, None] - scores
    if surrogate == "logistic":
        e = np.exp(-np.abs(z))
        value = np.maximum(-z, 0) + np.log1p(e)
        slope = np.where(z >= 0, e, 1) / (1 + e)
        bend = e / (1 + e) ** 2
    else:
        value, slope, bend = np.maximum(0, 1 - z), (z < 1).astype(float), np.ones_like(z)
    slope, bend = weight * slope, weight * bend
    return (weight * value).sum(), slope.sum(0) - slope.sum(1), bend.sum(0) + bend.sum(1)


def assert_close_to_pairs(scores, target, surrogate, cost, rtol, groups=None):
    expected = slow_auc(scores, target, surrogate, cost, groups)
    loss, gradient, hessian = auc_gradients(
        scores, target, surrogate=surrogate, cost=cost, qid=groups, n_jobs=1
    )
    assert loss == pytest.approx(expected[0], rel=rtol)
    # A gradient is a difference of two sums, so its error is measured against their size.
    np.testing.assert_allclose(gradient, expected[1], rtol=rtol, atol=rtol * np.abs(expected[1]).mean())
    np.testing.assert_allclose(hessian, expected[2], rtol=rtol, atol=1e-300)
    return gradient


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cost", ["difference", "uniform"])
@pytest.mark.parametrize("surrogate", ["logistic", "hinge"])
@pytest.mark.parametrize("n", [2, 70, 250])
def test_few_rows_are_taken_pair_by_pair(target, cost, surrogate, n):
    rng = np.random.default_rng(n)
    y = TARGETS[target](rng, n)
    y[:2] = y.min(), y.max() + 1
    assert_close_to_pairs(2 * rng.normal(size=n).round(1), y, surrogate, cost, 1e-10)


@pytest.mark.check_beyond(6)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cost", ["difference", "uniform"])
@pytest.mark.parametrize("surrogate", ["logistic", "hinge"])
@pytest.mark.parametrize("spread", [0.01, 2.0, 40.0])
def test_many_rows_go_over_a_grid_within_the_stated_error(target, cost, surrogate, spread):
    rng = np.random.default_rng(0)
    scores = spread * rng.normal(size=3000)
    assert_close_to_pairs(scores, TARGETS[target](rng, 3000), surrogate, cost, 1e-6)


@pytest.mark.parametrize(
    "scores",
    [
        np.zeros(2000),
        np.arange(2000) % 2 * 1e9,
        np.concatenate([np.linspace(0, 1, 1000), 1e12 + np.linspace(0, 1, 1000)]),
        np.linspace(0, 1e6, 2000),
        np.append(np.linspace(-1, 1, 1999), 1e14),
        np.arange(2000) / 32,
    ],
    ids=["constant", "two values", "two clusters", "sparse", "one far away", "on the nodes"],
)
@pytest.mark.parametrize("surrogate", ["logistic", "hinge"])
def test_scores_of_any_shape(scores, surrogate):
    target = np.random.default_rng(1).integers(0, 3, 2000).astype(float)
    assert_close_to_pairs(scores, target, surrogate, "difference", 1e-6)


@pytest.mark.parametrize("surrogate", ["logistic", "hinge"])
@pytest.mark.parametrize("cost", ["difference", "uniform"])
def test_groups_make_pairs_of_their_own(surrogate, cost):
    rng = np.random.default_rng(2)
    sizes = [1, 7, 700, 30, 2]
    groups = np.repeat(np.arange(5), sizes)
    target = rng.integers(0, 4, 740).astype(float)
    target[groups == 4] = 1  # no pair
    scores = rng.normal(size=740)
    gradient = assert_close_to_pairs(scores, target, surrogate, cost, 1e-6, groups)
    assert np.all(gradient[groups == 4] == 0)
    # Sizes and ids in any order say the same.
    by_sizes = auc_gradients(scores, target, surrogate=surrogate, cost=cost, group=sizes)
    assert same_bytes(by_sizes[1], gradient)
    p = rng.permutation(740)
    names = np.array([f"query {g}" for g in groups])
    permuted = auc_gradients(scores[p], target[p], surrogate=surrogate, cost=cost, qid=names[p])
    np.testing.assert_allclose(permuted[1], gradient[p], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("surrogate", ["logistic", "hinge"])
def test_groups_may_be_divided_by_given_costs(surrogate):
    """The sum over the pairs of each group, by all pairs, over costs of its own."""
    rng = np.random.default_rng(6)
    sizes = np.array([1, 5, 30, 3, 12])
    group = np.repeat(np.arange(5), sizes)
    scores, target = rng.normal(size=51), rng.integers(0, 4, 51).astype(float)
    target[group == 3] = 2.0  # no pair
    costs = np.array([1.0, 3.0, 0.5, 2.0, 7.0])
    grouping = check_groups(51, group=sizes)
    loss, gradient, hessian = AucPairs(target, grouping, surrogate=surrogate, costs=costs).gradients(scores)
    total, slopes, bends = 0.0, np.zeros(51), np.zeros(51)
    for g in (1, 2, 4):
        rows = group == g
        own = np.subtract.outer(target[rows], target[rows]).clip(0).sum()
        one, slope, bend = slow_auc(scores[rows], target[rows], surrogate, "difference")
        total += one * own / costs[g]
        slopes[rows], bends[rows] = slope * own / costs[g], bend * own / costs[g]
    assert loss == pytest.approx(total)
    np.testing.assert_allclose(gradient, slopes, atol=1e-12)
    np.testing.assert_allclose(hessian, bends, atol=1e-12)
    for n_jobs in (2, 5):
        again = AucPairs(target, grouping, surrogate=surrogate, costs=costs).gradients(scores, n_jobs=n_jobs)
        assert same_bytes(again[1], gradient)
    for wrong in (costs[:4], costs * 0, costs * np.nan):
        with pytest.raises(ValueError, match="costs"):
            AucPairs(target, grouping, surrogate=surrogate, costs=wrong).gradients(scores)


@pytest.mark.parametrize("surrogate", ["logistic", "hinge"])
@pytest.mark.parametrize("grouped", [False, True])
def test_threads_do_not_show(surrogate, grouped):
    rng = np.random.default_rng(3)
    n = 100_000
    scores, target = rng.normal(size=n), rng.integers(0, 6, n)
    qid = rng.integers(0, 500, n) if grouped else None
    one = auc_gradients(scores, target, surrogate=surrogate, qid=qid, n_jobs=1)
    four = auc_gradients(scores, target, surrogate=surrogate, qid=qid, n_jobs=4)
    assert all(same_bytes(a, b) for a, b in zip(one, four))


@pytest.mark.parametrize("surrogate", ["logistic", "hinge"])
@pytest.mark.parametrize("target", ["binary", "graded", "continuous"])
def test_laws_of_the_surrogates(surrogate, target):
    rng = np.random.default_rng(4)
    n = 5000
    scores, y = 3 * rng.normal(size=n), TARGETS[target](rng, n)
    loss, gradient, hessian = auc_gradients(scores, y, surrogate=surrogate)
    assert (hessian >= 0).all()
    assert gradient.sum() == pytest.approx(0, abs=1e-8)
    # The scale of the target is no matter, nor is the order of the rows or where zero lies.
    for same in (
        auc_gradients(scores, 7 * y, surrogate=surrogate),
        auc_gradients(scores + 0.3, y, surrogate=surrogate),
    ):
        assert same[0] == pytest.approx(loss, rel=1e-7)
        np.testing.assert_allclose(same[1], gradient, rtol=1e-6, atol=1e-10)
    p = rng.permutation(n)
    permuted = auc_gradients(scores[p], y[p], surrogate=surrogate)
    np.testing.assert_allclose(permuted[1], gradient[p], rtol=1e-9, atol=1e-14)
    # The gradient is that of the loss.
    step = rng.normal(size=n)
    ahead, behind = (auc_gradients(scores + t * step, y, surrogate=surrogate)[0] for t in (1e-3, -1e-3))
    assert (ahead - behind) / 2e-3 == pytest.approx(gradient @ step, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("cost", ["difference", "uniform"])
def test_area_is_the_share_of_pairs_in_order(cost):
    rng = np.random.default_rng(5)
    scores, target = rng.normal(size=400).round(1), rng.integers(0, 4, 400).astype(float)
    better = target[:, None] > target
    weight = np.where(better, target[:, None] - target if cost == "difference" else 1, 0)
    right = (scores[:, None] > scores) + 0.5 * (scores[:, None] == scores)
    area = AucPairs(target, check_groups(400), cost=cost).area(scores)
    assert area == pytest.approx((weight * right).sum() / weight.sum(), rel=1e-12)
    binary = (target > 1).astype(float)
    from sklearn.metrics import roc_auc_score

    assert AucPairs(binary, check_groups(400)).area(scores) == pytest.approx(roc_auc_score(binary, scores))


def test_the_scorer_of_one_label_approaches_its_known_optimum():
    """Gradient descent over four points with known eta: the optimal score is the log-odds of eta."""
    eta = np.array([0.1, 0.3, 0.6, 0.9])
    # 1000 rows a point, of which eta are positive: scores are shared by the rows of a point.
    point = np.repeat(np.arange(4), 1000)
    target = np.concatenate([np.arange(1000) < 1000 * e for e in eta]).astype(float)
    s = np.zeros(4)
    for _ in range(200):
        _, gradient, hessian = auc_gradients(s[point], target)
        s -= np.bincount(point, gradient) / np.bincount(point, hessian)
    logit = np.log(eta / (1 - eta))
    np.testing.assert_allclose(s - s.mean(), logit - logit.mean(), atol=1e-4)


# --- LambdaRank --------------------------------------------------------------


def slow_lambdas(scores, gains, sigmoid, truncation, norm, rank_by=None):
    """One list; also the weights of its pairs, for the loss of which this is the gradient."""
    n = len(scores)
    order = np.argsort(-(scores if rank_by is None else rank_by), kind="stable")
    rank = np.argsort(order)
    ideal = (np.sort(gains)[::-1] / np.log2(np.arange(n) + 2))[:truncation].sum()
    gradient, hessian, weights, total = np.zeros(n), np.zeros(n), {}, 0.0
    for a, b in combinations(range(n), 2):
        if min(rank[a], rank[b]) >= truncation or gains[a] == gains[b]:
            continue
        i, j = (a, b) if gains[a] > gains[b] else (b, a)
        z = scores[i] - scores[j]
        weight = (gains[i] - gains[j]) * abs(1 / np.log2(rank[i] + 2) - 1 / np.log2(rank[j] + 2)) / ideal
        if norm and np.ptp(scores) > 0:
            weight /= 0.01 + abs(z)
        sigma = 1 / (1 + np.exp(sigmoid * z))
        gradient[i] -= sigmoid * weight * sigma
        gradient[j] += sigmoid * weight * sigma
        for row in (i, j):
            hessian[row] += sigmoid**2 * weight * sigma * (1 - sigma)
        total += 2 * sigmoid * weight * sigma
        weights[i, j] = weight
    factor = np.log2(1 + total) / total if norm and total > 0 else 1.0
    loss = sum(w * np.logaddexp(0, -sigmoid * (scores[i] - scores[j])) for (i, j), w in weights.items())
    return factor * loss, factor * gradient, factor * hessian


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize(("sigmoid", "truncation"), [(1.0, 30), (2.0, 3), (0.5, 1)])
def test_lambdas_agree_with_slow_twin(norm, sigmoid, truncation):
    rng = np.random.default_rng(6)
    sizes = [5, 1, 40, 12, 3]
    n = sum(sizes)
    target = rng.integers(0, 4, n).astype(float)
    target[-3:] = 2  # a list without a pair
    scores, rank_by = rng.normal(size=n).round(1), rng.normal(size=n)
    settings = dict(sigmoid=sigmoid, truncation=truncation, norm=norm)
    for ranked in (None, rank_by):
        expected = [
            slow_lambdas(
                scores[rows],
                2 ** target[rows] - 1,
                rank_by=None if ranked is None else ranked[rows],
                **settings,
            )
            for rows in np.split(np.arange(n), np.cumsum(sizes)[:-1])
        ]
        found = ndcg_gradients(scores, target, sizes, rank_by=ranked, **settings)
        assert found[0] == pytest.approx(sum(e[0] for e in expected), rel=1e-4)
        for got, want in zip(found[1:], zip(*(e[1:] for e in expected))):
            np.testing.assert_allclose(got, np.concatenate(want), rtol=1e-4, atol=2e-5)


def test_lambda_laws():
    rng = np.random.default_rng(7)
    n = 20_000
    scores, target = rng.normal(size=n), rng.integers(0, 5, n)
    qid = rng.integers(0, 900, n)
    one = ndcg_gradients(scores, target, qid=qid, n_jobs=1)
    four = ndcg_gradients(scores, target, qid=qid, n_jobs=4)
    assert all(same_bytes(a, b) for a, b in zip(one, four))
    p = rng.permutation(n)
    permuted = ndcg_gradients(scores[p], target[p], qid=qid[p])
    np.testing.assert_allclose(permuted[1], one[1][p], rtol=1e-12)
    table = ndcg_gradients(scores, target, qid=qid, label_gain=[0, 1, 3, 7, 15])
    assert same_bytes(table[1], one[1])
    linear = ndcg_gradients(scores, target, qid=qid, label_gain="linear")
    assert same_bytes(linear[1], ndcg_gradients(scores, 4.0 * target, qid=qid, label_gain="linear")[1])


def test_ndcg_is_the_metric():
    from sklearn.metrics import ndcg_score

    rng = np.random.default_rng(8)
    target = rng.integers(0, 4, (30, 12)).astype(float)
    scores = rng.normal(size=(30, 12)).round(1)
    lists = NdcgLists(target.ravel(), check_groups(360, group=[12] * 30))
    for k in (1, 5, 10, 20):
        expected = np.mean([ndcg_score([2**t - 1], [s], k=k) for t, s in zip(target, scores)])
        assert lists.ndcg(scores.ravel(), k) == pytest.approx(expected)


@pytest.mark.parametrize("extra", [{}, {"lambdarank_norm": False}, {"lambdarank_truncation_level": 5}])
def test_boosting_on_the_lambdas_is_lightgbm_lambdarank(extra):
    rng = np.random.default_rng(9)
    n, sizes = 4000, rng.integers(1, 40, 400)
    sizes = sizes[np.cumsum(sizes) < n]
    sizes = np.append(sizes, n - sizes.sum())
    X = rng.normal(size=(n, 8))
    target = np.clip(np.round(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n)), 0, 4)
    params = {"num_leaves": 15, "learning_rate": 0.1, "verbosity": -1, "num_threads": 1, "seed": 0} | extra
    params |= {"deterministic": True, "force_row_wise": True}
    own = lgb.train(params | {"objective": "lambdarank"}, lgb.Dataset(X, target, group=sizes), 30)
    lists = NdcgLists(
        target,
        check_groups(n, group=sizes),
        norm=extra.get("lambdarank_norm", True),
        truncation=extra.get("lambdarank_truncation_level", 30),
    )

    def objective(scores, _):
        return lists.gradients(scores, with_loss=False)[1:]

    ours = lgb.train(params | {"objective": objective}, lgb.Dataset(X, target), 30)
    np.testing.assert_allclose(ours.predict(X), own.predict(X), rtol=1e-5, atol=1e-6)
    splits = [model.trees_to_dataframe()[["split_feature", "threshold"]] for model in (ours, own)]
    pd.testing.assert_frame_equal(*splits)


# --- losses and labels aggregated as objectives --------------------------------


@pytest.mark.parametrize("metric", ["auc", "ndcg"])
def test_loss_aggregation_is_the_weighted_sum_of_its_labels(metric):
    rng = np.random.default_rng(13)
    n, weights = 300, np.array([3.0, 1.0])
    scores, values = rng.normal(size=n), rng.integers(0, 3, (n, 2)).astype(float)
    qid = rng.integers(0, 20, n)
    objective = Aggregation("loss").objective(values, weights, metric=metric, qid=qid, n_jobs=1)
    alone = [(auc_gradients if metric == "auc" else ndcg_gradients)(scores, y, qid=qid) for y in values.T]
    scale = n if metric == "auc" else 1.0
    for found, number in zip(objective(scores), (1, 2)):
        expected = sum(w / 4 * scale * part[number] for w, part in zip(weights, alone))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    lists = 1 if metric == "auc" else 20
    loss, gradient = objective.mean_loss(scores)
    assert loss == pytest.approx(sum(w / 4 * part[0] / lists for w, part in zip(weights, alone)))
    np.testing.assert_allclose(gradient * scale * (1 if metric == "auc" else lists), objective(scores)[0])


@pytest.mark.parametrize("metric", ["auc", "ndcg"])
def test_label_aggregation_is_the_loss_of_the_aggregated_label(metric):
    rng = np.random.default_rng(14)
    n = 300
    scores, values = rng.normal(size=n), rng.integers(0, 2, (n, 3)).astype(float)
    qid = rng.integers(0, 20, n)
    objective = Aggregation().objective(values, [2, 2, 4], metric=metric, qid=qid, n_jobs=1)
    gradients = auc_gradients if metric == "auc" else ndcg_gradients
    expected = (n if metric == "auc" else 1.0) * gradients(scores, values @ [0.5, 0.5, 1.0], qid=qid)[1]
    np.testing.assert_allclose(objective(scores)[0], expected, rtol=1e-12)


def test_aggregations_are_lightgbm_objectives():
    rng = np.random.default_rng(15)
    X = rng.normal(size=(800, 4))
    values = (X[:, :2] + rng.normal(size=(800, 2)) > 0).astype(float)
    params = {"objective": Aggregation("loss").objective(values, n_jobs=1), "num_threads": 1, "verbosity": -1}
    scores = lgb.train(params, lgb.Dataset(X), 20).predict(X)
    assert min(AucPairs(y, check_groups(800)).area(scores) for y in values.T) > 0.75


# --- aggregated labels -------------------------------------------------------

Y = np.array([[0, 2, 1], [3, 0, 0], [1, 1, 1], [0, 0, 0], [0, 2, 0.0]])


def test_label_aggregations_by_hand():
    np.testing.assert_array_equal(aggregate_labels(Y), [3, 3, 3, 0, 2])
    np.testing.assert_array_equal(aggregate_labels(Y, weights=[1, 2, 0.5]), [4.5, 3, 3.5, 0, 4])
    np.testing.assert_array_equal(aggregate_labels(Y, "product"), [0, 0, 1, 0, 0])
    np.testing.assert_array_equal(aggregate_labels(Y, "product", weights=[0, 2, 1]), [4, 0, 1, 0, 0])
    np.testing.assert_array_equal(aggregate_labels(Y, "max", weights=[1, 1, 4]), [4, 3, 4, 0, 2])
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    np.testing.assert_array_equal(aggregate_labels(frame, weights={"b": 2}), [4, 0, 2, 0, 4])


# --- bad input ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("targets", "match"),
    [
        ([[1, -1]], "'objective_1' contains -1 at row 0"),
        ([[1, np.nan]], "contains NaN"),
        ([[np.inf, 1]], "contains infinity"),
        (np.empty((3, 0)), "at least one objective"),
        ({}, "at least one objective"),
        (np.zeros((2, 2, 2)), "shape"),
        ([["a", "b"]], "numbers"),
        ({"a": [1, 2], "b": [1]}, "one length"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "distinct names"),
        (np.array([[1 + 1j]]), "Complex"),
    ],
)
def test_bad_targets_are_named(targets, match):
    with pytest.raises(ValueError, match=match):
        check_targets(targets)
    with pytest.raises(ValueError, match="X has 7 rows, Y has 2"):
        check_targets([[1], [2]], n_rows=7)


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ([1, 2, 3], "2 entries, got 3"),
        ([0, 0], "sum to 0"),
        ([1, -1], ">= 0"),
        ([1, np.nan], "finite"),
        (["a", "b"], "numbers"),
        ({"c": 1}, "got 'c'"),
        (3.0, "shape"),
    ],
)
def test_bad_weights_are_named(weights, match):
    with pytest.raises(ValueError, match=match):
        check_weights(weights, 2, names=["a", "b"])


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        ({"group": [2, 2]}, "add up to the number of rows, 5, got 4"),
        ({"group": [5, 0]}, "positive integers"),
        ({"group": [2.5, 2.5]}, "positive integers"),
        ({"qid": [1, 2]}, "one entry per row"),
        ({"qid": [1, 2, 3, 4, np.nan]}, "NaN"),
        ({"group": [5], "qid": [1] * 5}, "both"),
    ],
)
def test_bad_groups_are_named(groups, match):
    with pytest.raises(ValueError, match=match):
        check_groups(5, **groups)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: auc_gradients([0, 1], [1, 1]), "constant"),
        (lambda: auc_gradients([0, 1, 2], [0, 1, 1], group=[1, 2]), "constant"),
        (lambda: auc_gradients([], []), "constant"),
        (lambda: auc_gradients([0, np.nan], [0, 1]), "scores must be finite"),
        (lambda: auc_gradients([0, 1e16], [0, 1]), "1e15"),
        (lambda: auc_gradients([0, 1, 2], [0, 1]), "target must have 3 entries"),
        (lambda: auc_gradients([[0, 1]], [0, 1]), "scores must be a vector"),
        (lambda: auc_gradients([0, 1], ["a", "b"]), "target must be numbers"),
        (lambda: auc_gradients([0, 1], [0, 1], surrogate="square"), "surrogate"),
        (lambda: auc_gradients([0, 1], [0, 1], cost="ratio"), "cost"),
        (lambda: ndcg_gradients([0, 1], [0, 1]), "group"),
        (lambda: ndcg_gradients([0, 1], [0, -1], [2]), ">= 0"),
        (lambda: ndcg_gradients([0, 1], [0, 2000], [2]), "label_gain"),
        (lambda: ndcg_gradients([0, 1], [0, 0.5], [2], label_gain=[0, 1]), "integers"),
        (lambda: ndcg_gradients([0, 1], [0, 2], [2], label_gain=[0, 1]), "length of label_gain"),
        (lambda: ndcg_gradients([0, 1], [0, 1], [2], label_gain="square"), "label_gain"),
        (lambda: ndcg_gradients([0, 1], [1, 1], [2]), "constant"),
        (lambda: ndcg_gradients([0, 1], [0, 1], [2], sigmoid=0), "sigmoid"),
        (lambda: ndcg_gradients([0, 1], [0, 1], [2], truncation=0), "truncation"),
        (lambda: aggregate_labels(Y, "mean"), "how"),
        (lambda: Aggregation("plug-in-loss").objective(Y), "aggregation must be 'label', 'loss' or"),
        (lambda: aggregate_labels(np.full((2, 4), 1e100), "product"), "too large"),
    ],
)
def test_bad_arguments_are_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_the_core_refuses_what_would_leave_its_arrays():
    s, y = np.zeros(3), np.arange(3.0)
    rows, lists = np.arange(3), np.array([0, 3])
    for order, indptr, match in [
        (np.array([0, 1, 1]), lists, "permutation"),
        (np.array([2, 1, 0]), lists, "sort"),
        (rows, np.array([0, 4]), "indptr"),
        (rows[:2], lists, "order"),
    ]:
        with pytest.raises(ValueError, match=match):
            _core.auc_gradients(s, y, order, indptr, np.zeros(0), "logistic", True, True, 1)
    ideal = np.ones(1)
    with pytest.raises(ValueError, match="permutation"):
        _core.lambda_gradients(s, s, y, ideal, np.array([0, 1, 3]), lists, 1.0, 30, True, True, 1)
    with pytest.raises(ValueError, match="ideal"):
        _core.list_ndcg(s, y, np.ones(2), rows, lists, 10, 1)


def test_grades_beyond_the_range_of_sums_are_refused():
    with pytest.raises(ValueError, match="target must be at most 1e100, got 1e\\+308"):
        auc_gradients([0.0, 1.0], [1e308, -1e308])
    with pytest.raises(ValueError, match="at most 1e100, but 'objective_1' contains"):
        check_targets([[0, 1], [1, 1e200]])
