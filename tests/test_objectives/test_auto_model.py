"""model="auto": what is chosen, its laws, and a blend of a linear model and trees."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from metarank import MultiObjectiveRanker, load, pareto_front
from metarank._util.progress import listening, taking_notes
from metarank.objectives.blended_model import BlendedScorer
from metarank.objectives.boosted_model import BoostedScorer
from metarank.objectives.choice import N_FOLDS, Choice
from metarank.objectives.linear_model import LinearScorer
from metarank.objectives.multi_objective import METHODS

QUICK = {"n_rounds": 8, "num_leaves": 15, "n_jobs": 1}


def rows(kind, n_queries=60, size=10, seed=0):
    """Two labels by columns that add up ("linear"), by the product of two signs ("trees"), or by both."""
    rng = np.random.default_rng(seed)
    n = n_queries * size
    X = rng.normal(size=(n, 6)).astype(np.float32)
    straight = X @ np.array([1, -1, 0.5, 0, 0, 0.7], np.float32)
    crossed = 2.5 * np.sign(X[:, 3] * X[:, 4])
    signal = {"linear": straight, "trees": crossed, "both": straight + 0.32 * crossed}[kind]
    Y = np.column_stack([signal + 0.5 * rng.normal(size=n) > cut for cut in (0, 1)]).astype(float)
    return X, Y, np.repeat(np.arange(n_queries), size)


def ranker_of(method="label", **params):
    constraints = {"constraints": {"objective_0": 0.9}} if method == "epsilon" else {}
    return MultiObjectiveRanker(method, "auto", **(QUICK | constraints | params))


def parts(ranker):
    return {type(scorer) for scorer in ranker.scorers_}


# --- what is chosen --------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("kind", "chosen"), [("linear", LinearScorer), ("trees", BoostedScorer)])
@pytest.mark.parametrize("method", ["label", "plug-in-loss"])
def test_the_choice_is_that_of_new_rows(kind, chosen, grouped, method):
    X, Y, qid = rows(kind, 300)
    qid = qid if grouped else None
    ranker = ranker_of(method, n_rounds=30, min_data_in_leaf=5).fit(X, Y, qid=qid)
    assert parts(ranker) == {chosen} or parts(ranker) == {BlendedScorer}
    X_new, Y_new, new = rows(kind, 300, seed=1)
    scores = {"auto": ranker.score(X_new, Y_new, qid=new if grouped else None)}
    for model in ("linear", "lightgbm"):
        other = clone(ranker).set_params(model=model).fit(X, Y, qid=qid)
        scores[model] = other.score(X_new, Y_new, qid=new if grouped else None)
    assert scores["auto"] > max(scores["linear"], scores["lightgbm"]) - 0.01
    assert min(scores["linear"], scores["lightgbm"]) < scores["auto"] - 0.005


def test_a_blend_is_better_than_its_parts_where_both_tell():
    X, Y, qid = rows("both", 100)
    ranker = ranker_of(n_rounds=30).fit(X, Y, qid=qid)
    assert parts(ranker) == {BlendedScorer}
    assert " + " in ranker.choices_[0]
    held_out = [float(line.rsplit(" ", 1)[1]) for line in ranker.choices_]
    assert held_out == sorted(held_out, reverse=True)
    assert len(ranker.choices_) == 8
    X_new, Y_new, new = rows("both", 300, seed=1)
    for model in ("linear", "lightgbm"):
        other = clone(ranker).set_params(model=model).fit(X, Y, qid=qid)
        assert ranker.score(X_new, Y_new, qid=new) > other.score(X_new, Y_new, qid=new)


def test_held_out_figures_are_those_of_new_queries():
    X, Y, qid = rows("both", 400)
    ranker = ranker_of().fit(X, Y, qid=qid)
    X_new, Y_new, new = rows("both", 400, seed=1)
    told = float(ranker.choices_[0].rsplit(" ", 1)[1])
    assert told == pytest.approx(ranker.score(X_new, Y_new, qid=new), abs=0.03)


def test_the_choice_serves_the_objectives_that_have_weight():
    """One label is linear, the other crossed: each alone decides for the model that finds it."""
    X, straight, qid = rows("linear", 200)
    _, crossed, _ = rows("trees", 200)
    Y = np.column_stack([straight[:, 0], crossed[:, 0]])
    by_weight = {w: ranker_of("loss", weights=w, n_rounds=30).fit(X, Y, qid=qid) for w in ((1, 0), (0, 1))}
    assert BoostedScorer not in parts(by_weight[1, 0])
    assert LinearScorer not in parts(by_weight[0, 1])


def test_missing_values_are_for_trees():
    X, Y, qid = rows("linear")
    X[3, 2] = np.nan
    ranker = ranker_of().fit(X, Y, qid=qid)
    assert parts(ranker) == {BoostedScorer}
    assert not any("linear" in line for line in ranker.choices_)
    assert np.isfinite(ranker.predict(X)).all()
    seen = slice(0, 400)
    watched = {"eval_set": (X, Y), "eval_qid": qid}
    assert parts(ranker_of().fit(X[50:], Y[50:], qid=qid[50:], **watched)) == {BoostedScorer}
    known = ranker_of().fit(X[50:], Y[50:], qid=qid[50:])
    assert parts(known) != {BoostedScorer}
    with pytest.raises(ValueError, match="has chosen a linear part here, which knows no missing values"):
        known.predict(X[seen])


def test_sparse_features_are_made_dense_for_a_linear_part(monkeypatch):
    X, Y, qid = rows("linear")
    dense = ranker_of().fit(X, Y, qid=qid)
    wide = sp.csr_matrix(np.hstack([X, np.zeros((len(X), 200), np.float32)]))
    ranker = ranker_of().fit(wide, Y, qid=qid)
    np.testing.assert_allclose(ranker.predict(wide), dense.predict(X), atol=1e-6)
    monkeypatch.setattr("metarank.objectives.multi_objective.MOST_DENSE", 1000)
    assert parts(ranker_of().fit(wide, Y, qid=qid)) == {BoostedScorer}


@pytest.mark.parametrize("grouped", [False, True])
def test_where_nothing_can_be_compared_it_is_trees(grouped):
    X, Y, qid = rows("linear", 1, 30)
    Y[:, 1] = 0
    Y[4, 1] = 1  # without queries: in no fold but one
    ranker = ranker_of().fit(X, Y[:, 1], qid=qid if grouped else None)
    assert parts(ranker) == {BoostedScorer}
    assert ranker.choices_ == ["lightgbm: too few queries or rows to compare"]


def test_what_it_costs(monkeypatch):
    """Five candidates on five folds, once, and the two parts at most of what is taken."""
    trained = []
    for cls in ("LinearFit", "Boosting"):
        made = getattr(__import__("metarank.objectives.learning", fromlist=[cls]), cls)
        fit = made.fit

        def counted(self, *args, fit=fit, **rest):
            trained.append(type(self).__name__)
            return fit(self, *args, **rest)

        monkeypatch.setattr(made, "fit", counted)
    X, Y, qid = rows("both")
    ranker_of("chebyshev").fit(X, Y, qid=qid)
    searched = 2 * (8 + 2)
    assert len(trained) <= 5 * N_FOLDS + searched


# --- laws ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["linear", "trees", "both"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("grouped", [False, True])
def test_laws(method, kind, grouped, tmp_path):
    X, Y, qid = rows(kind, 40)
    qid = qid if grouped else None
    ranker = ranker_of(method)
    fitted = clone(ranker).fit(X, Y, qid=qid)
    scores = fitted.predict(X)
    assert fitted.get_params() == ranker.get_params()
    threaded = clone(ranker).set_params(n_jobs=3).fit(X, Y, qid=qid)
    assert threaded.predict(X).tobytes() == scores.tobytes()
    assert threaded.choices_ == fitted.choices_
    assert threaded.evals_ == fitted.evals_
    assert fitted.predict(X[7:9]).tobytes() == scores[7:9].tobytes()
    assert (
        clone(ranker).set_params(weights=[8, 8]).fit(X, Y, qid=qid).predict(X).tobytes() == scores.tobytes()
    )

    # What is watched is what the scores attain.
    assert fitted.score(X, Y, qid=qid) == pytest.approx(fitted.attained_.mean(), abs=1e-9)
    # Contributions and importances add up.
    shares = fitted.contributions(X)
    assert shares.shape == (len(X), 7)
    np.testing.assert_allclose(shares.sum(axis=1), scores, rtol=1e-5, atol=1e-5)
    assert fitted.feature_importances_.sum() == pytest.approx(1)

    fitted.save(tmp_path / "M")
    for copy in (load(tmp_path / "M"), pickle.loads(pickle.dumps(fitted))):
        assert copy.predict(X).tobytes() == scores.tobytes()
        assert copy.choices_ == fitted.choices_
        assert copy.get_params() == ranker.get_params()
        assert copy.contributions(X).tobytes() == shares.tobytes()
        if "plug-in" in method:
            again = copy.reweighted([1, 3]).predict(X)
            assert again.tobytes() == fitted.predict(X, weights=[1, 3]).tobytes()


def test_folds_do_not_hang_on_the_order_of_rows():
    X, Y, qid = rows("both")
    order = np.random.default_rng(1).permutation(len(X))
    one, other = (ranker_of().fit(X[p], Y[p], qid=qid[p]) for p in (np.arange(len(X)), order))
    figures = [{line.rsplit(": ", 1)[0]: line for line in ranker.choices_} for ranker in (one, other)]
    # Ties within trees apart.
    assert figures[0]["linear (l2 1)"] == figures[1]["linear (l2 1)"]


@pytest.mark.parametrize("kind", ["linear", "trees", "both"])
def test_early_stopping_watches_the_blend(kind):
    X, Y, qid = rows(kind, 120)
    seen, held = qid < 80, qid >= 80
    watched = {"eval_set": (X[held], Y[held]), "eval_qid": qid[held]}
    ranker = ranker_of(n_rounds=60, early_stopping=4).fit(X[seen], Y[seen], qid=qid[seen], **watched)
    curve = np.mean([of["ndcg@10"] for of in ranker.evals_.values()], axis=0)
    assert ranker.best_round_ == curve.argmax() + 1
    assert ranker.attained_.mean() == pytest.approx(curve.max())
    assert ranker.score(X[held], Y[held], qid=qid[held]) == pytest.approx(curve.max())


def test_a_front_chooses_once():
    X, Y, qid = rows("both")
    ranker = ranker_of()
    front = pareto_front(X, Y, ranker=ranker, qid=qid, n_weights=3, aggregations=["label", "plug-in-label"])
    told = {tuple(model.choices_) for model in front.models}
    assert len(told) == 1
    for model, point in zip(front.models, front.points):
        np.testing.assert_allclose(model.attained_, point)


def test_progress_and_notes():
    X, Y, qid = rows("both")
    seen = []
    with listening(lambda stage, done: seen.append((stage, done))), taking_notes() as notes:
        ranker = ranker_of().fit(X, Y, qid=qid)
    assert seen[-1] == ("done", 1.0)
    assert all(0 <= done <= 1 for _, done in seen)
    assert notes == [f"model of several objectives: {ranker.choices_[0]}"]


def test_propensities_are_those_of_every_step():
    X, Y, _ = rows("both", 400)
    rng = np.random.default_rng(0)
    p = np.array([0.4, 0.9])
    observed = Y * (rng.random(Y.shape) < p)
    whole = ranker_of("loss").fit(X, Y)
    part = ranker_of("loss").fit(X, observed, propensities=p)
    plain = ranker_of("loss").fit(X, Y, propensities=[1, 1])
    assert plain.predict(X).tobytes() == whole.predict(X).tobytes()
    told = [float(ranker.choices_[0].rsplit(" ", 1)[1]) for ranker in (whole, part)]
    assert told[1] == pytest.approx(told[0], abs=0.03)


# --- parts -----------------------------------------------------------------------


def test_choice_of_a_word():
    assert Choice.of("linear").trees is None
    assert Choice.of("lightgbm").linear is None
    half = Choice({}, {}, 0.5, (2.0, 4.0))
    assert half.factors(of_log_odds=False).tolist() == [0.25, 0.125]
    assert half.factors(of_log_odds=True).tolist() == [0.5, 0.5]


def test_other_models_have_no_choices():
    X, Y, qid = rows("linear")
    assert MultiObjectiveRanker(model="linear", **QUICK).fit(X, Y, qid=qid).choices_ == []
