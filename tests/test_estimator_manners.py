"""What users of scikit-learn expect of every estimator: its names of arguments, its seeds, its answers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import makers
import pytest

import metarank
from metarank import MetaRanker, MultiObjectiveRanker
from metarank.choices import named_scorers
from metarank.distributed import DaskMetaRanker
from metarank.scorers import LabelScorer
from metarank.scorers.shortlister import Shortlister
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
    if isinstance(model, Shortlister):
        return model.shortlist(X, k=3, n_jobs=1).to_csr().data.tobytes()
    return model.predict(X).tobytes()


@pytest.mark.parametrize("name", LABELLED)
def test_labels_are_taken_by_either_name(name):
    model, X, Y = LABELLED[name]()
    expected = answers(model.fit(X, Y), X)
    assert answers(LABELLED[name]()[0].fit(X, y=Y), X) == expected
    with pytest.raises(ValueError, match=r"^Y and y are two names of one argument: give one of them$"):
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
    *("data", "distributed", "features", "metrics", "objectives", "propensity", "ranker"),
    *("scorers", "serve", "shortlist", "text", "thresholds"),
)
HEAVY = {"dask", "distributed", "fastapi", "faiss", "lightgbm", "matplotlib", "numpy", "sklearn", "torch"}


def modules_after(code: str) -> set[str]:
    """Top-level modules of a fresh interpreter that ran some code."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(out.split())


def test_every_part_is_an_attribute_and_the_import_stays_light():
    assert not modules_after("import metarank; dir(metarank)") & HEAVY
    names = ", ".join(f"metarank.{part}.__name__" for part in PARTS if part != "distributed")
    loaded = modules_after(f"import metarank; {names}; metarank.scorers.LabelScorer")
    assert not loaded & {"dask", "distributed", "fastapi", "matplotlib", "torch"}
    assert set(PARTS) <= set(dir(metarank))
    assert metarank.distributed.DaskMetaRanker is DaskMetaRanker


def test_the_parts_are_those_of_the_readme():
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    assert set(re.findall(r"^\| `metarank\.(\w+)`", readme, re.M)) - {"multi_objective"} == set(PARTS)


def test_scorers_gives_every_named_scorer_and_the_base():
    from metarank import scorers

    named = {getattr(make, "func", make) for make in named_scorers().values()}
    assert {getattr(scorers, name) for name in scorers.__all__} == named | {LabelScorer}
    assert dir(scorers) == scorers.__all__ == sorted(scorers.__all__)
    assert all(f"`{name}`" in scorers.__doc__ for name in scorers.__all__)
    with pytest.raises(AttributeError, match="Perceptron"):
        scorers.Perceptron  # noqa: B018
