"""`metarank serve` as a process: it answers, counts, ends after the requests in flight; bad usage."""

from __future__ import annotations

import json
import shutil
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import makers
import pytest
from makers import run

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from services import LONG, asked, serving

pytestmark = pytest.mark.usefixtures("signals")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("served") / "topics"
    makers.fitted("texts").save(path)
    return path


def test_a_signal_ends_it_after_the_requests_in_flight(folder):
    texts = list(makers.texts().texts)[:12]
    expected = list(makers.fitted("texts").rank(texts, k=3))
    with serving(folder, "--threads", 1, "--access-log") as (process, port):
        with ThreadPoolExecutor(6) as pool:
            replies = list(pool.map(lambda text: asked(port, "/rank", {"instance": text, "k": 3}), texts))
        assert [status for status, _ in replies] == [200] * 12
        rows = [json.loads(body)["rankings"][0] for _, body in replies]
        assert [[(e["label"], e["score"]) for e in row] for row in rows] == expected
        counts = asked(port, "/metrics")[1].decode()
        assert 'metarank_requests_total{path="/rank",status="200"} 12.0' in counts
        # A request whose head has come is in flight; its body follows the signal.
        body = json.dumps({"instance": texts[0], "k": 3}).encode()
        with socket.create_connection(("127.0.0.1", port), timeout=LONG) as slow:
            head = "POST /rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            slow.sendall(f"{head}Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode())
            assert slow.recv(100).startswith(b"HTTP/1.1 100")  # it is being read
            process.send_signal(signal.SIGINT)
            slow.sendall(body)
            assert slow.makefile("rb").read().startswith(b"HTTP/1.1 200")
        assert process.wait(LONG) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", 70000], "--port must be between 0 and 65535, got 70000"),
        (["--port", "x"], "--port"),
        (["--workers", 0], "--workers: must be a positive integer, got '0'"),
        (["--threads", 257], "--threads must be between 1 and 256, got 257"),
        (["--max-body", -1], "--max-body must be at least 1, got -1"),
        (["--timeout-keep-alive", 0], "--timeout-keep-alive: must be a positive integer, got '0'"),
        (["--token-file", "no/such/file"], "no/such/file"),
        (
            ["--token-file", "empty"],
            "--token-file must hold a token of ASCII characters without blanks: empty",
        ),
        (["--token-file", "two"], "--token-file must hold a token of ASCII characters without blanks: two"),
    ],
)
def test_bad_usage_is_one_line(folder, capsys, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "two").write_text("two words\n")
    assert run(["serve", folder, *options]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


@pytest.mark.parametrize("options", [[], ["--workers", 2]])
def test_a_bad_model_is_one_line(folder, tmp_path, capsys, options):
    shutil.copytree(folder, tmp_path / "damaged")
    victim = next((tmp_path / "damaged").glob("*.npy"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"\x7f")
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("damaged", "is damaged"),
        ("empty", "not a metarank model"),
        ("none", "not a metarank"),
    ):
        assert run(["serve", tmp_path / name, "--port", 0, *options]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert message in err


@pytest.mark.parametrize(
    ("host", "token", "warns"), [("127.0.0.1", False, 0), ("0.0.0.0", False, 1), ("0.0.0.0", True, 0)]
)
def test_it_warns_where_everybody_can_ask(folder, tmp_path, monkeypatch, capsys, host, token, warns):
    options = {}
    monkeypatch.setattr("uvicorn.run", lambda app, **given: options.update(given))
    (tmp_path / "token").write_text("secret")
    more = ["--token-file", tmp_path / "token"] if token else []
    assert run(["serve", folder, "--host", host, "--root-path", "/labels", *more]) == 0
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", warns)
    assert ("without --token-file: anyone who reaches this machine can use the model" in err) == warns
    assert (options["host"], options["root_path"], options["limit_concurrency"]) == (host, "/labels", 512)
