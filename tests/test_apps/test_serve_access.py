"""Who may ask the service, where it stands, and what is noted of requests."""

import json

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")

import makers
from fastapi import FastAPI
from starlette.testclient import TestClient

from metarank.apps.cli import main
from metarank.serve import Access, ServeOptions, create_app

ASKED = {"instance": "sea wind", "k": 2}


def app(**access) -> FastAPI:
    return create_app(makers.fitted("texts"), ServeOptions(threads=1), name="toy", access=Access(**access))


@pytest.fixture(scope="module")
def direct():
    with TestClient(app()) as client:
        return client.post("/rank", json=ASKED)


def test_an_application_below_a_path_answers_the_same(direct):
    inner = app()
    outer = FastAPI(lifespan=inner.router.lifespan_context)
    outer.mount("/labels", inner)
    with TestClient(outer) as client:
        assert client.post("/labels/rank", json=ASKED).content == direct.content
        assert client.post("/rank", json=ASKED).status_code == 404
        assert client.post("/labels/rank", json={}).status_code == 422


def test_what_an_application_is_wrapped_in_still_sees_every_request(direct):
    wrapped, seen = app(), []

    @wrapped.middleware("http")
    async def noting(request, call_next):
        seen.append(request.url.path)
        return await call_next(request)

    with TestClient(wrapped) as client:
        assert client.post("/rank", json=ASKED).content == direct.content
    assert seen == ["/rank"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/rank", "/explain"])
def test_other_methods_are_refused_as_before(method, path):
    with TestClient(app()) as client:
        reply = client.request(method, path)
        assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
        assert reply.headers["x-content-type-options"] == "nosniff"


# --- a path, a token, other origins ------------------------------------------------------


def test_below_a_root_path_with_or_without_it(direct):
    with TestClient(app(root_path="/labels")) as client:
        for path in ("/labels/rank", "/rank"):  # a proxy passes it on, or cuts it off
            assert client.post(path, json=ASKED).content == direct.content
        assert client.get("/labels/health").status_code == 200
        assert client.get("/openapi.json").json()["servers"] == [{"url": "/labels"}]
        assert 'path="/rank",status="200"} 2.0' in client.get("/metrics").text


TOKEN = "s3cret-Token_~+/=="


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Bearer ", 401),
        ("Bearer s3cret", 401),
        (f"Bearer {TOKEN}x", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        (f"Bearer {TOKEN}", 200),
        (f"bearer  {TOKEN} ", 200),
    ],
)
def test_a_token_opens_all_and_health_needs_none(sent, status):
    headers = {} if sent is None else {"authorization": sent}
    with TestClient(app(token=TOKEN)) as client:
        for path in ("/", "/health", "/ready"):
            assert client.get(path, headers=headers).status_code == 200
        for path in ("/model", "/metrics", "/docs", "/openapi.json"):
            assert client.get(path, headers=headers).status_code == status
        reply = client.post("/rank", json=ASKED, headers=headers)
        assert reply.status_code == status
        if status == 401:
            assert reply.headers["www-authenticate"] == "Bearer"
            assert TOKEN not in reply.text
            assert "toy" not in client.get("/").text, "of the model"
            assert client.get("/nothing", headers=headers).status_code == 401


def test_pages_of_the_named_origins_may_ask():
    here, other = "https://labels.example", "https://other.example"
    with TestClient(app(origins=(here,), token=TOKEN)) as client:
        asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
        assert client.options("/rank", headers={"origin": here, **asks}).status_code == 200
        assert client.options("/rank", headers={"origin": other, **asks}).status_code == 400
        for headers, status in (({}, 401), ({"authorization": f"Bearer {TOKEN}"}, 200)):
            reply = client.post("/rank", json=ASKED, headers={"origin": here, **headers})
            assert reply.status_code == status
            assert reply.headers["access-control-allow-origin"] == here, "so that the page can read why"
            reply = client.post("/rank", json=ASKED, headers={"origin": other, **headers})
            assert "access-control-allow-origin" not in reply.headers
    with TestClient(app()) as client:
        reply = client.post("/rank", json=ASKED, headers={"origin": here})
        assert "access-control-allow-origin" not in reply.headers


def test_each_request_has_an_id_and_a_line(capsys):
    with TestClient(app(access_log=True, token=TOKEN)) as client:
        known = {"authorization": f"Bearer {TOKEN}"}
        for given, kept in (("of-a.proxy_1", True), ("two words", False), ("a" * 200, False), (None, False)):
            capsys.readouterr()
            headers = known if given is None else {**known, "x-request-id": given}
            reply = client.post("/rank?k=1", json=ASKED, headers=headers)
            (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            assert (reply.headers["x-request-id"] == given) == kept
            assert line["request_id"] == reply.headers["x-request-id"]
            assert (line["method"], line["path"], line["status"]) == ("POST", "/rank", 200)
            assert line["bytes"] == len(reply.content)
            assert line["seconds"] > 0
            assert TOKEN not in json.dumps(line)
        capsys.readouterr()
        client.get("/no%0A/such")
        (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert line["status"] == 401
    with TestClient(app()) as client:
        client.get("/health")
    assert capsys.readouterr().out == ""


def test_the_description_is_a_page_that_fetches_nothing():
    with TestClient(app()) as client:
        reply = client.get("/docs")
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        for word in ("POST /rank", "POST /explain", "GET /ready", "propensity_weight", "431"):
            assert word in reply.text
        assert "<script" not in reply.text
        assert "http" not in reply.text.replace("openapi.json", "").replace("HTTP", "")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--cors", "labels.example"], "--cors must be * or an origin such as https://labels.example, got"),
        (["--cors", "https://a.example/page"], "--cors must be * or an origin"),
        (
            ["--root-path", "labels"],
            "--root-path must be empty or start with / and not end with it, got 'labels'",
        ),
        (["--root-path", "/labels/"], "--root-path must be empty or start with /"),
        (["--token-file", "no/such/file"], "no/such/file"),
        (["--token-file", "empty"], "--token-file must hold a token of ASCII characters: empty"),
        (["--token-file", "two"], "token must be letters, digits and -._~+/ without blanks"),
    ],
)
def test_bad_usage_is_one_line(option, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "two").write_text("two words\n")
    assert main(["serve", "model", *option]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err
