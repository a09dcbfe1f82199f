"""Every guarantee of GUARANTEES.md names tests, and they exist."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import makers
import pytest

from metarank import MetaRanker, load

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "GUARANTEES.md").read_text(encoding="utf-8")
GUARANTEES = re.findall(r"^- (.*?)(?=^- |^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda text: " ".join(text.split())[:50])
def test_a_guarantee_names_its_tests(guarantee):
    _, tested, by = guarantee.partition("Tested by")
    assert tested
    named = NAMED.findall(by)
    assert named
    for path, name in named:
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (
            path,
            name,
        )


def test_nothing_on_the_page_is_left_out():
    assert len(GUARANTEES) == PAGE.count("Tested by") > 20
    assert sum(len(NAMED.findall(guarantee)) for guarantee in GUARANTEES) == PAGE.count("::")


def test_no_connection_is_opened(monkeypatch, tmp_path):
    def refuse(*args: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    data = makers.texts()
    MetaRanker(n_folds=2, n_jobs=1).fit(data).save(tmp_path / "M")
    assert load(tmp_path / "M").rank(data, k=1).labels.shape == (60, 1)
