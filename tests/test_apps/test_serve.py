"""The service: answers are those of the model, bit for bit; what is not accepted is refused in words."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime

import makers
import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")

from services import LONG, PATIENT
from starlette.testclient import TestClient

from metarank import MetaRanker, __version__
from metarank.apps.serve.answers import Answerer, Call
from metarank.serve import Access, ServeOptions, create_app
from metarank.types.blocks import Blocks

TEXT = "sea sun bread code"


@pytest.fixture(scope="module")
def words():
    with TestClient(app_of(makers.fitted("texts"), max_text=200, max_k=50)) as client:
        yield client


def app_of(model: MetaRanker, **options: float):
    """A service that waits for a busy machine."""
    return create_app(model, ServeOptions(**PATIENT | options), name="toy")


def entries(ranking, names=None) -> list[list[dict]]:
    return [
        [{"label": v, **({} if names is None else {"name": names[v]}), "score": s} for v, s in row]
        for row in ranking
    ]


def asked(model: MetaRanker, instances: list, **fields) -> list[list[dict]]:
    """The rankings in the reply to a batch."""
    body = json.dumps({"instances": instances, **fields}).encode()
    reply = Answerer(model, ServeOptions()).answer_one(Call("rank", body))
    assert reply.status == 200, reply.body
    return json.loads(reply.body)["rankings"]


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
        return [{name: as_json(part[i]) for name, part in X.items()} for i in range(n)], X
    X = dataset.X[:n]
    if isinstance(X, np.ndarray):
        return [[float(v) for v in row] for row in X], X
    return [dict(zip(map(str, row.indices.tolist()), row.data.tolist())) for row in X], X


# --- equal to the model's own answers ---------------------------------------------


@pytest.mark.parametrize("name", list(makers.MAKERS))
def test_rankings_are_those_of_the_model(name):
    model = makers.fitted(name)
    instances, X = rows_of(name, 7)
    assert asked(model, instances, k=5) == entries(model.rank(X, k=5), model.label_names_)


def test_dense_and_sparse_instances_are_the_same_rows():
    model = makers.fitted("sparse")
    instances, X = rows_of("sparse", 4)
    assert asked(model, X.toarray().tolist()) == asked(model, instances)
    model = makers.fitted("dense")
    _, X = rows_of("dense", 4)
    pairs = [{str(j): float(v) for j, v in enumerate(row) if j != 2} for row in X]
    X[:, 2] = 0
    assert asked(model, pairs) == entries(model.rank(X))


@pytest.mark.parametrize("name", ["texts", "many texts", "many labels", "dense"])
def test_requests_that_wait_together_are_answered_as_if_alone(name):
    """Whatever k, options and faults the others have."""
    model = makers.fitted(name)
    instances, _ = rows_of(name, 12)
    fields = [
        {"k": 2},
        {},
        {"k": 60},
        {"k": 3, "optimize": "micro-f1", "probabilities": True},
        {"optimize": "micro-f1", "probabilities": True},
        {"allowed": [1, 0], "k": 70},
        {"allowed": [2], "exclude": [2]},
        {"exclude": [0, 1]},
        {"propensity_weight": 2.5},
        {"k": 0},
    ]
    bodies = [json.dumps({"instance": x, **f}).encode() for x, f in zip(instances, fields)]
    bodies += [b"{", json.dumps({"instances": instances[:3], "k": 4}).encode()]
    calls = [Call("rank", body) for body in bodies] + [Call("explain", bodies[0])]
    answerer = Answerer(model, ServeOptions())
    together = dict(answerer.answer(calls))
    assert sorted(together) == list(range(len(calls)))
    assert [together[i] for i in range(len(calls))] == [answerer.answer_one(call) for call in calls]
    assert [together[i].status for i in range(len(calls))] == [200] * 9 + [422, 422, 200, 200]


def test_lists_of_labels_cuts_and_probabilities():
    model = makers.fitted("many texts")
    texts, _ = rows_of("many texts", 3)
    exclude, allowed = [[0, 1], [1, 0], [5]], [7, 9, 3, 0]
    expected = model.rank(texts, k=4, exclude=model_lists(exclude), allowed=allowed)
    assert asked(model, texts, k=4, exclude=exclude, allowed=allowed) == entries(expected, model.label_names_)
    by_name = [[model.label_names_[v] for v in row] for row in exclude]
    unique = all(model.label_names_.count(v) == 1 for row in by_name for v in row)
    assert unique
    assert asked(model, texts, k=4, exclude=by_name, allowed=allowed) == entries(expected, model.label_names_)
    found = asked(model, texts, k=6, optimize="macro-f1", probabilities=True)
    kept, probable = model.predict(texts, "macro-f1"), model.predict_proba(texts)
    for i, row in enumerate(found):
        assert [e["kept"] for e in row] == [bool(kept[i, e["label"]]) for e in row]
        assert [e["probability"] for e in row] == [float(probable[i, e["label"]]) for e in row]


@pytest.mark.parametrize("name", ["texts", "many labels", "many texts"])
@pytest.mark.parametrize(
    "limits", [{}, {"allowed": [0, 1, 2]}, {"allowed": [0, 1, 2], "exclude": [1]}, {"exclude": [2]}]
)
@pytest.mark.parametrize("weight", [None, 3.0])
def test_one_pass_gives_what_three_give(name, limits, weight):
    model = makers.fitted(name)
    instances, X = rows_of(name, 4)
    if "allowed" in limits and name != "texts":
        limits = limits | {"allowed": list(range(100))}
    for k in (2, 200):  # more than are shortlisted
        found = asked(
            model, instances, k=k, propensity_weight=weight, probabilities=True, optimize="hamming", **limits
        )
        table = model.label_table_
        names = None if table.names is None else [table.shown(label) for label in range(table.n_labels)]
        expected = entries(model.rank(X, k=k, propensity_weight=weight, **limits), names)
        probable, kept = model.predict_proba(X, **limits), model.predict(X, "hamming", **limits)
        for i, row in enumerate(expected):
            for entry in row:
                entry["probability"] = float(probable[i, entry["label"]])
                entry["kept"] = bool(kept[i, entry["label"]])
        assert found == expected


def model_lists(lists: list[list[int]]):
    from metarank.types.candidates import Candidates

    rows = [sorted(row) for row in lists]
    return Candidates(np.cumsum([0, *map(len, rows)]), np.concatenate(rows), 1200)


def test_explanations_are_those_of_the_model(words):
    model = makers.fitted("texts")
    reply = words.post("/explain", json={"instance": TEXT, "labels": ["bread", 0], "n_neighbors": 2})
    pages = reply.json()["explanations"]
    for page, label in zip(pages, ("bread", 0)):
        said = page.pop("reasons")
        assert page == json.loads(json.dumps(model.explain(TEXT, label, n_neighbors=2).to_dict()))
        assert said
        assert all(r["text"] for r in said)
    best = words.post("/explain", json={"instance": TEXT, "k": 2}).json()["explanations"]
    assert [page["label"] for page in best] == model.rank([TEXT], k=2).labels[0].tolist()


def test_a_text_without_known_words_is_ranked(words):
    model = makers.fitted("texts")
    for text in ("", "zzz", "\x00 ünknown 💡"):
        found = words.post("/rank", json={"instance": text}).json()["rankings"]
        assert found == entries(model.rank([text]), model.label_names_)


# --- what is refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "instance"),
        ({"instance": TEXT, "instances": [TEXT]}, "not both"),
        ({"instances": []}, "instances must hold at least 1 item, got none"),
        ({"instance": 3}, "instance must be a text"),
        ({"instance": None, "k": 1}, "instance"),
        ({"instance": [1.0]}, "instance must be a text, since this model was trained on text"),
        ({"instance": {"sea": 1}}, "must be a text"),
        ({"instances": [TEXT, 3]}, "instances[1] must be a text"),
        ({"instance": "a" * 201}, "at most 200 characters, got 201"),
        ({"instances": [TEXT] * 257}, "at most 256 instances, got 257"),
        ({"instance": TEXT, "k": 0}, "k must be"),
        ({"instance": TEXT, "k": "3"}, 'k must be a valid integer, got "3"'),
        ({"instance": TEXT, "k": True}, "k must be a valid integer"),
        ({"instance": TEXT, "k": 2.5}, "k must be"),
        ({"instance": TEXT, "k": 51}, "k must be at most 50, got 51"),
        ({"instance": TEXT, "k": 10**400}, "k must be"),
        ({"instance": TEXT, "depth": 3}, "depth is not a field"),
        ({"instance": TEXT, "optimize": "f1"}, "optimize must be None or one of micro-f1"),
        ({"instance": TEXT, "optimize": 1}, "optimize must be"),
        ({"instance": TEXT, "optimize": "recall>=0.9999"}, "the best that can be had is recall>=0."),
        ({"instance": TEXT, "probabilities": "yes"}, "probabilities must be"),
        ({"instance": TEXT, "allowed": 3}, "allowed must be a list of labels"),
        ({"instance": TEXT, "allowed": ["the moon"]}, "allowed must name labels of this model"),
        ({"instance": TEXT, "allowed": [3]}, "ids in [0, 3)"),
        ({"instance": TEXT, "exclude": [-1]}, "ids in [0, 3)"),
        ({"instance": TEXT, "exclude": [10**30]}, "ids in [0, 3)"),
        ({"instance": TEXT, "exclude": [1.5]}, "exclude[0] must be the id or the name"),
        ({"instance": TEXT, "exclude": [[0], [1]]}, "exclude must be one list of labels, or 1"),
        (
            {"instance": TEXT, "propensity_weight": 11},
            "propensity_weight must be a number in [0, 10], got 11",
        ),
        ({"instance": TEXT, "propensity_weight": float("nan")}, "propensity_weight must be"),
        ([], "body must be"),
        ("text", "body must be"),
    ],
)
def test_malformed_ranking_requests(words, body, said):
    reply = words.post("/rank", content=json.dumps(body), headers={"content-type": "application/json"})
    assert reply.status_code == 422, reply.text
    error = reply.json()
    assert said in error["error"], error
    assert error["field"] in ("body", *body) if isinstance(body, dict) and body else True


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"instance": TEXT, "labels": []}, "labels must hold at least 1 item, got none"),
        ({"instance": TEXT, "labels": ["the moon"]}, "labels must name labels of this model"),
        ({"instance": TEXT, "labels": [0] * 11}, "labels must be at most 10, got 11"),
        ({"instance": TEXT, "k": 11}, "k must be at most 10, got 11"),
        ({"instance": TEXT, "n_neighbors": 0}, "n_neighbors must be"),
        ({"instance": TEXT, "n_neighbors": 10**30}, "n_neighbors must be at most"),
        ({"labels": [0]}, "instance is required"),
    ],
)
def test_malformed_explanation_requests(words, body, said):
    reply = words.post("/explain", json=body)
    assert reply.status_code == 422, reply.text
    assert said in reply.json()["error"]


@pytest.mark.parametrize("body", [{"a" * 5000: 1}, {"instance": {"a" * 5000: True}}, {"k": "a" * 5000}])
def test_what_is_refused_is_not_repeated_at_length(words, body):
    reply = words.post("/rank", json=body)
    assert reply.status_code == 422
    assert "a" * 50 + "..." in reply.text or "a" * 56 + "..." in reply.text
    assert len(reply.text) < 250


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"instance": "a"} x',
        b'{"instance": "\\ud800"}',
        b"[" * 100_000,
        b'{"instance": 1e999}',
    ],
)
def test_bodies_that_are_no_json_requests(words, body):
    reply = words.post("/rank", content=body, headers={"content-type": "application/json"})
    assert reply.status_code == 422, reply.text
    assert reply.json()["error"]


@pytest.mark.parametrize(
    ("name", "instance", "said"),
    [
        ("dense", [1.0, 2.0], "instance must have 6 values, got 2"),
        ("dense", [1.0, 2.0, 3.0, float("nan"), 5.0, 6.0], "NaN at row 0, column 3"),
        ("dense", [1.0, 2.0, 3.0, float("inf"), 5.0, 6.0], "infinity"),
        ("dense", [1.0, 2.0, 3.0, 1e39, 5.0, 6.0], "too large for float32"),
        ("dense", [1.0, 2.0, 3.0, "4", 5.0, 6.0], "instance[3] must be"),
        ("dense", [1.0, 2.0, 3.0, True, 5.0, 6.0], "instance[3] must be"),
        ("dense", [1.0, 2.0, 3.0, None, 5.0, 6.0], "instance[3] must be"),
        ("dense", TEXT, "trained on numbers"),
        ("sparse", {"80": 1.0}, "numbers of features in [0, 80) for keys, got '80'"),
        ("sparse", {"sea": 1.0}, "numbers of features in [0, 80) for keys, got 'sea'"),
        ("sparse", {"-1": 1.0}, "numbers of features"),
        ("sparse", {"3": 1.0, "03": 2.0}, "must name each feature once"),
        ("sparse", {"3": float("nan")}, "NaN at row 0, column 3"),
    ],
)
def test_features_that_the_model_does_not_take(name, instance, said):
    answerer = Answerer(makers.fitted(name), ServeOptions())
    reply = answerer.answer_one(Call("rank", json.dumps({"instance": instance}).encode()))
    assert reply.status == 422, reply.body
    assert said in json.loads(reply.body)["error"]


def test_features_go_by_name_where_the_model_knows_names():
    pd = pytest.importorskip("pandas")
    dataset = makers.dense()
    names = [f"f{j}" for j in range(6)]
    frame = pd.DataFrame(dataset.X, columns=names)
    model = MetaRanker(**makers.QUICK).fit(frame, dataset.Y)
    instances = [{name: float(v) for name, v in zip(names, row)} for row in dataset.X[:3]]
    assert asked(model, instances) == entries(model.rank(frame[:3]))
    assert asked(model, [{"f1": 1, "4": 2}]) == asked(model, [[0, 1, 0, 0, 2, 0]])
    reply = Answerer(model, ServeOptions()).answer_one(Call("rank", b'{"instance": {"f9": 1}}'))
    assert "must have names of features for keys, got 'f9'" in json.loads(reply.body)["error"]


def test_removed_labels_are_not_explained():
    dataset = makers.texts()
    model = MetaRanker(**makers.QUICK).fit(dataset)
    model.update_labels(remove=["bread"])
    answerer = Answerer(model, ServeOptions())
    reply = answerer.answer_one(Call("explain", b'{"instance": "flour", "labels": ["bread"]}'))
    assert (reply.status, json.loads(reply.body)["field"]) == (422, "labels")
    assert all(e["name"] != "bread" for row in asked(model, ["flour salt"]) for e in row)
    with TestClient(create_app(model)) as client:
        assert client.get("/model").json()["n_labels"] == model.n_labels_ - 1, "of which it ranks any"


def test_bodies_and_types_of_requests(words):
    large = json.dumps({"instance": "a" * (1 << 20)}).encode()
    kind = {"content-type": "application/json"}
    assert words.post("/rank", content=large, headers=kind).status_code == 413
    assert words.post("/rank", content=iter([large[:1000], large[1000:]]), headers=kind).status_code == 413
    parts = iter([b'{"instance": ', b'"sea"}'])
    assert words.post("/rank", content=parts, headers=kind).status_code == 200
    assert words.post("/rank", content=b"instance=sea").status_code == 415
    assert words.post("/rank", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    assert words.get("/rank").status_code == 405
    missing = words.get("/nothing")
    assert (missing.status_code, missing.json()) == (404, {"error": "Not Found"})


def test_other_hosts_than_the_allowed_are_refused():
    options = ServeOptions(**PATIENT)
    access = Access(hosts=frozenset({"localhost", "::1"}))
    with TestClient(create_app(makers.fitted("texts"), options, access=access)) as client:
        for host in ("localhost", "LOCALHOST:8000", "[::1]:8000"):
            assert client.get("/model", headers={"host": host}).status_code == 200
        for host in ("evil.example", "localhost.evil.example:8000", "", "[::2]"):
            for path in ("/health", "/ready"):
                assert client.get(path, headers={"host": host}).status_code == 200, "of whoever watches it"
            refused = client.post("/rank", json={"instance": TEXT}, headers={"host": host})
            assert refused.status_code == 421
            assert "Host header must name" in refused.json()["error"]


# --- a service's own pages ---------------------------------------------------------------


def test_health_and_openapi(words):
    assert words.get("/health").json() == {"status": "ok"}
    ready = words.get("/ready").json()
    assert (ready["status"], ready["version"], ready["digest"]) == ("ready", __version__, None)
    assert datetime.fromisoformat(ready["loaded"]) <= datetime.now(UTC)
    model = words.get("/model").json()
    assert (model["name"], model["input"], model["n_labels"]) == ("toy", "text", 3)
    assert model["limits"]["max_k"] == 50, "what is refused above, though there are but 3 labels"
    paths = words.get("/openapi.json").json()["paths"]
    fields = paths["/rank"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert {"instance", "instances", "k", "allowed", "exclude", "optimize", "probabilities"} <= set(fields)


@pytest.mark.parametrize("path", ["/", "/health", "/ready", "/model", "/metrics", "/docs", "/openapi.json"])
def test_what_can_be_got_has_a_head(words, path):
    head = words.head(path)
    assert head.status_code == 200
    assert head.headers["content-type"] == words.get(path).headers["content-type"]


def test_metrics_count_what_was_asked():
    with TestClient(app_of(makers.fitted("texts"))) as client:
        for _ in range(3):
            client.post("/rank", json={"instance": TEXT})
        client.post("/rank", json={"instance": 1})
        client.get("/no/such/page")
        wait_for(client, "metarank_working_requests 0.0")
        lines = client.get("/metrics").text.splitlines()
    assert 'metarank_requests_total{path="/rank",status="200"} 3.0' in lines
    assert 'metarank_requests_total{path="/rank",status="422"} 1.0' in lines
    assert 'metarank_requests_total{path="other",status="404"} 1.0' in lines
    assert 'metarank_refused_total{reason="invalid"} 1.0' in lines
    assert 'metarank_stage_seconds_count{stage="wait"} 4.0' in lines
    assert 'metarank_stage_seconds_count{stage="model"} 3.0' in lines
    assert "metarank_waiting_requests 0.0" in lines


def test_the_page_fetches_nothing_from_elsewhere(words):
    reply = words.get("/")
    assert reply.headers["content-type"].startswith("text/html")
    assert "http://" not in reply.text
    assert "https://" not in reply.text
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"


# --- faults and load -----------------------------------------------------------------------


class Slow:
    """A model whose answers wait until they are let go."""

    def __init__(self, model: MetaRanker) -> None:
        self._model = model
        self.go = threading.Event()
        self.entered = threading.Semaphore(0)
        self.asked = 0

    def __getattr__(self, name: str):
        return getattr(self._model, name)

    def rank(self, *args, **kwargs):
        self.asked += 1
        self.entered.release()
        assert self.go.wait(LONG)
        return self._model.rank(*args, **kwargs)


def in_threads(client: TestClient, bodies: list[dict]) -> tuple[list[threading.Thread], list]:
    replies: list = [None] * len(bodies)

    def post(i: int) -> None:
        replies[i] = client.post("/rank", json=bodies[i])

    threads = [threading.Thread(target=post, args=(i,)) for i in range(len(bodies))]
    for thread in threads:
        thread.start()
    return threads, replies


def wait_for(client: TestClient, line: str) -> None:
    for _ in range(LONG * 50):
        if line in client.get("/metrics").text:
            return
        time.sleep(0.02)
    raise AssertionError(line)


def test_a_full_queue_answers_429_and_recovers():
    slow = Slow(makers.fitted("texts"))
    with TestClient(app_of(slow, queue=3, threads=1)) as client:
        busy, first = in_threads(client, [{"instance": TEXT}])
        assert slow.entered.acquire(timeout=LONG)
        waiting, later = in_threads(client, [{"instance": TEXT, "k": k} for k in (1, 2, 3)])
        wait_for(client, "metarank_waiting_requests 3.0")
        refused = client.post("/rank", json={"instance": TEXT})
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json() == {"error": "3 requests are waiting already"}
        assert client.get("/health").status_code == 200, "the event loop is not blocked"
        assert client.get("/").status_code == 200
        slow.go.set()
        for thread in busy + waiting:
            thread.join()
        assert [r.status_code for r in first + later] == [200] * 4
        expected = entries(slow._model.rank([TEXT], k=3), slow.label_names_)[0]
        assert [r.json()["rankings"][0] for r in later] == [expected[:k] for k in (1, 2, 3)]
        assert slow.asked == 2, "those that waited were ranked together"
        assert client.post("/rank", json={"instance": TEXT}).status_code == 200
        assert 'metarank_refused_total{reason="queue"} 1.0' in client.get("/metrics").text


def test_a_late_answer_is_503_and_costs_no_work():
    slow = Slow(makers.fitted("texts"))
    with TestClient(app_of(slow, threads=1, timeout=2.0)) as client:
        threads, replies = in_threads(client, [{"instance": TEXT}] * 3)
        for thread in threads:
            thread.join()
        assert [r.status_code for r in replies] == [503] * 3
        assert {r.headers["retry-after"] for r in replies} == {"1"}
        assert "no answer within 2 s" in replies[0].json()["error"]
        slow.go.set()
        statuses = [client.post("/rank", json={"instance": TEXT}).status_code]
        while statuses[-1] == 503 and len(statuses) < LONG:  # where the machine is busy, this one is late too
            statuses.append(client.post("/rank", json={"instance": TEXT}).status_code)
        assert statuses[-1] == 200
        assert slow.asked <= 1 + len(statuses), "nobody waits for the others any more"


def test_one_request_s_fault_is_not_that_of_its_company(caplog):
    class Faulty:
        def __init__(self, model: MetaRanker) -> None:
            self._model = model

        def __getattr__(self, name: str):
            return getattr(self._model, name)

        def rank(self, X, **kwargs):
            if "poison" in X:
                raise RuntimeError("secret detail")
            return self._model.rank(X, **kwargs)

    answerer = Answerer(Faulty(makers.fitted("texts")), ServeOptions())
    texts = ["sea", "poison", "bread"]
    calls = [Call("rank", json.dumps({"instance": t}).encode()) for t in texts]
    replies = dict(answerer.answer(calls))
    assert [replies[i].status for i in range(3)] == [200, 500, 200]
    assert b"secret" not in replies[1].body
    assert "secret detail" in caplog.text


def test_a_thread_survives_what_no_reply_was_made_of(caplog):
    app = app_of(makers.fitted("texts"), threads=1)
    with TestClient(app) as client, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Answerer, "together", lambda self, asked: 1 / 0)
        assert client.post("/rank", json={"instance": TEXT}).status_code == 500
        patch.undo()
        assert client.post("/rank", json={"instance": TEXT}).status_code == 200


def test_its_threads_end_with_it():
    before = set(threading.enumerate())
    with TestClient(app_of(makers.fitted("texts"), threads=3)) as client:
        assert client.post("/rank", json={"instance": TEXT}).status_code == 200
        assert sum(t.name.startswith("metarank-") for t in set(threading.enumerate()) - before) == 3
    assert not [t for t in set(threading.enumerate()) - before if t.name.startswith("metarank-")]


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "3", None, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["queue", "max_k", "timeout"])
def test_limits_are_positive(name, value):
    if name == "timeout" and value == 2.5:
        return
    with pytest.raises((ValueError, TypeError), match=f"{name} must be a positive"):
        ServeOptions(**{name: value})


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ('{"instance": "sea", "k": 1, "k": 2}', "k"),
        ('{"instance": {"0": 1, "1": 2, "0": 3}}', "0"),
        ('{"instances": [{"0": 1}, {"é": 1, "é": 1}]}', "é"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(body, key):
    answerer = Answerer(makers.fitted("sparse"), ServeOptions())
    for path in ("rank", "explain") if "instances" not in body else ("rank",):
        reply = answerer.answer_one(Call(path, body.encode()))
        assert reply.status == 422
        told = json.loads(reply.body)["error"]
        assert told == f"the body must be JSON of distinct keys: repeated key {key!r}"


@pytest.mark.parametrize("timeout", [1e-9, 0.0009, 86_401.0, 1e300])
def test_times_that_no_clock_has_are_refused(timeout):
    with pytest.raises(ValueError, match=r"^timeout must be from 0.001 to 86400 seconds, got "):
        ServeOptions(timeout=timeout)
