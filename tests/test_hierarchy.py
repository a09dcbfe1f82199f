"""Label trees as flat arrays: helpers, user-given trees, learned trees."""

import numpy as np
import pytest
import scipy.sparse as sp

from metarank.scorers.hierarchy import learn_hierarchy


def problem(n=200, d=60, L=50, seed=0):
    """Sparse rows whose labels share words; label 7 has no point."""
    rng = np.random.default_rng(seed)
    Y = sp.random(n, L, 0.06, "csr", np.float32, random_state=rng, data_rvs=lambda k: rng.integers(1, 4, k))
    Y = sp.csr_matrix(Y.toarray() * (np.arange(L) != 7))
    words = sp.random(L, d, 0.1, "csr", np.float32, random_state=rng)
    X = sp.csr_matrix(Y @ words + sp.random(n, d, 0.1, "csr", np.float32, random_state=rng), dtype=np.float32)
    return X, Y


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a.get_state().values(), b.get_state().values()))


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


@pytest.mark.parametrize("branching", [2, 3, 5, 16, 256])
@pytest.mark.parametrize("max_leaf", [1, 4, 10, 256])
def test_learned_trees_are_balanced_and_complete(branching, max_leaf):
    X, Y = problem()
    h = learn_hierarchy(X, Y, n_trees=2, branching=branching, max_leaf=max_leaf)
    assert h.n_trees == 2
    assert h.labels.tolist() == [label for label in range(50) if label != 7]
    for t in range(2):
        groups, leaves = leaf_sizes(h.nested(t))
        assert all(max(g) - min(g) <= 1 and len(g) <= branching for g in groups)
        assert all(size <= max(max_leaf, branching if max_leaf == 1 else 0) for size in leaves)
    assert not np.array_equal(h.child[: h.n_slots // 2], h.child[h.n_slots // 2 :]) or max_leaf == 256


@pytest.mark.parametrize("representation", ["principal", "exact"])
def test_threads_and_repeats_give_the_same_trees(representation):
    X, Y = problem()
    how = dict(n_trees=2, max_leaf=5, branching=4, representation=representation, n_dims=32)
    h = learn_hierarchy(X, Y, **how, n_jobs=1)
    assert same(h, learn_hierarchy(X, Y, **how, n_jobs=4))
    assert not same(h, learn_hierarchy(X, Y, **how, seed=1))
    # A tree depends on (seed, t): fewer trees are the first ones.
    assert learn_hierarchy(X, Y, **(how | dict(n_trees=1))).nested() == h.nested(0)
