"""experiments/leave_fold_out: schemes differ in what they say, and the page holds what was measured."""

from __future__ import annotations

import json

import makers
import numpy as np
import pytest
import scipy.sparse as sp
from studies import study

from metarank.data import make_extreme
from metarank.scorers.crossfit import held_out_columns
from metarank.types.candidates import Candidates

with study("leave_fold_out"):
    from schemes import SCHEMES, OneTree, SharedHierarchy
    from trial import K, Problem, held_out


def tiny() -> Problem:
    whole = make_extreme(150, 60, 30, nnz_per_row=10, seed=0)
    return Problem("tiny", whole.take(slice(100)), whole.take(slice(100, None)))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_figures_of_every_scheme(scheme):
    figures = held_out(SCHEMES[scheme](), tiny(), 3)
    assert figures["fit_cpu_s"] > 0
    assert figures["held_out_cpu_s"] > 0
    for part in ("held out", "new"):
        assert 0 <= figures[part]["unseen"] < 100
        # All labels seen are proposed where there are fewer than K.
        assert figures[part][f"R@{K}"] > 100 - 3 * figures[part]["unseen"] - 1e-6
        assert figures[part]["relevant"] > figures[part]["irrelevant"]
    assert figures["held out"]["unseen"] >= figures["new"]["unseen"]


def test_of_a_shared_hierarchy_only_the_places_of_labels_leak():
    """With the trees tuned, a row's labels do not reach its own scores; they do reach the trees."""
    of = tiny()
    scorer = SharedHierarchy(n_trees=1, max_leaf=4, branching=2)
    tuned = scorer.tuned(makers.training_set(of.train.X, of.train.Y).view())
    everything = Candidates.all_labels(of.train.n_rows, of.train.Y.shape[1])

    def scores(Y: sp.csr_matrix, row: int) -> bytes:
        data = makers.training_set(of.train.X, Y)
        one = np.array([row])
        return held_out_columns(tuned, data, everything.rows(one), rows=one)["parabel"].tobytes()

    trees = set()
    for row in range(5):
        changed = of.train.Y.toarray()
        changed[row] = np.roll(changed[row], 7)
        Y = sp.csr_matrix(changed)
        # A label needs a place in the trees to be learned.
        assert np.all(Y.getnnz(axis=0)[of.train.Y.getnnz(axis=0) == 0] == 0)
        assert scores(of.train.Y, row) == scores(Y, row)
        again = scorer.tuned(makers.training_set(of.train.X, Y).view())
        trees.add(json.dumps(again.hierarchy.nested()))
    assert len(trees) > 1


def test_one_tree_describes_held_out_rows_and_all_trees_new_ones():
    data = makers.training_set(tiny().train.X, tiny().train.Y)
    assert OneTree().fit(data.without_fold(0)).hierarchy_.n_trees == 1
    assert OneTree().fit(data.view()).hierarchy_.n_trees == 3
