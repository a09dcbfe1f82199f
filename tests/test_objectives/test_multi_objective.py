"""MultiObjectiveRanker: what each method must find, parity, laws, save and load, bad input."""

from __future__ import annotations

import pickle

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from makers import same_bytes
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from metarank import MultiObjectiveRanker, load, objectives
from metarank.objectives import Aggregation
from metarank.objectives.aggregation import COMBINATIONS, METHODS

SMALL = {"n_rounds": 12, "params": {"num_leaves": 7}, "n_jobs": 1}


def make_rows(n=1500, seed=0):
    """Two labels, a balanced and a rare one, that pull apart; their probabilities are known."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    log_odds = np.column_stack([2 * X[:, 0] + X[:, 1], 2 * X[:, 2] - X[:, 0] - 3])
    eta = 1 / (1 + np.exp(-log_odds))
    Y = (rng.random((n, 2)) < eta).astype(float)
    return X, Y, eta, rng.integers(0, n // 12, n)


def ranker_of(method, model="lightgbm", **params):
    return MultiObjectiveRanker(method, model, **(SMALL | params))


# --- what must be found --------------------------------------------------------


@pytest.mark.parametrize("model", ["lightgbm", "linear"])
@pytest.mark.parametrize("method", ["label", "loss", "plug-in-label", "plug-in-loss"])
def test_learned_scores_approach_the_bayes_optimal_order(method, model):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (20_000, 2)).astype(np.float32)
    # Linear in X, so that either model holds the optimum of either aggregation.
    eta = np.column_stack([0.5 + 0.4 * X[:, 0], 0.1 + 0.08 * X[:, 1]])
    Y = (rng.random(eta.shape) < eta).astype(float)
    weights = [1, 0.5]
    spread = objectives.label_spread(Y) if "loss" in method else np.ones(2)
    best = eta @ (weights / spread)
    trees = {"num_leaves": 8, "min_data_in_leaf": 100}
    ranker = MultiObjectiveRanker(method, model, weights, 1, n_rounds=40, params=trees).fit(X, Y)
    assert spearmanr(ranker.predict(X), best)[0] > 0.98


def test_one_objective_with_queries_is_lightgbm_lambdarank():
    X, Y, _, qid = make_rows()
    order = np.argsort(qid, kind="stable")
    sizes = np.unique(qid, return_counts=True)[1]
    target = (Y[:, 0] + 2 * Y[:, 1]).round()
    params = {"objective": "lambdarank", "num_leaves": 7, "learning_rate": 0.1, "num_threads": 1}
    params |= {"verbosity": -1, "deterministic": True, "force_row_wise": True, "seed": 0}
    data = lgb.Dataset(X[order], target[order], group=sizes, params=params)
    own = lgb.train(params, data, 12).predict(X)
    for method in ("label", "loss"):
        ours = ranker_of(method).fit(X[order], target[order], sizes).predict(X)
        np.testing.assert_allclose(ours, own, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("model", ["lightgbm", "linear"])
@pytest.mark.parametrize("grouped", [False, True])
def test_weights_move_the_ranking_towards_their_objective(model, grouped):
    X, Y, _, qid = make_rows()
    qid = qid if grouped else None
    for method in ("label", "loss"):
        attained = np.array(
            [
                ranker_of(method, model, weights=w).fit(X, Y, qid=qid).attained_
                for w in ([1, 9], [1, 1], [9, 1])
            ]
        )
        assert (np.diff(attained[:, 0]) > 0).all()
        assert (np.diff(attained[:, 1]) < 0).all()


@pytest.mark.parametrize(
    "how", [*({"combine": c} for c in COMBINATIONS), {"surrogate": "hinge"}, {"cost": "uniform"}], ids=str
)
@pytest.mark.parametrize("model", ["lightgbm", "linear"])
def test_every_aggregation_learns_its_own_target(how, model):
    X, Y, _, _ = make_rows()
    combine = how.get("combine", "sum")
    ranker = ranker_of(Aggregation("label", **how), model, weights=[2, 1]).fit(X, Y)
    target = objectives.aggregate_labels(Y, combine, weights=[4 / 3, 2 / 3])
    assert objectives.per_label_auc(ranker.predict(X), target) > 0.7
    if combine == "product":
        assert same_bytes(ranker_of("product", model, weights=[2, 1]).fit(X, Y).predict(X), ranker.predict(X))


# --- metrics, stopping -----------------------------------------------------------


@pytest.mark.parametrize("model", ["lightgbm", "linear"])
def test_metrics_of_every_round_are_those_of_the_scores(model):
    X, Y, _, qid = make_rows()
    train, test = slice(0, 1000), slice(1000, None)
    ranker = ranker_of("loss", model).fit(X[train], Y[train], eval_set=(X[test], Y[test]))
    scores = ranker.predict(X[test])
    for k, name in enumerate(ranker.objective_names_):
        curve = ranker.evals_[name]["auc"]
        assert curve[-1] == pytest.approx(roc_auc_score(Y[test, k], scores))
        assert ranker.attained_[k] == curve[-1]
    assert len(curve) == ranker.best_round_
    grouped = ranker_of("loss", model).fit(X, Y, qid=qid)
    assert set(grouped.evals_["objective_0"]) == {"auc", "ndcg@10"}
    assert len(grouped.evals_["objective_1"]["ndcg@10"]) == grouped.best_round_


@pytest.mark.parametrize("stop_on", ["objective_1", 1, "min", "mean", None])
def test_early_stopping_keeps_the_best_round(stop_on):
    X, Y, _, _ = make_rows(600)
    train, test = slice(0, 400), slice(400, None)
    ranker = ranker_of("loss", n_rounds=300, early_stopping=5, stop_on=stop_on)
    ranker.fit(X[train], Y[train], eval_set=(X[test], Y[test]))
    curves = np.array([ranker.evals_[name]["auc"] for name in ranker.objective_names_])
    if stop_on in ("objective_1", 1):
        watched = curves[1]
    else:
        watched = curves.min(0) if stop_on == "min" else curves.mean(0)
    assert ranker.best_round_ == np.argmax(watched) + 1
    assert len(watched) == ranker.best_round_ + 5
    np.testing.assert_allclose(ranker.attained_, curves[:, ranker.best_round_ - 1])
    found = [roc_auc_score(Y[test, k], ranker.predict(X[test])) for k in (0, 1)]
    np.testing.assert_allclose(found, ranker.attained_)


def test_plug_ins_take_other_weights_at_prediction():
    X, Y, _, _ = make_rows()
    for method in ("plug-in-label", "plug-in-loss"):
        ranker = ranker_of(method, weights=[1, 0]).fit(X, Y)
        other = ranker_of(method, weights={"objective_1": 1}).fit(X, Y)
        assert same_bytes(ranker.predict(X, weights=[0, 2]), other.predict(X))
        assert same_bytes(ranker.predict(X, weights={"objective_0": 1}), ranker.predict(X))
        assert isinstance(ranker.best_round_, list)
    learned = ranker_of("loss", weights=[1, 3]).fit(X, Y)
    assert same_bytes(learned.predict(X, weights=[2, 6]), learned.predict(X))
    with pytest.raises(ValueError, match="plug-in"):
        learned.predict(X, weights=[1, 1])


# --- laws ------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["lightgbm", "linear"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("grouped", [False, True])
def test_laws(method, model, grouped, tmp_path):
    X, Y, _, qid = make_rows(700)
    qid = qid if grouped else None
    before = X.copy(), Y.copy()
    ranker = ranker_of(method, model, n_rounds=6)
    params = ranker.get_params()
    fitted = clone(ranker).fit(X, Y, qid=qid)
    scores = fitted.predict(X)
    assert scores.shape == (700,)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert same_bytes(before[0], X)
    assert same_bytes(before[1], Y)
    assert fitted.get_params() == params

    # Threads do not show, nor the batch, nor the scale of the weights.
    threaded = clone(ranker).set_params(n_jobs=4).fit(X, Y, qid=qid)
    assert same_bytes(threaded.predict(X), scores)
    assert threaded.evals_ == fitted.evals_
    assert same_bytes(fitted.predict(X[7:9]), scores[7:9])
    assert fitted.predict(X[:0]).shape == (0,)
    scaled = clone(ranker).set_params(weights=[8, 8]).fit(X, Y, qid=qid)
    assert same_bytes(scaled.predict(X), scores)

    # Save and load: the same bytes, no pickle; and through pickle in memory.
    fitted.save(tmp_path / "M")
    for copy in (load(tmp_path / "M"), pickle.loads(pickle.dumps(fitted))):
        assert (copy.evals_, copy.best_round_) == (fitted.evals_, fitted.best_round_)
        assert same_bytes(copy.predict(X), scores)
        assert copy.objective_names_ == fitted.objective_names_
        assert same_bytes(copy.weights_, fitted.weights_)
        assert copy.get_params() == params
    again = load(tmp_path / "M")
    again.save(tmp_path / "N")
    assert same_bytes(load(tmp_path / "N").predict(X), scores)


@pytest.mark.parametrize("model", ["lightgbm", "linear"])
@pytest.mark.parametrize("method", ["label", "loss"])
def test_queries_may_come_in_any_order(method, model):
    X, Y, _, qid = make_rows(700)
    fitted = ranker_of(method, model).fit(X, Y, qid=qid)
    p = np.random.default_rng(2).permutation(700)
    permuted = ranker_of(method, model).fit(X[p], Y[p], qid=np.char.add("q", qid[p].astype(str)))
    np.testing.assert_allclose(permuted.attained_, fitted.attained_, atol=0.02)
    order = np.argsort(qid, kind="stable")
    sizes = np.unique(qid, return_counts=True)[1]
    by_sizes = ranker_of(method, model).fit(X[order], Y[order], sizes)
    by_ids = ranker_of(method, model).fit(X[order], Y[order], qid=qid[order])
    assert same_bytes(by_sizes.predict(X), by_ids.predict(X))


def test_kinds_of_input_give_the_same():
    X, Y, _, _ = make_rows(400)
    expected = ranker_of("loss").fit(X, Y).predict(X)
    frame = pd.DataFrame(X, columns=list("abcde"))
    named = ranker_of("loss").fit(frame, {"relevance": Y[:, 0], "clicks": Y[:, 1]})
    assert named.objective_names_ == ["relevance", "clicks"]
    assert list(named.feature_names_in_) == list("abcde")
    assert same_bytes(named.predict(frame), expected)
    with pytest.raises(ValueError, match="feature names"):
        named.predict(frame[list("edcba")])
    table = ranker_of("loss").fit(X.tolist(), pd.DataFrame(Y, columns=["relevance", "clicks"]))
    assert same_bytes(table.predict(X.astype(np.float64)), expected)
    one = ranker_of("loss").fit(X, Y[:, 0])
    assert one.objective_names_ == ["objective_0"]
    assert same_bytes(one.predict(X), ranker_of("label").fit(X, Y[:, :1]).predict(X))


@pytest.mark.parametrize("model", ["lightgbm", "linear"])
def test_sparse_features(model, tmp_path):
    rng = np.random.default_rng(3)
    dense = rng.random((800, 60)).astype(np.float32) * (rng.random((800, 60)) < 0.1)
    Y = np.column_stack([dense[:, :5].sum(1) > 0.2, dense[:, 5:8].sum(1) > 0.3]).astype(float)
    ranker = ranker_of("label", model).fit(sp.csr_matrix(dense), Y)
    scores = ranker.predict(sp.csr_matrix(dense))
    assert same_bytes(ranker.predict(dense), scores)
    assert objectives.per_label_auc(scores, Y.sum(1)) > 0.7
    ranker.save(tmp_path / "M")
    assert same_bytes(load(tmp_path / "M").predict(sp.coo_array(dense)), scores)


def test_parameters_of_any_kind_are_saved(tmp_path):
    X, Y, _, qid = make_rows(400)
    ranker = ranker_of("label", weights=[1, 2], label_gain=[0, 1, 3, 7], metric="ndcg")
    ranker.set_params(aggregation=Aggregation(combine="max"))
    with pytest.raises(ValueError, match="integers below"):
        ranker.fit(X, Y, qid=qid)  # weights make 4/3 of a grade
    ranker.set_params(label_gain="linear", weights={"objective_0": 1, "objective_1": 2}).fit(X, Y, qid=qid)
    ranker.save(tmp_path / "M")
    loaded = load(tmp_path / "M").get_params()
    assert vars(loaded.pop("aggregation")) == vars(ranker.aggregation)
    assert loaded == {name: v for name, v in ranker.get_params().items() if name != "aggregation"}
    ranker.set_params(weights=np.array([1, 2])).save(tmp_path / "M")
    np.testing.assert_array_equal(load(tmp_path / "M").weights, [1, 2])


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, Y, _, _ = make_rows(300)
    ranker = ranker_of("loss").fit(X, Y)
    scores = ranker.predict(X)
    with pytest.raises(ValueError, match="constant"):
        ranker.fit(X, np.zeros_like(Y))
    assert same_bytes(ranker.predict(X), scores)


def test_features_without_a_word_to_say_give_constant_scores():
    _, Y, _, _ = make_rows(300)
    for model in ("lightgbm", "linear"):
        for method in ("label", "plug-in-loss"):
            scores = ranker_of(method, model).fit(np.ones((300, 2)), Y).predict(np.ones((5, 2)))
            assert np.ptp(scores) == 0


# --- bad input -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "fit", "match"),
    [
        ({"aggregation": "mean"}, {}, "aggregation must be one of"),
        ({"model": "forest"}, {}, "model must be one of"),
        ({"metric": "map"}, {}, "metric must be one of"),
        ({"metric": "ndcg"}, {}, "group"),
        ({"n_rounds": 0}, {}, "n_rounds"),
        ({"params": [("num_leaves", 3)]}, {}, "params must be a dict"),
        ({"params": {"num_leaves": [3]}}, {}, "params must be a dict"),
        ({"params": {"objective": "l2"}}, {}, "params must leave 'objective' to the ranker"),
        ({"params": {"num_leafs": 7}}, {}, "params must name settings of LightGBM, got 'num_leafs'"),
        ({"l2": -1}, {}, "l2"),
        ({"random_state": -1}, {}, "random_state"),
        ({"early_stopping": 5}, {}, "early_stopping needs"),
        ({"stop_on": "clicks"}, {}, "stop_on"),
        ({"stop_on": 2}, {}, "stop_on"),
        ({"weights": [1, 2, 3]}, {}, "weights must have 2 entries, got 3"),
        ({"weights": [0, 0]}, {}, "sum to 0"),
        ({"weights": {"clicks": 1}}, {}, "'clicks'"),
        ({}, {"Y": None}, "requires y"),
        ({}, {"Y": [[-1, 0]] * 30}, "-1 at row 0"),
        ({}, {"Y": np.empty((30, 0))}, "K >= 1"),
        ({}, {"Y": {"clicks": np.arange(30), "buys": np.ones(30)}}, "'buys' of Y is constant"),
        ({}, {"Y": np.zeros((7, 2))}, "X has 30 rows, Y has 7"),
        ({"model": "linear"}, {"X": np.full((30, 2), np.nan)}, "NaN"),
        ({}, {"X": np.full((30, 2), np.inf)}, "infinity"),
        ({}, {"group": [10, 10]}, "add up to the number of rows, 30, got 20"),
        ({}, {"qid": [1, 2]}, "qid must have one entry per row"),
        ({}, {"group": [30], "qid": np.zeros(30, int)}, "both"),
        ({}, {"group": [1] * 30}, "constant"),
        ({}, {"eval_qid": [1]}, "eval_set, which is missing"),
        ({}, {"eval_set": 3}, "pair"),
        ({}, {"eval_set": (np.zeros((4, 3)), np.zeros((4, 2)))}, "X of eval_set has 3 features"),
        ({}, {"eval_set": (np.zeros((4, 2)), np.zeros((4, 3)))}, "must hold the objectives"),
        ({}, {"eval_set": (np.zeros((4, 2)), np.zeros((4, 2)))}, "'objective_0' of eval_set is constant"),
        ({}, {"eval_set": (np.zeros((2, 2)), np.eye(2)), "eval_group": [2]}, "if and only if"),
    ],
)
def test_bad_input_is_named(params, fit, match):
    rng = np.random.default_rng(4)
    given = {"X": rng.normal(size=(30, 2)), "Y": np.arange(60).reshape(30, 2) % 3} | fit
    ranker = MultiObjectiveRanker(n_rounds=2).set_params(**params)
    with pytest.raises(ValueError, match=match):
        ranker.fit(given.pop("X"), given.pop("Y"), **given)


def test_bad_aggregations_are_named():
    for wrong, match in (
        ({"method": "mean"}, "aggregation must be one of"),
        ({"combine": "mean"}, "combine must be one of"),
        ({"cost": "ratio"}, "cost must be one of .* got 'ratio'"),
        ({"surrogate": "square"}, "surrogate must be one of"),
    ):
        with pytest.raises(ValueError, match=match):
            Aggregation(**wrong)


def test_labels_that_cancel_out_are_named():
    X, Y, _, _ = make_rows(300)
    opposite = {"good": Y[:, 0], "bad": 1 - Y[:, 0]}
    with pytest.raises(ValueError, match=r"aggregated label \(sum of good, bad\) is constant"):
        ranker_of("label").fit(X, opposite)


def test_predict_checks_its_input():
    X, Y, _, _ = make_rows(300)
    with pytest.raises(ValueError, match="not fitted"):
        ranker_of("loss").predict(X)
    with pytest.raises(ValueError, match="not fitted"):
        ranker_of("loss").save("anywhere")
    ranker = ranker_of("loss").fit(X, Y)
    with pytest.raises(ValueError, match="X has 4 features, but MultiObjectiveRanker is expecting 5"):
        ranker.predict(X[:, :4])
    with pytest.raises(ValueError, match="weights must have 2 entries, got 1"):
        ranker.predict(X, weights=[1])


# --- scikit-learn ----------------------------------------------------------------


@parametrize_with_checks(
    [
        MultiObjectiveRanker("loss", n_rounds=3, n_jobs=1),
        MultiObjectiveRanker("plug-in-label", "linear", n_rounds=3, n_jobs=1),
    ]
)
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("metric", ["auc", "ndcg"])
def test_all_weight_on_one_label_is_that_label_alone(metric):
    """By labels and by losses: grades, and with them the gains of nDCG, are those of the label."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 4))
    Y = {"grade": rng.integers(0, 5, 400), "clicks": (X[:, 1] > 0).astype(int)}
    settings = {"metric": metric, "n_rounds": 5, "n_jobs": 1, "weights": {"grade": 3}}
    group = np.full(20, 20) if metric == "ndcg" else None
    by_label, by_loss = (
        MultiObjectiveRanker(how, **settings).fit(X, Y, group=group).predict(X) for how in ("label", "loss")
    )
    np.testing.assert_allclose(by_label, by_loss, rtol=1e-9)
