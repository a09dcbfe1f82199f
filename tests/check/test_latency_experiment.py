"""experiments/latency: fits of few rows, what is held out of a training part, and the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

FOLDER = Path(__file__).parents[2] / "experiments" / "latency"
_PATH, _MODULES = list(sys.path), dict(sys.modules)
# Another study may have a module of the same name.
_OWN = (
    "borrowed",
    "contenders",
    "cuts",
    "fits",
    "judging",
    "parts",
    "report",
    "run",
    "sets",
    "titles",
    "verdicts",
)
for _name in _OWN:
    sys.modules.pop(_name, None)
sys.path[:0] = [str(FOLDER), str(FOLDER.with_name("shortlist_speed"))]

import fits  # noqa: E402
import run  # noqa: E402
from borrowed import Laboratory, Prepared  # noqa: E402

sys.path[:] = _PATH
for _name in _OWN:
    sys.modules.pop(_name, None)
sys.modules.update({name: module for name, module in _MODULES.items() if name in _OWN})


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


def test_the_page_has_ratios_of_the_same_run():
    study = run.Study(Laboratory(Path(), Path(), None, 1.0), [], True)
    costs = {"peak_mib": 1.0, "imports_mib": 2.0, "model_mib": 3.0, "yardstick_cpu_s": 0.5}
    worth = {"nDCG@5": 0.25, "PSP@5": 0.5}
    for time, setting in ((6.0, run.PIPELINE[0]), (2.0, run.SHORTLISTERS[0])):
        figures = {**costs, **worth, **dict.fromkeys(run.TIMES.values(), time)}
        study.runs.setdefault("toy", {})[setting] = figures
    fit = {"cpu_s": 1.5, "rows": 9, "labels": 2, "yardstick_cpu_s": 0.5, **dict.fromkeys(fits.METRICS, 0.5)}
    study.of_fits["emotions", None] = {"low": fit, "medium": {**fit, "cpu_s": 3.0}}
    page = study.page()
    assert "| metaranker without names | 6.00 (3.00, –, –) |" in page
    assert "| 3.00 | 3.00 | 25.0 | 50.0 | 0.50 |" in page
    assert "| emotions, all 9 rows | 2 | effort low | 1.50 | 0.50 | 50.0 |" in page
    assert "## The cascade" not in page
