"""Two processes of `metarank serve` take up seven models under load: no request fails."""

from __future__ import annotations

import json
import os
import threading
from contextlib import closing
from http.client import HTTPConnection

import makers
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from services import LONG, asked, serving, until

from metarank import MetaRanker
from metarank.persist import read_manifest

pytestmark = pytest.mark.usefixtures("signals")
ASK = {"instance": "sea sun bread code", "k": 3}
RELOADS = 7
# Looks at /ready, over connections of their own, which both processes share, that must agree.
LOOKS = 20


def test_no_request_fails_while_models_come_and_go(tmp_path):
    """Clients that keep their connections ask all the while; each reply is that of one of the models."""
    data = makers.texts()
    models = [makers.fitted("texts"), MetaRanker(**makers.QUICK).fit(list(data.texts)[::2], data.Y[::2])]
    folder = tmp_path / "topics"
    known = [[score for _, score in next(iter(model.rank([ASK["instance"]], k=3)))] for model in models]
    assert known[0] != known[1]
    models[0].save(folder)
    with serving(folder, "--workers", 2) as (_, port):
        stop, problems, replies = threading.Event(), [], []

        def ask() -> None:
            with closing(HTTPConnection("127.0.0.1", port, timeout=LONG)) as connection:
                while not stop.is_set():
                    try:
                        headers = {"Content-Type": "application/json"}
                        connection.request("POST", "/rank", json.dumps(ASK), headers)
                        reply = connection.getresponse()
                        content = json.loads(reply.read())
                        assert reply.status == 200
                        replies.append([entry["score"] for entry in content["rankings"][0]])
                        assert replies[-1] in known
                    except Exception as error:
                        problems.append(error)
                        return

        def has_taken_up(digest: str) -> bool:
            looks = [json.loads(asked(port, "/ready")[1])["digest"] for _ in range(LOOKS)]
            return set(looks) == {digest}

        clients = [threading.Thread(target=ask) for _ in range(4)]
        for client in clients:
            client.start()
        try:
            for i in range(1, RELOADS + 1):
                models[i % 2].save(folder)
                digest = read_manifest(folder)["digest"]
                until(lambda digest=digest: has_taken_up(digest))
        finally:
            stop.set()
            for client in clients:
                client.join(LONG)
    assert problems == []
    assert {tuple(scores) for scores in replies} == {tuple(scores) for scores in known}
    assert len(os.listdir(folder)) > 1
