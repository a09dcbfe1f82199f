"""experiments/annif: the files that Annif reads, the figures, which steps are taken again, and the claims."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from studies import study

with study("annif"):
    import judging
    import sets
    import stages

A, B, C, D = (f"http://example.org/{letter}" for letter in "abcd")
RECORDS = [(f"text number {i}", [A, B] if i % 2 else [A]) for i in range(50)]
TEST = [("one", [A, C]), ("two", [B, D])]


@pytest.fixture
def of(tmp_path, monkeypatch):
    """Four subjects: d has no name, c and d no training record."""
    (tmp_path / "raw").write_text("raw")
    raw = sets.Raw(RECORDS, TEST, {A: "apples", B: "bears", C: "cats"}, "en", [tmp_path / "raw"])
    monkeypatch.setitem(sets.SETS, "toy", lambda: raw)
    return sets.collected("toy", tmp_path / "files")


def test_the_files_that_annif_reads(of):
    names = "".join(f"<{uri}>\t{name}\n" for uri, name in zip((A, B, C, D), ("apples", "bears", "cats", "d")))
    assert of.vocabulary.read_text() == names
    assert of.corpus("test").read_text() == f"one\t<{A}> <{C}>\ntwo\t<{B}> <{D}>\n"
    assert (of.uris, of.named) == ([A, B, C, D], [True, True, True, False])
    parts = {name: {text for text, _ in records} for name, records in of.parts.items()}
    assert parts["sources"] | parts["ensembles"] == parts["train"]
    assert not parts["sources"] & parts["ensembles"]
    assert parts["learn"] | parts["choose"] == parts["ensembles"]
    assert not parts["learn"] & parts["choose"]


def test_figures_are_against_all_subjects(of, tmp_path):
    # Annif numbers subjects in an order of its own. Record one: c, a; record two: a alone.
    found = {"data": [0.5, 0.9, 0.4], "indices": [2, 1, 2], "indptr": [0, 2, 3]}
    np.savez(tmp_path / "annif.npz", **found, uris=np.array([D, C, A, B]))
    np.savez(
        tmp_path / "alone.npz",
        labels=[[2, 0], [0, -1]],
        scores=np.array([[0.9, 0.5], [0.4, -np.inf]], np.float32),
        uris=np.array([A, B, C, D]),
    )
    expected = {
        "nDCG@10": (1 + 0) / 2,
        "R@10": (1 + 0) / 2,
        "F1@5": (2 * 2 / (2 + 2) + 0) / 2,
        "unseen": (1 + 0) / 2,
        "unseen, named": 1.0,
    }
    for name in ("annif", "alone"):
        assert judging.judged(of, tmp_path / f"{name}.npz") == pytest.approx(expected)


def test_a_step_is_taken_again_only_if_what_it_reads_has_changed(tmp_path, monkeypatch):
    ran = tmp_path / "ran"
    script = f"open({str(ran)!r}, 'a').write('x'); print('{{\"answer\": 1}}')"

    def step(reads: list[str], code: str = script):
        return stages.kept(tmp_path / "kept" / "step.json", [sys.executable, "-c", code], reads=reads)

    first = step(["a"])
    assert first.answer == {"answer": 1}
    assert first.cpu > 0
    assert step(["a"]) == first
    assert ran.read_text() == "x"
    step(["b"])
    assert ran.read_text() == "xx"
    with pytest.raises(stages.Failed, match="step ended with 3"):
        step(["c"], "raise SystemExit(3)")
    monkeypatch.setattr(stages.Only, "kept", True)
    monkeypatch.setattr(stages.Only, "older", [])
    assert step(["d"]).answer == {"answer": 1}
    assert stages.Only.older == [f"{tmp_path.name}/kept/step"]
