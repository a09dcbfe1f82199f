"""Targets of which relevant ones are missing: expectations over all maskings are those of complete labels."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest

from metarank import MultiObjectiveRanker, load, objectives, pareto_front
from metarank.objectives import Aggregation, check_groups, label_spread
from metarank.objectives.aggregation import METHODS, PLUG_IN
from metarank.objectives.pairwise import AucPairs
from metarank.objectives.partial_labels import (
    attenuation,
    check_propensities,
    completed,
    kept_shares,
    pair_costs,
    query_costs,
)
from metarank.objectives.watch import Metrics

QUICK = {"n_rounds": 8, "params": {"num_leaves": 7}, "n_jobs": 1, "metric": "auc"}
NAMES = ["a", "b"]


def expected(statistic, Y, p):
    """The mean of a statistic of observed labels over every masking, each with its probability."""
    Y, p = np.asarray(Y, float), np.broadcast_to(np.asarray(p, float), np.shape(Y))
    places = np.argwhere(Y > 0)
    total = 0.0
    for seen in product([0, 1], repeat=len(places)):
        mask, chance = np.ones(Y.shape), 1.0
        for (i, k), kept in zip(places, seen):
            mask[i, k] = kept
            chance *= p[i, k] if kept else 1 - p[i, k]
        total = total + chance * np.asarray(statistic(Y * mask))
    return total


BINARY = np.array([[1, 1], [1, 0], [0, 1], [0, 0], [1, 0], [0, 0]], float)
GRADED = np.array([[2, 1], [1, 0], [0, 3], [0, 0], [1, 0], [0, 1]], float)
P_LABEL = np.array([0.4, 0.7])
P_ROW = np.array([[0.3, 1.0], [0.9, 0.5], [0.2, 0.4], [0.6, 0.8], [0.5, 0.5], [0.7, 0.6]])
SCORES = np.array([0.3, 0.9, 0.3, 0.1, 0.2, 0.8])
CASES = pytest.mark.parametrize("Y", [BINARY, GRADED], ids=["binary", "graded"])
PROPENSITIES = pytest.mark.parametrize("p", [P_LABEL, P_ROW], ids=["by label", "by row"])
GROUPS = pytest.mark.parametrize("sizes", [None, [4, 2]], ids=["no queries", "queries"])


def slow_costs(y, scores, groups):
    """N, the cost of the pairs in the wrong order, and D, of all pairs."""
    wrong = whole = 0.0
    for i, j in product(range(len(y)), repeat=2):
        if y[i] > y[j] and groups[i] == groups[j]:
            whole += y[i] - y[j]
            wrong += (y[i] - y[j]) * ((scores[j] > scores[i]) + 0.5 * (scores[j] == scores[i]))
    return wrong, whole


@CASES
@PROPENSITIES
@GROUPS
def test_pairs_of_complete_labels_are_estimated_without_bias(Y, p, sizes):
    grouping = check_groups(len(Y), sizes)
    groups = grouping.group_of_row
    true = np.array([slow_costs(y, SCORES, groups) for y in Y.T])

    def estimates(observed):
        found, complete = (part.sum(axis=0) for part in pair_costs(observed, p, grouping))
        z = completed(observed, p)
        slow = np.array([slow_costs(y, SCORES, groups) for y in z.T])
        np.testing.assert_allclose(found, slow[:, 1], atol=1e-9)
        return np.column_stack([slow[:, 0] - found / 2 + complete / 2, complete])

    np.testing.assert_allclose(expected(estimates, Y, p), true, atol=1e-9)


@CASES
@PROPENSITIES
def test_sums_and_products_of_labels_are_estimated_without_bias(Y, p):
    for how, weights in (("sum", [2, 3]), ("product", [2, 1]), ("product", [1, 0])):

        def one(observed, how=how, weights=weights):
            return objectives.aggregate_labels(observed, how, weights=weights, propensities=p)

        complete = objectives.aggregate_labels(Y, how, weights=weights)
        np.testing.assert_allclose(expected(one, Y, p), complete, atol=1e-9)


@CASES
@PROPENSITIES
def test_spread_is_estimated_without_bias(Y, p):
    found = expected(lambda observed: label_spread(observed, p), Y, p)
    np.testing.assert_allclose(found, label_spread(Y), atol=1e-9)


def test_the_auc_of_a_label_that_is_seen_in_part_is_an_affine_function():
    """By hand: 4 of 8 rows are relevant, half of these are seen: c = (1 - .25) / (1 - .5), but for n - 1."""
    observed = np.array([[1.0], [1.0], [0], [0], [0], [0], [0], [0]])
    factor = attenuation(observed, np.array([0.5]), check_groups(8), ["a"])
    # 2 * 6 pairs / .5, over 7 * 4 - 2 * (1 / .25)
    assert factor == pytest.approx(24 / 20)
    scores = np.arange(8.0)[::-1].copy()
    metrics = Metrics(observed, check_groups(8), ["a"], propensity=np.array([0.5]))
    assert metrics.measure(scores).tolist() == [[pytest.approx(0.5 + 1.2 * 0.5)]]


@CASES
@PROPENSITIES
def test_slopes_of_the_loss_are_linear_in_what_was_observed(Y, p):
    """With costs that hang on no label: at equal scores, over all maskings, those of the whole."""
    grouping, costs, zero = check_groups(len(Y), [4, 2]), np.array([3.0, 5.0]), np.zeros(len(Y))

    def slopes(observed):
        z = completed(observed, p)
        out = np.zeros((2, len(Y)))
        for k in range(2):
            if (np.diff(z[:4, k]) != 0).any() or z[4, k] != z[5, k]:
                out[k] = AucPairs(z[:, k], grouping, costs=costs).gradients(zero)[1]
        return out

    complete = np.zeros((2, len(Y)))
    for g, rows in enumerate((slice(0, 4), slice(4, 6))):
        y = Y[rows]
        complete[:, rows] = -(y[:, None] - y[None]).sum(axis=1).T / 2 / costs[g]
    np.testing.assert_allclose(expected(slopes, Y, p), complete, atol=1e-9)


def test_costs_of_queries_add_up_and_grow_with_their_sizes():
    rng = np.random.default_rng(8)
    sizes = rng.integers(2, 40, 200)
    for power, found in ((1, 1), (1.5, 1.5), (2, 2), (0.5, 1), (3, 2)):
        complete = sizes[:, None] ** power * rng.uniform(0.5, 1.5, (200, 1))
        costs = query_costs(complete, sizes, ["a"])[0]
        assert (complete[:, 0] / costs).sum() == pytest.approx(1)
        slope = np.polyfit(np.log(sizes), np.log(costs), 1)[0]
        assert slope == pytest.approx(found, abs=0.25)
    with pytest.raises(ValueError, match="'a' are too small"):
        query_costs(-complete, sizes, ["a"])
    even = query_costs(np.array([[1.0], [3.0]]), np.array([4, 4]), ["a"])[0]
    np.testing.assert_allclose(even, 4)


@PROPENSITIES
def test_what_an_auc_within_queries_keeps_is_estimated_without_bias(p):
    """Sum over queries of (n - n_1) S(z) / D(z), which needs the complete labels, against its estimate."""
    Y = np.vstack([BINARY, 1 - BINARY[:4]])
    p = p if p.ndim == 1 else np.vstack([p, p[:4]])
    grouping = check_groups(10, [6, 4])
    group = grouping.group_of_row

    def needs_all(observed):
        z, out = completed(observed, p), np.zeros(2)
        for g, k in product(range(2), range(2)):
            of, irrelevant = z[group == g, k], (Y[group == g, k] == 0).sum()
            apart = np.abs(of[:, None] - of).sum() / 2
            out[k] += irrelevant * of.sum() / apart if apart > 0 else 0
        return out

    found = expected(lambda observed: kept_shares(observed, p, grouping)[0].sum(axis=0), Y, p)
    np.testing.assert_allclose(found, expected(needs_all, Y, p), atol=1e-9)


def test_the_auc_within_queries_of_a_part_is_near_that_of_the_whole():
    """20,000 queries of 8, of which one to five are relevant, half or a quarter of these seen."""
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(20_000), 8)
    place = np.tile(np.arange(8), 20_000)
    relevant = place < rng.integers(1, 6, 20_000)[group]
    scores = relevant + rng.normal(size=len(group))
    for share in (0.5, 0.25):
        observed = (relevant & (rng.random(len(group)) < share)).astype(float)[:, None]
        grouping = check_groups(len(group), qid=group)
        whole = Metrics(relevant[:, None].astype(float), grouping, ["a"]).measure(scores)[0, 0]
        naive = Metrics(observed, grouping, ["a"]).measure(scores)[0, 0]
        part = Metrics(observed, grouping, ["a"], propensity=np.array([share])).measure(scores)[0, 0]
        assert part == pytest.approx(whole, abs=0.006)
        assert naive < whole - 0.03


def test_labels_of_propensity_one_are_as_they_are():
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 2)) < [0.5, 0.2]) * [1.0, 0.3]
    factor = attenuation(Y, np.array([1.0, 0.9]), check_groups(60), NAMES)
    assert factor[0] == 1
    assert factor[1] > 1
    assert check_propensities([1, 1], (60, 2), NAMES) is None
    assert check_propensities(np.ones((60, 2)), (60, 2), NAMES) is None


def test_loss_aggregation_of_a_part_weighs_as_that_of_the_whole():
    """On many rows the gradients of observed labels are those of complete ones but for noise."""
    rng = np.random.default_rng(1)
    n = 40_000
    x = rng.normal(size=n)
    Y = (rng.random((n, 2)) < 1 / (1 + np.exp(-np.column_stack([2 * x, 1 - x])))).astype(float)
    p = np.array([0.5, 0.8])
    observed = Y * (rng.random(Y.shape) < p)
    # A column's gradient in a linear score is the sum over rows of the gradient times x: at 0 the pairs' mean
    # difference of x, which is the slope of the AUC and does not depend on the surrogate.
    slopes = []
    for labels, propensities in ((Y, None), (observed, p), (observed, None)):
        loss = Aggregation("loss").objective(labels, [1, 3], propensities=propensities, n_jobs=1)
        slopes.append(float(loss(np.zeros(n))[0] @ x / n))
    assert slopes[1] == pytest.approx(slopes[0], abs=0.01)
    assert abs(slopes[2] - slopes[0]) > 0.04


def test_the_correction_of_losses_undoes_what_a_masking_does_to_the_inner_weights():
    """Bayes: a_k c_k p_k eta_k / (p pi (1 - p pi)) is a_k eta_k / (pi (1 - pi)), on a large sample."""
    n, pi, p = 100_000, np.array([0.6, 0.3]), np.array([0.3, 0.9])
    observed = np.column_stack([np.arange(n) < round(n * share) for share in pi * p]).astype(float)
    factor = attenuation(observed, p, check_groups(n), NAMES)
    shares = observed.mean(axis=0)
    np.testing.assert_allclose(factor * p / (shares * (1 - shares)), 1 / (pi * (1 - pi)), rtol=1e-4)


@PROPENSITIES
def test_scale_of_grades_and_order_of_rows_do_not_matter(p):
    rng = np.random.default_rng(2)
    n = 300
    observed = (rng.random((n, 2)) < 0.3).astype(float)
    p = p if p.ndim == 1 else 0.4 + 0.6 * rng.random((n, 2))
    qid = np.sort(rng.integers(0, 12, n))
    shuffled = rng.permutation(n)
    for ids in (None, qid):
        base = attenuation(observed, p, check_groups(n, qid=ids), NAMES)
        np.testing.assert_allclose(attenuation(7 * observed, p, check_groups(n, qid=ids), NAMES), base)
        moved = p if p.ndim == 1 else p[shuffled]
        grouping = check_groups(n, qid=None if ids is None else ids[shuffled])
        np.testing.assert_allclose(attenuation(observed[shuffled], moved, grouping, NAMES), base)


# --- the ranker ------------------------------------------------------------------


def rows(n=900, seed=0, p=(0.4, 0.9)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    eta = 1 / (1 + np.exp(-np.column_stack([2 * X[:, 0], 2 * X[:, 1] - 1])))
    Y = (rng.random((n, 2)) < eta).astype(float)
    return X, Y, Y * (rng.random((n, 2)) < p), np.array(p), rng.integers(0, n // 15, n)


def ranker_of(method, model="linear", **params):
    return MultiObjectiveRanker(method, model, **(QUICK | params))


@pytest.mark.parametrize("model", ["linear", "lightgbm"])
@pytest.mark.parametrize("method", METHODS)
def test_propensities_of_one_change_no_byte_and_threads_none(method, model, tmp_path):
    X, _, observed, p, qid = rows()
    plain = ranker_of(method, model).fit(X, observed)
    for ones in ([1, 1], np.ones(observed.shape), {"objective_1": 1.0}):
        same = ranker_of(method, model).fit(X, observed, propensities=ones)
        assert same.predict(X).tobytes() == plain.predict(X).tobytes()
        assert same.evals_ == plain.evals_
    for ids in (None, qid):
        fitted = ranker_of(method, model).fit(X, observed, qid=ids, propensities=p)
        threaded = ranker_of(method, model, n_jobs=3).fit(X, observed, qid=ids, propensities=p)
        assert threaded.predict(X).tobytes() == fitted.predict(X).tobytes()
        assert threaded.evals_ == fitted.evals_
        assert fitted.score(X, observed, qid=ids, propensities=p) == pytest.approx(fitted.attained_.mean())
        assert fitted.weights_.sum() == pytest.approx(1)
    fitted.save(tmp_path / "M")
    again = load(tmp_path / "M")
    assert again.predict(X).tobytes() == fitted.predict(X).tobytes()
    if method in PLUG_IN:
        assert again.predict(X, weights=[1, 3]).tobytes() == fitted.predict(X, weights=[1, 3]).tobytes()


@pytest.mark.parametrize("model", ["linear", "lightgbm"])
@pytest.mark.parametrize("method", ["label", "loss", "plug-in-label", "plug-in-loss"])
@pytest.mark.parametrize(("by_row", "grouped"), [(False, True), (True, False)])
def test_what_is_learned_of_a_part_is_what_the_whole_teaches(method, model, by_row, grouped):
    """Scores learned with propensities order rows as the complete labels do; without, otherwise."""
    qid = np.arange(12_000) // 10 if grouped else None
    if by_row and method in PLUG_IN and model == "lightgbm":
        pytest.skip("refused, see test_bad_input")
    rng = np.random.default_rng(3)
    n = 12_000
    X = rng.uniform(-1, 1, (n, 2)).astype(np.float32)
    eta = np.column_stack([0.5 + 0.4 * X[:, 0], 0.5 + 0.4 * X[:, 1]])
    Y = (rng.random(eta.shape) < eta).astype(float)
    p = np.column_stack([0.25 + 0.1 * X[:, 1], np.ones(n)]) if by_row else np.array([0.25, 1.0])
    observed = Y * (rng.random(eta.shape) < p)
    settings = {"n_rounds": 30, "params": {"num_leaves": 6, "min_data_in_leaf": 200}}
    whole, part, naive = (
        ranker_of(method, model, **settings).fit(X, labels, qid=qid, propensities=given).predict(X)
        for labels, given in ((Y, None), (observed, p), (observed, None))
    )

    def agreement(scores):
        return np.corrcoef(np.argsort(np.argsort(scores)), np.argsort(np.argsort(eta.sum(axis=1))))[0, 1]

    assert agreement(whole) > 0.99
    assert agreement(part) > 0.97
    assert agreement(naive) < agreement(part) - 0.01


def test_watched_rows_have_propensities_of_their_own():
    X, Y, observed, p, _ = rows(20_000)
    train, watched = slice(0, 10_000), slice(10_000, None)
    fit = {"X": X[train], "Y": observed[train], "propensities": p}
    complete = ranker_of("loss").fit(**fit, eval_set=(X[watched], Y[watched]))
    part = ranker_of("loss").fit(**fit, eval_set=(X[watched], observed[watched]), eval_propensities=p)
    naive = ranker_of("loss").fit(**fit, eval_set=(X[watched], observed[watched]))
    assert part.predict(X).tobytes() == complete.predict(X).tobytes()
    np.testing.assert_allclose(part.attained_, complete.attained_, atol=0.012)
    assert naive.attained_[0] < complete.attained_[0] - 0.05


def test_a_front_of_a_part_is_that_of_the_whole():
    X, Y, observed, p, _ = rows(20_000)
    propensities = np.tile(p, (len(X), 1))
    settings = {"ranker": ranker_of("label"), "aggregations": ["loss", "plug-in-label"], "n_weights": 3}
    whole, part = (
        pareto_front(X, labels, propensities=given, **settings)
        for labels, given in ((Y, None), (observed, propensities))
    )
    np.testing.assert_allclose(part.points, whole.points, atol=0.04)
    held = {"eval_set": (X, observed), "eval_propensities": propensities}
    again = pareto_front(X, observed, propensities=propensities, **held, **settings)
    np.testing.assert_allclose(again.points, whole.points, atol=0.04)
    with pytest.raises(ValueError, match="eval_propensities describe eval_set, which is missing"):
        pareto_front(X, observed, eval_propensities=p)


# --- bad input -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "params", "match"),
    [
        ([0.5], {}, r"must have shape \(2,\), one per label, or \(40, 2\)"),
        (np.ones((2, 40)), {}, r"got \(2, 40\)"),
        ([0.5, 0.0], {}, r"within \(0, 1\], got 0 for 'objective_1'"),
        ([0.5, 1.5], {}, r"within \(0, 1\], got 1.5"),
        ([0.5, np.nan], {}, r"within \(0, 1\], got nan"),
        (["a", 1], {}, "must be numbers"),
        ({"clicks": 0.5}, {}, r"name objectives of \['objective_0', 'objective_1'\], got 'clicks'"),
        ({"objective_0": [0.5, 0.5]}, {}, r"a number or an array \(40,\)"),
        ([0.01, 1.0], {}, "'objective_0' are too small"),
        ([0.5, 1.0], {"metric": "ndcg"}, "metric must be 'auc' with propensities"),
        ([0.5, 1.0], {"metric": "auto"}, "metric must be 'auc' with propensities"),
        ([0.5, 1.0], {"aggregation": Aggregation(cost="uniform")}, "cost must be 'difference' with"),
        ([0.5, 1.0], {"aggregation": Aggregation(combine="max")}, "combine must be 'sum' or 'product' with"),
        (
            np.full((40, 2), 0.5),
            {"aggregation": "plug-in-loss", "model": "lightgbm"},
            r"one per label, shape \(2,\)",
        ),
    ],
)
def test_bad_input(given, params, match):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 2)), (rng.random((40, 2)) < 0.3).astype(float)
    grouped = {"group": [20, 20]} if "metric" in params else {}
    ranker = MultiObjectiveRanker(model="linear", n_rounds=2).set_params(**params)
    if "aggregation" not in params and "metric" not in params and "small" in match:
        ranker.set_params(aggregation="loss")
    with pytest.raises(ValueError, match=match):
        ranker.fit(X, Y, propensities=given, **grouped)
    if not params and "small" not in match:
        with pytest.raises(ValueError, match=match):
            Aggregation().objective(Y, propensities=given)


def test_what_else_is_refused():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 2)), rng.integers(0, 3, (40, 2)).astype(float)
    with pytest.raises(ValueError, match="eval_propensities describe eval_set, which is missing"):
        ranker_of("label").fit(X, Y, eval_propensities=[0.5, 1])
    with pytest.raises(ValueError, match="eval_propensities must have shape"):
        ranker_of("label").fit(X, Y, eval_set=(X, Y), eval_propensities=[0.5])


def test_small_propensities_are_told_and_smaller_ones_refused():
    n = 400
    observed = np.zeros((n, 2))
    observed[: n // 2, 0] = 1
    observed[: n // 4, 1] = 1
    grouping = check_groups(n)
    for share, warns in ((0.9, False), (0.58, True)):
        p = np.array([share, 1.0])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            factors = attenuation(observed, p, grouping, ["clicks", "sales"])
        pi = 0.5 / share
        np.testing.assert_allclose(factors, [(1 - pi * share) / (1 - pi), 1.0], rtol=0.02)
        assert bool(caught) == warns
    with pytest.raises(ValueError, match="propensities of 'clicks' are too small"):
        attenuation(observed, np.array([0.52, 1.0]), grouping, ["clicks", "sales"])
