"""docs/deployment.md works as printed: nginx with its file, before two processes that reload under load."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import makers
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from serve_command import JSON, serving, until
from services import LONG

from metarank import MetaRanker
from metarank.persist import read_manifest

ROOT = Path(__file__).parents[2]
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
sys.path.insert(0, str(ROOT / "experiments" / "serve"))

import deployed  # noqa: E402
import open_load  # noqa: E402

sys.path.pop(0)

pytestmark = [
    pytest.mark.usefixtures("signals"),
    pytest.mark.skipif(NGINX is None, reason="needs nginx"),
]
HOST = "labels.example.org"
TEXT = "sea sun bread code"
TOKEN = "s3cret"


def asked(port: int, path: str, fields: dict | None = None, **headers: str) -> tuple[int, dict, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=LONG)
    with closing(connection):
        body = None if fields is None else json.dumps(fields)
        connection.request("GET" if body is None else "POST", path, body, {"Host": HOST, **JSON, **headers})
        reply = connection.getresponse()
        return reply.status, dict(reply.headers), reply.read()


@pytest.fixture
def folder(tmp_path) -> Path:
    """A link to a model, as the page has it."""
    makers.fitted("texts").save(tmp_path / "first" / "topics")
    os.symlink("first/topics", tmp_path / "topics")
    return tmp_path / "topics"


def test_what_the_page_prints(folder, tmp_path):
    (tmp_path / "token").write_text(TOKEN + "\n")
    options = ["--processes", 2, "--access-log", "--root-path", "/labels", "--allow-host", HOST]
    options += ["--token-file", tmp_path / "token"]
    with serving(folder, *options) as (process, port), deployed.nginx(port) as front:
        known = {"Authorization": f"Bearer {TOKEN}"}
        fields = {"instance": TEXT, "k": 2}
        status, headers, body = asked(front, "/labels/rank", fields, **known)
        assert status == 200
        (row,) = json.loads(body)["rankings"]
        best = next(iter(makers.fitted("texts").rank([TEXT], k=2)))
        assert [(e["label"], e["score"]) for e in row] == best
        line = json.loads(process.stdout.readline())
        assert line["request_id"] == headers["x-request-id"], "which nginx gave it"
        assert (line["path"], line["status"], line["client"]) == ("/rank", 200, "127.0.0.1")
        assert asked(front, "/labels/rank", fields)[0] == 401
        assert asked(front, "/labels/ready")[0] == 200
        assert asked(front, "/labels/metrics", **known)[0] == 404
        assert asked(front, "/rank", fields, **known)[0] == 404
        assert asked(front, "/labels/rank", {"instance": "a" * (1 << 20)}, **known)[0] == 413
        servers = json.loads(asked(front, "/labels/openapi.json", **known)[2])["servers"]
        assert servers == [{"url": "/labels"}]


def test_a_reload_under_load_fails_no_request(folder, tmp_path):
    """By SIGHUP, once the link leads to another model."""
    ds = makers.texts()
    new = MetaRanker(**makers.QUICK).fit(list(ds.texts)[::2], ds.Y[::2])
    new.save(tmp_path / "second" / "topics")
    options = ["--processes", 2, "--allow-host", HOST, "--allow-host", "127.0.0.1"]
    with serving(folder, *options) as (process, port), deployed.nginx(port) as front:
        body = json.dumps({"instance": TEXT, "k": 2})
        before = asked(front, "/labels/rank", json.loads(body))[2].decode()

        async def load() -> dict:
            url = f"http://127.0.0.1:{front}/labels/"
            sent = open_load.send(url, [(body, before)], rate=40, seconds=5, connections=8, even=True)
            sending = asyncio.create_task(sent)
            await asyncio.sleep(1)
            os.symlink("second/topics", tmp_path / "next")
            os.replace(tmp_path / "next", folder)
            process.send_signal(signal.SIGHUP)
            return await sending

        seen = asyncio.run(load())
        assert seen["outcomes"] == {"200": 200}
        assert 0 < seen["wrong"] < 200, "the new model's replies, since it answers"
        digest = read_manifest(tmp_path / "second" / "topics")["digest"]
        until(lambda: json.loads(asked(front, "/labels/ready")[2])["digest"] == digest)
        (row,) = json.loads(asked(front, "/labels/rank", json.loads(body))[2])["rankings"]
        assert [(e["label"], e["score"]) for e in row] == next(iter(new.rank([TEXT], k=2)))
