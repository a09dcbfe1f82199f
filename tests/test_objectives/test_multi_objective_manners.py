"""`MultiObjectiveRanker` as scikit-learn meets it: `score`, missing values, importances."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score

import metarank
from metarank import MultiObjectiveRanker, pareto_front
from metarank.objectives import per_label_auc

QUICK = {"n_rounds": 8, "params": {"num_leaves": 7}, "n_jobs": 1}
LINEAR = QUICK | {"model": "linear"}


def rows(n: int = 240, missing: bool = False, seed: int = 0):
    """Columns of which the first speaks for clicks; where it is missing, rows are relevant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    gone = rng.random(n) < 0.3
    relevant = (gone if missing else X[:, 1] > 0) * 1.0
    Y = {"relevance": relevant, "clicks": (X[:, 0] + rng.normal(size=n) > 0) * 1.0}
    if missing:
        X[gone, 0] = np.nan
    return X, Y


# --- score -------------------------------------------------------------------------


@pytest.mark.parametrize("params", [QUICK, LINEAR, QUICK | {"aggregation": "plug-in-label"}])
@pytest.mark.parametrize("grouped", [False, True])
def test_score_is_the_mean_of_what_is_attained_on_held_out_rows(params, grouped):
    (X, Y), (X_new, Y_new) = rows(), rows(seed=1)
    qid = np.arange(240) // 12
    queries = {"qid": qid, "eval_qid": qid} if grouped else {}
    model = MultiObjectiveRanker(**params).fit(X, Y, eval_set=(X_new, Y_new), **queries)
    held_out = {"qid": qid} if grouped else {}
    assert model.score(X_new, Y_new, **held_out) == pytest.approx(model.attained_.mean(), abs=1e-12)
    assert model.score(X_new, y=Y_new, **held_out) == model.score(X_new, Y_new, **held_out)
    if grouped:
        assert model.score(X_new, Y_new, [12] * 20) == model.score(X_new, Y_new, qid=qid)
    else:
        areas = per_label_auc(model.predict(X_new), Y_new)
        assert model.score(X_new, Y_new) == pytest.approx(areas.mean(), abs=1e-12)


def test_cross_validation_and_search_have_a_score():
    X, Y = rows()
    scores = cross_val_score(MultiObjectiveRanker(**LINEAR), X, pd.DataFrame(Y), cv=3)
    assert np.isfinite(scores).all()
    assert scores.mean() > 0.7


@pytest.mark.parametrize(
    ("params", "change", "match"),
    [
        ({}, {"Y": {"clicks": np.arange(240) % 2}}, "Y must hold the objectives"),
        ({}, {"Y": {"relevance": np.ones(240), "clicks": np.arange(240) % 2}}, "relevance' of Y is constant"),
        ({}, {"X": np.zeros((3, 4))}, "Y must have as many rows as X, 3, got 240"),
        ({}, {"group": [240], "qid": np.zeros(240)}, "group"),
        ({}, {"Y": None}, "y is None"),
        ({"metric": "ndcg"}, {}, "metric='ndcg' is defined within queries"),
    ],
)
def test_what_score_refuses(params, change, match):
    X, Y = rows()
    model = MultiObjectiveRanker(**LINEAR).fit(X, Y).set_params(**params)
    with pytest.raises(ValueError, match=match):
        model.score(**{"X": X, "Y": Y} | change)


# --- missing values -------------------------------------------------------------------


@pytest.mark.parametrize("aggregation", ["loss", "plug-in-loss"])
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sp.csr_matrix])
def test_missing_values_are_those_of_lightgbm(form, aggregation, tmp_path):
    X, Y = rows(missing=True)
    model = MultiObjectiveRanker(aggregation, **QUICK).fit(form(X), Y)
    assert per_label_auc(model.predict(form(X)), Y)[0] > 0.9  # that it is missing tells
    np.testing.assert_allclose(model.contributions(X).sum(axis=1), model.predict(form(X)), atol=1e-9)
    assert model.contributions(X[:0]).shape == (0, X.shape[1] + 1)
    model.save(tmp_path / "M")
    assert (metarank.load(tmp_path / "M").predict(form(X)) == model.predict(form(X))).all()
    assert np.isfinite(model.score(form(X), Y))


def test_a_front_is_made_of_rows_with_missing_values():
    X, Y = rows(missing=True)
    front = pareto_front(X, Y, ranker=MultiObjectiveRanker(**QUICK), n_weights=3, aggregations=["loss"])
    assert np.isfinite(front.points).all()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_linear_model_says_that_it_knows_no_missing_values(form):
    X, Y = rows()
    model = MultiObjectiveRanker(**LINEAR).fit(X, Y)
    X[3, 2] = np.nan
    expected = r"^X contains NaN at row 3, column 2: model='linear' allows no missing values: fill them, or"
    for call in (
        lambda: model.fit(form(X), Y),
        lambda: model.predict(form(X)),
        lambda: model.score(form(X), Y),
    ):
        with pytest.raises(ValueError, match=expected):
            call()
    with pytest.raises(ValueError, match=r"infinity .* at row 3, column 2$"):
        MultiObjectiveRanker(**QUICK).fit(form(np.where(np.isnan(X), np.inf, X)), Y)


# --- importances --------------------------------------------------------------------


@pytest.mark.parametrize("aggregation", ["loss", "plug-in-label"])
@pytest.mark.parametrize("params", [QUICK, LINEAR])
def test_importances_are_those_of_the_columns_that_tell(params, aggregation, tmp_path):
    X, Y = rows()
    frame = pd.DataFrame(X * [1000, 1, 1, 1], columns=["of clicks", "of relevance", "noise", "more"])
    model = MultiObjectiveRanker(aggregation, **params).fit(frame, Y)
    shares = pd.Series(model.feature_importances_, model.feature_names_in_)
    assert shares.sum() == pytest.approx(1)
    assert set(shares.nlargest(2).index) == {"of clicks", "of relevance"}
    if aggregation == "loss" and params is LINEAR:  # the unit of a column does not show
        other = MultiObjectiveRanker(aggregation, **params).fit(X, Y)
        np.testing.assert_allclose(other.feature_importances_, shares, rtol=1e-4)
    model.save(tmp_path / "M")
    assert (metarank.load(tmp_path / "M").feature_importances_ == shares).all()


def test_nothing_to_split_by_is_of_no_importance():
    model = MultiObjectiveRanker(**QUICK).fit(np.ones((40, 2)), {"a": np.arange(40) % 2})
    assert model.feature_importances_.tolist() == [0, 0]
