"""Balanced spherical 2-means and the trees grown by it, against a slow twin."""

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import _core
from metarank.types.arrays import csr_parts

WORD = (1 << 64) - 1


def splitmix64(x):
    x = (x + 0x9E3779B97F4A7C15) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def hash_pair(seed, index):
    return splitmix64(splitmix64(seed) ^ index)


def unit(v):
    length = np.linalg.norm(v)
    return v / length if length > 0 else v


def two_means(V, n_left, seed, max_iterations, tolerance):
    """Left side (a mask) of balanced 2-means in double."""

    def sides(direction):
        left = np.zeros(len(V), bool)
        left[np.argsort(-(V @ direction), kind="stable")[:n_left]] = True
        return left

    first = V[hash_pair(seed, 0) % len(V)]
    direction = first - V[np.argmin(V @ first)]
    best = 0.0
    for _ in range(max_iterations):
        left = sides(direction)
        sums = V[left].sum(axis=0), V[~left].sum(axis=0)
        objective = sum(map(np.linalg.norm, sums))
        direction = unit(sums[0]) - unit(sums[1])
        if objective <= best * (1 + tolerance):
            break
        best = objective
    return sides(direction)


def fewest_groups(n_labels, branching, max_leaf):
    """So few that full groups need one level less."""
    most = max_leaf
    while most * branching < n_labels:
        most *= branching
    return next(k for k in range(1, branching + 1) if k * most >= n_labels)


def twin_tree(V, labels, branching, max_leaf, max_iterations, tolerance, seed):
    """The tree as nested lists; the rounds of a level go together, as their seeds tell."""
    rounds = iter(range(10**6))
    level, result = [(0, list(labels), None)], {}
    names = iter(range(10**6))
    nodes = []
    while level:
        groups = []
        for begin, members, parent in level:
            name = next(names)
            nodes.append((name, parent, members))
            if len(members) > max_leaf:
                groups.append((begin, members, name, fewest_groups(len(members), branching, max_leaf)))
        while any(k > 1 for *_, k in groups):
            r, halves = next(rounds), []
            for begin, members, name, k in groups:
                if k == 1:
                    halves.append((begin, members, name, 1))
                    continue
                n_left = len(members) * (k // 2) // k
                left = two_means(
                    V[members], n_left, hash_pair(hash_pair(seed, r), begin), max_iterations, tolerance
                )
                members = np.array(members)
                halves.append((begin, members[left].tolist(), name, k // 2))
                halves.append((begin + n_left, members[~left].tolist(), name, k - k // 2))
            groups = halves
        inner = {name for *_, name, _ in groups}
        for name, _, members in nodes:
            if name not in inner and name not in result:
                result[name] = list(members)
        level = [(begin, members, name) for begin, members, name, _ in groups]
        # A group of one label is the label's slot, not a node.
        for name in inner:
            result[name] = [m[0] if len(m) == 1 else m for _, m, n in level if n == name]
        level = [(b, m, n) for b, m, n in level if len(m) > 1]
    # Members are replaced by what their own node became.
    for name, parent, members in reversed(nodes):
        if parent is not None:
            at = next(i for i, c in enumerate(result[parent]) if isinstance(c, list) and c == members)
            result[parent][at] = result[name]
    return result[0]


def nested(child_start, child, node=0):
    children = child[child_start[node] : child_start[node + 1]]
    return [nested(child_start, child, c) if c >= 0 else int(~c) for c in children]


def vectors(L=90, d=20, seed=0):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(L, d)) * (rng.random((L, d)) < 0.5)
    return np.ascontiguousarray([unit(v) for v in V], np.float32)


HOW = dict(max_iterations=10, tolerance=1e-4, sample=4096, balanced=True)


def grown(V, labels, *, n_threads=1, **how):
    labels = np.asarray(labels, np.int32)
    clustering = _core.Clustering(**how)
    if sp.issparse(V):
        return _core.partition_labels_sparse((*csr_parts(V), V.shape[1]), labels, clustering, n_threads)
    return _core.partition_labels_dense(V, labels, clustering, n_threads)


@pytest.mark.parametrize(("branching", "max_leaf"), [(2, 10), (3, 7), (5, 20), (16, 4), (2, 1), (256, 3)])
def test_agrees_with_slow_twin(branching, max_leaf):
    V = vectors()
    labels = np.delete(np.arange(90), [3, 40])
    for seed in (0, 7):
        how = dict(branching=branching, max_leaf=max_leaf, seed=seed, **HOW)
        tree = nested(*grown(V, labels, **how))
        assert tree == twin_tree(V.astype(float), labels, branching, max_leaf, 10, 1e-4, seed)
        assert tree == nested(*grown(sp.csr_matrix(V), labels, **how))


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("sample", [100, 1 << 20])
def test_threads_share_long_cuts_without_a_trace(sample, balanced):
    V = vectors(L=40_000, d=16)
    how = dict(branching=4, max_leaf=100, seed=1, max_iterations=3, tolerance=1e-4)
    how |= dict(sample=sample, balanced=balanced)
    one, four = (grown(V, np.arange(len(V)), **how, n_threads=k) for k in (1, 4))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one, four))
    child = one[1]
    assert sorted(~child[child < 0]) == list(range(len(V)))


def k_means(V, k, seed, max_iterations, tolerance):
    """The groups of spherical k-means in double, as lists of positions, without the empty ones."""
    drawn = list(range(len(V)))
    for i in range(len(V)):
        j = i + hash_pair(seed, i) % (len(V) - i)
        drawn[i], drawn[j] = drawn[j], drawn[i]
    centres, best = V[drawn[:k]].copy(), 0.0
    for _ in range(max_iterations):
        group = np.argmax(V @ centres.T, axis=1)
        sums = {c: V[group == c].sum(axis=0) for c in np.unique(group)}
        for c, total in sums.items():
            centres[c] = unit(total)
        objective = sum(map(np.linalg.norm, sums.values()))
        if objective <= best * (1 + tolerance):
            break
        best = objective
    group = np.argmax(V @ centres.T, axis=1)
    return [np.flatnonzero(group == c).tolist() for c in range(k) if (group == c).any()]


@pytest.mark.parametrize(("branching", "max_leaf"), [(2, 60), (5, 30), (16, 45), (100, 10), (100, 1)])
def test_free_groups_agree_with_slow_twin(branching, max_leaf):
    V, labels = vectors(), np.delete(np.arange(90), [3, 40])
    for seed in (0, 7):
        how = dict(branching=branching, max_leaf=max_leaf, seed=seed, **(HOW | dict(balanced=False)))
        k = min(branching, -(-len(labels) // max_leaf))
        groups = k_means(V[labels].astype(float), k, hash_pair(hash_pair(seed, 0), 0), 10, 1e-4)
        for form in (V, sp.csr_matrix(V)):
            child_start, child = grown(form, labels, **how)
            tops = [
                sorted(flat(nested(child_start, child, c))) if c >= 0 else [int(~c)]
                for c in child[: child_start[1]]
            ]
            assert tops == [labels[group].tolist() for group in groups]
            assert sorted(~child[child < 0]) == labels.tolist()


def flat(tree):
    return [tree] if isinstance(tree, int) else [label for branch in tree for label in flat(branch)]


def test_free_groups_are_as_large_as_the_topics():
    sizes = [1, 3, 12, 40]
    topic = np.repeat(np.arange(4), sizes)
    V = np.eye(4, dtype=np.float32)[topic]
    for seed in range(5):
        how = dict(branching=56, max_leaf=1, seed=seed, **(HOW | dict(balanced=False)))
        child_start, child = grown(V, np.arange(56), **how)
        tops = [flat(nested(child_start, child, c)) if c >= 0 else [int(~c)] for c in child[: child_start[1]]]
        assert (
            sorted(map(len, tops)) == sizes
        )  # each label a centre: those of a topic share the first of them


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("V", [np.zeros((50, 4)), np.ones((50, 4)) / 2], ids=["zero", "identical"])
def test_vectors_that_do_not_differ_are_cut_all_the_same(V, balanced):
    how = HOW | dict(balanced=balanced)
    child_start, child = grown(V.astype(np.float32), np.arange(50), branching=2, max_leaf=8, seed=0, **how)
    assert sorted(~child[child < 0]) == list(range(50))
    assert np.diff(child_start).max() <= 8


def test_one_label_after_another_split_off_makes_no_deep_tree():
    # Cosines fall along the line, so that 2-means has a single label on one side again and again.
    V = np.array([unit([1.0, 3.0**-i]) for i in range(300)], np.float32)
    how = dict(branching=2, max_leaf=2, seed=0, **(HOW | dict(balanced=False)))
    child_start, child = grown(V, np.arange(300), **how)
    assert sorted(~child[child < 0]) == list(range(300))

    def depth(tree):
        return 0 if isinstance(tree, int) else 1 + max(map(depth, tree))

    assert depth(nested(child_start, child)) <= 8 + 9


def test_small_and_empty_label_sets():
    V = vectors(L=5)
    assert [a.tolist() for a in grown(V, [], branching=2, max_leaf=3, seed=0, **HOW)] == [[0, 0], []]
    assert [a.tolist() for a in grown(V, [4], branching=2, max_leaf=3, seed=0, **HOW)] == [[0, 1], [~4]]
    assert nested(*grown(V, [0, 2, 4], branching=16, max_leaf=3, seed=0, **HOW)) == [0, 2, 4]


@pytest.mark.parametrize(
    ("labels", "change", "message"),
    [
        ([0, 5], {}, "labels must ascend"),
        ([1, 0], {}, "labels must ascend"),
        ([0], dict(branching=1), "branching"),
        ([0], dict(max_leaf=0), "max_leaf"),
        ([0], dict(sample=1), "sample"),
        ([0], dict(max_iterations=0), "max_iterations"),
    ],
)
def test_malformed_input_is_refused(labels, change, message):
    with pytest.raises(ValueError, match=message):
        grown(vectors(L=5), labels, **(dict(branching=2, max_leaf=3, seed=0, **HOW) | change))
