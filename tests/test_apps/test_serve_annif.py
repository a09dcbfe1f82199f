"""What Annif's `http` backend asks of the service: a project, and its suggestions for a text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from importlib.util import find_spec
from itertools import pairwise
from urllib.parse import urlencode

import makers
import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")

from services import LONG, PATIENT, serving
from starlette.testclient import TestClient

from metarank import MetaRanker
from metarank.apps.serve.answers import Answerer, Call
from metarank.serve import Access, ServeOptions, create_app
from metarank.types.label_descriptions import LabelDescriptions

TEXT = "sea sun bread code"
URIS = [f"http://example.org/{topic.split()[-1]}" for topic in makers.TOPICS]
FORM = {"content-type": "application/x-www-form-urlencoded"}
SUGGEST = "/v1/projects/toy/suggest"


@pytest.fixture(scope="module")
def model() -> MetaRanker:
    """A model of texts whose labels have URIs and names."""
    data = makers.texts()
    return MetaRanker(**makers.QUICK).fit(data.texts, data.Y, labels=LabelDescriptions(URIS, makers.TOPICS))


def client_of(model: MetaRanker, token: str | None = None, **options: float) -> TestClient:
    access = Access(token=token)
    return TestClient(create_app(model, ServeOptions(**PATIENT | options), name="toy", access=access))


@pytest.fixture(scope="module")
def toy(model):
    with client_of(model, max_text=200, max_k=50) as client:
        yield client


def results(client: TestClient, **fields) -> list[dict]:
    reply = client.post(SUGGEST, data=fields)
    assert reply.status_code == 200, reply.text
    return reply.json()["results"]


# --- suggestions ---------------------------------------------------------------------


def test_suggestions_are_the_ranking_by_uri_with_falling_scores(toy, model):
    for text in (TEXT, "sail port", "flour & 100 % = ünknown+💡"):
        found = results(toy, text=text)
        best = [int(label) for label in model.rank([text]).labels[0] if label >= 0]
        assert [hit["uri"] for hit in found] == [URIS[label] for label in best]
        assert [hit["label"] for hit in found] == [makers.TOPICS[label] for label in best]
        scores = np.array([hit["score"] for hit in found], np.float32)
        assert ((scores > 0) & (scores <= 1)).all()
        assert (np.diff(scores) < 0).all()


@pytest.mark.parametrize("name", ["texts", "many texts"])
def test_requests_together_are_answered_as_if_alone(name):
    answerer = Answerer(makers.fitted(name), ServeOptions())
    texts = makers.MAKERS[name]().texts[:6]
    calls = [
        Call("suggest", urlencode({"text": text, "limit": 3 * i + 1}).encode())
        for i, text in enumerate(texts)
    ]
    calls += [Call("suggest", b"limit=2"), Call("rank", json.dumps({"instance": texts[0]}).encode())]
    together = dict(answerer.answer(calls))
    assert [together[i] for i in range(len(calls))] == [answerer.answer_one(call) for call in calls]
    assert [together[i].status for i in range(len(calls))] == [200] * 6 + [422, 200]


@pytest.mark.parametrize("text", ["", "zzz", " ", "\x00"])
def test_a_text_without_known_words_has_no_suggestions(toy, text):
    assert results(toy, text=text) == []


def test_limit_and_threshold(toy):
    every = results(toy, text=TEXT)
    assert len(every) == 3
    assert results(toy, text=TEXT, limit=1)[0]["uri"] == every[0]["uri"]
    assert len(results(toy, text=TEXT, limit=1)) == 1
    least = every[1]["score"]
    assert results(toy, text=TEXT, threshold=least) == every[:2]
    assert results(toy, text=TEXT, threshold=1) == [hit for hit in every if hit["score"] == 1]


def test_what_annif_may_send_besides(toy):
    assert results(toy, text=TEXT, project="toy", metadata_title="a title") == results(toy, text=TEXT)


@pytest.mark.parametrize("ids", [None, URIS])
def test_labels_without_uris_or_names(ids):
    data = makers.texts()
    model = MetaRanker(**makers.QUICK).fit(data.texts, data.Y, labels=ids and LabelDescriptions(ids))
    with client_of(model) as client:
        found = results(client, text=TEXT)
        assert {hit["uri"] for hit in found} == set(ids or ("0", "1", "2"))
        assert {hit["label"] for hit in found} == set(ids or [""])


def test_metadata_are_the_blocks_of_a_model_that_has_them():
    data = makers.texts()
    X = {"text": data.texts, "title": [text.split()[0] for text in data.texts]}
    model = MetaRanker(**makers.QUICK).fit(X, data.Y, labels=LabelDescriptions(URIS, makers.TOPICS))
    with client_of(model) as client:
        found = results(client, text=TEXT, metadata_title="sea", metadata_year="1999")
        best = model.rank({"text": [TEXT], "title": ["sea"]}).labels[0]
        assert [hit["uri"] for hit in found] == [URIS[label] for label in best]
        reply = client.post(SUGGEST, data={"text": TEXT})
        assert (reply.status_code, reply.json()["field"]) == (422, "text")
        assert "must have the block 'title'" in reply.json()["error"]


# --- the project ---------------------------------------------------------------------


def test_a_project_is_the_model_under_its_name(toy):
    said = toy.get("/v1/projects/toy").json()
    assert (said["project_id"], said["name"], said["is_trained"]) == ("toy", "toy", True)
    assert said["backend"] == {"backend_id": "metarank"}
    assert datetime.fromisoformat(said["modification_time"]).tzinfo is not None
    assert said["modification_time"] == toy.get("/ready").json()["loaded"]
    assert toy.head("/v1/projects/toy").status_code == 200


@pytest.mark.parametrize("project", ["other", "Toy", "%2e%2e", "toy%20", "x" * 500])
def test_other_projects_are_not_here(toy, project):
    for reply in (
        toy.get(f"/v1/projects/{project}"),
        toy.post(f"/v1/projects/{project}/suggest", data={"text": TEXT}),
    ):
        assert reply.status_code == 404
        assert len(reply.text) < 150
    assert "here, but 'toy'" in toy.get("/v1/projects/other").json()["error"]


def test_a_name_that_a_path_has_to_escape(model):
    with TestClient(create_app(model, name="my model é")) as client:
        assert client.get("/v1/projects/my%20model%20%C3%A9").json()["name"] == "my model é"


def test_requests_are_counted_by_kind_and_described(toy):
    toy.get("/v1/projects/toy")
    toy.post(SUGGEST, data={"text": TEXT})
    counts = toy.get("/metrics").text
    assert 'path="/v1/projects/{project}",status="200"}' in counts
    assert 'path="/v1/projects/{project}/suggest",status="200"}' in counts
    described = toy.get("/openapi.json").json()["paths"]["/v1/projects/{project}/suggest"]["post"]
    assert set(described["requestBody"]["content"]) == {FORM["content-type"]}
    assert "/v1/projects/{project}/suggest" in toy.get("/docs").text


def test_a_token_guards_them(model):
    with client_of(model, token="secret-token") as client:
        assert client.get("/v1/projects/toy").status_code == 401
        assert client.post(SUGGEST, data={"text": TEXT}).status_code == 401
        bearer = {"authorization": "Bearer secret-token"}
        assert client.post(SUGGEST, data={"text": TEXT}, headers=bearer).status_code == 200


# --- what is refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        (b"", "text", "text is required"),
        (b"text", "body", "the body must be a form"),
        (b'{"text": "a"}', "body", "the body must be a form"),
        (b"\xff\xfe", "body", "the body must be a form in UTF-8"),
        (b"text=%ff", "body", "the body must be a form in UTF-8"),
        (b"&".join(b"a%d=1" % i for i in range(101)), "body", "at most 100 fields"),
        (b"limit=3", "text", "text is required"),
        (b"text=a&text=b", "text", "text must be given once"),
        (b"text=a&limit=0", "limit", "limit must be greater than or equal to 1"),
        (b"text=a&limit=x", "limit", "limit must be a valid integer"),
        (b"text=a&limit=2.5", "limit", "limit must be a valid integer"),
        (b"text=a&limit=", "limit", "limit must be a valid integer"),
        (b"text=a&limit=51", "limit", "limit must be at most 50, got 51"),
        (b"text=a&limit=1" + b"0" * 400, "limit", "limit must be"),
        (b"text=a&threshold=nan", "threshold", "threshold must be"),
        (b"text=a&threshold=1.5", "threshold", "threshold must be less than or equal to 1"),
        (b"text=a&project=other", "project", "project must be 'toy', as in the path, got 'other'"),
        (b"text=a&language=en", "language", "language is not a field of this request"),
        (b"text=" + b"a" * 201, "text", "text must have at most 200 characters, got 201"),
    ],
)
def test_malformed_forms(toy, body, field, said):
    reply = toy.post(SUGGEST, content=body, headers=FORM)
    assert reply.status_code == 422, reply.text
    assert reply.json()["field"] == field
    assert said in reply.json()["error"]
    assert len(reply.text) < 250


def test_other_types_and_methods(toy):
    assert toy.post(SUGGEST, json={"text": TEXT}).status_code == 415
    assert toy.post("/rank", data={"instance": TEXT}).status_code == 415
    reply = toy.get(SUGGEST)
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
    assert toy.post("/v1/projects/toy", data={"text": TEXT}).status_code == 405


def test_limits_of_the_service_hold(model):
    with client_of(model, max_body=1000) as client:
        assert client.post(SUGGEST, data={"text": "a" * 1001}).status_code == 413


@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_models_of_numbers_take_no_text(name):
    reply = Answerer(makers.fitted(name), ServeOptions()).answer_one(Call("suggest", b"text=sea"))
    assert reply.status == 422
    assert "trained on numbers" in json.loads(reply.body)["error"]


# --- Annif itself --------------------------------------------------------------------

PROJECTS = """
[served]
name=served
language=en
backend=http
endpoint={url}v1/projects/toy/suggest
vocab=topics
"""
SCRIPT = """
import json
import annif, annif.registry
from annif.corpus import Document

with annif.create_flask_app("annif.default_config.Config").app_context():
    project = annif.registry.get_project("served")
    batch = project.suggest([Document(text=text) for text in json.loads(input())])
    hits = [[[project.subjects[hit.subject_id].uri, hit.score] for hit in row] for row in batch]
    print(json.dumps([project.is_trained, str(project.modification_time), hits]))
"""


def annif_python() -> str | None:
    """An interpreter that has Annif: that of $METARANK_ANNIF, or this one."""
    return os.environ.get("METARANK_ANNIF") or (sys.executable if find_spec("annif") else None)


def test_the_http_backend_of_annif(model, tmp_path):
    python = annif_python()
    if python is None:
        pytest.skip("no Annif here, and $METARANK_ANNIF names no Python that has it")
    texts = [TEXT, "flour & 100 % = ünknown+💡"]
    rows = "".join(f"<{uri}>\t{topic}\n" for uri, topic in zip(URIS, makers.TOPICS))
    (tmp_path / "topics.tsv").write_text(rows)
    with serving(model, "toy") as (url, _):
        (tmp_path / "projects.cfg").write_text(PROJECTS.format(url=url))
        how = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": LONG, "check": True}
        load = "from annif.cli import cli; cli(['load-vocab', '-L', 'en', 'topics', 'topics.tsv'])"
        subprocess.run([python, "-c", load], **how)
        done = subprocess.run([python, "-c", SCRIPT], input=json.dumps(texts), **how)
    trained, modified, hits = json.loads(done.stdout.splitlines()[-1])
    assert trained is True
    assert datetime.fromisoformat(modified)
    for text, row in zip(texts, hits):
        assert [uri for uri, _ in row] == [URIS[label] for label in model.rank([text]).labels[0]]
        assert all(a > b > 0 for (_, a), (_, b) in pairwise(row))
