"""`metarank demo`, on fewer rows: the table, the examples, the report and the model."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout

import numpy as np
import pytest
from makers import run

import metarank
from metarank import data
from metarank.apps.cli.demo import itself
from metarank.apps.report.evidence import alone
from metarank.data.pydocs import own_labels
from metarank.types.given import check_candidates


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    arguments = ["demo", "--out", str(out), "--rows", "60", "--effort", "low", "--jobs", "2"]
    with redirect_stdout(io.StringIO()) as printed:
        assert run(arguments) == 0
    return out, printed.getvalue()


@pytest.mark.check
def test_what_is_printed(demo):
    out, printed = demo
    assert re.search(r"60 to learn from, \d+ to test", printed)
    for part in ("nDCG@5", "label text alone", "nearest neighbours", "most frequent"):
        assert part in printed
    values = {name: float(v) for name, v in re.findall(r"^(metarank|most frequent) +([\d.]+)", printed, re.M)}
    assert values["metarank"] > values["most frequent"]
    for word in ("  found ", "  missed ", "  new "):
        assert word in printed
    assert re.search(r"words that describe it occur in the text [+-]\d", printed)
    assert f"metarank predict {out / 'model'} --text" in printed


def test_report_and_model_are_there(demo):
    out, printed = demo
    page = (out / "report.html").read_text()
    assert "Which functions belong" in page
    for value in re.search(r"^metarank +(.*)$", printed, re.M)[1].split():
        assert value in page
    model = metarank.load(out / "model")
    test = data.load_pydocs("test")
    assert model.rank(test.take([0]), k=3).labels.shape == (1, 3)


def test_what_it_suggests_works(demo, capsys):
    out, _ = demo
    assert run(["predict", out / "model", "--text", "eigenvalues of a symmetric matrix", "--top", 3]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_own_labels_are_left_out_of_every_list(demo):
    out, _ = demo
    model = metarank.load(out / "model")
    test = data.load_pydocs("test").take(slice(0, 40))
    own = own_labels(test)
    exclude = check_candidates(itself(test), test.n_rows, test.n_labels)
    for ranking in alone(model, test, 10, exclude).values():
        assert ranking.labels.shape == (40, 10)
        assert not np.any((ranking.labels == own[:, None]) & (ranking.labels >= 0))
    assert not np.any(model.rank(test, exclude=itself(test)).labels == own[:, None])


@pytest.mark.parametrize("arguments", [["--rows", "3"], ["--jobs", "0"], ["--effort", "great"]])
def test_bad_usage(arguments, tmp_path, capsys):
    assert run(["demo", "--out", tmp_path / "x", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "x").exists()
