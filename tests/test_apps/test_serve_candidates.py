"""Scored candidates in requests: the answers of `MetaRanker.rank`, and refusals of what is malformed."""

from __future__ import annotations

import json

import makers
import numpy as np
import pytest

pytest.importorskip("pydantic")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from metarank import MetaRanker
from metarank.apps.serve.answers import Answerer, Call
from metarank.apps.serve.options import ServeOptions
from metarank.apps.serve.run import warm_up

N, L = 40, 5


@pytest.fixture(scope="module")
def asked() -> tuple[Answerer, np.ndarray, list, dict]:
    """A served model of one source and one feature, rows, and what is given of their pairs."""
    ds = makers.dense(N, L=L)
    rng = np.random.default_rng(0)
    lists = [
        [[j, round(float(rng.random() + ds.Y[[i], [j]].item()), 3)] for j in range(L) if rng.random() < 0.8]
        for i in range(N)
    ]
    clicks = [[[int(rng.integers(L)), 1.0]] for _ in range(N)]
    model = MetaRanker(**makers.QUICK)
    model.fit(ds.X, ds.Y, candidates={"bm25": lists}, pair_features={"clicks": clicks})
    return Answerer(model, ServeOptions()), ds.X, lists, {"clicks": clicks}


def reply(answerer: Answerer, path: str, **body) -> tuple[int, dict]:
    found = answerer.answer_one(Call(path, json.dumps(body).encode()))
    return found.status, json.loads(found.body)


def test_answers_are_those_of_rank(asked):
    answerer, X, lists, clicks = asked
    own = {"candidates": {"bm25": lists[:7]}, "pair_features": {"clicks": clicks["clicks"][:7]}}
    status, found = reply(answerer, "rank", instances=X[:7].tolist(), k=3, optimize="micro-f1", **own)
    assert status == 200
    ranking = answerer.model.rank(X[:7], 3, **own)
    kept = answerer.model.predict(X[:7], **own)
    for i, row in enumerate(found["rankings"]):
        assert [(e["label"], e["score"]) for e in row] == [(a, pytest.approx(b)) for a, b in ranking[i]]
        assert all(e["kept"] == bool(kept[[i], [e["label"]]].item()) for e in row)
    one = {"candidates": {"bm25": lists[3]}, "pair_features": {"clicks": clicks["clicks"][3]}}
    status, alone = reply(answerer, "rank", instance=X[3].tolist(), k=3, **one)
    assert status == 200
    assert [e["score"] for e in alone["rankings"][0]] == [e["score"] for e in found["rankings"][3]]
    status, pages = reply(answerer, "explain", instance=X[3].tolist(), k=1, **one)
    assert status == 200
    assert pages["explanations"][0]["label"] == alone["rankings"][0][0]["label"]


@pytest.mark.parametrize("by_place", [False, True])
def test_the_service_is_ready_before_its_first_request(by_place, monkeypatch):
    explained, explain = [], MetaRanker.explain

    def recorded(model, x, label, **options):
        explained.append(label)
        return explain(model, x, label, **options)

    monkeypatch.setattr(MetaRanker, "explain", recorded)
    ds = makers.dense(N, L=L)
    found = [[j if by_place else (j, 0.5) for j in range(L)] for _ in range(N)]
    for given in ({"candidates": {"bm25": found, "knn": found}}, {"pair_features": {"clicks": found}}):
        model = MetaRanker(**makers.QUICK).fit(ds.X, ds.Y, **given)
        warm_up(model)
        model.update_labels(remove=[0])
        warm_up(model)
        assert len(explained) == 2
        assert explained.pop() != 0
        explained.clear()


def test_in_steps_as_at_once(asked):
    _, X, lists, clicks = asked
    own = {"candidates": {"bm25": lists}, "pair_features": clicks}
    small = Answerer(asked[0].model, ServeOptions(step_pairs=20))
    body = {"instances": X.tolist(), "k": 2, **own}
    assert reply(small, "rank", **body) == reply(asked[0], "rank", **body)


BAD = [
    ({}, "candidates must hold those of the fit, 'bm25': 'bm25' is missing"),
    ({"candidates": {"bm25": [[0, 1.0]], "knn": [[0, 1.0]]}}, "got 'knn'"),
    ({"candidates": {"bm25": [[99, 1.0]]}}, "got 99 at row 0"),
    ({"candidates": {"bm25": [[0, "high"]]}}, "numbers, got 'high'"),
    ({"candidates": {"bm25": [[[0], 1.0]]}}, r"got [0] at row 0"),
    ({"candidates": {"bm25": 3}}, "candidates"),
    ({"candidates": {"bm25": [[0, 1.0]]}, "pair_features": None}, "pair_features must hold those of the fit"),
]


@pytest.mark.parametrize(("fields", "message"), BAD)
def test_what_is_malformed_is_refused(asked, fields, message):
    answerer, X, _, _ = asked
    body = {"pair_features": {"clicks": [[0, 1.0]]}, **fields}
    status, found = reply(answerer, "rank", instance=X[0].tolist(), **body)
    assert status == 422, found
    assert message in json.dumps(found, ensure_ascii=False).replace('\\"', '"')
