"""hP, hR and hF: hand-worked examples, a slow twin, every form of parents, bad input."""

from __future__ import annotations

import metrics_by_name as by_name
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import metrics
from metarank.data import LabelDescriptions
from metarank.metrics.relevance import Relevance

NAMES = ["hP", "hR", "hF"]
# 0 animals, 1 cats, 2 mammals, 3 birds, 4 pets; cats are mammals and pets.
PARENTS = [[], [2, 4], [0], [0], []]


def extended(labels, parents):
    found = set(labels)
    for label in labels:
        found |= extended(parents[label], parents)
    return found


def by_hand(Y, P, parents):
    hits = predicted = relevant = 0
    for y, p in zip(Y, P):
        true, guess = (extended(np.flatnonzero(row).tolist(), parents) for row in (y, p))
        hits, predicted, relevant = hits + len(true & guess), predicted + len(guess), relevant + len(true)
    return [hits / predicted, hits / relevant, 2 * hits / (predicted + relevant)]


def test_worked_examples():
    # Relevant: birds (with animals), and pets. Predicted: cats (with mammals, animals, pets), and pets.
    Y, P = [[0, 0, 0, 1, 0], [0, 0, 0, 0, 1]], [[0, 1, 0, 0, 0], [0, 0, 0, 0, 1]]
    found = metrics.evaluate(Y, None, NAMES, Y_pred=P, parents=PARENTS)
    assert found == {"hP": 2 / 5, "hR": 2 / 3, "hF": 4 / 8}
    assert by_name.hierarchical_precision(Y, P, PARENTS) == found["hP"]
    assert by_name.hierarchical_recall(Y, P, PARENTS) == found["hR"]
    assert by_name.hierarchical_f1(Y, P, PARENTS) == found["hF"]


def test_without_parents_they_are_those_of_pooled_decisions():
    rng = np.random.default_rng(0)
    Y, P = (rng.random((20, 6)) < 0.4 for _ in range(2))
    found = metrics.evaluate(Y, None, ["hF", "micro-F1"], Y_pred=P.astype(int), parents=[[]] * 6)
    assert found["hF"] == found["micro-F1"]


def test_labels_that_the_table_lacks_have_no_parents_and_leave_it_as_it_is():
    table = LabelDescriptions(ids=range(5), parents=PARENTS)
    Y, P = np.eye(2, 6, 4), sp.csr_matrix(np.eye(2, 5, 4))
    got = metrics.evaluate(Relevance(sp.csr_matrix(Y), ["dogs"]), None, NAMES, Y_pred=P, parents=table)
    assert list(got.values()) == [1, 0.5, 2 / 3]
    assert table.parents.shape == (5, 5)
    assert P.shape == (2, 5)


def test_nothing_predicted_or_relevant_is_zero():
    nothing = np.zeros((3, 5))
    found = metrics.evaluate(nothing, None, NAMES, Y_pred=nothing, parents=PARENTS)
    assert list(found.values()) == [0, 0, 0]


def drawn(n=40, L=15, seed=0):
    rng = np.random.default_rng(seed)
    order = rng.permutation(L)
    parents = [[] for _ in range(L)]
    for i in range(1, L):
        parents[order[i]] = [int(order[j]) for j in np.unique(rng.integers(0, i, rng.integers(0, 3)))]
    return (rng.random((n, L)) < 0.2).astype(int), (rng.random((n, L)) < 0.2).astype(int), parents


@pytest.mark.parametrize("form", ["lists", "dense", "sparse", "table"])
def test_every_form_of_parents_agrees_with_walks(form):
    Y, P, parents = drawn()
    L = len(parents)
    matrix = np.array([np.isin(np.arange(L), own) for own in parents])
    given = {
        "lists": parents,
        "dense": matrix,
        "sparse": sp.csr_matrix(matrix),
        "table": LabelDescriptions(ids=range(L), parents=parents),
    }[form]
    found = metrics.evaluate(Y, None, NAMES, Y_pred=P, parents=given)
    np.testing.assert_allclose(list(found.values()), by_hand(Y, P, parents), rtol=1e-12)
    order = np.random.default_rng(1).permutation(len(Y))
    assert metrics.evaluate(Y[order], None, NAMES, Y_pred=P[order], parents=given) == found


def test_intervals_are_those_of_drawn_rows():
    Y, P, parents = drawn()
    found = metrics.bootstrap(Y, None, NAMES, Y_pred=P, parents=parents, n_resamples=30)
    draws = []
    for b in range(30):
        rows = np.random.default_rng([0, b]).integers(len(Y), size=len(Y))
        draws.append(by_hand(Y[rows], P[rows], parents))
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    np.testing.assert_allclose([found[name][1:] for name in NAMES], np.column_stack([low, high]))


@pytest.mark.parametrize(
    ("parents", "error", "message"),
    [
        (None, ValueError, "parents must be given for a hierarchical metric"),
        ([[]], ValueError, "parents must have an entry for each of the 5 ids, got 1"),
        (np.zeros((4, 4)), ValueError, "parents must have an entry for each of the 5 ids, got 4"),
        ([[5], [], [], [], []], ValueError, "parents of label '0' must name known labels.* got .5."),
        ([[1], [0], [], [], []], ValueError, "parents must not form a cycle, got '1' -> '0'"),
        ([0, 1, 2, 3, 4], TypeError, "parents must hold a list per label, got 0"),
        (LabelDescriptions(names=["a"]), ValueError, "parents must be of 5 labels, got 1"),
        (3, TypeError, "parents must be a sequence with an entry per label, got 3"),
    ],
)
def test_bad_parents_are_refused(parents, error, message):
    with pytest.raises(error, match=message):
        metrics.evaluate(np.eye(5), None, ["hF"], Y_pred=np.eye(5), parents=parents)
