"""experiments/propensity: its pieces do what they say, and the command writes its page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp

FOLDER = Path(__file__).parents[2] / "experiments" / "propensity"
_PATH = list(sys.path)
sys.path.insert(0, str(FOLDER))

import simulation  # noqa: E402
from borrowed import Problem, SetSpec, Settings  # noqa: E402
from chapters import AUTHORS, PAPER, introduction  # noqa: E402
from chapters import simulation as simulation_section  # noqa: E402
from contenders import METRICS, contenders, forest, judge, label_partitioning, popularity  # noqa: E402
from drawings import simulation_figure  # noqa: E402
from tail_gain import contributions, describe_bins, label_bins  # noqa: E402

sys.path[:] = _PATH

from metarank import data  # noqa: E402
from metarank.data.dataset import Dataset  # noqa: E402
from metarank.types.arrays import unit_rows  # noqa: E402

_SETTINGS = Settings(Path("none"), Path("none"))


def _ones(Y: sp.csr_matrix) -> sp.csr_matrix:
    return sp.csr_matrix((np.ones(Y.nnz, np.float32), Y.indices, Y.indptr), shape=Y.shape)


@pytest.fixture(scope="module")
def made() -> Dataset:
    return data.make_extreme(260, 60, 30, labels_per_row=2, nnz_per_row=8, seed=3)


@pytest.fixture(scope="module")
def problem(made) -> Problem:
    X, Y = unit_rows(sp.csr_matrix(made.X)), _ones(made.Y)
    return Problem(SetSpec("toy", "toy", "binary"), X[:200], Y[:200], X[200:], Y[200:])


def test_labels_go_missing_at_random_by_their_propensity():
    Y, weight = sp.csr_matrix(np.ones((20_000, 3), np.float32)), np.array([1.0, 2.0, 10.0])
    left = simulation.masked(Y, weight, np.random.default_rng(0))
    assert left.shape == Y.shape
    assert np.allclose(left.mean(axis=0), 1 / weight, atol=0.01)
    assert left[:, 0].sum() == 20_000


def test_the_simulation_knows_the_complete_value(problem):
    rows = simulation.estimates(problem)
    assert len(rows) == len(simulation.CURVES) * len(simulation.ESTIMATES)
    for row in rows:
        assert row["plain"] < row["complete"]
        assert abs(row["unbiased"] - row["complete"]) < 4 * row["error"]
    missing = [row["missing"] for row in rows]
    assert missing == sorted(missing, reverse=True)


def test_wrong_curves_are_compared_on_the_same_labels(problem, monkeypatch):
    monkeypatch.setattr(simulation, "TRAINING_MASKINGS", 1)
    rows = {row["propensities"]: row[simulation.JUDGED] for row in simulation.wrong_curves(problem)}
    reference = simulation.CURVES.index(simulation.REFERENCE_CURVE)
    right = simulation.training(problem)[reference]
    assert rows["none"] == right["FastXML"]
    assert rows["right"] == right["PfastXML"]
    assert all(len(values) == 1 for values in rows.values())


def test_the_simulation_is_told_and_drawn(problem, monkeypatch):
    monkeypatch.setattr(simulation, "TRAINING_MASKINGS", 1)
    parts = {
        "estimates": simulation.estimates(problem),
        "training": simulation.training(problem),
        "wrong curves": simulation.wrong_curves(problem),
    }
    told = simulation_section("toy", parts, {"simulation toy": Path("toy.svg")})
    assert "- PfastXML above FastXML: **" in told
    assert "![the four panels of Fig. 3](toy.svg)" in told
    counts = np.bincount(problem.Y.indices, minlength=problem.Y.shape[1])
    picture = ElementTree.fromstring(simulation_figure(counts, 200, *parts.values()))
    assert len(picture.findall("{http://www.w3.org/2000/svg}svg")) == 4


def test_no_propensities_are_those_of_fastxml(problem):
    weight = np.ones(problem.Y.shape[1])
    assert (simulation.weighted(problem.Y, weight) != problem.Y).nnz == 0


def test_contributions_add_up_to_psp(problem):
    outcome = forest(problem, {"estimator": "PfastXML", "n_trees": 5}, _SETTINGS)
    added = contributions(problem, outcome.found)
    assert added.sum() == pytest.approx(judge(problem, outcome.found)["PSP@5"])
    tested = np.intersect1d(problem.Y_test.indices, problem.Y.indices)
    assert sum(b["labels"] for b in describe_bins(problem)) == len(tested)
    bins, counts = label_bins(problem), np.bincount(problem.Y.indices, minlength=problem.Y.shape[1])
    order = tested[np.argsort(counts[tested], kind="stable")]
    assert np.all(np.diff(bins[order]) >= 0)


def test_popularity_lists_the_most_frequent_labels(problem):
    found = popularity(problem, {}, _SETTINGS).found
    counts = np.bincount(problem.Y.indices, minlength=problem.Y.shape[1])
    first = found.labels[np.argmax(found.scores["relevance"][:30])]
    assert counts[first] == counts.max()
    assert set(judge(problem, found)) == set(METRICS)


def test_one_partition_is_one_vs_all(problem):
    from metarank.shortlist import OneVsAll

    found = label_partitioning(problem, {}, _SETTINGS).found  # fewer points than make a second part
    flat = OneVsAll().fit(problem.X, problem.Y).shortlist(problem.X_test, k=5)
    assert judge(problem, found)["P@5"] == pytest.approx(judge(problem, flat)["P@5"])


def test_figures_beside_ours_have_their_columns():
    for name, systems in PAPER.items():
        if name != "columns":
            assert all(len(values) == len(PAPER["columns"]) for values in systems.values())
    for theirs in AUTHORS["sets"].values():
        assert all(len(theirs[system]) == len(AUTHORS["columns"]) for system in ("FastXML", "PfastXML"))


def test_every_set_has_all_rows_of_the_tables():
    names = [system.name for system in contenders(SetSpec("bibtex", "bibtex", "binary"))]
    assert len(names) == len(set(names))
    assert "PfastreXML, alpha 0.8" in names


def test_the_page_is_what_its_sources_say():
    page = (FOLDER / "results.md").read_text()
    assert f"\n\n{(FOLDER / 'findings.md').read_text().strip()}\n\n{introduction()}\n\n" in page


def test_the_command_writes_its_page_of_a_tiny_set(tmp_path, made):
    folder = tmp_path / "data" / "xmlc" / "LastFM-ArtistTags"
    folder.mkdir(parents=True)
    for part, rows in (("train", slice(200)), ("test", slice(200, None))):
        data.write_xc(folder / f"{part}.txt", made.take(rows))
    out, cache = tmp_path / "results.md", tmp_path / "cache"
    command = [sys.executable, FOLDER / "run.py", "--sets", "LastFM-ArtistTags,bibtex", "--out", out]
    command += ["--cache", cache, "--peers-cache", tmp_path / "peers", "--environments", tmp_path / "none"]
    env = {**os.environ, "METARANK_DATA": str(tmp_path / "data")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "bibtex is left out" in done.stderr
    page = out.read_text()
    assert "PSP@1, 3, 5 in the order FastXML < PfastXML < PfastreXML (alpha 0.8 as published): **" in page
    assert "its environment has not been made" in page
    assert "![contributions to PSP@5](contributions.svg)" in page
    assert (tmp_path / "contributions.svg").read_text().startswith("<svg ")
    assert str(tmp_path) not in page
    again = subprocess.run([*command, "--kept"], env=env, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert out.read_text().replace("the run is not kept", "its environment has not been made") == page
