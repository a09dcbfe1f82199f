"""Prediction of label trees: beam search, pairs and labelwise, against exhaustive scoring."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import weight_blocks
from hypothesis import given, settings
from hypothesis import strategies as st

from metarank import _core

FLOOR = -80.0


@dataclass
class Model:
    """Random trees and their weights, in the arrays of the core and as slow Python."""

    roots: np.ndarray
    child_start: np.ndarray
    child: np.ndarray
    n_labels: int
    weights: dict[str, np.ndarray]
    link: int
    n_features: int
    path_weight: float = 1.0
    label_cost: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))

    def core(self) -> _core.LabelTrees:
        blocks = _core.WeightBlocks(n_features=self.n_features, **self.weights)
        tree = self.roots, self.child_start, self.child, self.n_labels
        return _core.LabelTrees(*tree, blocks, self.link, self.path_weight, self.label_cost)

    def edge_log_probabilities(self, X: np.ndarray) -> np.ndarray:
        W = weight_blocks.decode(self.weights, self.n_features)
        z = X.astype(np.float64) @ W.toarray().astype(np.float64).T + self.weights["bias"]
        return -np.logaddexp(0, -z) if self.link == 0 else -(np.maximum(0, 1 - z) ** self.link)

    def exhaustive(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log-probabilities of every path: (n, T, L) of labels and (n, N) of nodes."""
        edges = self.edge_log_probabilities(X)
        nodes = np.full((len(X), len(self.child_start) - 1), -np.inf)
        labels = np.full((len(X), len(self.roots), self.n_labels), -np.inf)
        nodes[:, self.roots] = 0
        for node in range(nodes.shape[1]):
            tree = np.searchsorted(self.roots, node, side="right") - 1
            for s in range(*self.child_start[node : node + 2]):
                if self.child[s] < 0:
                    own = self.label_cost[~self.child[s]] if len(self.label_cost) else 0
                    path = self.path_weight * nodes[:, node] + edges[:, s] - own
                    labels[:, tree, ~self.child[s]] = path
                else:
                    nodes[:, self.child[s]] = nodes[:, node] + edges[:, s]
        return labels, nodes


def random_tree(
    rng: np.random.Generator, labels: list[int], width: int, first: int
) -> tuple[list[list[int]], int]:
    """Children of each node of one tree, ids from `first`; nodes may mix labels and nodes."""
    children: list[list[int]] = [[]]
    queue = [(0, labels)]
    while queue:
        at, mine = queue.pop(0)
        n = min(len(mine), int(rng.integers(1 if len(mine) == 1 else 2, width + 1)))
        for part in np.array_split(rng.permutation(mine), n) if n else []:
            if len(part) == 1 and (rng.random() < 0.8 or len(mine) == 1):
                children[at].append(~int(part[0]))
            else:
                children[at].append(first + len(children))
                queue.append((len(children), [int(v) for v in part]))
                children.append([])
    return children, first + len(children)


def random_model(
    seed: int,
    n_labels: int = 40,
    n_features: int = 60,
    width: int = 5,
    n_trees: int = 2,
    link: int = 0,
    density: float = 0.3,
    unseen: int = 2,
    path_weight: float = 1.0,
    costs: bool = False,
) -> Model:
    rng = np.random.default_rng(seed)
    roots, nodes, first = [], [], 0
    for _ in range(n_trees):
        roots.append(first)
        children, first = random_tree(rng, list(range(max(0, n_labels - unseen))), width, first)
        nodes += children
    child = np.array([c for node in nodes for c in node], np.int32)
    child_start = np.cumsum([0, *map(len, nodes)]).astype(np.int64)
    W = sp.random_array((len(child), n_features), density=density, rng=rng, format="csr", dtype=np.float32)
    W.data = (2 * rng.normal(size=W.nnz)).astype(np.float32)
    W.sort_indices()
    bias = rng.normal(size=len(child)).astype(np.float32)
    weights = weight_blocks.encode(W, bias, child_start)
    label_cost = rng.exponential(size=n_labels if costs else 0).astype(np.float32)
    tree = np.array(roots, np.int32), child_start, child, n_labels
    return Model(*tree, weights, link, n_features, path_weight, label_cost)


def random_rows(seed: int, n: int, d: int, density: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    return np.ascontiguousarray(X, np.float32)


def csr(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    S = sp.csr_array(X)
    return S.indptr.astype(np.int64), S.indices.astype(np.int32), S.data


def beam(
    model: Model, X: np.ndarray, width: int, k: int, tree_k: int | None = None, n_threads: int = 1
) -> tuple:
    return model.core().beam(csr(X), width, k, tree_k or max(k, model.n_labels), n_threads)


def children(model: Model, node: int) -> np.ndarray:
    return model.child[slice(*model.child_start[node : node + 2])]


def visited(model: Model, nodes: np.ndarray, root: int, width: int) -> list[int]:
    """The nodes that a search of this width looks into, of the nodes' log-probabilities for one row."""
    level, seen = [root], []
    while level:
        seen += level
        below = [c for v in level for c in children(model, v)]
        level = sorted((c for c in below if c >= 0), key=lambda c: (-nodes[c], c))[:width]
    return seen


def same_bytes(a: tuple, b: tuple) -> None:
    for x, y in zip(a, b, strict=True):
        assert (x is None and y is None) or x.tobytes() == y.tobytes()


MODELS = [
    dict(),
    dict(link=1),
    dict(link=2, n_trees=1),
    dict(link=3, n_trees=3),
    dict(link=4, path_weight=0.7, costs=True),
    dict(costs=True, path_weight=0.0, n_trees=1),
    dict(n_labels=300, width=300, n_trees=2),
    dict(n_labels=600, width=40, n_features=200, density=0.05),
    dict(n_labels=1, unseen=0),
    dict(n_labels=200, n_features=3000, density=0.01, width=20),
]


@pytest.mark.parametrize("options", MODELS)
@pytest.mark.parametrize("n", [1, 40])
def test_wide_beam_is_exhaustive(options: dict, n: int) -> None:
    model = random_model(0, **options)
    X = random_rows(1, n, model.n_features)
    labels, _ = model.exhaustive(X)
    mean = np.exp(np.maximum(labels, FLOOR)).mean(1) * np.isfinite(labels).any(1)
    seen = np.isfinite(labels[0]).any(0)
    indptr, ids, scores = beam(model, X, 10**6, 10**6)
    assert (np.diff(indptr) == seen.sum()).all()
    for i in range(n):
        row = slice(*indptr[i : i + 2])
        np.testing.assert_array_equal(ids[row], np.flatnonzero(seen))
        np.testing.assert_allclose(scores[row], mean[i, seen], rtol=1e-4, atol=1e-20)


@pytest.mark.parametrize("options", MODELS)
@pytest.mark.parametrize(("width", "k"), [(1, 1), (2, 5), (4, 12)])
def test_beam_agrees_with_its_twin(options: dict, width: int, k: int) -> None:
    model = random_model(2, **options)
    X = random_rows(3, 30, model.n_features)
    labels, nodes = model.exhaustive(X)
    indptr, ids, scores = beam(model, X, width, k)
    for i in range(len(X)):
        total = np.zeros(model.n_labels)
        for t, root in enumerate(model.roots):
            for v in visited(model, nodes[i], root, width):
                for c in children(model, v):
                    if c < 0:
                        total[~c] += np.exp(max(labels[i, t, ~c], FLOOR)) / len(model.roots)
        found = np.flatnonzero(total)
        best = found[np.lexsort((found, -total[found]))][:k]
        row = slice(*indptr[i : i + 2])
        assert len(ids[row]) == len(best)  # labels that tie in float32 may stand for each other
        np.testing.assert_allclose(np.sort(total[ids[row]])[::-1], total[best], rtol=1e-4)
        np.testing.assert_allclose(scores[row], total[ids[row]], rtol=1e-4)


@pytest.mark.parametrize("options", MODELS)
@pytest.mark.parametrize("n", [1, 50])
@pytest.mark.parametrize("width", [1, 2, 10**6])
def test_pairs_have_what_the_search_has_seen(options: dict, n: int, width: int) -> None:
    model = random_model(4, **options)
    X = random_rows(5, n, model.n_features)
    labels, nodes = model.exhaustive(X)
    rng = np.random.default_rng(6)
    wanted = rng.random((n, model.n_labels)) < rng.random((n, 1))
    wanted[0] = True  # a row that asks for all labels is followed to all of them
    indptr = np.concatenate([[0], np.cumsum(wanted.sum(1))]).astype(np.int64)
    rows, ids = np.nonzero(wanted)
    scores, per_tree = model.core().score_pairs(csr(X), width, indptr, ids.astype(np.int32), True, 1)
    log_probability = labels[rows, :, ids]
    parent = {c: v for v, (a, b) in enumerate(pairwise(model.child_start)) for c in model.child[a:b]}
    refused = -np.log1p(np.e) if model.link == 0 else -(2.0**model.link)
    for t, root in enumerate(model.roots):
        seen = [set(visited(model, nodes[i], root, 10**6 if wanted[i].all() else width)) for i in range(n)]
        for p, (i, label) in enumerate(zip(rows, ids)):
            leaf = [
                v for v in range(*[*model.roots, nodes.shape[1]][t : t + 2]) if ~label in children(model, v)
            ]
            if leaf and leaf[0] not in seen[i]:
                at = leaf[0]
                while parent[at] not in seen[i]:
                    at = parent[at]
                own = model.label_cost[label] if len(model.label_cost) else 0
                log_probability[p, t] = model.path_weight * nodes[i, at] + refused - own
    expected = np.maximum(log_probability, FLOOR)
    np.testing.assert_allclose(per_tree, expected, rtol=2e-5, atol=2e-5)
    mean = (np.exp(expected) * np.isfinite(labels[rows, :, ids])).mean(1)
    np.testing.assert_allclose(scores, mean, rtol=1e-4, atol=1e-20)
    only, none = model.core().score_pairs(csr(X), width, indptr, ids.astype(np.int32), False, 1)
    assert none is None
    same_bytes((only,), (scores,))


@pytest.mark.parametrize("options", MODELS)
def test_labelwise_with_a_large_factor_is_exhaustive(options: dict) -> None:
    model = random_model(9, **options)
    X = random_rows(10, 50, model.n_features)
    labels, nodes = model.exhaustive(X)
    mean = np.exp(np.maximum(labels, FLOOR)).mean(1)
    frac = np.ones(nodes.shape[1])
    for k in (1, 7, 10**6):
        indptr, rows, scores = model.core().points(csr(X), frac, 1e9, k, 1)
        for label in range(model.n_labels):
            mine = slice(*indptr[label : label + 2])
            if not np.isfinite(labels[0, 0, label]):
                assert len(rows[mine]) == 0
                continue
            expected = mean[rows[mine], label]
            np.testing.assert_allclose(scores[mine], expected, rtol=1e-4, atol=1e-20)
            assert (np.diff(rows[mine]) > 0).all()
            assert len(rows[mine]) == min(k, len(X))
            if len(model.roots) == 1:  # with more trees, each proposes its own k
                best = np.sort(mean[:, label])[::-1][: len(expected)]
                np.testing.assert_allclose(np.sort(expected)[::-1], best, rtol=1e-4)


def labelwise_twin(model: Model, X: np.ndarray, frac: np.ndarray, factor: float, k: int) -> list[set[int]]:
    """Algorithm 1 for one tree: the rows found for each label."""
    labels, nodes = model.exhaustive(X)
    passed = {int(model.roots[0]): np.arange(len(X))}
    found: list[set[int]] = [set() for _ in range(model.n_labels)]
    for node in range(nodes.shape[1]):
        mine = passed.get(node, np.arange(0))
        for c in model.child[slice(*model.child_start[node : node + 2])]:
            score = labels[mine, 0, ~c] if c < 0 else nodes[mine, c]
            most = k if c < 0 else int(np.ceil(factor * frac[c] * len(X)))
            best = mine[np.lexsort((mine, -score))][:most]
            if c < 0:
                found[~c] = set(best.tolist())
            else:
                passed[int(c)] = best
    return found


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_labelwise_agrees_with_its_twin(factor: float) -> None:
    model = random_model(11, n_labels=60, n_trees=1, width=4)
    X = random_rows(12, 80, model.n_features)
    frac = np.random.default_rng(0).random(len(model.child_start) - 1) * 0.6
    found = labelwise_twin(model, X, frac, factor, 5)
    indptr, rows, _ = model.core().points(csr(X), frac, factor, 5, 1)
    assert [set(rows[a:b].tolist()) for a, b in pairwise(indptr)] == found


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 6), st.integers(0, 3))
def test_laws(seed: int, width: int, n_parts: int, link: int) -> None:
    """Same bytes for any number of threads and split; rows permute."""
    model = random_model(seed, n_labels=120, n_features=150, width=18, link=link)
    core = model.core()
    X = random_rows(seed + 1, 64, 150, 0.2)
    whole = core.beam(csr(X), width, 9, 20, 1)
    same_bytes(whole, core.beam(csr(X), width, 9, 20, 4))
    for parts in (np.array_split(X, n_parts), X[:, None]):
        lists = [core.beam(csr(part), width, 9, 20, 1) for part in parts]
        same_bytes(whole[1:], tuple(np.concatenate([p[j] for p in lists]) for j in (1, 2)))
    order = np.random.default_rng(seed).permutation(len(X))
    permuted = core.beam(csr(X[order]), width, 9, 20, 1)
    for to, i in enumerate(order):
        a, b = slice(*whole[0][i : i + 2]), slice(*permuted[0][to : to + 2])
        same_bytes(tuple(v[a] for v in whole[1:]), tuple(v[b] for v in permuted[1:]))

    indptr, ids = whole[0], whole[1]
    pairs = core.score_pairs(csr(X), width, indptr, ids, True, 1)
    same_bytes(pairs, core.score_pairs(csr(X), width, indptr, ids, True, 3))
    indptr, ids, scores = beam(model, X, 10**6, 120)  # of all labels
    same_bytes((scores,), core.score_pairs(csr(X), 10**6, indptr, ids, True, 1)[:1])
    indptr, ids = whole[:2]
    singly = [
        core.score_pairs(csr(x[None]), width, np.array([0, b - a]), ids[a:b], True, 1)
        for x, a, b in zip(X, indptr, indptr[1:])
    ]
    same_bytes(pairs, tuple(np.concatenate([p[j] for p in singly]) for j in (0, 1)))

    frac = np.full(len(model.child_start) - 1, 0.1)
    same_bytes(core.points(csr(X), frac, 4.0, 5, 1), core.points(csr(X), frac, 4.0, 5, 3))


def test_nothing_to_do() -> None:
    model = random_model(15, n_labels=3, unseen=3, n_trees=2)
    core = model.core()
    X = random_rows(16, 4, model.n_features)
    assert beam(model, X, 5, 5)[0].tolist() == [0] * 5
    scores, per_tree = core.score_pairs(
        csr(X), 5, np.array([0, 2, 3, 3, 3]), np.array([0, 2, 1], np.int32), True, 1
    )
    assert scores.tolist() == [0, 0, 0]
    assert per_tree.tolist() == [[FLOOR] * 2] * 3
    assert core.points(csr(X), np.ones(2), 4.0, 5, 1)[0].tolist() == [0] * 4
    model = random_model(17)
    empty = np.zeros((0, model.n_features), np.float32)
    assert beam(model, empty, 5, 5)[0].tolist() == [0]
    assert model.core().points(csr(empty), np.ones(len(model.child_start) - 1), 4.0, 5, 1)[1].size == 0
    zeros = np.zeros((2, model.n_features), np.float32)
    assert np.diff(beam(model, zeros, 5, 5)[0]).tolist() == [5, 5]


def test_extreme_values_stay_in_order() -> None:
    """Margins beyond float32 give probabilities in [0, 1], never NaN."""
    model = random_model(18, link=2)
    X = random_rows(19, 20, model.n_features)
    for scale in (1e-30, 1e10, 3e37):
        scaled = (X / 5 * np.float32(scale)).astype(np.float32)
        indptr, ids, scores = beam(model, scaled, 10**6, 100)
        _, per_tree = model.core().score_pairs(csr(scaled), 2, indptr, ids, True, 1)
        assert ((scores >= 0) & (scores <= 1)).all()
        assert ((per_tree >= FLOOR) & (per_tree <= 0)).all()


def test_bad_input_is_refused() -> None:
    model = random_model(20)
    core = model.core()
    x_indptr, x_indices, x_data = X = csr(random_rows(21, 3, model.n_features))
    n_nodes, one = len(model.child_start) - 1, np.array([0, 1, 1, 1])
    cases = [
        ("beam must", lambda: core.beam(X, 0, 1, 1, 1)),
        ("tree_k", lambda: core.beam(X, 1, 5, 4, 1)),
        (
            "below the number of features",
            lambda: core.beam((x_indptr, x_indices + 60, x_data), 1, 1, 1, 1),
        ),
        ("ascending", lambda: core.beam((x_indptr, x_indices[::-1].copy(), x_data), 1, 1, 1, 1)),
        ("finite", lambda: core.beam((x_indptr, x_indices, np.full_like(x_data, np.nan)), 1, 1, 1, 1)),
        ("labels", lambda: core.score_pairs(X, 1, one, np.array([model.n_labels], np.int32), False, 1)),
        ("frac", lambda: core.points(X, np.ones(3), 4.0, 5, 1)),
        ("factor", lambda: core.points(X, np.ones(n_nodes), 0.0, 5, 1)),
    ]
    for message, call in cases:
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("name", ["roots", "child_start", "child"])
def test_altered_hierarchies_are_refused(name: str) -> None:
    """Any one number of the hierarchy changed: an error at the interface, or a model that still predicts."""
    model = random_model(22, n_labels=30)
    X = random_rows(23, 3, model.n_features)
    rng = np.random.default_rng(0)
    kept = getattr(model, name)
    refused = 0
    for _ in range(150):
        array = kept.copy()
        array[rng.integers(len(array))] = rng.choice([-1000, -3, -1, 0, 1, 5, 31, 10**6])
        setattr(model, name, array)
        try:
            core = model.core()
        except ValueError:
            refused += 1
            continue
        core.beam(csr(X), 4, 4, 4, 1)
    assert refused > 50


def test_weights_must_fit_the_hierarchy() -> None:
    a, b = random_model(24, n_labels=30), random_model(25, n_labels=30)
    a.weights = b.weights
    with pytest.raises(ValueError, match=r"weights|blocks"):
        a.core()
