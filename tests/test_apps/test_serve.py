"""The service: answers are those of the model, bit for bit; what is not accepted is refused in words."""

from __future__ import annotations

import json
import re
import threading
from datetime import UTC, datetime
from types import SimpleNamespace

import makers
import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")

from fastapi import HTTPException
from services import LONG
from starlette.testclient import TestClient

from metarank import MetaRanker, __version__
from metarank.apps.serve.instances import InstanceReader
from metarank.apps.serve.reload import ModelHolder, warm_up
from metarank.data.block_encoder import BlocksEncoder
from metarank.data.blocks import Blocks
from metarank.serve import create_app
from metarank.types.candidates import Candidates

TEXT = "sea sun bread code"
TOKEN = "s3cret-token"


def client_of(model: MetaRanker | str, **options) -> TestClient:
    model = makers.fitted(model) if isinstance(model, str) else model
    return TestClient(create_app(model, name="toy", **options))


@pytest.fixture(scope="module")
def words():
    with client_of("texts") as client:
        yield client


def entries(ranking, names=None) -> list[list[dict]]:
    return [
        [{"label": v, **({} if names is None else {"name": names[v]}), "score": s} for v, s in row]
        for row in ranking
    ]


def asked(model: MetaRanker, instances: list, **fields) -> list[list[dict]]:
    """The rankings in the reply to a batch."""
    reply = client_of(model).post("/rank", json={"instances": instances, **fields})
    assert reply.status_code == 200, reply.text
    return reply.json()["rankings"]


def as_json(value: object) -> object:
    """A row of a block; null where a number is missing."""
    if isinstance(value, str):
        return value
    return [None if v is None or v != v else v for v in value.tolist()]


def rows_of(name: str, n: int) -> tuple[list, object]:
    """Instances of a maker's data as JSON takes them, and as the model does."""
    dataset = makers.MAKERS[name]()
    if dataset.texts is not None:
        texts = list(dataset.texts[:n])
        return texts, texts
    if isinstance(dataset.X, Blocks):
        X = dataset.X.take(slice(n))
        instances = []
        for i in range(n):
            row = {key: as_json(part[i]) for key, part in X.items() if key not in X.columns}
            for key, columns in X.columns.items():
                row |= dict(zip(columns, as_json(X[key][i])))
            instances.append(row)
        return instances, X
    X = dataset.X[:n]
    if isinstance(X, np.ndarray):
        return [[float(v) for v in row] for row in X], X
    return [dict(zip(map(str, row.indices.tolist()), row.data.tolist())) for row in X], X


# --- equal to the model's own answers ---------------------------------------------


@pytest.mark.parametrize("name", list(makers.MAKERS))
def test_rankings_are_those_of_the_model(name):
    model = makers.fitted(name)
    instances, X = rows_of(name, 7)
    expected = entries(model.rank(X, k=5), model.label_names_)
    assert asked(model, instances, k=5) == expected
    one = client_of(model).post("/rank", json={"instance": instances[3], "k": 5}).json()
    assert one["rankings"] == expected[3:4]


def test_dense_and_sparse_instances_are_the_same_rows():
    model = makers.fitted("sparse")
    instances, X = rows_of("sparse", 4)
    assert asked(model, X.toarray().tolist()) == asked(model, instances)
    model = makers.fitted("dense")
    _, X = rows_of("dense", 4)
    pairs = [{str(j): float(v) for j, v in enumerate(row) if j != 2} for row in X]
    X[:, 2] = 0
    assert asked(model, pairs) == entries(model.rank(X))


@pytest.mark.parametrize(
    ("name", "limits", "weight"),
    [
        ("texts", {}, None),
        ("many labels", {"allowed": [0, 1, 2]}, 3.0),
        ("many texts", {"allowed": [0, 1, 2], "exclude": [1]}, None),
        ("many labels", {"exclude": [[2]] * 4}, 3.0),
    ],
)
def test_one_pass_gives_what_three_give(name, limits, weight):
    model = makers.fitted(name)
    instances, X = rows_of(name, 4)
    if "allowed" in limits and name != "texts":
        limits = limits | {"allowed": list(range(100))}
    of_model = dict(limits)
    if "exclude" in limits and isinstance(limits["exclude"][0], list):
        of_model["exclude"] = Candidates(np.arange(5), np.full(4, 2), model.n_labels_)
    for k in (2, 200):  # more than are shortlisted
        cuts = {"probabilities": True, "optimize": "hamming"}
        rows = asked(model, instances, k=k, propensity_weight=weight, **cuts, **limits)
        table = model.label_table_
        names = None if table.names is None else [table.shown(label) for label in range(table.n_labels)]
        expected = entries(model.rank(X, k=k, propensity_weight=weight, **of_model), names)
        probable, kept = model.predict_proba(X, **of_model), model.predict(X, "hamming", **of_model)
        for i, row in enumerate(expected):
            for entry in row:
                entry["probability"] = float(probable[i, entry["label"]])
                entry["kept"] = bool(kept[i, entry["label"]])
        assert rows == expected


def test_labels_go_by_name_and_features_too():
    pd = pytest.importorskip("pandas")
    dataset = makers.dense()
    names = [f"f{j}" for j in range(6)]
    frame = pd.DataFrame(dataset.X, columns=names)
    model = MetaRanker(**makers.QUICK).fit(frame, dataset.Y, labels=["a", "b", "c", "d"][: dataset.n_labels])
    instances = [{name: float(v) for name, v in zip(names, row)} for row in dataset.X[:3]]
    assert asked(model, instances) == entries(model.rank(frame[:3]), model.label_names_)
    assert asked(model, instances, exclude=["a"]) == asked(model, instances, exclude=[0])
    assert asked(model, [{"f1": 1, "4": 2}]) == asked(model, [[0, 1, 0, 0, 2, 0]])
    reply = client_of(model).post("/rank", json={"instance": {"f9": 1}})
    assert "must have names of features for keys, got 'f9'" in reply.json()["error"]


def test_known_labels_costs_sizes_and_quality():
    ds = makers.dense(160, L=5)
    model = MetaRanker(n_jobs=1).fit(ds.X, ds.Y)
    rows, known = ds.X[:6], [[0], [1, 2], [], [4], [3], [0, 1]]
    of_model = {"at_least": 1, "at_most": 2, "optimize": {"false_positive": 1, "false_negative": 3}}
    fields = {"instances": rows.tolist(), "k": 5, "known": known, "quality": True, **of_model}
    reply = client_of(model).post("/rank", json=fields).json()
    kept, quality = model.predict(rows, known=known, return_quality=True, **of_model)
    ranking = model.rank(rows, k=5, known=known)
    for i, row in enumerate(reply["rankings"]):
        assert [e["label"] for e in row] == [label for label, _ in ranking[i]]
        assert [e["kept"] for e in row] == [bool(kept[i, e["label"]]) for e in row]
        for name, value in reply["quality"][i].items():
            true = float(quality[name][i])
            assert value is None if np.isnan(true) else value == pytest.approx(true)
    reply = client_of(model).post("/rank", json={"instance": rows[0].tolist(), "k": 1, "at_least": 2})
    assert reply.json()["error"] == "at_least must be at most k, 1, got 2"


def test_explanations_are_those_of_the_model(words):
    model = makers.fitted("texts")
    reply = words.post("/explain", json={"instance": TEXT, "labels": ["bread", 0], "n_neighbors": 2})
    for page, label in zip(reply.json()["explanations"], ("bread", 0), strict=True):
        reasons = page.pop("reasons")
        assert page == json.loads(json.dumps(model.explain(TEXT, label, n_neighbors=2).to_dict()))
        assert reasons
        assert all(r["text"] for r in reasons)
    best = words.post("/explain", json={"instance": TEXT, "k": 2}).json()["explanations"]
    assert [page["label"] for page in best] == model.rank([TEXT], k=2).labels[0].tolist()


def test_scored_candidates_and_features_of_pairs():
    data = makers.dense(40, L=5)
    rng = np.random.default_rng(0)
    lists = [
        [[j, round(float(rng.random() + data.Y[[i], [j]].item()), 3)] for j in range(5) if rng.random() < 0.8]
        for i in range(40)
    ]
    clicks = [[[int(rng.integers(5)), 1.0]] for _ in range(40)]
    given = {"candidates": {"bm25": lists}, "pair_features": {"clicks": clicks}}
    model = MetaRanker(**makers.QUICK).fit(data.X, data.Y, **given)
    client = client_of(model)
    first = {field: {name: of[:7] for name, of in named.items()} for field, named in given.items()}
    rows = asked(model, data.X[:7].tolist(), k=3, optimize="micro-f1", **first)
    ranking, kept = model.rank(data.X[:7], 3, **first), model.predict(data.X[:7], **first)
    for i, row in enumerate(rows):
        assert [(e["label"], e["score"]) for e in row] == ranking[i]
        assert all(e["kept"] == bool(kept[[i], [e["label"]]].item()) for e in row)
    one = {"instance": data.X[3].tolist(), "candidates": {"bm25": lists[3]}}
    one["pair_features"] = {"clicks": clicks[3]}
    alone = client.post("/rank", json={"k": 3, **one}).json()["rankings"][0]
    assert [e["score"] for e in alone] == [e["score"] for e in rows[3]]
    page = client.post("/explain", json={"k": 1, **one}).json()["explanations"][0]
    assert page["label"] == alone[0]["label"]
    more = one | {"candidates": {"bm25": [*lists[3], ["tea", 9.0]]}}
    with pytest.warns(UserWarning, match="left out 1 of"):
        reply = client.post("/rank", json={"k": 3, **more}).json()
    assert (reply["rankings"][0], reply["unknown_candidates"]) == (alone, 1)
    for change, message in (
        ({"candidates": None}, "candidates must hold those of the fit, 'bm25': got none"),
        ({"candidates": {"bm25": [[0, 1.0]], "knn": [[0, 1.0]]}}, "got 'bm25', 'knn'"),
        ({"candidates": {"bm25": [[99, 1.0]]}}, "got 99 at row 0"),
        ({"candidates": {"bm25": [[0, "high"]]}}, "numbers, got 'high'"),
        ({"candidates": {"bm25": 3}}, "candidates[\"'bm25'\"] must be a valid list"),
        ({"pair_features": None}, "pair_features must hold those of the fit"),
    ):
        reply = client.post("/rank", json=one | change)
        assert reply.status_code == 422
        assert message.replace("\"'bm25'\"", "'bm25'") in reply.json()["error"]


@pytest.mark.parametrize("by_place", [False, True])
def test_the_service_is_ready_before_its_first_request(by_place, monkeypatch):
    explained, explain = [], MetaRanker.explain

    def recorded(model, x, label, **options):
        explained.append(label)
        return explain(model, x, label, **options)

    monkeypatch.setattr(MetaRanker, "explain", recorded)
    data = makers.dense(40, L=5)
    lists = [[j if by_place else (j, 0.5) for j in range(5)] for _ in range(40)]
    for given in ({"candidates": {"bm25": lists, "knn": lists}}, {"pair_features": {"clicks": lists}}):
        model = MetaRanker(**makers.QUICK).fit(data.X, data.Y, **given)
        warm_up(model)
        model.update_labels(remove=[0])
        warm_up(model)
        assert len(explained) == 2
        assert explained.pop() != 0
        explained.clear()


def test_a_model_of_no_rows_is_refused():
    lists = [[(i % 2, 1.0)] for i in range(20)]
    model = MetaRanker(**makers.QUICK).fit(None, [[i % 2] for i in range(20)], candidates=lists)
    with pytest.raises(ValueError, match="a model fitted with X=None cannot be served"):
        create_app(model)


# --- what is refused -----------------------------------------------------------------

DENSE = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
RANK = [
    ("texts", {}, "give either instance or instances"),
    ("texts", {"instance": TEXT, "instances": [TEXT]}, "give either"),
    ("texts", {"instances": []}, "instances must have at least 1 item, got a list of 0"),
    ("texts", {"instance": 3}, "instance must be a valid string, got 3"),
    ("texts", {"instances": [TEXT, 3]}, "instances[1] must be a valid string, got 3"),
    ("texts", {"instance": TEXT, "k": 0}, "k must be greater than or equal to 1, got 0"),
    ("texts", {"instance": TEXT, "k": "3"}, 'k must be a valid integer, got "3"'),
    ("texts", {"instance": TEXT, "k": 1001}, "k must be less than or equal to 1000, got 1001"),
    ("texts", {"instance": TEXT, "k": 10**400}, "k must be"),
    ("texts", {"instance": TEXT, "depth": 3}, "depth is not a field"),
    ("texts", {"instance": TEXT, "optimize": "f1"}, "optimize must be None or one of micro-f1"),
    ("texts", {"instance": TEXT, "optimize": "recall>=0.9999"}, "the best possible is recall>=0."),
    ("texts", {"instance": TEXT, "probabilities": "yes"}, "probabilities must be"),
    ("texts", {"instance": TEXT, "allowed": ["the moon"]}, "allowed must name known labels"),
    ("texts", {"instance": TEXT, "allowed": [3]}, "ids in [0, 3)"),
    ("texts", {"instance": TEXT, "exclude": [1.5]}, "exclude must name labels by ids or names, got 1.5"),
    ("texts", {"instance": TEXT, "exclude": [[0], [1]]}, "exclude must have 1 rows"),
    ("texts", {"instance": TEXT, "propensity_weight": 11}, "propensity_weight must be a number in [0, 10]"),
    ("texts", [], "body must be"),
    ("texts", {"\ud800": 1}, "body must be a valid string"),
    ("texts", {"a" * 5000: 1}, "a" * 57 + "... is not a field"),
    ("dense", {"instance": [1.0, 2.0]}, "instance must have at least 6 items, got a list of 2"),
    ("dense", {"instance": [*DENSE[:5], float("nan")]}, "instance[5] must be a finite number, got NaN"),
    ("dense", {"instance": [*DENSE[:5], 1e39]}, "instance[5] must be less than or equal to 3402823466"),
    ("dense", {"instance": [*DENSE[:5], 10**400]}, "instance[5] must be"),
    ("dense", {"instance": [*DENSE[:5], "4"]}, "instance[5] must be a valid number"),
    ("dense", {"instances": [DENSE, [*DENSE[:5], None]]}, "instances[1][5] must be a valid number, got null"),
    ("dense", {"instances": [{"0": 1}, DENSE]}, "instances[1] must be a valid dictionary"),
    ("sparse", {"instance": {"80": 1.0}}, "numbers of features in [0, 80) for keys, got '80'"),
    ("sparse", {"instance": {"sea": 1.0}}, "numbers of features in [0, 80) for keys, got 'sea'"),
    ("sparse", {"instance": {"3": 1.0, "03": 2.0}}, "instance must name each feature once"),
    ("sparse", {"instance": {"3": float("nan")}}, "instance['3'] must be a finite number"),
]
BODIES = [
    (b"", "the body must be JSON"),
    (b"\xff\xfe", "the body must be JSON"),
    (b"[" * 100_000, "nested too deep"),
    (b'{"k": 1%s}' % (b"0" * 5000), "the body must be JSON"),
    (b'{"instance": "sea", "k": 1, "k": 2}', "distinct keys: repeated key 'k'"),
]
EXPLAIN = [
    ({"instance": TEXT, "labels": []}, "labels must have at least 1 item"),
    ({"instance": TEXT, "labels": ["the moon"]}, "label must name known labels"),
    ({"instance": TEXT, "labels": [0] * 11}, "labels must have at most 10 items, got a list of 11"),
    ({"instance": TEXT, "k": 11}, "k must be less than or equal to 10, got 11"),
    ({"labels": [0]}, "instance is required"),
]
FORMS = [
    (b"", "text is required"),
    (b"text", "the body must be a form"),
    (b"\xff\xfe", "the body must be a form in UTF-8"),
    (b"text=%ff", "the body must be a form in UTF-8"),
    (b"&".join(b"a%d=1" % i for i in range(101)), "at most 100 fields"),
    (b"text=a&text=b", "text must be given once"),
    (b"text=a&limit=0", "limit must be greater than or equal to 1"),
    (b"text=a&limit=1001", "limit must be less than or equal to 1000"),
    (b"text=a&threshold=nan", "threshold must be"),
    (b"text=a&language=en", "language is not a field of this request"),
]
REFUSED = [
    *(("/rank", name, json.dumps(body).encode(), message) for name, body, message in RANK),
    *(("/rank", "texts", body, message) for body, message in BODIES),
    *(("/explain", "texts", json.dumps(body).encode(), message) for body, message in EXPLAIN),
    *(("/v1/projects/toy/suggest", "texts", body, message) for body, message in FORMS),
]


@pytest.mark.parametrize(("path", "name", "body", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_malformed_is_refused_in_few_words(path, name, body, message):
    kind = "application/x-www-form-urlencoded" if "suggest" in path else "application/json"
    reply = client_of(name).post(path, content=body, headers={"content-type": kind})
    assert reply.status_code == 422, reply.text
    assert message in reply.json()["error"]
    assert len(reply.text) < 350


def test_values_of_blocks_are_those_of_their_kind():
    X = Blocks(
        {
            "words": makers.sparse().X[:60],
            "json": makers.texts().texts,  # a name that pydantic's own models have
            "place": np.arange(180, dtype=np.float32).reshape(60, 3),
            "sizes": np.arange(120, dtype=np.float32).reshape(60, 2) % 7,
            "colour": np.array([["red", "blue"][i % 2] for i in range(60)], object).reshape(-1, 1),
        },
        {"words": "sparse", "json": "text", "place": "vector", "sizes": "numbers", "colour": "categories"},
        {"sizes": ["long", "wide"], "colour": ["colour"]},
    )
    encoder = BlocksEncoder()
    encoder.fit_encode(X)
    reader = InstanceReader(SimpleNamespace(encoder_=encoder, n_features_in_=encoder.n_features))
    one = {"words": {"3": 1.0, "0": 2.0}, "json": None, "place": [1, 2, 3]}
    one |= {"long": 4, "wide": None, "colour": "red"}
    rows = encoder.read(reader.read([one, one], "instances"))
    assert rows["words"].toarray()[1, :4].tolist() == [2, 0, 0, 1]
    assert rows["json"] == ["", ""]
    assert rows["place"].tolist() == [[1, 2, 3]] * 2
    np.testing.assert_array_equal(rows["sizes"], np.float32([[4, np.nan]] * 2))
    assert rows["colour"].tolist() == [["red"]] * 2
    for change, message in (
        ({"words": {"3": 1.0, "03": 2.0}}, "instances['words'] must name each feature once"),
        ({"words": {"80": 1.0}}, "numbers of features in [0, 80) for keys"),
        ({"words": [1.0]}, "instances[1]['words'] must be a valid dictionary"),
        ({"place": [1, 2]}, "instances[1]['place'] must have at least 3 items"),
        ({"place": [1, 2, 1e39]}, "instances[1]['place'][2] must be less than"),
        ({"long": "4"}, "instances[1]['long'] must be a valid number"),
        ({"colour": 1.5}, "instances[1]['colour'] must be a text or an integer, or null, got 1.5"),
        ({"more": "red"}, "instances[1]['more'] is not a field"),
    ):
        with pytest.raises(HTTPException, match=re.escape(message)):
            reader.read([one, one | change], "instances")
    del one["place"]
    with pytest.raises(HTTPException, match=re.escape("instance['place'] is required")):
        reader.read([one], "instance")


def test_bodies_types_methods_and_paths():
    with client_of("texts", max_body=1000) as client:
        assert client.post("/rank", json={"instance": "a" * 900}).status_code == 200
        reply = client.post("/rank", json={"instance": "a" * 1000})
        assert (reply.status_code, reply.json()) == (413, {"error": "the body must have at most 1000 bytes"})
        assert client.post("/v1/projects/toy/suggest", data={"text": "a" * 1001}).status_code == 413
        assert client.post("/rank", content=b"{}").status_code == 415
        assert client.post("/rank", data={"instance": TEXT}).status_code == 415
        assert client.post("/v1/projects/toy/suggest", json={"text": TEXT}).status_code == 415
        assert client.get("/rank").status_code == 405
        missing = client.get("/nothing")
        assert (missing.status_code, missing.json()) == (404, {"error": "Not Found"})


def test_removed_labels_are_not_explained():
    model = MetaRanker(**makers.QUICK).fit(makers.texts())
    model.update_labels(remove=["bread"])
    client = client_of(model)
    reply = client.post("/explain", json={"instance": "flour", "labels": ["bread"]})
    assert reply.status_code == 422
    assert "bread" in reply.json()["error"]
    assert all(e["name"] != "bread" for row in asked(model, ["flour salt"]) for e in row)
    assert client.get("/model").json()["n_labels"] == model.n_labels_ - 1, "of which it ranks any"


# --- a service's own pages, and who may ask ----------------------------------------------


def test_what_the_service_says_of_itself(words):
    assert words.get("/health").json() == {"status": "ok"}
    ready = words.get("/ready").json()
    assert (ready["status"], ready["version"], ready["digest"]) == ("ready", __version__, None)
    assert datetime.fromisoformat(ready["loaded"]) <= datetime.now(UTC)
    model = words.get("/model").json()
    assert (model["name"], model["input"], model["n_labels"]) == ("toy", "text", 3)
    limits = {"max_batch": 256, "max_k": 1000, "max_explain": 10, "max_body": 1 << 20}
    assert model["limits"] == limits
    paths = words.get("/openapi.json").json()["paths"]
    fields = paths["/rank"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert {"instance", "instances", "k", "allowed", "exclude", "optimize", "probabilities"} <= set(fields)
    form = paths["/v1/projects/{project}/suggest"]["post"]["requestBody"]["content"]
    assert set(form) == {"application/x-www-form-urlencoded"}
    for path in ("/", "/health", "/ready", "/model", "/metrics", "/v1/projects/toy"):
        head = words.head(path)
        assert head.status_code == 200
        assert head.headers["content-type"] == words.get(path).headers["content-type"]


def test_metrics_count_what_was_asked():
    with client_of("texts") as client:
        for _ in range(3):
            client.post("/rank", json={"instance": TEXT})
        client.post("/rank", json={"instance": 1})
        client.get("/no/such/page")
        client.get("/v1/projects/toy")
        lines = client.get("/metrics").text.splitlines()
    for line in (
        'metarank_requests_total{path="/rank",status="200"} 3.0',
        'metarank_requests_total{path="/rank",status="422"} 1.0',
        'metarank_requests_total{path="other",status="404"} 1.0',
        'metarank_requests_total{path="/v1/projects/{project}",status="200"} 1.0',
        'metarank_request_seconds_count{path="/rank"} 4.0',
        f'metarank_service_info{{model="toy",version="{__version__}"}} 1.0',
    ):
        assert line in lines


def test_the_page_fetches_nothing_from_elsewhere(words):
    reply = words.get("/")
    assert reply.headers["content-type"].startswith("text/html")
    assert "http://" not in reply.text
    assert "https://" not in reply.text
    assert "{{" not in reply.text
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_a_token_guards_what_is_of_the_model():
    with client_of("texts", token=TOKEN) as client:
        for given, status in (
            (None, 401),
            ("Bearer wrong", 401),
            (f"Basic {TOKEN}", 401),
            (f"Bearer {TOKEN}", 200),
            (f"bearer {TOKEN}", 200),
        ):
            headers = {} if given is None else {"authorization": given}
            replies = [client.get(p, headers=headers) for p in ("/model", "/metrics", "/v1/projects/toy")]
            replies += [
                client.post(p, json={"instance": TEXT}, headers=headers) for p in ("/rank", "/explain")
            ]
            replies += [client.post("/v1/projects/toy/suggest", data={"text": TEXT}, headers=headers)]
            assert {reply.status_code for reply in replies} == {status}
            if status == 401:
                assert all(reply.headers["www-authenticate"] == "Bearer" for reply in replies)
                assert not any(TOKEN in reply.text for reply in replies)
        for path in ("/", "/health", "/ready"):
            reply = client.get(path)
            assert reply.status_code == 200
            assert "toy" not in reply.text, "of the model"


def test_pages_of_the_named_origins_may_ask():
    here, other = "https://labels.example", "https://other.example"
    with client_of("texts", origins=[here], token=TOKEN) as client:
        asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
        assert client.options("/rank", headers={"origin": here, **asks}).status_code == 200
        assert client.options("/rank", headers={"origin": other, **asks}).status_code == 400
        reply = client.post("/rank", json={"instance": TEXT}, headers={"origin": here})
        assert reply.status_code == 401
        assert reply.headers["access-control-allow-origin"] == here, "so that the page can read why"
    with client_of("texts") as client:
        reply = client.post("/rank", json={"instance": TEXT}, headers={"origin": here})
        assert "access-control-allow-origin" not in reply.headers


# --- faults, threads, and a model in place of another -------------------------------------


class Held:
    """A model whose answers wait until they are let go, or fail."""

    def __init__(self, model: MetaRanker, error: Exception | None = None) -> None:
        self._model, self._error = model, error
        self.entered, self.go = threading.Event(), threading.Event()

    def __getattr__(self, name: str):
        return getattr(self._model, name)

    def rank(self, *args, **kwargs):
        if self._error is not None:
            raise self._error
        self.entered.set()
        assert self.go.wait(LONG)
        return self._model.rank(*args, **kwargs)


def holding(monkeypatch, held: Held) -> None:
    """Answers are asked of `held`, which stands for a fitted model."""
    monkeypatch.setattr("metarank.apps.serve.reload.MetaRanker", (MetaRanker, Held))


def test_a_fault_is_told_to_the_log_alone(monkeypatch, caplog):
    held = Held(makers.fitted("texts"), RuntimeError("secret detail"))
    holding(monkeypatch, held)
    with TestClient(create_app(held)) as client:
        reply = client.post("/rank", json={"instance": TEXT})
        assert reply.status_code == 500
        assert "secret" not in reply.text
        assert "secret detail" in caplog.text
        assert client.post("/explain", json={"instance": TEXT, "labels": [0]}).status_code == 200


def test_the_event_loop_does_not_wait_and_a_request_keeps_its_model(monkeypatch, tmp_path):
    old, data = makers.fitted("texts"), makers.texts()
    new = MetaRanker(**makers.QUICK).fit(list(data.texts)[::2], data.Y[::2])
    held = Held(old)
    holding(monkeypatch, held)
    app = create_app(held)
    with TestClient(app) as client:
        replies = []
        ask = {"instance": TEXT, "k": 3}
        thread = threading.Thread(target=lambda: replies.append(client.post("/rank", json=ask)))
        thread.start()
        assert held.entered.wait(LONG)
        assert client.get("/health").status_code == 200, "while the model is at work"
        service = app.router.lifespan_context.__self__
        service.holder.current = ModelHolder(new).current
        assert client.post("/rank", json=ask).json()["rankings"] == entries(
            new.rank([TEXT], k=3), new.label_names_
        )
        held.go.set()
        thread.join()
        assert replies[0].json()["rankings"] == entries(old.rank([TEXT], k=3), old.label_names_)


def test_a_folder_is_taken_up_and_a_broken_one_changes_nothing(tmp_path, caplog):
    folder, data = tmp_path / "topics", makers.texts()
    new = MetaRanker(**makers.QUICK).fit(list(data.texts)[::2], data.Y[::2])
    makers.fitted("texts").save(tmp_path / "first")
    new.save(tmp_path / "second")
    folder.symlink_to("first")
    holder = ModelHolder(folder)
    first = holder.current
    holder.refresh()
    assert holder.current is first

    def led_to(name: str) -> None:
        folder.unlink()
        folder.symlink_to(name)
        holder.refresh()

    led_to("nothing")
    (tmp_path / "damaged").mkdir()
    for path in (tmp_path / "second").iterdir():
        (tmp_path / "damaged" / path.name).write_bytes(path.read_bytes())
    victim = next((tmp_path / "damaged").glob("*.npy"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"\x7f")
    led_to("damaged")
    assert holder.current is first
    assert "the model was not reloaded, the previous one stays: " in caplog.text
    assert "is damaged" in caplog.text
    victim.write_bytes((tmp_path / "second" / victim.name).read_bytes())
    holder.refresh()
    assert holder.current.digest not in (None, first.digest)
    model = holder.current.answerer.model
    assert list(model.rank([TEXT])) == list(new.rank([TEXT]))
    assert model.n_jobs == 1
