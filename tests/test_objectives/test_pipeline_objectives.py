"""`MetaRanker` with several targets of each pair: one ranking that serves them all."""

import numpy as np
import pytest
import scipy.sparse as sp

import metarank
from metarank import MetaRanker, MultiObjectiveRanker, metrics
from metarank.data.dataset import Dataset
from metarank.scorers import LabelScorer
from metarank.scorers.neighbors.voting import NEAREST

N, L = 240, 6
FAST = {"features": ["neighbors", "centroids"], "n_jobs": 1, "n_folds": 3}


def rows_and_targets(seed=0, n=N):
    """Relevance by the first half of the features, clicks, rarer, by the other half."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2 * L)).astype(np.float32)
    relevance = (X[:, :L] + 0.3 * rng.normal(size=(n, L)) > 0.8).astype(np.float32)
    clicks = (X[:, L:] + 0.3 * rng.normal(size=(n, L)) > 1.3).astype(np.float32)
    return X, {"relevance": relevance, "clicks": clicks}


def quick(aggregation="label", **params):
    defaults = {"n_rounds": 15, "label_gain": "linear", "n_jobs": 1}
    trees = {"num_leaves": 7, "min_data_in_leaf": params.pop("min_data_in_leaf", 20)}
    return MultiObjectiveRanker(aggregation, params=trees, **(defaults | params))


def ndcgs(model, X, Y, **params):
    ranking = model.rank(X, k=L, **params)
    return {name: metrics.evaluate(of, ranking, ["nDCG@5"])["nDCG@5"] for name, of in Y.items()}


@pytest.fixture(scope="module")
def fitted():
    X, Y = rows_and_targets()
    return MetaRanker(**FAST).fit(X, Y, objectives=quick("plug-in-label"))


def test_one_ranking_serves_both(fitted):
    X, Y = rows_and_targets(1)
    chance = {name: metrics.evaluate(of, np.zeros((N, L)), ["nDCG@5"])["nDCG@5"] for name, of in Y.items()}
    found = ndcgs(fitted, X, Y)
    assert all(found[name] > chance[name] + 0.1 for name in Y)
    assert fitted.objective_names_ == ["relevance", "clicks"]


def test_weights_change_after_a_plug_in(fitted):
    X, Y = rows_and_targets(1)
    one = ndcgs(fitted, X, Y, objective_weights={"relevance": 1})
    other = ndcgs(fitted, X, Y, objective_weights={"clicks": 1})
    assert one["relevance"] > other["relevance"] + 0.05
    assert other["clicks"] > one["clicks"] + 0.05
    assert ndcgs(fitted, X, Y, objective_weights=[2, 2]) == ndcgs(fitted, X, Y)


@pytest.mark.parametrize("aggregation", ["label", "loss", "product"])
def test_every_aggregation_ranks(aggregation):
    X, Y = rows_and_targets(n=90)
    model = MetaRanker(**FAST).fit(X, Y, objectives=quick(aggregation, n_rounds=4))
    assert model.rank(X[:5], k=3).labels.shape == (5, 3)
    assert model.predict(X[:5]).shape == (5, L)
    with pytest.raises(ValueError, match="weights must be those of the fit"):
        model.rank(X[:5], objective_weights=[3, 1])


@pytest.mark.parametrize(
    ("aggregation", "options"),
    [("label", {"weights": [2, 1]}), ("loss", {"weights": [2, 1]}), ("plug-in-label", {})],
)
@pytest.mark.parametrize("shortlister", [None, "neighbors"])
def test_each_label_may_be_relevant_for_some_objective(aggregation, options, shortlister):
    X, Y = rows_and_targets(n=90)
    targets = {"relevance": Y["relevance"], "skips": 1 - Y["relevance"]}
    objectives = quick(aggregation, n_rounds=5, **options)
    model = MetaRanker(**FAST, shortlister=shortlister).fit(X, targets, objectives=objectives)
    asked = {} if options else {"objective_weights": {"relevance": 1}}
    chance = metrics.evaluate(Y["relevance"], np.zeros((90, L)), ["nDCG@5"])["nDCG@5"]
    assert ndcgs(model, X, targets, **asked)["relevance"] > chance + 0.1


def test_one_objective_alone_orders_by_it():
    X, Y = rows_and_targets()
    test, wanted = rows_and_targets(1)
    for name in Y:
        model = MetaRanker(**FAST).fit(X, Y, objectives=quick("loss", weights={name: 1}))
        other = next(key for key in Y if key != name)
        found = ndcgs(model, test, wanted)
        assert found[name] > ndcgs(model, test, {name: wanted[other]})[name]


def test_saved_models_and_threads_give_the_same_scores(fitted, tmp_path):
    X, Y = rows_and_targets()
    before = fitted.decision_function(X[:20])
    fitted.save(tmp_path / "model")
    again = metarank.load(tmp_path / "model")
    assert again.objective_names_ == ["relevance", "clicks"]
    assert again.decision_function(X[:20]).tobytes() == before.tobytes()
    weights = {"relevance": 1, "clicks": 4}
    assert np.array_equal(
        again.rank(X[:20], objective_weights=weights).labels,
        fitted.rank(X[:20], objective_weights=weights).labels,
    )
    threads = MetaRanker(**{**FAST, "n_jobs": 3}).fit(X, Y, objectives=quick("plug-in-label", n_jobs=3))
    assert threads.decision_function(X[:20]).tobytes() == before.tobytes()


@pytest.mark.parametrize("aggregation", ["plug-in-label", "plug-in-loss", "label"])
@pytest.mark.parametrize("kind", ["lightgbm", "linear"])
def test_contributions_add_up_to_the_score(aggregation, kind):
    X, Y = rows_and_targets(n=150)
    Y = {name: of[:, 0] for name, of in Y.items()}
    model = quick(aggregation, model=kind, metric="auc", min_data_in_leaf=5).fit(X, Y)
    shares = model.contributions(X)
    assert shares.shape == (150, X.shape[1] + 1)
    np.testing.assert_allclose(shares.sum(axis=1), model.predict(X), rtol=1e-6, atol=1e-9)


def test_targets_by_names_of_labels_make_one_set_of_labels():
    texts = [f"{topic} number{i % 7}" for i in range(60) for topic in ("sun", "moon")]
    relevance = [["day"] if "sun" in text else ["night"] for text in texts]
    clicks = [["night"] if "moon" in text else ["noon"] if i % 3 else [] for i, text in enumerate(texts)]
    model = MetaRanker(**FAST).fit(
        texts, {"relevance": relevance, "clicks": clicks}, objectives=quick(n_rounds=5, min_data_in_leaf=5)
    )
    assert model.label_names_ == ["day", "night", "noon"]
    assert model.rank(["moon number1"], k=1).labels[0, 0] == 1


def test_a_dataset_gives_features_and_names_and_the_dict_the_targets():
    X, Y = rows_and_targets(n=60)
    names = [f"label {j}" for j in range(L)]
    dataset = Dataset(X=X, Y=sp.csr_matrix(Y["relevance"]), label_names=names)
    model = MetaRanker(**FAST).fit(dataset, Y, objectives=quick(n_rounds=3, min_data_in_leaf=5))
    assert model.label_names_ == names


X, Y = rows_and_targets(n=30)


@pytest.mark.parametrize(
    ("params", "targets", "objectives", "error", "message"),
    [
        ({}, Y["clicks"], "label", ValueError, "objectives needs several targets"),
        ({}, {}, None, ValueError, "Y must hold at least one objective"),
        ({}, {1: Y["clicks"]}, None, TypeError, "names of objectives as keys, got 1"),
        ({}, Y, "best", ValueError, "aggregation must be"),
        ({}, Y, 3, TypeError, "objectives must name an aggregation"),
        ({"ranker": "lambdarank"}, Y, None, ValueError, "ranker must be 'auto'"),
        ({}, {**Y, "rare": np.zeros((30, L))}, None, ValueError, r"Y\['rare'\] must hold a relevant label"),
        ({}, {**Y, "wide": np.ones((30, L + 1))}, None, ValueError, r"must have 7 labels as others have"),
        ({}, {**Y, "short": np.ones((29, L))}, None, ValueError, "inconsistent numbers of samples"),
        ({}, {**Y, "named": [["a"]] * 30}, None, ValueError, "in all objectives or in none"),
        ({}, {**Y, "bad": -Y["clicks"]}, None, ValueError, r"Y\['bad'\]"),
        (
            {},
            {**Y, "all": np.ones((30, L))},
            None,
            ValueError,
            r"Y\['all'\] must tell pairs apart, got 1 for",
        ),
        ({}, Y, quick(weights=[1, 2, 3]), ValueError, "weights"),
        ({}, Y, quick(weights={"likes": 1}), ValueError, "weights must name objectives"),
    ],
)
def test_bad_input_is_refused_in_one_line(params, targets, objectives, error, message):
    with pytest.raises(error, match=message):
        MetaRanker(**{**FAST, **params}).fit(X, targets, objectives=objectives)


def test_what_several_objectives_do_not_take_and_one_does_not_either(fitted):
    one, weights = MetaRanker(**FAST, ranker="logistic").fit(X, Y["relevance"]), np.arange(1, 31)
    for call, message in (
        (lambda: one.rank(X, objective_weights=[1, 2]), "objective_weights needs a model"),
        (lambda: MetaRanker(**FAST).fit(X, Y, sample_weight=weights), "sample_weight must be left out"),
        (lambda: fitted.update_labels(add=1), "several objectives"),
        (lambda: fitted.partial_fit(X, Y["clicks"]), "several objectives"),
        (lambda: fitted.score(X, Y), "Y must be the relevances of one objective"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_pairs_are_described_for_each_objective_and_explained(fitted):
    sources = [NEAREST, f"{NEAREST} (relevance)", f"{NEAREST} (clicks)"]
    assert {f"{source}: 1st L2 distance" for source in sources} <= set(fitted.feature_columns_)
    assert "label" in str(fitted.explain(X[0], 2))


def test_a_scorer_of_ones_own_describes_each_objective():
    class Constant(LabelScorer):
        def fit(self, view, *, n_jobs=1):
            self.n_labels_ = view.n_labels
            return self

        def score(self, X, candidates, *, n_jobs=1):
            return {"own": candidates.labels.astype(np.float32)}

    features = ["neighbors", Constant()]
    model = MetaRanker(features=features, n_jobs=1, n_folds=3).fit(X, Y, objectives=quick(n_rounds=2))
    assert {"own", "own (relevance)", "own (clicks)"} <= set(model.feature_columns_)
