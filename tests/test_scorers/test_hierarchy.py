"""Label trees as flat arrays: helpers, user-given trees, learned trees."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from makers import tree_of
from sklearn.base import clone

from metarank.scorers.trees.hierarchy import learn_hierarchy
from metarank.shortlist import Hierarchy, Parabel, XReg

FOUR = tree_of([[0, 1], [2, 3]])


def problem(n=200, d=60, L=50, seed=0):
    """Sparse rows whose labels share words; label 7 has no point."""
    rng = np.random.default_rng(seed)
    Y = sp.random(n, L, 0.06, "csr", np.float32, random_state=rng, data_rvs=lambda k: rng.integers(1, 4, k))
    Y = sp.csr_matrix(Y.toarray() * (np.arange(L) != 7))
    words = sp.random(L, d, 0.1, "csr", np.float32, random_state=rng)
    X = sp.csr_matrix(Y @ words + sp.random(n, d, 0.1, "csr", np.float32, random_state=rng), dtype=np.float32)
    return X, Y


def leaf_sizes(tree):
    """Numbers of labels of the groups of each node, and of the leaves."""
    if all(isinstance(t, int) for t in tree):
        return [], [len(tree)]
    groups, leaves = [[flat_size(t) for t in tree]], []
    for t in tree:
        if not isinstance(t, int):
            g, s = leaf_sizes(t)
            groups += g
            leaves += s
    return groups, leaves


def flat_size(tree):
    return 1 if isinstance(tree, int) else sum(map(flat_size, tree))


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("branching", [2, 3, 5, 16, 100, 256])
@pytest.mark.parametrize("max_leaf", [1, 4, 10, 256])
def test_learned_trees_are_complete_and_balanced_unless_they_are_free(balanced, branching, max_leaf):
    X, Y = problem()
    h = learn_hierarchy(X, Y, n_trees=2, branching=branching, max_leaf=max_leaf, balanced=balanced)
    assert h.n_trees == 2
    assert h.labels.tolist() == [label for label in range(50) if label != 7]
    for t in range(2):
        groups, leaves = leaf_sizes(h.nested(t))
        assert all(len(group) <= branching for group in groups)
        assert not balanced or all(max(group) - min(group) <= 1 for group in groups)
        assert all(size <= max(max_leaf, branching if max_leaf == 1 else 0) for size in leaves)
    differ = not np.array_equal(h.child[: h.n_slots // 2], h.child[h.n_slots // 2 :])
    assert differ or max_leaf == 256 or not balanced


@pytest.mark.parametrize("balanced", [True, False])
def test_threads_and_repeats_give_the_same_trees(balanced):
    X, Y = problem()
    how = dict(balanced=balanced, n_trees=2, max_leaf=5, branching=4)
    h = learn_hierarchy(X, Y, **how, n_jobs=1)
    assert h == learn_hierarchy(X, Y, **how, n_jobs=4)
    assert h != learn_hierarchy(X, Y, **how, seed=1)
    # A tree depends on (seed, t): fewer trees are the first ones.
    assert learn_hierarchy(X, Y, **(how | dict(n_trees=1))).nested() == h.nested(0)


def test_bad_input_is_refused_by_name():
    with pytest.raises(ValueError, match="n_labels must be at least 0, got -1"):
        Hierarchy.from_parents({}, n_labels=-1)
    with pytest.raises(TypeError, match="n_labels must be an integer"):
        Hierarchy.from_parents({0: "r"}, n_labels="3")


def test_a_cycle_is_named_by_a_node_on_it():
    with pytest.raises(ValueError, match=r"cycle: '[rq]' is below itself"):
        Hierarchy.from_parents({"a": "r", "r": "q", "q": "r"}, label_names=["a"])
    with pytest.raises(ValueError, match=r"cycle: '[rq]' is below itself"):
        Hierarchy.from_parents({"a": "r", "b": "q", "r": "q", "q": "r", "c": "b"}, label_names=["a", "c"])


def test_labels_in_no_leaf():
    h = tree_of([0, [2, 4]], n_labels=6)
    assert (h.n_labels, h.labels.tolist(), h.nested()) == (6, [0, 2, 4], [0, [2, 4]])
    assert h.restricted_to([0, 4]).nested() == [0, 4]
    X, Y = np.eye(4, dtype=np.float32), np.eye(4, 6, dtype=np.float32)
    with pytest.raises(ValueError, match="label 1 is in no tree"):
        XReg(hierarchy=h).fit(X, Y)
    Y[:, [1, 3]] = 0
    found = XReg(hierarchy=tree_of([0, 2], n_labels=6)).fit(X, Y).shortlist(X, k=6)
    assert set(found.labels.tolist()) == {0, 2}


def test_equal_hierarchies():
    assert Hierarchy.from_state(FOUR.get_state()) == FOUR
    for other in (tree_of([0, 1, 2, 3]), tree_of(FOUR.nested(), n_labels=5), "tree"):
        assert other != FOUR
    model = Parabel(hierarchy=FOUR)
    assert clone(model).get_params() == model.get_params()
    assert repr(learn_hierarchy(*problem(), max_leaf=10)) == "Hierarchy of 3 trees over 49 labels, 18 nodes"


@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(1, 120), branching=st.integers(2, 20), max_leaf=st.integers(1, 30), seed=st.integers(0, 10)
)
def test_learned_trees_over_the_same_labels_have_as_many_slots(n, branching, max_leaf, seed) -> None:
    """Their shape follows from numbers alone."""
    rng = np.random.default_rng(seed)
    X = sp.random(60, 12, 0.4, "csr", np.float32, random_state=rng)
    Y = sp.csr_matrix((rng.random((60, n)) < 0.05).astype(np.float32))
    whole = learn_hierarchy(X, Y, n_trees=3, branching=branching, max_leaf=max_leaf, seed=seed)
    starts = [int(whole.child_start[root]) for root in whole.roots]
    assert starts == [t * (whole.n_slots // 3) for t in range(3)]
