"""The compiled plan answers as the stages in Python do, to the bit, and only where it can."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path

import makers
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from test_meaning import Letters

from metarank import MetaRanker, _core, load
from metarank.data import LabelDescriptions
from metarank.model.answering.answer import Answering, read_request
from metarank.ranker.assemble import joined_columns
from metarank.scorers.base import planned
from metarank.scorers.linear.one_vs_all import OneVsAll
from metarank.scorers.names.given_vectors import LabelVectorScorer
from metarank.scorers.neighbors.voting import NeighborShortlister
from metarank.scorers.trees.parabel import Parabel
from metarank.scorers.wrapped import BlockScorer
from metarank.types.arrays import csr_parts
from metarank.types.block_columns import BlockColumns
from metarank.types.label_names import LabelVectors
from metarank.types.view import TrainingSet

KEPT = Path(__file__).parents[1] / "golden" / "kinds"
QUICK = {"n_folds": 2, "n_jobs": 1, "shortlist_size": 12}
# The rows, shortlisters and other parameters. Of rankers that are no trees the plan makes the table alone.
KINDS = {
    "neighbors, one-vs-all, three trees": (
        "many_texts",
        ["neighbors", "one-vs-all", "parabel"],
        {"ranker": "pointwise", "shortlist_size": 40},
    ),
    "names and spelling": ("many_texts", ["neighbors", "names", "spelling"], {"ranker": "pointwise"}),
    "one tree": ("many_texts", [Parabel(n_trees=1), "names"], {"ranker": "pointwise"}),
    "ridge": ("many_labels", ["one-vs-all"], {"features": ["neighbors", "centroids"], "ranker": "pointwise"}),
    "raw distances": ("many_texts", ["neighbors"], {"features": "yang2012", "ranker": "lambdarank"}),
    "votes by propensity": (
        "many_labels",
        [NeighborShortlister(ks=(3, 7), relevance="inverse-propensity")],
        {"ranker": "xendcg"},
    ),
    "xreg": ("many_labels", ["xreg", "neighbors"], {"ranker": "pointwise"}),
    "an ensemble": ("many_texts", ["neighbors", "names"], {}),
    "a linear ranker": ("many_texts", ["neighbors", "names"], {"ranker": "logistic", "effort": "low"}),
    "texts and their meaning": (
        "many_texts",
        ["neighbors", "one-vs-all", "label-vectors", "mentions"],
        {"features": ["neighbors", "centroids", "two-sided"], "ranker": "pointwise", "encoder": Letters()},
    ),
    "chosen for texts and meaning": ("many_texts", "auto", {"ranker": "pointwise", "encoder": Letters()}),
    "fields, numbers and meaning": (
        "many_fields",
        ["neighbors", "one-vs-all", "names", "spelling", "two-sided"],
        {"ranker": "pointwise", "encoder": Letters()},
    ),
    "fields and numbers": ("many_fields", [Parabel(n_trees=2), "neighbors"], {"ranker": "pointwise"}),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def few_numbers_of_neighbors():
    """What `features="yang2012"` compares."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("metarank.model.fitting.sources.GRID", (5, 10))
        yield


@cache
def fitted(kind: str) -> tuple[MetaRanker, object]:
    data, shortlister, params = KINDS[kind]
    rows = getattr(makers, data.replace("fields", "texts"))(160)
    model = MetaRanker(shortlister, **(QUICK | params))
    X = rows.X if rows.texts is None else rows.texts
    if data == "many_fields":
        numbers = rows.Y.toarray()[:, :900].reshape(160, 3, 300) @ np.arange(300)
        X = pd.DataFrame(
            {"title": [x[:30] for x in X], "body": [x[20:] for x in X]} | dict(zip("abc", numbers.T))
        )
    if "encoder" not in params and data != "many_fields":
        return model.fit(rows), X
    names = LabelDescriptions(names=rows.label_names, ids=[str(i) for i in range(len(rows.label_names))])
    return model.fit(X, rows.Y, labels=names), X


def without_plan(model: MetaRanker) -> MetaRanker:
    """The same model, whose plan is not to be had."""
    other = pickle.loads(pickle.dumps(model))
    other.fitted_.__dict__["plan"] = None
    return other


def same(a, b) -> bool:
    a, b = (x.toarray() if sp.issparse(x) else np.asarray(x) for x in (a, b))
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_the_plan_answers_as_the_stages_do(kind):
    model, X = fitted(kind)
    stages = without_plan(model)
    assert model.fitted_.plan is not None
    assert model.fitted_.plan.ranks == (kind not in ("an ensemble", "a linear ranker"))
    request = read_request(model.fitted_, X)
    answering = model.answering()
    described = [answering._describe_chunk(request, 5, plan) for plan in (model.fitted_.plan, None)]
    tables = [part.table for part in described]
    assert tables[0].names == tables[1].names
    assert same(tables[0].values, tables[1].values)
    for name in ("indptr", "labels"):
        assert same(*(getattr(part.lists.candidates, name) for part in described))
    for name in ("rough", "ahead"):
        found = [getattr(part.lists, name) for part in described]
        assert same(*found) if found[1] is not None else found[0] is None
    if model.fitted_.plan.ranks:
        assert answering._score_by_plan(model.fitted_.plan, request) is not None
    for ask in (
        lambda m, rows: m.rank(rows, 7).scores,
        lambda m, rows: m.rank(rows, 7).labels,
        lambda m, rows: m.predict_proba(rows),
        lambda m, rows: m.predict(rows),
        lambda m, rows: m.rank(rows, 4, propensity_weight=0.7).scores,
        lambda m, rows: m.rank(rows, 4, exclude=[0, 3]).labels,
        lambda m, rows: m.rank(rows, 4, allowed=[0, 3, 5, 7, 11]).scores,
    ):
        assert same(ask(model, X), ask(stages, X))


@pytest.mark.parametrize(
    "kind",
    [
        "neighbors, one-vs-all, three trees",
        "names and spelling",
        "texts and their meaning",
        "fields and numbers",
    ],
)
def test_neither_threads_nor_batches_nor_saving_change_an_answer(kind, tmp_path):
    model, X = fitted(kind)
    expected = model.rank(X, 6)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model", encoder=model.encoder)
    for n_jobs in (1, 4):
        found = loaded.set_params(n_jobs=n_jobs).rank(X, 6)
        assert same(found.labels, expected.labels)
        assert same(found.scores, expected.scores)
    rows = [loaded.rank(X[i : i + 1], 6).scores for i in range(20)]
    assert same(np.concatenate(rows), expected.scores[:20])


@pytest.mark.parametrize("kind", ["neighbors, one-vs-all, three trees", "names and spelling", "one tree"])
def test_rows_without_evidence_are_answered_by_frequency(kind):
    model, _ = fitted(kind)
    X = [*makers.many_texts(6).texts, "", "zzzz qqqq"]
    found, expected = model.rank(X, 5), without_plan(model).rank(X, 5)
    assert found.without_evidence.tolist() == [False] * 6 + [True] * 2
    assert same(found.labels, expected.labels)
    assert same(found.scores, expected.scores)
    assert same(model.predict_proba(X), without_plan(model).predict_proba(X))


class Louder(NeighborShortlister):
    """A user's own: its scores are others than those of its parent."""

    def score(self, X, candidates, **options):
        return {name: 2 * values for name, values in super().score(X, candidates, **options).items()}


def test_what_the_plan_cannot_do_the_stages_do():
    data = makers.many_texts(160)
    own = MetaRanker([Louder(ks=(5,)), "names"], **QUICK).fit(data)
    assert own.fitted_.plan is None
    assert own.rank(data.texts[:3], 3).labels.shape == (3, 3)
    every = MetaRanker(None, features=["neighbors"], n_folds=2, n_jobs=1).fit(makers.sparse(80))
    assert every.fitted_.plan is None
    model, X = fitted("names and spelling")
    changed = pickle.loads(pickle.dumps(model))
    changed.update_labels(remove=[2])
    assert changed.fitted_.plan is None
    assert 2 not in changed.rank(X, 5).labels


def test_a_model_with_a_column_that_the_core_does_not_derive_has_no_plan(monkeypatch):
    def with_one_more(columns, *rest):
        joined, of_classifiers = joined_columns(columns, *rest)
        return {**joined, "derived": next(iter(joined.values())) ** 2}, of_classifiers

    for place in ("answering.answer", "fitted", "fitting.stages"):
        monkeypatch.setattr(f"metarank.model.{place}.joined_columns", with_one_more)
    rows = makers.many_texts(160)
    model = MetaRanker(["neighbors", "names"], ranker="pointwise", **QUICK).fit(rows)
    assert "derived" in model.feature_columns_
    assert model.fitted_.plan is None


def test_rows_that_the_plan_refuses_are_answered_by_the_stages(monkeypatch):
    model, X = fitted("names and spelling")
    asked = []

    def refused(self, *args, **options):
        asked.append(self)
        raise ValueError("columns must be finite")

    expected = model.rank(X, 3)
    monkeypatch.setattr(type(model.fitted_.plan), "listed", refused)
    assert same(model.rank(X, 3).scores, expected.scores)
    assert asked


def test_the_plan_is_not_pickled_but_made_again():
    model, X = fitted("one tree")
    expected = model.rank(X, 3)
    copy = pickle.loads(pickle.dumps(model))
    assert "plan" not in vars(copy.fitted_)
    assert same(copy.rank(X, 3).scores, expected.scores)


def test_answers_come_by_the_plan(monkeypatch):
    """Else the others could not fail."""
    model, X = fitted("names and spelling")
    ranked, predicted = model.rank(X, 3).scores, model.predict(X)

    def refused(*args):
        raise AssertionError("the stages were asked")

    monkeypatch.setattr(Answering, "_describe_chunk", refused)
    assert same(model.rank(X, 3).scores, ranked)
    assert same(model.predict(X), predicted)


STAGES = {"proposes": [0], "describes": [0], "own": [0], "standardize": True, "survivors": 0}
STAGES |= {"absent": 9.0, "gap": 0.1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"proposes": []}, "must propose and describe"),
        ({"describes": [1]}, "numbers of sources"),
        ({"survivors": 3}, "where there is a cascade"),
        ({"blocks": []}, "one entry a source"),
        ({"blocks": [(3, 2, True)]}, "ranges of columns"),
    ],
)
def test_plans_that_do_not_hold_together_are_refused(change, message):
    values, blocks = np.zeros(3, np.float32), change.pop("blocks", [None])
    with pytest.raises(ValueError, match=message):
        _core.Plan(
            [_core.PlanConstants(values)], blocks, _core.PlanStages(**STAGES | change), None, values, None
        )


def test_a_source_that_proposes_nothing_cannot_be_asked_to():
    values = np.zeros(3, np.float32)
    stages = _core.PlanStages(**STAGES)
    plan = _core.Plan([_core.PlanConstants(values)], [None], stages, None, values, None)
    rows = csr_parts(sp.csr_matrix(np.eye(2, dtype=np.float32)))
    no_words = np.zeros(1, np.int64), np.zeros(0, np.int64)
    with pytest.raises(ValueError, match="proposes no labels"):
        plan.answer(rows, *no_words, 2, True, 1)
    with pytest.raises(ValueError, match="needs a ranker"):
        plan.answer(rows, *no_words, 2, False, 1)


DENSE = np.random.default_rng(3).normal(size=(300, 24)).astype(np.float32)


@pytest.mark.parametrize(
    "X",
    [
        *(DENSE, DENSE.round(), DENSE.round() * (DENSE > 1), DENSE * np.float32(1e-22)),
        *(DENSE * np.float32(1e18), np.float32(DENSE * 10.0 ** np.linspace(-20, 15, 300)[:, None])),
        DENSE[:1].repeat(300, 0),
    ],
    ids=["normal", "ties", "zeros", "short", "long", "of all lengths", "equal"],
)
@pytest.mark.parametrize(
    "scorer", [NeighborShortlister(ks=(5,)), LabelVectorScorer(), OneVsAll(loss="ridge")]
)
def test_what_dense_rows_propose_is_found_among_few(scorer, X):
    Y = sp.csr_matrix(np.eye(300, dtype=np.float32))
    blocks = [BlockColumns("words", "sparse", 0, 2, False), BlockColumns("image", "vector", 2, 26, True)]
    rows = sp.csr_matrix(np.hstack([np.ones((300, 2), np.float32), X]))
    view = TrainingSet(rows, Y, np.zeros(300), blocks=blocks, label_vectors=LabelVectors(X, 2)).view()
    own = scorer if isinstance(scorer, LabelVectorScorer) else BlockScorer(scorer=scorer, block="image")
    source = planned(own.fit(view))
    stages = _core.PlanStages(**STAGES | {"standardize": False})
    plan = _core.Plan([source.core], [source.block], stages, None, np.zeros(300, np.float32), None)
    words = np.zeros(1, np.int64), np.zeros(0, np.int64)
    indptr, labels, _, _, table, _ = plan.answer(csr_parts(rows), *words, 7, True, 2)
    expected = own.shortlist(rows, 7)
    assert same(indptr, expected.indptr)
    assert same(labels, expected.labels)
    assert same(table[:, 0], next(iter(own.score(rows, expected).values())))
