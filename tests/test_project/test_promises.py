"""Every promise of PROMISES.md names tests, and they are there."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import makers
import pytest

from metarank import MetaRanker, load

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "PROMISES.md").read_text(encoding="utf-8")
PROMISES = re.findall(r"^- (.*?)(?=^- |^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@pytest.mark.parametrize("promise", PROMISES, ids=lambda text: " ".join(text.split())[:50])
def test_a_promise_names_the_tests_that_keep_it(promise):
    _, kept, by = promise.partition("Kept by")
    assert kept
    named = NAMED.findall(by)
    assert named
    for path, name in named:
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (
            path,
            name,
        )


def test_nothing_on_the_page_is_left_out():
    assert len(PROMISES) == PAGE.count("Kept by") > 20
    assert sum(len(NAMED.findall(promise)) for promise in PROMISES) == PAGE.count("::")


def test_no_connection_is_opened(monkeypatch, tmp_path):
    def refuse(*args: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    data = makers.texts()
    MetaRanker(n_folds=2, n_jobs=1).fit(data).save(tmp_path / "M")
    assert load(tmp_path / "M").rank(data, k=1).labels.shape == (60, 1)
