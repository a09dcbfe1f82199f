"""`experiments/pair_propensity`: no row is in its own scores, and every model ranks the same pairs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

RUN = Path(__file__).resolve().parents[2] / "experiments" / "pair_propensity" / "run.py"


@pytest.fixture(scope="module")
def run():
    spec = importlib.util.spec_from_file_location("pair_propensity_run", RUN)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def made(run, n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(n, 40, 0.2, random_state=seed, format="csr")
    Y = sp.csr_matrix((rng.random((n, n)) < 0.08).astype(float))
    return run.Links("made", run._unit(X), Y, np.arange(n, dtype=np.int32), run._unit(X))


def test_scores_are_those_of_a_ridge_without_the_row(run):
    links = made(run)
    evidence = run.Evidence(links, links.Y)
    X, Y = links.X.toarray(), links.Y.toarray()
    for i in (0, 7, 119):
        others = np.arange(len(X)) != i
        K = X[others] @ X[others].T + run._RIDGE * np.eye(others.sum())
        expected = X[i] @ X[others].T @ np.linalg.solve(K, Y[others])
        np.testing.assert_allclose(evidence.score[i], expected, atol=1e-9)


def test_a_pair_is_linked_back_where_the_other_row_names_it(run):
    links = made(run)
    evidence = run.Evidence(links, links.Y)
    np.testing.assert_array_equal(evidence.back, links.Y.toarray().T > 0)
    assert not evidence.candidate.diagonal().any()


def test_every_model_ranks_the_same_pairs_and_hiding_follows_its_rule(run):
    links = made(run)
    seen = run.hidden(links, "by name", 0)
    assert 0 < (links.Y - seen).sum() < links.Y.sum()
    found = run.chances(run.Evidence(links, seen))
    assert len({len(values) for values in found.values()}) == 1
    assert all(np.isfinite(values).all() for values in found.values())
