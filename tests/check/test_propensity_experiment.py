"""experiments/propensity: its pieces do what they say, and the command writes its page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from studies import EXPERIMENTS, study

from metarank import data
from metarank.data.dataset import Dataset
from metarank.types.arrays import unit_rows

FOLDER = EXPERIMENTS / "propensity"

with study("propensity"):
    from borrowed import Problem, SetSpec, Settings
    from contenders import forest, judge, label_partitioning
    from tail_gain import contributions, describe_bins, label_bins


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


def test_contributions_add_up_to_psp(problem):
    outcome = forest(problem, {"estimator": "PfastXML", "n_trees": 5}, _SETTINGS)
    added = contributions(problem, outcome.found)
    assert added.sum() == pytest.approx(judge(problem, outcome.found)["PSP@5"])
    tested = np.intersect1d(problem.Y_test.indices, problem.Y.indices)
    assert sum(b["labels"] for b in describe_bins(problem)) == len(tested)
    bins, counts = label_bins(problem), np.bincount(problem.Y.indices, minlength=problem.Y.shape[1])
    order = tested[np.argsort(counts[tested], kind="stable")]
    assert np.all(np.diff(bins[order]) >= 0)


def test_one_partition_is_one_vs_all(problem):
    from metarank.shortlist import OneVsAll

    found = label_partitioning(problem, {}, _SETTINGS).found  # fewer points than make a second part
    flat = OneVsAll().fit(problem.X, problem.Y).shortlist(problem.X_test, k=5)
    assert judge(problem, found)["P@5"] == pytest.approx(judge(problem, flat)["P@5"])


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
    assert "## Where PSP@5 comes from, by label frequency (Fig. 4)" in page
    assert str(tmp_path) not in page
    again = subprocess.run([*command, "--kept"], env=env, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert out.read_text().replace("the run is not kept", "its environment has not been made") == page
