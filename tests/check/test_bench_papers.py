"""The studies of Jain et al. (2016) and Prabhu et al. (2020): figures by hand, units, pages from lines."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from studies import study

from metarank import Candidates, data
from metarank.metrics.propensity import inv_propensity

with study("bench"):
    import made_sets
    import measure
    import sets
    from claims import NONE, Above, InOrder
    from declared import Lines
    from studies import propensity, regression
    from systems import regressor, reranking, rival, shortlister


def test_claims_are_judged_from_figures():
    values = {"ours": {"PSP@1": 0.3, "XMAD@5": 0.2}, "a": {"PSP@1": 0.25, "XMAD@5": 0.1}, "b": {"PSP@1": 0.3}}
    assert Above("", "ours", ("a", "absent"), ("PSP@1",)).judged(values) == "yes (30.00, a 25.00)"
    assert Above("", "ours", ("a", "b"), ("PSP@1",)).judged(values) == "**no** (PSP@1 30.00, b 30.00)"
    assert Above("", "ours", ("a",), ("XMAD@5",)).judged(values) == "**no** (XMAD@5 0.2000, a 0.1000)"
    assert Above("", "ours", ("absent",), ("PSP@1",)).judged(values) == NONE
    assert InOrder("", ("a", "ours"), ("PSP@1",)).judged(values) == "yes"
    assert InOrder("", ("a", "ours", "b"), ("PSP@1",)).judged(values).startswith("**no** (PSP@1 25.00, 30.00")


def test_what_fifths_add_is_psp():
    rng = np.random.default_rng(0)
    Y, Y_test = (sp.csr_matrix((rng.random((n, 30)) < 0.15).astype(np.float32)) for n in (60, 40))
    listed = np.argsort(-rng.random((40, 30)), axis=1)[:, :8].astype(np.int32)
    listed[3, 2:] = -1
    weights = inv_propensity(Y)
    added = propensity.contributions(Y, Y_test, listed, weights)
    gained = sum(
        weights[label] for row in range(40) for label in listed[row, :5] if label >= 0 and Y_test[row, label]
    )
    best = sum(np.sort(weights[Y_test[row].indices])[::-1][:5].sum() for row in range(40))
    assert added.sum() == pytest.approx(gained / best)
    counts, fifth = np.bincount(Y.indices, minlength=30), propensity.fifths(Y, Y_test)
    assert np.all(np.diff(fifth[np.argsort(counts, kind="stable")]) >= 0)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A graded set of files, and a bench's folder of it."""
    both = data.make_extreme(300, 60, 20, labels_per_row=2, nnz_per_row=8, seed=3)
    place = tmp_path / "data" / "xmlc" / "toy"
    place.mkdir(parents=True)
    for part, rows in (("train", slice(220)), ("test", slice(220, None))):
        taken = both.take(rows)
        Y = taken.Y.copy()
        Y.data = np.random.default_rng(1).integers(1, 6, Y.nnz).astype(np.float32)
        data.write_xc(place / f"{part}.txt", data.Dataset(taken.X, Y))
    monkeypatch.setattr(sets, "DATA", tmp_path / "data")
    return tmp_path


def test_relevances_are_grades_or_inverse_propensities(folder):
    graded = sets.prepare(
        "toy-graded", folder / "sets", made_sets.graded("toy", logarithm=True, labelwise=True)
    )
    Y, Y_test = made_sets.relevances(graded)
    assert sets.described(graded)["labelwise"]
    assert sorted(set(np.concatenate([Y.data, Y_test.data]))) == pytest.approx(np.log2(np.arange(2, 7)))
    plain = sets.prepare("toy-unit", folder / "sets", made_sets.unit("toy"))
    Y, _ = made_sets.relevances(plain)
    expected = inv_propensity(sets.matrix(plain, "Y"))
    assert np.allclose(Y.data, expected[Y.indices])
    X = sets.matrix(plain, "X")
    assert np.allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1, atol=1e-5)


def test_answers_have_the_unit_of_relevances():
    pairs = {"/indptr": np.array([0, 1]), "/labels": np.array([2], np.int32)}
    known = regression.predicted({**pairs, "/relevance": np.array([3.0])}, "", 5.0, 4)
    assert known.scores["relevance"].tolist() == [3.0]
    binary = regression.predicted({**pairs, "/probability": np.array([0.5])}, "", 5.0, 4)
    assert binary.scores["relevance"].tolist() == [2.5]
    lists = {
        "/labels": np.array([[3, 1], [0, -1]], np.int32),
        "/scores": np.array([[2.0, 0.5], [0.1, -np.inf]]),
    }
    found = regression.predicted(lists, "", 5.0, 4)
    assert found.labels.tolist() == [1, 3, 0]
    assert next(iter(found.scores.values())).tolist() == pytest.approx([2.5, 5.0, 0.5])
    margin = regressor.System({"estimator": "OneVsAll", "random_state": 0}, 1)
    scores = Candidates(
        np.array([0, 2]), np.array([0, 1], np.int32), 2, {"m": np.array([0.0, 1.0], np.float32)}
    )
    assert margin.values(scores) == pytest.approx([0.5, 1 / (1 + np.exp(-4))])
    tree = regressor.System({"estimator": "XReg", "random_state": 0}, 1)
    for given in ([1e-20, 1e-21], [0.5, -3.0]):
        scores.scores["m"][:] = given
        assert np.all(tree.values(scores) > 0)
        assert np.diff(tree.values(scores)) < 0
    scores.scores["m"][:] = [0.0, 1.0]
    assert reranking.almost_zero(scores).scores["relevance"] == pytest.approx([5e-7, 1e-6])


def test_systems_differ_in_name():
    for found in (propensity.STUDY, propensity.LARGE, regression.STUDY, regression.LARGE):
        assert len({system.name for system in found.systems}) == len(found.systems)


def answered(folder: Path, params: dict, system: type, judge, name: str = "cell") -> tuple[dict, dict]:
    """The quality and the figures of a system on a set, as its cell would have them."""
    made = system({**params, "random_state": 0}, 1)
    made.read(folder)
    made.train()
    rows = made.prepare(sets.matrix(folder, "X_test"))
    found = made.predict(rows, 10)
    lists = made.arrays if hasattr(made, "arrays") else lambda f, r: measure.lists_of(made, f, r, 10)
    np.savez(folder / f"{name}.npz", **lists(found, rows))
    return judge(folder, folder / f"{name}.npz"), made.figures(rows)


def test_propensity_from_systems_to_the_page(folder):
    place = sets.prepare("toy-unit", folder / "sets", made_sets.unit("toy"))
    rows = (*propensity.TREES, propensity.PUBLISHED, propensity.TUNED, "CS", "Parabel")
    lines = []
    for system in (system for system in propensity.STUDY.systems if system.name in rows):
        kind = rival.System if system.module == "rival" else shortlister.System
        quality, figures = answered(place, dict(system.params), kind, propensity.judge)
        fifths = sum(quality[""][f"fifth {i}"] for i in range(5))
        assert fifths == pytest.approx(quality[""]["PSP@5"])
        costs = {"train_s": 1.0, "batch_ms": 1.0}
        lines.append({"set": "toy-unit", "system": system.name, "quality": quality, **figures, **costs})
    page = propensity.page(Lines(lines, {"toy-unit": sets.described(place)}, folder, folder / "sets"))
    assert f"| FastXML < PfastXML < {propensity.PUBLISHED} | " in page
    assert f"{propensity.PUBLISHED}: alpha 0.8, unit means 0; " in page
    assert "CS: measurements " in page
    assert "| toy-unit | labels, training rows of each |" in page


def test_regression_from_systems_to_the_page(folder, monkeypatch):
    make = {"toy-unit": made_sets.unit("toy"), "toy-graded": made_sets.graded("toy", labelwise=True)}
    monkeypatch.setattr(regression, "LABELWISE", ("toy-graded",))
    monkeypatch.setattr(regression, "BIBTEX", "toy-unit")
    monkeypatch.setattr(regression, "PARAMETERS_ON", "toy-unit")
    rows = {"Parabel", regression.XREG, "XReg, labelwise", regression.HINGE, "LEML, small", "Table 3: XReg"}
    rows |= {"Table 8: n_trees 1"}
    lines = []
    for name in make:
        place = sets.prepare(name, folder / "sets", make[name])
        for system in (system for system in regression.STUDY.systems if system.name in rows):
            kind = reranking.System if system.module == "reranking" else regressor.System
            quality, figures = answered(place, dict(system.params), kind, regression.judge)
            assert quality[""]["WP@5"] > 0.2
            lines.append({"set": name, "system": system.name, "quality": quality, **figures})
            lines[-1] |= {"params": system.params, "seed": 0}
            lines[-1] |= {"train_s": 1.0, "batch_ms": 2.0, "model_mib": 3.0}
            lists = {"", "zero", "re-ranked", "zero re-ranked"}
            assert set(quality) == (lists if system.module == "reranking" else {""})
    described = {name: sets.described(folder / "sets" / name) for name in make}
    page = regression.page(Lines(lines, described, folder, folder / "sets"))
    assert "| XReg, labelwise, above Parabel's lists of 100 labels a row | " in page
    assert "| toy-unit | XReg, zero |" in page
    assert " [58.61] |" in page  # the paper's PSP@5 of XReg
    assert re.search(r"\| n_trees 1 \| .* \| 1.00 \| 2.00 \| 3.00 \|", page)
