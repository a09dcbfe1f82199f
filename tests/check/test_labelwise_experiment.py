"""How `experiments/labelwise` judges lists of points."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture
def rows(monkeypatch):
    for name in ("labelwise", "xreg"):
        monkeypatch.syspath_prepend(str(EXPERIMENTS / name))
    for name in ("rows", "problems", "systems", "rivals"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import rows

    return rows


def test_lists_are_judged_by_labels(rows):
    from problems import SETS, Problem

    from metarank.types.candidates import Candidates

    rng = np.random.default_rng(0)
    Y = sp.random(30, 12, 0.2, "csr", np.float32, random_state=0)
    Y = sp.csr_matrix(Y.toarray() * (np.arange(12) != 4))  # a label without a relevant point
    S = sp.csr_matrix(np.where(rng.random((30, 12)) < 0.5, rng.random((30, 12)), 0))
    problem = Problem(SETS["MovieLens-small-users"], Y, Y, Y, Y)
    points = rows.by_label(Candidates.from_csr(S))
    values = rows.judged(problem, points)
    own, best = rows.gains(problem, points, 5)
    assert own.sum() / best.sum() == pytest.approx(values["WP@5"])
    dense, scores, found = Y.toarray(), S.toarray(), []
    for label in np.flatnonzero(dense.any(axis=0)):
        first = [i for i in np.argsort(-scores[:, label], kind="stable") if scores[i, label] > 0][:5]
        found.append(any(dense[i, label] > 0 for i in first))
    assert values["labels found"] == pytest.approx(np.mean(found))
