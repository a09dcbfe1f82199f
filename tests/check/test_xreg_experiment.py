"""experiments/xreg: the baselines do what they say, and the command writes its page."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from studies import EXPERIMENTS, study

from metarank import data
from metarank.data.dataset import Dataset
from metarank.types.arrays import unit_rows

FOLDER = EXPERIMENTS / "xreg"

with study("xreg"):
    from rivals import LowRank, PairwiseRanker, shortlist


@pytest.fixture(scope="module")
def made() -> Dataset:
    return data.make_extreme(200, 60, 12, labels_per_row=2, nnz_per_row=8, seed=3)


def test_low_rank_of_full_rank_is_ridge_regression(made):
    # At the minimum over W and H the two penalties make a nuclear norm; with a tiny one, least squares.
    X, Y = unit_rows(sp.csr_matrix(made.X)), made.Y
    model = LowRank(rank=12, penalty=1e-6, rounds=30, steps=200).fit(X, Y)
    A = X.toarray().astype(np.float64)
    expected = A @ np.linalg.lstsq(A, Y.toarray(), rcond=None)[0]
    assert np.abs(model.scores(X) - expected).max() < 1e-2


def test_pairwise_ranker_orders_labels_that_have_words_of_their_own():
    X = sp.csr_matrix(np.eye(6, dtype=np.float32).repeat(5, axis=0))
    Y = sp.csr_matrix(np.eye(6, dtype=np.float32).repeat(5, axis=0))
    found = shortlist(PairwiseRanker(epochs=5).fit(X, Y), X, 1)
    assert found.labels.tolist() == np.arange(6).repeat(5).tolist()


def test_the_command_writes_all_tables_of_tiny_sets(tmp_path, made):
    rng = np.random.default_rng(0)
    for name in ("LastFM-ArtistTags", "MovieLens-small-users"):
        folder = tmp_path / "data" / "xmlc" / name
        folder.mkdir(parents=True)
        for part, rows in (("train", slice(150)), ("test", slice(150, None))):
            taken = made.take(rows)
            Y = taken.Y.copy()
            Y.data = rng.integers(1, 6, Y.nnz).astype(np.float32)
            data.write_xc(folder / f"{part}.txt", Dataset(taken.X, Y))
    out, cache = tmp_path / "results.md", tmp_path / "cache"
    sets = "LastFM-ArtistTags,LastFM-ArtistTags-graded,MovieLens-small-users,bibtex"
    command = [sys.executable, FOLDER / "run.py", "--sets", sets, "--out", out, "--cache", cache]
    command += ["--peers-cache", tmp_path / "peers", "--environments", tmp_path / "none"]
    env = {**os.environ, "METARANK_DATA": str(tmp_path / "data")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "bibtex is left out" in done.stderr
    page = out.read_text()
    for heading in ("Inverse propensities", "Labelwise prediction", "Graded relevance", "LastFM-ArtistTags "):
        assert f"\n## {heading}" in page
    assert "LastFM-ArtistTags, XReg-t above XReg: **" in page
    assert "its environment has not been made" in page
    assert str(tmp_path) not in page
    again = subprocess.run([*command, "--kept"], env=env, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert out.read_text().replace("the run is not kept", "its environment has not been made") == page
