"""pareto_front: what is trained and measured, laws, the picture, bad input."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import metarank
from metarank import MultiObjectiveRanker, ParetoFront, objectives, pareto_front
from metarank._util.progress import listening
from metarank.objectives.aggregation import METHODS, Aggregation
from metarank.objectives.fronts import simplex_lattice


def make_rows(n=900, n_objectives=2, seed=0):
    """Labels of unequal skew that pull apart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    log_odds = np.column_stack([2 * X[:, 0] + X[:, 1], 2 * X[:, 2] - X[:, 0] - 2, X[:, 3] - X[:, 2]])
    Y = (rng.random((n, 3)) < 1 / (1 + np.exp(-log_odds))).astype(float)
    names = ["relevance", "clicks", "freshness"][:n_objectives]
    return X, dict(zip(names, Y.T)), rng.integers(0, n // 15, n)


def settings(**params):
    return MultiObjectiveRanker(**({"n_rounds": 8, "params": {"num_leaves": 5}, "n_jobs": 1} | params))


def quick(X, Y, **params):
    params.setdefault("ranker", settings())
    params.setdefault("n_weights", 3)
    return pareto_front(X, Y, **params)


def assert_same(a, b):
    assert a.points.tobytes() == b.points.tobytes()
    assert a.alone_points.tobytes() == b.alone_points.tobytes()
    assert a.weights.tobytes() == b.weights.tobytes()
    assert str(a) == str(b)


@pytest.fixture(scope="module")
def both():
    X, Y, _ = make_rows()
    return quick(X, Y, n_weights=5)


# --- the sweep -----------------------------------------------------------------


@pytest.mark.parametrize("model", ["lightgbm", "linear"])
@pytest.mark.parametrize("grouped", [False, True])
def test_each_point_is_what_a_ranker_with_its_weights_attains(model, grouped):
    X, Y, qid = make_rows()
    Z, V, other = make_rows(seed=1)
    groups = {"qid": qid} if grouped else {}
    eval_groups = {"eval_qid": other} if grouped else {}
    front = quick(X, Y, ranker=settings(model=model), eval_set=(Z, V), **groups, **eval_groups)
    assert front.metric == ("ndcg@10" if grouped else "auc")
    assert front.aggregation == ["label"] * 3 + ["loss"] * 3
    np.testing.assert_allclose(front.weights[:3], [[1, 0], [0.5, 0.5], [0, 1]])
    for i, model_of in enumerate(front.models):
        own = settings(model=model, aggregation=front.aggregation[i], weights=front.weights[i])
        own.fit(X, Y, **groups)
        assert model_of.predict(Z).tobytes() == own.predict(Z).tobytes()
        if not grouped:
            held_out = objectives.per_label_auc(own.predict(Z), V)
            np.testing.assert_allclose(front.points[i], held_out, atol=1e-12)
    assert list(front.alone) == ["relevance", "clicks"]
    np.testing.assert_array_equal(front.alone_points, front.points[[3, 5]])


def test_a_quarter_is_held_out_and_not_trained_on():
    X, Y, _ = make_rows()
    front = quick(X, Y, aggregations=["loss"], n_weights=2)
    assert (front.n_rows, front.n_queries) == (225, 0)
    # With other labels on the rows held out the models are the same.
    seen = front.models[0].predict(X)
    values = np.column_stack(list(Y.values()))
    n_alike = 0
    for row in range(24):
        changed = values.copy()
        changed[row] = 1 - changed[row]
        again = quick(X, dict(zip(Y, changed.T)), aggregations=["loss"], n_weights=2)
        n_alike += again.models[0].predict(X).tobytes() == seen.tobytes()
    assert 1 <= n_alike <= 14
    # The seed chooses which.
    other = quick(X, Y, ranker=settings(random_state=1), aggregations=["loss"], n_weights=2)
    assert other.points.tobytes() != front.points.tobytes()


def test_whole_queries_are_held_out_whatever_the_order_of_the_rows():
    X, Y, qid = make_rows()
    front = quick(X, Y, qid=qid)
    n_queries = len(np.unique(qid))
    assert front.n_queries == round(n_queries / 4)
    order = np.argsort(qid, kind="stable")
    shuffled = quick(X[order], {name: y[order] for name, y in Y.items()}, qid=qid[order])
    assert (shuffled.n_rows, shuffled.n_queries) == (front.n_rows, front.n_queries)
    np.testing.assert_allclose(shuffled.points, front.points, atol=0.05)
    sizes = np.unique(qid, return_counts=True)[1]
    by_size = quick(X[order], {name: y[order] for name, y in Y.items()}, group=sizes)
    assert_same(by_size, shuffled)
    named = quick(X, Y, qid=np.char.add("query ", qid.astype(str)))
    assert named.n_queries == front.n_queries


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("grouped", [False, True])
def test_every_method_moves_from_one_objective_to_the_other(method, grouped):
    X, Y, qid = make_rows()
    groups = {"qid": qid} if grouped else {}
    front = quick(X, Y, ranker=settings(n_rounds=4), aggregations=[method], n_weights=2, **groups)
    assert front.points[0, 0] > front.points[1, 0]
    assert front.points[0, 1] < front.points[1, 1]
    assert front.points.shape == (2, 2)


def test_plug_ins_are_fitted_once_and_reweighted(monkeypatch):
    X, Y, _ = make_rows()
    fitted = []
    learn = MultiObjectiveRanker._learn

    def counting(self, *args, **kwargs):
        fitted.append(self.settings().aggregation.method)
        return learn(self, *args, **kwargs)

    monkeypatch.setattr(MultiObjectiveRanker, "_learn", counting)
    Z, V, _ = make_rows(seed=1)
    front = quick(X, Y, aggregations=["plug-in-loss", "loss"], n_weights=5, eval_set=(Z, V))
    # Two alone, one plug-in, three between the corners, which are those alone.
    assert sorted(fitted) == ["loss"] * 5 + ["plug-in-loss"]
    for model, weights, values in zip(front.models[:5], front.weights, front.points):
        own = settings(aggregation="plug-in-loss", weights=weights).fit(X, Y, eval_set=(Z, V))
        assert model.predict(Z).tobytes() == own.predict(Z).tobytes()
        assert own.attained_.tobytes() == values.tobytes() == model.attained_.tobytes()
        np.testing.assert_allclose(model.weights_, weights)


def test_what_the_front_holds(both):
    assert isinstance(both, ParetoFront)
    assert both.on_front.tolist() == objectives.non_dominated(both.points).tolist()
    assert both.knee == objectives.knee(both.points)
    assert both.on_front[both.knee]
    assert both.hypervolume == objectives.hypervolume(both.points, 0)
    assert list(both.hypervolumes) == ["label", "loss"]
    assert both.hypervolumes["loss"] == objectives.hypervolume(both.points[5:], 0)
    assert both.hypervolume >= max(both.hypervolumes.values())
    order = both.front_order()
    assert (np.diff(both.points[order, 0]) <= 0).all()
    assert (np.diff(both.points[order, 1]) >= 0).all()


def test_three_objectives():
    X, Y, qid = make_rows(n_objectives=3)
    front = quick(X, Y, n_weights=7, qid=qid, aggregations="loss")
    assert front.points.shape == (7, 3)
    assert front.hypervolume == objectives.hypervolume(front.points, 0)


def test_settings_of_the_ranker_hold_and_it_is_left_alone():
    X, Y, _ = make_rows()
    aggregation = Aggregation("product", cost="uniform")
    ranker = settings(model="linear", aggregation=aggregation, weights=[3, 1])
    front = quick(X, Y, ranker=ranker)
    assert ranker.aggregation is aggregation
    assert not hasattr(ranker, "weights_")
    assert all(model.model == "linear" and model.aggregation.cost == "uniform" for model in front.models)


@pytest.mark.parametrize("kind", ["sparse", "frame", "list"])
def test_other_containers_give_the_same(kind, both):
    X, Y, _ = make_rows()
    if kind == "sparse":
        X = sp.csr_matrix(X)
    elif kind == "frame":
        X, Y = pd.DataFrame(X), pd.DataFrame(Y)
    else:
        X, Y = X.tolist(), {name: y.tolist() for name, y in Y.items()}
    assert_same(quick(X, Y, n_weights=5), both)


@pytest.mark.parametrize("model", ["lightgbm", "linear"])
def test_threads_do_not_show(model):
    X, Y, qid = make_rows(n_objectives=3)
    one, four = (
        quick(X, Y, ranker=settings(model=model, n_jobs=n), qid=qid, aggregations=METHODS[:2]) for n in (1, 4)
    )
    assert_same(one, four)


def test_progress_grows_from_0_to_1_and_names_what_is_trained():
    X, Y, _ = make_rows()
    seen = []
    with listening(lambda stage, done: seen.append((stage, done))):
        quick(X, Y, aggregations=["label", "plug-in-label", "product"], n_weights=2)
    stages, shares = zip(*seen)
    assert np.diff(shares).min() > -1e-12
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    names = ["relevance alone", "clicks alone", "label, weights 1 of 2", "label, weights 2 of 2"]
    names += ["plug-in-label", "product, weights 1 of 2", "product, weights 2 of 2", "done"]
    assert list(dict.fromkeys(stage.partition(":")[0] for stage in stages)) == names


def test_where_it_is_found():
    assert objectives.pareto_front is metarank.pareto_front
    assert objectives.ParetoFront is metarank.ParetoFront
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        objectives.nothing  # noqa: B018


# --- weights -------------------------------------------------------------------


@pytest.mark.parametrize("n_objectives", [2, 3, 4, 5])
@pytest.mark.parametrize("n_weights", [5, 11, 30])
def test_simplex_lattice(n_objectives, n_weights):
    lattice = simplex_lattice(n_objectives, n_weights)
    sizes = {}
    for steps in range(1, n_weights + 1):
        rows = product(range(steps + 1), repeat=n_objectives)
        rows = {tuple(np.array(row) / steps) for row in rows if sum(row) == steps}
        if n_objectives > 2 and not any(min(row) > 0 for row in rows):
            rows.add((1 / n_objectives,) * n_objectives)
        sizes[len(rows)] = rows
        if len(rows) > n_weights:
            break
    expected = sizes[max((size for size in sizes if size <= n_weights), default=min(sizes))]
    assert {tuple(row) for row in lattice} == expected
    assert len(lattice) == len(expected)
    assert lattice[0].tolist() == np.eye(n_objectives)[0].tolist()
    if n_objectives == 2:
        np.testing.assert_allclose(lattice[:, 0], np.linspace(1, 0, n_weights))


# --- shown ---------------------------------------------------------------------


def test_dictionary_is_json_and_complete(both):
    found = json.loads(json.dumps(both.to_dict(), allow_nan=False))
    assert found["objectives"] == ["relevance", "clicks"]
    assert [p["values"] for p in found["points"]] == both.points.tolist()
    assert [p["weights"] for p in found["points"]] == both.weights.tolist()
    assert [p["on_front"] for p in found["points"]] == both.on_front.tolist()
    assert found["knee"] == both.knee
    assert found["alone"]["clicks"] == both.alone_points[1].tolist()
    assert found["hypervolumes"] == both.hypervolumes


def test_table(both):
    text = str(both)
    assert f"10 points, {both.on_front.sum()} on the front; AUC on 225 held-out rows" in text
    assert text.count("(knee)") == 1
    assert "relevance alone" in text
    assert max(map(len, text.splitlines())) <= 110


# --- bad input -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"aggregations": ["label", "epsilon"]}, "aggregations must be among .* got 'epsilon'"),
        ({"aggregations": []}, "aggregations must be one method or several different ones, got \\[\\]"),
        ({"aggregations": ["loss", "loss"]}, "several different ones"),
        ({"n_weights": 1}, "n_weights must be at least 2, got 1"),
        ({"n_weights": 2.5}, "n_weights must be an integer"),
        ({"group": [10, 20]}, "group must add up to the number of rows, 60, got 30"),
        ({"group": [60]}, "at least two queries"),
        ({"qid": [1, 2]}, "qid must have one entry per row"),
        (
            {"eval_group": [3]},
            "eval_group, eval_qid and eval_propensities describe eval_set, which is missing",
        ),
        ({"eval_set": 3}, r"eval_set must be a pair \(X, Y\)"),
        ({"eval_set": (np.zeros((4, 5)), np.eye(4, 2))}, "must hold the objectives"),
        (
            {"Y": {"relevance": np.arange(60) % 2}},
            "Y must hold at least two objectives, got \\['relevance'\\]",
        ),
        ({"Y": {"a": np.arange(60) % 2, "b": np.ones(60)}}, "'b' of the 15 held-out rows is constant"),
        ({"Y": {"a": np.arange(60) % 2, "b": -np.ones(60)}}, "Y must be finite and >= 0"),
        ({"Y": {"a": np.arange(50) % 2, "b": np.ones(50)}}, "X has 60 rows"),
        ({"X": np.full((60, 5), np.inf)}, "infinity"),
        ({"X": np.full((60, 5), np.nan), "ranker": MultiObjectiveRanker(model="linear")}, "NaN"),
        ({"ranker": MultiObjectiveRanker(metric="ndcg")}, "metric='ndcg' is defined within queries"),
        ({"ranker": MultiObjectiveRanker(n_rounds=0)}, "n_rounds must be at least 1, got 0"),
        ({"ranker": MultiObjectiveRanker(random_state=-1)}, "random_state must be None, an integer from 0"),
    ],
)
def test_bad_input_is_refused_before_any_training(change, match, monkeypatch):
    X, Y, _ = make_rows(60)
    arguments = {"X": X, "Y": Y, "ranker": settings(), "aggregations": ["loss"]} | change
    monkeypatch.setattr("metarank.objectives.learning.Training.fit", lambda self: pytest.fail("trained"))
    with pytest.raises((ValueError, TypeError), match=match):
        pareto_front(arguments.pop("X"), arguments.pop("Y"), **arguments)
