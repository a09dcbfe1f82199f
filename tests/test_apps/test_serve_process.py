"""`metarank serve` as a process: its URL, its exit codes, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import makers
import psutil
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from serve_command import children, counted, post, serving, starting, until
from services import LONG

from metarank import MetaRanker
from metarank.apps.cli import main
from metarank.apps.serve.processes import run_processes
from metarank.apps.serve.run import listen, url_of

pytestmark = pytest.mark.usefixtures("signals")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("served") / "topics"
    makers.fitted("texts").save(path)
    return path


def status_of(port: int, fields: dict) -> int | None:
    """The status of the reply, or None where the connection ends before there is one."""
    try:
        return post(port, fields)[0]
    except (OSError, HTTPException):
        return None


def test_a_signal_ends_it_after_the_requests_in_flight(folder):
    texts = list(makers.texts().texts) * 4
    expected = makers.fitted("texts").rank(texts, k=3)
    for number in (signal.SIGTERM, signal.SIGINT):
        with serving(folder, "--threads", 1) as (process, port):
            assert post(port, {"instance": texts[0]})[0] == 200
            with ThreadPoolExecutor(8) as pool:
                asked = [pool.submit(post, port, {"instances": texts, "k": 3}) for _ in range(8)]
                wait_until_working(port)
                process.send_signal(number)
                answers = [one.result() for one in asked]
            assert process.wait(LONG) == 0
            assert process.stderr.read() == ""
            for status, reply in answers:
                assert status == 200
                found = [[(e["label"], e["score"]) for e in row] for row in reply["rankings"]]
                assert found == list(expected)


def wait_until_working(port: int) -> None:
    """All eight requests have come in, after one before them."""

    def come_in() -> float:
        taken = counted(port, r'metarank_stage_seconds_count\{stage="wait"\}')
        return taken + counted(port, "metarank_waiting_requests")  # of a later moment: none is counted twice

    until(lambda: come_in() == 9)


def test_a_model_of_candidates_is_served(tmp_path):
    ds = makers.texts()
    found = [[(j, 0.5) for j in range(ds.n_labels)] for _ in range(ds.n_rows)]
    given = {"candidates": {"bm25": found}, "pair_features": {"clicks": found}}
    model = MetaRanker(**makers.QUICK).fit(ds, **given)
    model.save(tmp_path / "topics")
    with serving(tmp_path / "topics") as (_, port):
        one = {name: {key: rows[0] for key, rows in of.items()} for name, of in given.items()}
        status, reply = post(port, {"instance": ds.texts[0], "k": 2, **one})
    assert status == 200
    assert [e["label"] for e in reply["rankings"][0]] == model.rank(ds, k=2, **given).labels[0].tolist()


@pytest.mark.check
def test_overload_is_refused_and_passes(folder):
    """Many more requests at once than may wait: each gets a ranking or 429; then all is well.

    That some are refused is shown where the model waits for the test, `test_serve`.
    """
    texts = list(makers.texts().texts)
    with serving(folder, "--threads", 1, "--queue", 2) as (_, port):
        with ThreadPoolExecutor(24) as pool:
            batches = [{"instances": texts * 4, "k": 2}] * 48
            statuses = [status for status, _ in pool.map(lambda body: post(port, body), batches)]
        assert 200 in statuses
        assert set(statuses) <= {200, 429}
        assert post(port, {"instance": texts[0]})[0] == 200


@pytest.mark.check
def test_a_body_that_does_not_come_is_given_up(folder):
    lines = [
        "POST /rank HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        "Content-Length: 50",
        "",
        "{",
    ]
    with (
        serving(folder, "--timeout", 0.5) as (_, port),
        socket.create_connection(("127.0.0.1", port), timeout=LONG) as slow,
    ):
        slow.sendall("\r\n".join(lines).encode())
        until(lambda: status_of(port, {"instance": "sea"}) == 200)  # nobody else waits for it
        assert slow.makefile("rb").readline().startswith(b"HTTP/1.1 408")


def event_loops() -> list[Callable[[], asyncio.AbstractEventLoop]]:
    """That of Python, and the one by which the service works where it is installed."""
    with contextlib.suppress(ImportError):
        import uvloop

        return [asyncio.new_event_loop, uvloop.new_event_loop]
    return [asyncio.new_event_loop]


@pytest.mark.parametrize("new_loop", event_loops(), ids=lambda make: make.__module__)
def test_a_reply_does_not_wait_for_the_client_to_confirm_its_head(new_loop):
    """Nagle's algorithm would hold the body back for 40 ms: connections that come in must be without it."""

    async def no_delay() -> int:
        found = asyncio.get_running_loop().create_future()

        async def note(_, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            found.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with listen("127.0.0.1", 0) as listener:
            async with await asyncio.start_server(note, sock=listener):
                with socket.create_connection(listener.getsockname()):
                    return await found

    with contextlib.closing(new_loop()) as loop:
        assert loop.run_until_complete(no_delay()) != 0


def until_counted(port: int, requests: int) -> None:
    """A reply is counted once it is on its way."""
    until(lambda: counted(port, r'metarank_requests_total\{path="/rank",status="200"\}') == requests)


@pytest.mark.check
def test_processes_answer_alike_count_together_and_are_replaced(folder):
    texts = list(makers.texts().texts)[:12]
    expected = list(makers.fitted("texts").rank(texts, k=3))
    with serving(folder, "--processes", 2, "--allow-host", "Labels.example") as (process, port):
        for host, status in (("labels.example", 200), ("other.example", 421)):
            connection = HTTPConnection("127.0.0.1", port, timeout=LONG)
            connection.request("GET", "/model", headers={"Host": host})
            assert connection.getresponse().status == status
            connection.close()

        def ask() -> None:
            with ThreadPoolExecutor(6) as pool:
                replies = list(pool.map(lambda text: post(port, {"instance": text, "k": 3}), texts))
            assert [status for status, _ in replies] == [200] * 12
            assert [[(e["label"], e["score"]) for e in r["rankings"][0]] for _, r in replies] == expected

        ask()
        until_counted(port, 12)
        first = children(process)
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        until(lambda: len(set(children(process)) - set(first)) == 1)
        until(lambda: post(port, {"instance": "sea"})[0] == 200)
        ask()
        until_counted(port, 25)
        last = children(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONG) == 0
        said = process.stderr.read()
        assert re.fullmatch(r".* ERROR process \d+ ended with code -9 and is replaced\n", said), said
        assert not any(psutil.pid_exists(pid) for pid in last)


@pytest.mark.check
def test_processes_end_with_the_first(folder):
    with serving(folder, "--processes", 2) as (process, _):
        found = children(process)
        assert len(found) == 2
        process.kill()
        process.wait()
        until(lambda: not any(psutil.pid_exists(pid) for pid in found))


@pytest.mark.check
def test_processes_that_still_start_end_with_ctrl_c(folder):
    with starting(folder, "--processes", 2) as process:
        until(lambda: bool(children(process)))
        found = children(process)
        os.killpg(process.pid, signal.SIGINT)  # while they import, long before they can answer
        assert process.wait(LONG) == 0
        assert process.stderr.read() == ""
        until(lambda: not any(psutil.pid_exists(pid) for pid in found))


@pytest.mark.check
def test_processes_answer_what_is_in_flight(folder):
    texts = list(makers.texts().texts) * 4
    with serving(folder, "--processes", 2, "--threads", 1) as (process, port):
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(status_of, port, {"instances": texts, "k": 3}) for _ in range(8)]
            until(lambda: sum(one.done() for one in asked) >= 1)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal's Ctrl-C reaches all
            statuses = {one.result() for one in asked}
        # Whoever comes once it is told to end is turned away, or not accepted any more.
        assert 200 in statuses
        assert statuses <= {200, 503, None}
        assert process.wait(LONG) == 0
        assert process.stderr.read() == ""


def load_what_is_not_there() -> None:
    sys.exit("no such model")


@pytest.mark.check
def test_a_process_that_cannot_begin_ends_the_service(capfd):
    with pytest.raises(ValueError, match="ended before it could answer"):
        run_processes(load_what_is_not_there, 2, port=0)
    assert "no such model" in capfd.readouterr().err


def run(argv: list) -> int:
    try:
        return main([str(a) for a in argv])
    except SystemExit as stop:  # argparse
        return int(stop.code or 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port", 70000], "--port must be an integer in [0, 65535], got 70000"),
        (["--port", "x"], "--port"),
        (["--processes", 0], "--processes must be between 1 and 256, got 0"),
        (["--queue", 0], "--queue must be a positive integer, got 0"),
        (["--threads", 257], "--threads must be at most 256, got 257"),
        (["--timeout", "nan"], "--timeout must be a positive number, got nan"),
        (["--stop-timeout", 0], "--stop-timeout must be a positive number, got 0.0"),
        (["--head-timeout", 1e9], "--head-timeout must be from 0.001 to 86400 seconds, got 1000000000.0"),
        (["--queue-pairs", 0], "--queue-pairs must be a positive integer, got 0"),
        (["--max-batch", -1], "--max-batch must be a positive integer, got -1"),
        (["--host", "no.such.host.invalid"], "cannot listen at host 'no.such.host.invalid'"),
    ],
)
def test_bad_usage_is_one_line(folder, capsys, options, said):
    assert run(["serve", folder, *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_a_bad_model_is_one_line(folder, tmp_path, capsys):
    shutil.copytree(folder, tmp_path / "damaged")
    victim = next((tmp_path / "damaged").glob("*.npy"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"\x7f")
    (tmp_path / "empty").mkdir()
    for name, said in (
        ("damaged", "is damaged"),
        ("empty", "not a metarank model"),
        ("none", "not a metarank"),
    ):
        assert run(["serve", tmp_path / name, "--port", 0]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert said in err


@pytest.mark.parametrize("options", [[], ["--processes", "2"]])
def test_a_model_of_no_rows_is_one_line(tmp_path, capsys, options):
    found = [[(i % 2, 1.0)] for i in range(20)]
    model = MetaRanker(**makers.QUICK).fit(None, [[i % 2] for i in range(20)], candidates=found)
    model.save(tmp_path / "model")
    assert main(["serve", str(tmp_path / "model"), "--port", "0", *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.endswith("the model must take instances to be served: it was fitted with X=None\n")
    assert len(said.err.splitlines()) == 1


def test_a_port_that_is_taken_is_one_line(folder, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(["serve", folder, "--port", port]) == 2
    _, err = capsys.readouterr()
    assert f"cannot listen at host '127.0.0.1', port {port}: " in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("host", "token", "said", "warns"),
    [
        ("127.0.0.1", False, r"http://127\.0\.0\.1:\d+/ ", False),
        ("localhost", False, r"http://(127\.0\.0\.1|\[::1\]):\d+/ ", False),
        ("0.0.0.0", False, r"http://0\.0\.0\.0:\d+/, all addresses of this machine ", True),
        ("0.0.0.0", True, r"http://0\.0\.0\.0:\d+/, all addresses of this machine ", False),
    ],
)
def test_it_says_where_it_listens_and_who_can_ask(
    folder, tmp_path, monkeypatch, capsys, host, token, said, warns
):
    def announcing(*_, host, port, announce, **__):
        with listen(host, port) as listener:
            announce(url_of(listener))

    monkeypatch.setattr("metarank.apps.serve.run.run", announcing)
    (tmp_path / "token").write_text("secret")
    options = ["--token-file", tmp_path / "token"] if token else []
    assert run(["serve", folder, "--host", host, "--port", 0, *options]) == 0
    out, err = capsys.readouterr()
    assert re.fullmatch(rf"topics is served at {said}\(Ctrl-C stops\)\n", out)
    assert err.count("\n") == warns
    assert ("without --token-file: whoever reaches this machine can ask" in err) == warns
