"""Instance trees: optimal splits, leaves true to the training points, plain twins, laws of estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import _core
from metarank.metrics.propensity import inv_propensity
from metarank.metrics.rerank import rerank_with_tail
from metarank.scorers.label_weights import FLOOR
from metarank.scorers.trees.tail import COLUMN, TailClassifiers
from metarank.shortlist import FastXML, PfastreXML, PfastXML
from metarank.types.arrays import unit_rows
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet

ALL = [FastXML, PfastXML, PfastreXML]


def problem(n: int = 120, L: int = 15, d: int = 40, seed: int = 0) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Sparse unit rows, graded relevances that depend on them; every label has some."""
    rng = np.random.default_rng(seed)
    X = unit_rows(sp.random(n, d, 0.25, "csr", np.float32, random_state=rng))
    scores = X.toarray() @ rng.standard_normal((d, L))
    Y = np.where(scores >= np.sort(scores, axis=1)[:, -3:-2], rng.integers(1, 5, scores.shape), 0)
    Y[np.arange(L), np.arange(L)] = 1
    return X, sp.csr_matrix(Y.astype(np.float32))


def small(cls: type[FastXML], **params: Any) -> FastXML:
    return cls(**{"n_trees": 4, "max_leaf": 6, "C": 5.0, **params})


def leaves_of(model: FastXML, X: sp.csr_matrix) -> np.ndarray:
    """int32 (n, n_trees): the number of the leaf that each row reaches."""
    return np.array([_descend(model.forest_, row) for row in unit_rows(X).toarray()])


# Trees


def _descend(forest: dict[str, np.ndarray], x: np.ndarray) -> list[int]:
    out = []
    for node in forest["roots"]:
        while node >= 0:
            first, last = forest["weight_start"][node : node + 2]
            margin = forest["bias"][node]
            for p in range(first, last):
                margin = np.float32(margin + forest["weight"][p] * x[forest["feature"][p]])
            node = forest["child"][2 * node + int(margin > 0)]
        out.append(~node)
    return out


@pytest.mark.parametrize("cls", [FastXML, PfastXML])
def test_prediction_is_the_mean_of_the_leaves(cls: type[FastXML]) -> None:
    X, Y = problem()
    model = small(cls).fit(X, Y)
    new = unit_rows(sp.random(30, X.shape[1], 0.3, "csr", np.float32, random_state=9))
    leaves, forest = leaves_of(model, new), model.forest_
    expected = np.zeros((30, 4, Y.shape[1]), np.float32)
    for i, t in np.ndindex(30, 4):
        held = slice(*forest["leaf_start"][leaves[i, t] : leaves[i, t] + 2])
        expected[i, t, forest["leaf_label"][held]] = forest["leaf_value"][held]
    found = model.shortlist(new, k=100)
    scores = sp.csr_matrix((found.final_score, found.labels, found.indptr), (30, Y.shape[1]))
    np.testing.assert_allclose(scores.toarray(), expected.mean(1) * model.scale_, rtol=1e-5, atol=1e-7)
    pairs = Candidates.all_labels(30, Y.shape[1])
    logs = model.score(new, pairs)[model.column].reshape(30, -1)
    mean = expected.mean(1)
    np.testing.assert_allclose(logs[mean > 0], np.log(mean[mean > 0]), rtol=1e-4, atol=1e-5)
    assert np.all(logs[mean == 0] == np.float32(FLOOR))


@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_hold_the_means_of_their_training_points(weighted: bool) -> None:
    X, Y = problem()
    weight = np.random.default_rng(1).uniform(0.5, 2, 120).astype(np.float32) if weighted else np.ones(120)
    model = small(FastXML).fit(X, Y, sample_weight=weight)
    leaves = leaves_of(model, X)
    start = model.forest_["leaf_start"]
    assert len(np.unique(leaves)) == len(start) - 1  # every leaf has points
    for leaf in np.unique(leaves):
        rows = np.flatnonzero((leaves == leaf).any(1))
        mean = np.average(Y[rows].toarray(), axis=0, weights=weight[rows])
        held = slice(*start[leaf : leaf + 2])
        np.testing.assert_array_equal(model.forest_["leaf_label"][held], np.flatnonzero(mean))
        np.testing.assert_allclose(
            model.forest_["leaf_value"][held] * model.scale_, mean[mean > 0], rtol=1e-5
        )


def test_nodes_are_parted_until_they_are_small() -> None:
    X, Y = problem(n=300, seed=5)
    sizes = [
        np.unique(column, return_counts=True)[1]
        for column in leaves_of(small(FastXML, C=50.0).fit(X, Y), X).T
    ]
    assert all(size.max() <= 6 for size in sizes)
    whole = small(FastXML, max_leaf=300).fit(X, Y)
    assert len(whole.forest_["bias"]) == 0
    np.testing.assert_array_equal(leaves_of(whole, X), np.tile(np.arange(4), (300, 1)))


def test_a_leaf_keeps_its_greatest_labels() -> None:
    X, Y = problem()
    every, few = (small(FastXML, labels_per_leaf=m).fit(X, Y) for m in (100, 2))
    np.testing.assert_array_equal(every.forest_["child"], few.forest_["child"])
    for leaf in range(len(every.forest_["leaf_start"]) - 1):
        of = slice(*every.forest_["leaf_start"][leaf : leaf + 2])
        labels, values = every.forest_["leaf_label"][of], every.forest_["leaf_value"][of]
        best = np.sort(labels[np.lexsort([labels, -values])[:2]])
        kept = slice(*few.forest_["leaf_start"][leaf : leaf + 2])
        np.testing.assert_array_equal(few.forest_["leaf_label"][kept], best)


def test_propensities_and_units_of_relevance() -> None:
    X, Y = problem()
    binary = (Y > 0).astype(np.float32)
    weighted = binary.multiply(inv_propensity(Y)[None, :]).tocsr().astype(np.float32)
    by_hand, by_name = small(FastXML).fit(X, weighted), small(PfastXML).fit(X, Y)
    for name, values in by_hand.forest_.items():
        np.testing.assert_array_equal(values, by_name.forest_[name], err_msg=name)
    graded, scaled = small(FastXML).fit(X, Y), small(FastXML).fit(X, Y * np.float32(1024))
    for name, values in graded.forest_.items():
        np.testing.assert_array_equal(values, scaled.forest_[name], err_msg=name)
    assert scaled.scale_ == 1024 * graded.scale_


def test_learns_what_the_features_say() -> None:
    rng = np.random.default_rng(0)
    topic = np.tile(np.arange(8), 20)
    X = np.zeros((160, 24), np.float32)
    for j in range(3):
        X[np.arange(160), 3 * topic + j] = rng.uniform(0.8, 1.2, 160)
    for cls in ALL:
        model = cls(n_trees=10, C=5.0).fit(X[:120], [[t] for t in topic[:120]])
        first = model.shortlist(X[120:], k=1)
        np.testing.assert_array_equal(first.labels, topic[120:])


# Tail


def test_pfastrexml_is_equation_8() -> None:
    X, Y = problem()
    model = small(PfastreXML, alpha=0.7, gamma=5.0, unit_means=True).fit(X, Y)
    trees = small(PfastXML).fit(X, Y)
    found = trees.shortlist(X, k=100)
    data = TrainingSet(X, Y, np.zeros(120, np.int32))
    tail = TailClassifiers(gamma=5.0).fit(data.view()).score(X, found)[COLUMN]
    expected = rerank_with_tail(
        Candidates(found.indptr, found.labels, found.n_labels, {"": found.final_score}),
        tail,
        0.7,
        scale=trees.scale_,
    )
    ours = model.shortlist(X, k=100)
    np.testing.assert_array_equal(ours.labels, expected.labels)
    np.testing.assert_allclose(ours.final_score, expected.final_score, rtol=1e-5)
    logs = model.score(X, ours)[model.column]
    np.testing.assert_allclose(np.exp(logs) * model.scale_, ours.final_score, rtol=1e-4)
    plain = small(PfastreXML, alpha=1.0).fit(X, Y).shortlist(X, k=5)
    np.testing.assert_array_equal(plain.labels, trees.shortlist(X, k=5).labels)
    assert 0 < small(PfastreXML).fit(X, Y).alpha_ <= 1


# Laws


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("child", lambda a: np.where(a >= 0, 0, a).astype(a.dtype), "behind its parent"),
        ("feature", lambda a: a + 1000, "features must ascend"),
        ("leaf_label", lambda a: a - 1, "labels must ascend"),
        ("leaf_value", lambda a: -a, "leaf values must be finite"),
        ("weight_start", lambda a: a[:-1], "weight_start"),
        ("bias", lambda a: a * np.float32("nan"), "biases must be finite"),
        ("roots", lambda a: a + 100_000, "roots must be nodes or leaves"),
    ],
)
def test_damaged_forests_are_refused(name: str, damage: Any, message: str) -> None:
    X, Y = problem()
    forest = small(FastXML).fit(X, Y).forest_
    with pytest.raises(ValueError, match=message):
        _core.InstanceTrees(40, 15, **{**forest, name: damage(forest[name])})


def test_only_ratios_of_weights_count() -> None:
    X, Y = problem()
    plain = small(FastXML).fit(X, Y)
    for factor in (1e-300, 1 / 120, 1e37, 1e300):
        weighted = small(FastXML).fit(X, Y, sample_weight=np.full(120, factor))
        for name, values in plain.forest_.items():
            np.testing.assert_array_equal(values, weighted.forest_[name], err_msg=f"{name}, {factor}")
    far_apart = np.where(np.arange(120) % 2, 1e300, 1e-300)
    assert len(small(FastXML).fit(X, Y, sample_weight=far_apart).forest_["bias"]) > 0


def test_lists_take_the_memory_of_what_they_hold() -> None:
    """Leaves name a few of a million labels: lists of all of them are short."""
    X, _ = problem()
    Y = sp.csr_matrix(
        (np.ones(120, np.float32), (np.arange(120), np.arange(120) * 7000)), shape=(120, 1_000_000)
    )
    model = PfastreXML(n_trees=2, alpha=0.8, max_leaf=6, C=5.0).fit(X, Y)
    found = model.shortlist(X[np.arange(12_000) % 120], k=5)  # 96 GB if rows had room for every label
    assert found.n_rows == 12_000
    assert np.diff(found.indptr).max() <= 5


@pytest.mark.parametrize(("gamma", "alpha"), [(300.0, 0.2), (1e6, 0.5)])
def test_no_order_is_lost_far_from_every_mean(gamma: float, alpha: float) -> None:
    X, Y = problem()
    model = small(PfastreXML, gamma=gamma, alpha=alpha).fit(X, Y)
    found = model.shortlist(X, k=15)
    assert np.all(found.final_score > 0)
    logs = model.score(X, found)[model.column]
    for i in range(120):
        row = slice(*found.indptr[i : i + 2])
        order = np.argsort(-found.final_score[row], kind="stable")
        assert np.all(np.diff(logs[row][order]) <= 1e-5)
