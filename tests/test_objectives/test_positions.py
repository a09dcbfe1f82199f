"""Clicks and the places where they happened: the curve, what stands for clicks, and every way in."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MultiObjectiveRanker, load, plot
from metarank.objectives import diagnose, positions
from metarank.objectives.learning import graded_rows
from metarank.objectives.positions import ShownRows, without_position_bias

matplotlib.use("Agg")
QUICK = {"n_rounds": 15, "params": {"num_leaves": 7}, "n_jobs": 1}
LENGTH = 8


def log(n_queries=300, eta=1.0, seed=0):
    """Lists in an order that has little to do with attraction; clicks by the position-based model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * LENGTH, 4)).astype(np.float32)
    attracts = 1 / (1 + np.exp(-(1.5 * X[:, 0] - X[:, 1] - 0.5)))
    order = np.argsort(-(X[:, 2] + 0.5 * X[:, 0]).reshape(-1, LENGTH), axis=1)
    place = (np.argsort(order, axis=1) + 1).ravel()
    clicks = (rng.random(len(X)) < place**-eta * attracts).astype(int)
    return X, clicks, place, np.full(n_queries, LENGTH), attracts


def agreement(scores, attracts):
    return np.corrcoef(scores, np.log(attracts / (1 - attracts)))[0, 1]


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
def test_the_curve_is_found(eta):
    X, clicks, place, group, _ = log(1500, eta)
    rows = graded_rows(X, {"clicks": clicks}, group)
    shown = ShownRows.checked(rows, place, None, None)
    _, curve = without_position_bias(rows, shown, seed=0, n_jobs=1)
    np.testing.assert_allclose(curve, np.arange(1, LENGTH + 1.0) ** -eta, atol=0.1)


def test_a_curve_that_does_not_fall():
    curve = np.array([0.3, 1, 0.8, 0.5, 0.2, 0.2, 0.2, 0.2])
    X, _, place, group, attracts = log(1200)
    clicks = (np.random.default_rng(3).random(len(X)) < curve[place - 1] * attracts).astype(int)
    shown = ShownRows.checked(rows := graded_rows(X, {"clicks": clicks}, group), place, None, None)
    np.testing.assert_allclose(without_position_bias(rows, shown, 0, 1)[1], curve, atol=0.12)


def test_steps_lead_to_the_likeliest_curve():
    """Of a place with c clicks of n rows that attract alike it is c / (n gamma)."""
    at, click = np.repeat([1, 2, 4], 100), np.tile([1.0, 0, 0, 0], 75)
    click[100:200] = np.tile([1.0] + 9 * [0], 10)
    theta = np.array([0.95, 0.6, 0.5, 0.4])
    for _ in range(10):
        theta = positions._stepped(theta, at, click, np.full(300, 0.25 / 0.95))
    np.testing.assert_allclose(theta, 0.95 * np.array([1, 0.4, 0.7, 1]), rtol=1e-3)


@pytest.mark.parametrize("model", ["lightgbm", "linear"])
@pytest.mark.parametrize("aggregation", ["label", "loss", "plug-in-loss"])
@pytest.mark.parametrize("metric", ["auc", "ndcg"])
def test_relevance_is_told_from_places_by_every_objective(model, aggregation, metric):
    X, clicks, place, group, attracts = log()
    ranker = MultiObjectiveRanker(aggregation, model=model, metric=metric, **QUICK)
    naive = ranker.fit(X, {"clicks": clicks}, group).predict(X)
    scores = ranker.fit(X, {"clicks": clicks}, group, position=place).predict(X)
    assert agreement(scores, attracts) > agreement(naive, attracts) + 0.03
    assert agreement(scores, attracts) > 0.83


def test_one_answer_by_every_way_in(tmp_path):
    """Threads, sparse rows, queries in another order, missing places as NaN; and after it was saved."""
    X, clicks, place, group, _ = log(80)
    place[::9], clicks[::9] = 0, 0
    Y = {"relevance": (X[:, 3] > 0) * 1, "clicks": clicks}
    missing = np.where(place == 0, np.nan, place)
    ranker = MultiObjectiveRanker("label", **QUICK).fit(X, Y, group, position=place)
    scores = ranker.predict(X)
    curve = ranker.position_propensity_
    assert curve.shape == (LENGTH,)
    assert curve.max() == 1
    qid = np.repeat(np.arange(len(group)), group)
    others = [
        MultiObjectiveRanker("label", **QUICK | {"n_jobs": 4}).fit(X, Y, group, position=place),
        MultiObjectiveRanker("label", **QUICK).fit(X, Y, qid=qid, position=missing),
        MultiObjectiveRanker("label", **QUICK).fit(X, Y, group, position=list(place), position_of=1),
    ]
    ranker.save(tmp_path / "model")
    others.append(load(tmp_path / "model"))
    for other in others:
        np.testing.assert_array_equal(other.predict(X), scores)
        np.testing.assert_array_equal(other.position_propensity_, curve)
    sparse = MultiObjectiveRanker("label", **QUICK).fit(sp.csr_matrix(X), Y, group, position=place)
    np.testing.assert_array_equal(sparse.position_propensity_, curve)
    ranker.fit(X, Y, group)
    assert ranker.position_propensity_ is None
    ranker.save(tmp_path / "without")
    assert load(tmp_path / "without").position_propensity_ is None


def test_a_known_curve_is_kept_and_rows_not_shown_are_estimated():
    X, clicks, place, group, attracts = log(600)
    hidden = np.random.default_rng(1).random(len(X)) < 0.3
    place[hidden], clicks[hidden] = 0, 0
    known = np.arange(1, LENGTH + 3.0) ** -1.0
    ranker = MultiObjectiveRanker(model="linear", **QUICK)
    ranker.fit(X, {"clicks": clicks}, group, position=place, position_propensity=known)
    np.testing.assert_array_equal(ranker.position_propensity_, known)
    assert agreement(ranker.predict(X), attracts) > 0.9
    naive = MultiObjectiveRanker(model="linear", **QUICK).fit(X, {"clicks": clicks}, group)
    assert agreement(naive.predict(X), attracts) < agreement(ranker.predict(X), attracts)


def test_several_objectives_share_a_curve_and_relevance_is_left_alone():
    X, clicks, place, group, _ = log(400)
    bought = clicks * (np.random.default_rng(2).random(len(clicks)) < 0.5)
    Y = {"relevance": (X[:, 3] > 0) * 2, "clicks": clicks, "bought": bought}
    rows = graded_rows(X, Y, group)
    shown = ShownRows.checked(rows, place, None, None)
    estimated, curve = without_position_bias(rows, shown, 0, 1)
    alone = ShownRows.checked(rows, place, "clicks", None)
    np.testing.assert_array_equal(curve, without_position_bias(rows, alone, 0, 1)[1])
    values = estimated.values
    np.testing.assert_array_equal(values[:, 0], Y["relevance"])
    assert ((values[:, 1:] > 0) & (values[:, 1:] < 1)).all()


def test_diagnose_and_plot_tell_of_the_curve():
    X, clicks, place, group, _ = log(600)
    found = diagnose({"clicks": clicks}, X=X, group=group, position=place)
    assert found.pi[0] == np.mean(clicks)
    assert "examined" in str(found)
    assert found.to_dict()["position_propensity"][0] == 1
    (line,) = plot.examination(found).get_lines()
    np.testing.assert_array_equal(line.get_ydata(), found.position_propensity)
    without = diagnose({"clicks": clicks}, group=group)
    assert without.position_propensity is None
    with pytest.raises(ValueError, match="found must have been given position"):
        plot.examination(without)


@pytest.mark.parametrize(
    ("rule", "how"),
    [
        ("position must be whole numbers from 1 .*got 1.5 at row 0", {"position": [1.5, 1, 2, 3]}),
        ("position must be whole numbers from 1 .*got -1 at row 3", {"position": [1, 2, 3, -1]}),
        ("position must be whole numbers, got", {"position": ["a", "b", "c", "d"]}),
        ("position must have one entry per row", {"position": [1, 2, 3]}),
        ("position must be above 0 for some row", {"position": [0, 0, 0, 0]}),
        ("position must be at least 1 where 'clicks' is above 0.*row 0", {"position": [0, 1, 2, 3]}),
        ("position_of must name objectives", {"position": [1, 2, 3, 4], "position_of": ["sales"]}),
        ("position_of must name an objective", {"position": [1, 2, 3, 4], "position_of": []}),
        ("position_of describes position", {"position_of": "clicks"}),
        ("position_propensity describes position", {"position_propensity": [1]}),
        ("have 4 values, got 1", {"position": [1, 2, 3, 4], "position_propensity": [1]}),
        (r"position_propensity must lie in \(0, 1\]", {"position": [1, 1, 1, 1], "position_propensity": [0]}),
        ("propensities must not name 'clicks'", {"position": [1, 2, 3, 4], "propensities": {"clicks": 0.5}}),
        ("position needs more rows, or columns of X", {"position": [1, 2, 3, 4]}),
        ("'clicks' of Y is constant", {"position": [1, 2, 3, 4], "Y": {"clicks": [0, 0, 0, 0]}}),
    ],
)
def test_bad_places_are_refused_by_name(rule, how):
    Y = {"relevance": [0, 1, 2, 0], "clicks": [1, 0, 0, 1]}
    with pytest.raises(ValueError, match=rule):
        MultiObjectiveRanker(**QUICK).fit(np.eye(4), how.pop("Y", Y), **how)


def test_places_need_features_to_be_diagnosed():
    with pytest.raises(ValueError, match="position needs X"):
        diagnose({"clicks": [1, 0, 0]}, position=[1, 2, 3])
