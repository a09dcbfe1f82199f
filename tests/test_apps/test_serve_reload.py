"""A new model in place of the one that answers: no request fails, and a broken one changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import makers
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")

from serve_command import post, serving, until
from services import LONG, PATIENT
from starlette.testclient import TestClient

from metarank import MetaRanker
from metarank.apps.cli import main
from metarank.persist import read_manifest
from metarank.serve import ServeOptions, create_app

pytestmark = [
    pytest.mark.usefixtures("signals"),
    pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP and unix sockets"),
]
TEXT = "sea sun bread code"


def other_model() -> MetaRanker:
    """One that scores otherwise."""
    ds = makers.texts()
    return MetaRanker(**makers.QUICK).fit(list(ds.texts)[::2], ds.Y[::2])


def scores(reply: dict) -> list[float]:
    return [entry["score"] for entry in reply["rankings"][0]]


def expected(model: MetaRanker) -> list[float]:
    return [score for _, score in next(iter(model.rank([TEXT], k=3)))]


@pytest.fixture
def folder(tmp_path) -> Path:
    makers.fitted("texts").save(tmp_path / "topics")
    return tmp_path / "topics"


def ready(port: int) -> dict:
    connection = HTTPConnection("127.0.0.1", port, timeout=LONG)
    with closing(connection):
        connection.request("GET", "/ready")
        return json.loads(connection.getresponse().read())


def told(path: Path, target: str = "/admin/reload") -> tuple[int, dict]:
    """What a request to a unix socket brings."""
    connection = HTTPConnection("localhost", timeout=LONG)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(LONG)
    with closing(connection):
        connection.sock.connect(str(path))
        connection.request("POST", target, b"{}")
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())


def digest(folder: Path) -> str:
    return read_manifest(folder)["digest"]


def damage(folder: Path) -> None:
    victim = next(folder.glob("*.npy"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"\x7f")


def test_a_signal_and_the_socket_reload_and_a_broken_model_changes_nothing(folder, tmp_path):
    old, new = makers.fitted("texts"), other_model()
    assert expected(old) != expected(new)
    admin = tmp_path / "admin.sock"
    with serving(folder, "--admin-socket", admin) as (process, port):
        assert ready(port)["digest"] == digest(folder)
        assert (os.stat(admin).st_mode & 0o777) == 0o600
        assert told(admin, "/elsewhere")[0] == 404
        before = ready(port)
        damaged = tmp_path / "damaged"
        shutil.copytree(folder, damaged)
        damage(damaged)
        os.rename(folder, tmp_path / "kept")
        os.rename(damaged, folder)
        status, said = told(admin)
        assert status == 422
        assert "is damaged" in said["error"]
        assert ready(port) == before
        assert scores(post(port, {"instance": TEXT, "k": 3})[1]) == expected(old)

        shutil.rmtree(folder)
        new.save(folder)
        assert told(admin) == (200, {"status": "reloaded", "digest": digest(folder)})
        assert scores(post(port, {"instance": TEXT, "k": 3})[1]) == expected(new)

        old.save(folder)
        process.send_signal(signal.SIGHUP)
        until(lambda: ready(port)["digest"] == digest(folder))
        assert scores(post(port, {"instance": TEXT, "k": 3})[1]) == expected(old)

        process.send_signal(signal.SIGTERM)
        assert process.wait(LONG) == 0
        assert not admin.exists()
        lines = process.stderr.read().splitlines()
        assert len(lines) == 3
        assert " ERROR " in lines[0]
        assert "the model was not reloaded, the one before answers: " in lines[0]
        assert all("INFO the model was reloaded, its digest is " in line for line in lines[1:])


@pytest.mark.check
@pytest.mark.parametrize("processes", [1, 2])
def test_no_request_fails_while_models_come_and_go(folder, tmp_path, processes):
    """Clients that keep their connections ask all the while; each reply is that of one of the models."""
    old, new = makers.fitted("texts"), other_model()
    known = [expected(old), expected(new)]
    admin = tmp_path / "admin.sock"
    with serving(folder, "--processes", processes, "--admin-socket", admin) as (_, port):
        stop, problems, replies = threading.Event(), [], []

        def ask() -> None:
            connection = HTTPConnection("127.0.0.1", port, timeout=LONG)
            body = json.dumps({"instance": TEXT, "k": 3})
            with closing(connection):
                while not stop.is_set():
                    try:
                        connection.request("POST", "/rank", body, {"Content-Type": "application/json"})
                        reply = connection.getresponse()
                        said = json.loads(reply.read())
                        replies.append(scores(said))
                        assert reply.status == 200
                        assert replies[-1] in known
                    except Exception as error:
                        problems.append(error)
                        return

        clients = [threading.Thread(target=ask) for _ in range(4)]
        for client in clients:
            client.start()
        try:
            for i, model in enumerate([new, old, None, new]):
                if model is None:
                    damage(folder)
                    assert told(admin)[0] == 422
                    model = old
                else:
                    model.save(folder) if i < 3 else replaced(folder, model)
                    assert told(admin) == (200, {"status": "reloaded", "digest": digest(folder)})
                for _ in range(8):  # over connections of their own, which all processes share
                    assert scores(post(port, {"instance": TEXT, "k": 3})[1]) == expected(model)
        finally:
            stop.set()
            for client in clients:
                client.join(LONG)
        assert problems == []
        assert {tuple(found) for found in replies} == {tuple(found) for found in known}


def replaced(folder: Path, model: MetaRanker) -> None:
    """In the place of a folder that is damaged."""
    shutil.rmtree(folder)
    model.save(folder)


def test_what_was_read_is_answered_by_the_model_that_read_it():
    class Slow:
        """A model that waits to be let go."""

        def __init__(self, model: MetaRanker) -> None:
            self._model = model
            self.entered, self.go = threading.Event(), threading.Event()

        def __getattr__(self, name: str):
            return getattr(self._model, name)

        def rank(self, X, **kwargs):
            self.entered.set()
            assert self.go.wait(LONG)
            return self._model.rank(X, **kwargs)

    old, new = makers.fitted("texts"), other_model()
    slow, asked = Slow(old), {"instance": TEXT, "k": 3}
    app = create_app(slow, ServeOptions(**PATIENT | {"threads": 2}))
    with TestClient(app) as client:
        replies = []
        thread = threading.Thread(target=lambda: replies.append(client.post("/rank", json=asked)))
        thread.start()
        assert slow.entered.wait(LONG)
        service = app.state.service
        service.use(service.answerer(new), "abc")
        assert client.get("/ready").json()["digest"] == "abc"
        assert scores(client.post("/rank", json=asked).json()) == expected(new)
        slow.go.set()
        thread.join()
        assert scores(replies[0].json()) == expected(old)


@pytest.mark.parametrize("kind", ["file", "folder", "in use", "left"])
def test_a_socket_takes_the_place_of_one_that_was_left_and_of_nothing_else(folder, tmp_path, kind, capsys):
    path = tmp_path / "admin.sock"
    with socket.socket(socket.AF_UNIX) as other:
        if kind == "file":
            path.write_text("keep me")
        elif kind == "folder":
            path.mkdir()
        else:
            other.bind(str(path))
            if kind == "in use":
                other.listen()
        if kind != "left":
            assert main(["serve", str(folder), "--port", "0", "--admin-socket", str(path)]) == 2
            out, err = capsys.readouterr()
            assert (out, err.count("\n")) == ("", 1)
            assert f"cannot listen at --admin-socket {str(path)!r}: " in err
            assert path.exists()
            return
    with serving(folder, "--admin-socket", path):
        assert told(path)[0] == 200
