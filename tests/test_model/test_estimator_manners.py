"""What users of scikit-learn expect of every estimator: its names of arguments, its seeds, its answers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import makers
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict

import metarank
from metarank import MetaRanker, MultiObjectiveRanker
from metarank.distributed import DaskMetaRanker
from metarank.model.fitting.auto import named_scorers
from metarank.scorers import LabelScorer
from metarank.scorers.shortlister import StandaloneShortlister
from metarank.shortlist import FastXML, OneVsAll, Parabel, XReg
from metarank.text import LabelEmbedder

TREES = {"n_trees": 2, "max_leaf": 5}
BOW = {"encoder": "bow", "subword_dim": 8, "hidden_dim": 8, "embedding_dim": 8, "n_epochs": 1}
# An estimator, its X and its Y.
LABELLED = {
    "MetaRanker": lambda: (MetaRanker(**makers.QUICK), makers.dense().X, makers.dense().Y),
    "Parabel": lambda: (Parabel(**TREES), makers.sparse().X, makers.sparse().Y),
    "FastXML": lambda: (FastXML(**TREES), makers.sparse().X, makers.sparse().Y),
    "XReg": lambda: (XReg(**TREES), makers.sparse().X, makers.sparse().Y),
    "OneVsAll": lambda: (OneVsAll(), makers.sparse().X, makers.sparse().Y),
    "MultiObjectiveRanker": lambda: (
        MultiObjectiveRanker(model="linear", n_rounds=3, n_jobs=1),
        makers.dense().X,
        makers.dense().Y.toarray()[:, :2],
    ),
    "LabelEmbedder": lambda: (
        LabelEmbedder(n_jobs=1, **BOW),
        makers.texts().texts,
        [[makers.TOPICS[j] for j in row.indices] for row in makers.texts().Y],
    ),
}


def answers(model, X) -> bytes:
    if isinstance(model, (MetaRanker, LabelEmbedder)):
        return model.rank(X, k=3).scores.tobytes()
    if isinstance(model, StandaloneShortlister):
        return model.shortlist(X, k=3, n_jobs=1).to_csr().data.tobytes()
    return model.predict(X).tobytes()


@pytest.mark.parametrize("name", LABELLED)
def test_labels_are_taken_by_either_name(name):
    model, X, Y = LABELLED[name]()
    expected = answers(model.fit(X, Y), X)
    assert answers(LABELLED[name]()[0].fit(X, y=Y), X) == expected
    with pytest.raises(ValueError, match=r"^Y and y are two names of one argument: pass one of them$"):
        model.fit(X, Y, y=Y)
    assert answers(model, X) == expected  # a refused fit changes nothing


def test_score_and_partial_fit_take_either_name():
    ds = makers.dense()
    model = MetaRanker(**makers.QUICK).fit(ds)
    assert model.score(ds.X, y=ds.Y) == model.score(ds.X, ds.Y)
    added = MetaRanker(**makers.QUICK).fit(ds).partial_fit(ds.X[:5], y=ds.Y[:5])
    assert answers(added, ds.X) == answers(model.partial_fit(ds.X[:5], ds.Y[:5]), ds.X)
    for method in (model.score, model.partial_fit):
        with pytest.raises(ValueError, match="two names of one argument"):
            method(ds.X, ds.Y, y=ds.Y)


PARTS = (
    *("data", "distributed", "metrics", "objectives", "ranker"),
    *("plot", "scorers", "serve", "shortlist", "text", "thresholds"),
)
HEAVY = {"dask", "distributed", "fastapi", "faiss", "lightgbm", "matplotlib", "numpy", "sklearn", "torch"}


def modules_after(code: str) -> set[str]:
    """Top-level modules of a fresh interpreter that ran some code."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(out.split())


@pytest.mark.check
def test_every_part_is_an_attribute_and_the_import_stays_light():
    assert not modules_after("import metarank; dir(metarank)") & HEAVY
    names = ", ".join(f"metarank.{part}.__name__" for part in PARTS if part != "distributed")
    loaded = modules_after(f"import metarank; {names}; metarank.scorers.LabelScorer")
    assert not loaded & {"dask", "distributed", "fastapi", "matplotlib", "torch"}
    assert set(PARTS) <= set(dir(metarank))
    assert metarank.distributed.DaskMetaRanker is DaskMetaRanker


def test_the_parts_are_those_of_the_documentation():
    _, _, text = (Path(__file__).parents[2] / "docs" / "README.md").read_text().partition("## Reference")
    assert set(re.findall(r"`(?:metarank\.)?(\w+)`", text)) == set(PARTS)


def test_scorers_gives_every_named_scorer_and_the_base():
    from metarank import scorers

    named = {getattr(make, "func", make) for make in named_scorers().values()}
    assert {getattr(scorers, name) for name in scorers.__all__} == named | {LabelScorer}
    assert dir(scorers) == scorers.__all__ == sorted(scorers.__all__)
    assert all(f"`{name}`" in scorers.__doc__ for name in scorers.__all__)
    with pytest.raises(AttributeError, match="Perceptron"):
        scorers.Perceptron  # noqa: B018


SEEDED = [name for name in LABELLED if name != "OneVsAll"]


@pytest.mark.check_beyond(1)
@pytest.mark.parametrize("name", SEEDED)
def test_drawn_seeds_are_told_and_repeat_the_fit(name, tmp_path):
    """None draws another seed each time; a RandomState or Generator says which, and moves on."""
    fitted, X = {}, None
    for random_state in (None, np.random.RandomState(5), np.random.default_rng(5)):
        model, X, Y = LABELLED[name]()
        model.set_params(random_state=random_state).fit(X, Y)
        assert model.get_params()["random_state"] is random_state
        assert clone(model).get_params()["random_state"] is None or random_state is not None
        fitted[model.random_state_] = model
        again = clone(model).set_params(random_state=model.random_state_).fit(X, Y)
        assert answers(again, X) == answers(model, X)
        assert again.random_state_ == model.random_state_
        if random_state is not None:
            assert model.fit(X, Y).random_state_ not in fitted
    assert len(fitted) == 3
    model.save(tmp_path / "M")
    loaded = metarank.load(tmp_path / "M")
    assert loaded.random_state == loaded.random_state_ == model.random_state_
    assert answers(loaded, X) == answers(model, X)


def test_a_model_notes_the_seeds_that_it_and_its_scorers_drew():
    ds = makers.sparse()
    features = ["prior", Parabel(n_trees=1, random_state=None)]
    model = MetaRanker(**makers.QUICK | {"features": features}, random_state=None).fit(ds)
    drawn = [line for line in model.choices_ if line.startswith("random_state")]
    of_parabel = model.scorers_[1].random_state
    assert drawn == [
        f"random_state: {model.random_state_}, drawn; it repeats this fit",
        f"random_state of Parabel: {of_parabel}, drawn",
    ]
    seeded = ["prior", Parabel(n_trees=1, random_state=of_parabel)]
    again = MetaRanker(**makers.QUICK | {"features": seeded}, random_state=model.random_state_).fit(ds)
    assert answers(again, ds.X) == answers(model, ds.X)


@pytest.mark.parametrize("random_state", ["0", 1.5, True, -1, np.random])
@pytest.mark.parametrize("name", SEEDED)
def test_other_random_states_are_refused(name, random_state):
    model, X, Y = LABELLED[name]()
    with pytest.raises((TypeError, ValueError), match=r"^random_state must be None, an integer from 0 to "):
        model.set_params(random_state=random_state).fit(X, Y)


@pytest.mark.check_beyond(1)
@pytest.mark.parametrize(
    ("method", "as_given"),
    [
        *(("predict_proba", np.asarray), ("predict_proba", pd.DataFrame)),
        *(("decision_function", np.asarray), ("predict", np.asarray), ("predict", sp.csr_matrix)),
    ],
)
@pytest.mark.parametrize("maker", ["dense", "many labels"])
def test_cross_val_predict_gives_each_row_what_a_model_without_its_fold_says(maker, method, as_given):
    ds = makers.MAKERS[maker]()
    Y = (ds.Y.toarray() > 0).astype(int)
    model = MetaRanker(**makers.QUICK | ({"shortlister": "neighbors"} if maker == "many labels" else {}))
    folds = KFold(2)
    got = cross_val_predict(model, ds.X, as_given(Y), cv=folds, method=method)
    assert got.shape == Y.shape
    for train, test in folds.split(ds.X):
        expected = getattr(clone(model).fit(ds.X[train], Y[train]), method)(ds.X[test])
        assert abs(got[test] - expected).max() == 0


def test_classes_are_names_or_numbers_and_follow_the_labels(tmp_path):
    assert not hasattr(MetaRanker(), "classes_")
    model = MetaRanker(**makers.QUICK).fit(makers.dense())
    assert model.classes_.tolist() == [0, 1, 2, 3]
    named = MetaRanker(**makers.QUICK).fit(makers.texts())
    assert named.classes_.tolist() == makers.TOPICS
    named.update_labels(add=["tea bread"]).save(tmp_path / "M")
    assert metarank.load(tmp_path / "M").classes_.tolist() == [*makers.TOPICS, "tea bread"]


@pytest.mark.check_beyond(2)
@pytest.mark.parametrize("ranker", ["logistic", "pointwise", "lambdarank", "ensemble", "auto"])
def test_importances_are_shares_of_the_columns_in_the_scores(ranker, tmp_path):
    ds = makers.dense()
    model = MetaRanker(**makers.QUICK | {"ranker": ranker}).fit(ds)
    shares = dict(zip(model.feature_columns_, model.feature_importances_))
    assert len(shares) == len(model.feature_importances_)
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) >= 0
    model.save(tmp_path / "M")
    loaded = metarank.load(tmp_path / "M")
    assert (loaded.feature_importances_ == model.feature_importances_).all()
    again = MetaRanker(**makers.QUICK | {"ranker": ranker, "n_jobs": 2}).fit(ds)
    assert again.feature_importances_.tobytes() == model.feature_importances_.tobytes()
    if ranker == "logistic":  # all pairs are drawn: these are the contributions that `explain` names
        parts = [model.explain(ds.X[i], j).contributions for i in range(20) for j in range(4)]
        assert {name for part in parts for name, _, _ in part} <= set(shares)
