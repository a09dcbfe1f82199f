"""Models on the hub, which is a stand-in here: a server on this machine that answers huggingface_hub."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import makers
import pytest
from makers import contents

from metarank import load
from metarank.persist import ModelError
from metarank.persist.card import README

constants = pytest.importorskip("huggingface_hub.constants")


class Hub(BaseHTTPRequestHandler):
    """One repository, whose states are in `commits` by digest, the last of them `main`."""

    commits: dict[str, dict[str, bytes]]
    asked: list[str]

    def commit(self, files: dict[str, bytes]) -> str:
        sha = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.commits.pop(sha, None)
        self.commits[sha] = files
        return sha

    def reply(self, content: bytes, **headers: str) -> None:
        self.send_response(200 if "X_Error_Code" not in headers else 404)
        for name, value in {"Content_Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_GET(self) -> None:
        *_, what, revision, name = ["", "", *self.path.partition("?")[0].split("/")]
        if what != "resolve":
            what, revision, name = revision, name, ""
        sha = revision if revision in self.commits else list(self.commits)[-1]
        files = self.commits[sha]
        if what == "tree":
            listed = [{"type": "file", "path": n, "size": len(c), "oid": n} for n, c in files.items()]
            return self.reply(json.dumps(listed).encode())
        if what == "revision":
            return self.reply(json.dumps({"id": "me/model", "sha": sha}).encode())
        if name not in files:
            return self.reply(b"", X_Error_Code="EntryNotFound", X_Repo_Commit=sha)
        self.asked.append(name)
        etag = f'"{hashlib.sha1(files[name]).hexdigest()}"'
        return self.reply(files[name], X_Repo_Commit=sha, ETag=etag)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        url = f"http://{self.headers['Host']}/me/model"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if "/preupload/" in self.path:
            named = [{"path": f["path"]} for f in json.loads(body)["files"]]
            modes = {"uploadMode": "regular", "shouldIgnore": False}
            return self.reply(json.dumps({"files": [f | modes for f in named]}).encode())
        if "/commit/" not in self.path:
            return self.reply(json.dumps({"url": url}).encode())
        files = dict(list(self.commits.values())[-1])
        for operation in map(json.loads, body.splitlines()):
            value = operation["value"]
            if operation["key"] == "deletedFile":
                del files[value["path"]]
            elif operation["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
        sha = self.commit(files)
        return self.reply(json.dumps({"commitUrl": f"{url}/commit/{sha}", "commitOid": sha}).encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def server(monkeypatch, tmp_path):
    class Own(Hub):
        commits, asked = {"0" * 40: {".gitattributes": b""}}, []

    with ThreadingHTTPServer(("127.0.0.1", 0), Own) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{running.server_port}"
        monkeypatch.setattr(constants, "ENDPOINT", place)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", place + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        yield Own
        running.shutdown()


def test_a_model_goes_to_the_hub_and_comes_back(server, tmp_path):
    model, rows = makers.fitted("texts"), makers.texts().texts
    model.save(tmp_path / "M")
    first = model.push_to_hub("me/model").rpartition("/")[2]
    assert set(server.commits[first]) == {".gitattributes", *contents(tmp_path / "M")}
    edited = dict(server.commits[first])
    edited[README] = edited[README].replace(b"license: unknown", b"license: mit")
    Hub.commit(server, edited | {"evil.py": b"import os", "old.npy": b""})
    makers.fitted("dense").push_to_hub("me/model", message="another")
    files = list(server.commits.values())[-1]
    assert b"license: mit" in files[README]
    assert b"a matrix (n, " in files[README]
    assert {"evil.py", ".gitattributes"} < set(files)
    assert "old.npy" not in files
    back = load(f"hf://me/model@{first}")
    assert back.rank(rows, k=3).scores.tobytes() == model.rank(rows, k=3).scores.tobytes()
    asked = len(server.asked)
    assert load("hf://me/model").n_features_in_ == makers.fitted("dense").n_features_in_
    assert not {"evil.py", ".gitattributes"} & set(server.asked[asked:])
    asked = len(server.asked)
    load(f"hf://me/model@{first}")
    assert len(server.asked) == asked


def test_what_comes_from_the_hub_is_checked(server, tmp_path):
    makers.fitted("dense").push_to_hub("me/model")
    files = list(server.commits.values())[-1]
    name = next(name for name in files if name.endswith(".npy"))
    Hub.commit(server, files | {name: files[name][:-1] + b"\0"})
    with pytest.raises(ModelError, match="checksum"):
        load("hf://me/model")
    Hub.commit(server, {n: c for n, c in files.items() if n != name})
    with pytest.raises(ModelError, match=f"hf://me/model is not a complete metarank model: '{name}'"):
        load("hf://me/model")
    Hub.commit(server, {"config.json": b"{}"})
    with pytest.raises(ModelError, match=r"manifest\.json' is missing"):
        load("hf://me/model")
    with pytest.raises(ValueError, match="OWNER/NAME@REVISION, got 'hf://me'"):
        load("hf://me")


def test_without_the_library_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for ask in (lambda: load("hf://me/model"), lambda: makers.fitted("dense").push_to_hub("me/model")):
        with pytest.raises(ImportError, match=r"metarank-ltr\[hub\]"):
            ask()
