"""The study latency: few rows are judged by the labels that they have, and asked by HTTP; the page."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from studies import study

from metarank.data import Dataset

with study("bench"):
    import sets
    from declared import Lines
    from studies import latency
    from systems import few_rows


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Thirty of 50 questions, each with one of three tags, and 1,500 to be judged by, one with a fourth."""
    tags = ["bread", "soup", "rice, fried", "never drawn"]
    tag = np.arange(1550) % 3
    tag[-1] = 3
    texts = [f"how do I make {tags[j]} number {i}" for i, j in enumerate(tag)]
    Y = sp.csr_matrix((np.ones(1550, np.float32), (np.arange(1550), tag)), shape=(1550, 4))
    read = Dataset(texts=texts, Y=Y, label_names=tags)
    monkeypatch.setitem(latency.named_texts.READERS, f"{latency.COOKING}-titles", lambda: read)
    monkeypatch.setattr(few_rows, "SINGLES", 5)
    monkeypatch.setattr(few_rows, "WARM_UP", 1)
    return sets.prepare("few", tmp_path, latency.few(30))


@pytest.mark.parametrize("system", [latency.FITS[0], latency.FITS[3]])
def test_few_rows_are_judged_by_the_labels_that_they_have(folder, system):
    assert sets.matrix(folder, "Y_test").shape == (1499, 3)
    figures, arrays = few_rows.System({**system.params, "random_state": 0}, 1).experiment(folder)
    np.savez(folder / "answers.npz", **arrays)
    quality = latency.judged(folder, folder / "answers.npz")
    if system.params["kind"] == "metarank":
        assert quality[""]["MAP"] > 0.9
        assert figures["http"][1] >= figures["http"][0] > 0
    line = {"set": "few", "system": system.name, **figures, "quality": quality}
    page = latency.table(Lines([line], {"few": {"L": 3}}), ["few"])
    assert page.splitlines()[2].startswith(f"| few | 3 | {system.name} | ")
    assert ("| – |" in page) is ("http" not in figures)
