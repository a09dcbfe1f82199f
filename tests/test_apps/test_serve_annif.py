"""What Annif's `http` backend asks of the service: a project, and its suggestions for a text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from importlib.util import find_spec
from itertools import pairwise

import makers
import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")

from services import LONG, served
from starlette.testclient import TestClient

from metarank import MetaRanker
from metarank.serve import create_app
from metarank.types.label_descriptions import LabelDescriptions

TEXT = "sea sun bread code"
URIS = [f"http://example.org/{topic.split()[-1]}" for topic in makers.TOPICS]
SUGGEST = "/v1/projects/toy/suggest"


@pytest.fixture(scope="module")
def model() -> MetaRanker:
    """A model of texts whose labels have URIs and names."""
    data = makers.texts()
    return MetaRanker(**makers.QUICK).fit(data.texts, data.Y, labels=LabelDescriptions(URIS, makers.TOPICS))


@pytest.fixture(scope="module")
def toy(model):
    with TestClient(create_app(model, name="toy")) as client:
        yield client


def results(client: TestClient, **fields) -> list[dict]:
    reply = client.post(SUGGEST, data=fields)
    assert reply.status_code == 200, reply.text
    return reply.json()["results"]


def test_suggestions_are_the_ranking_by_uri_with_falling_scores(toy, model):
    for text in (TEXT, "sail port", "flour & 100 % = ünknown+💡"):
        hits = results(toy, text=text)
        best = [int(label) for label in model.rank([text]).labels[0] if label >= 0]
        assert [hit["uri"] for hit in hits] == [URIS[label] for label in best]
        assert [hit["label"] for hit in hits] == [makers.TOPICS[label] for label in best]
        scores = np.array([hit["score"] for hit in hits], np.float32)
        assert ((scores > 0) & (scores <= 1)).all()
        assert (np.diff(scores) < 0).all()
    for text in ("", "zzz", " ", "\x00"):
        assert results(toy, text=text) == [], "no known word"


def test_limit_threshold_and_what_annif_sends_besides(toy):
    every = results(toy, text=TEXT)
    assert len(every) == 3
    (first,) = results(toy, text=TEXT, limit=1)
    assert first["uri"] == every[0]["uri"]
    assert results(toy, text=TEXT, threshold=every[1]["score"]) == every[:2]
    assert results(toy, text=TEXT, project="toy", metadata_title="a title") == every


@pytest.mark.parametrize("ids", [None, URIS])
def test_labels_without_uris_or_names(ids):
    data = makers.texts()
    model = MetaRanker(**makers.QUICK).fit(data.texts, data.Y, labels=ids and LabelDescriptions(ids))
    hits = results(TestClient(create_app(model, name="toy")), text=TEXT)
    assert {hit["uri"] for hit in hits} == set(ids or ("0", "1", "2"))
    assert {hit["label"] for hit in hits} == set(ids or [""])


def test_metadata_are_the_blocks_of_a_model_that_has_them():
    data = makers.texts()
    X = {"text": data.texts, "title": [text.split()[0] for text in data.texts]}
    model = MetaRanker(**makers.QUICK).fit(X, data.Y, labels=LabelDescriptions(URIS, makers.TOPICS))
    client = TestClient(create_app(model, name="toy"))
    hits = results(client, text=TEXT, metadata_title="sea", metadata_year="1999")
    best = model.rank({"text": [TEXT], "title": ["sea"]}).labels[0]
    assert [hit["uri"] for hit in hits] == [URIS[label] for label in best]
    reply = client.post(SUGGEST, data={"text": TEXT})
    assert (reply.status_code, reply.json()) == (422, {"error": "text['title'] is required"})


def test_a_project_is_the_model_under_its_name(toy, model):
    project = toy.get("/v1/projects/toy").json()
    assert (project["project_id"], project["name"], project["is_trained"]) == ("toy", "toy", True)
    assert project["backend"] == {"backend_id": "metarank"}
    assert project["modification_time"] == toy.get("/ready").json()["loaded"]
    assert datetime.fromisoformat(project["modification_time"]).tzinfo is not None
    for other in ("other", "Toy", "%2e%2e", "toy%20", "x" * 500):
        path = f"/v1/projects/{other}"
        for reply in (toy.get(path), toy.post(f"{path}/suggest", data={"text": TEXT})):
            assert reply.status_code == 404
            assert len(reply.text) < 150
    escaped = TestClient(create_app(model, name="my model é"))
    assert escaped.get("/v1/projects/my%20model%20%C3%A9").json()["name"] == "my model é"


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
    with served(model, "toy") as url:
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
