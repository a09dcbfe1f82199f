"""experiments/latency: fits of few rows, what is held out of a training part, and the page."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from studies import study

with study("latency", "shortlist_speed"):
    import fits
    import run
    from borrowed import Prepared


@pytest.fixture
def questions(monkeypatch):
    """1,550 questions, each with a tag, the last 1,500 of which are to be judged by."""
    tags = ["bread", "soup", "rice, fried", "never drawn"]
    tag = np.arange(1550) % 3
    tag[-1] = 3
    texts = [f"how do I make {tags[j]} number {i}" for i, j in enumerate(tag)]
    Y = sp.csr_matrix((np.ones(1550, np.float32), (np.arange(1550), tag)), shape=(1550, 4))
    titles = fits.Titles("cooking_stackexchange", texts, Y, tags, np.full(1550, -1))
    monkeypatch.setattr(fits, "load", lambda name: titles)


@pytest.mark.parametrize("contender", ["low", fits.ONE_VS_REST])
def test_a_fit_of_few_rows_is_judged_by_the_labels_that_it_saw(questions, tmp_path, contender):
    job = {
        "set": "cooking_stackexchange",
        "rows": 30,
        "contender": contender,
        "out": str(tmp_path / "out.json"),
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    fits.main(str(tmp_path / "job.json"))
    figures = json.loads((tmp_path / "out.json").read_text())
    assert (figures["rows"], figures["labels"], figures["test_rows"]) == (30, 3, 1499)
    if contender == "low":
        assert figures["MAP"] > 0.9


def test_a_fifth_of_the_training_rows_takes_the_place_of_the_test_part(tmp_path):
    Y = np.eye(20, dtype=np.float32)
    for name in ("X", "Y", "exclude"):
        sp.save_npz(tmp_path / f"{name}.npz", sp.csr_matrix(Y))
    (tmp_path / "names.json").write_text("{}")
    part = run.held_out(Prepared("toy", tmp_path, "sum", {"L": 20}), tmp_path / "cache")
    for name in ("X", "Y", "exclude"):
        fitted, out = part.matrix(name), part.matrix(f"{name}_test")
        assert fitted.shape[0] == part.sizes["n"] == 16
        assert sorted([*fitted.indices, *out.indices]) == list(range(20))
