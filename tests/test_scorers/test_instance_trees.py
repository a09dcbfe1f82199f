"""Instance trees: optimal splits, leaves true to the training points, plain twins, laws of estimators."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from metarank import MetaRanker, _core, load
from metarank.metrics import evaluate
from metarank.propensity import inv_propensity
from metarank.rerank import rerank_with_tail
from metarank.scorers.label_weights import FLOOR
from metarank.scorers.trees.tail import COLUMN, TailClassifiers
from metarank.shortlist import FastXML, PfastreXML, PfastXML
from metarank.types.arrays import csr_parts, unit_rows
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


def split(X: sp.csr_matrix, Y: sp.csr_matrix, weight: Any = None, **options: Any) -> tuple[np.ndarray, ...]:
    """(w, bias, sides, right, objectives) of one node."""
    settings = {
        "log_cost": 1.0,
        "rank_cost": 1.0,
        "balanced": False,
        "rounds": 1,
        "ideal_normaliser": False,
        "seed": 1,
    }
    logistic = {"tolerance": 1e-7, "max_steps": 200, "max_passes": 100}
    for name in options:
        assert name in settings or name in logistic
    settings |= {name: value for name, value in options.items() if name in settings}
    logistic |= {name: value for name, value in options.items() if name in logistic}
    seed = settings.pop("seed")
    weight = np.ones(X.shape[0], np.float32) if weight is None else weight.astype(np.float32)
    how = _core.SplitOptions(**settings, logistic=_core.L1LogisticOptions(**logistic))
    out: tuple[np.ndarray, ...] = _core.split_instances(
        (*csr_parts(X), X.shape[1]), (*csr_parts(Y), Y.shape[1]), weight, how, seed
    )
    return out


def small(cls: type[FastXML], **params: Any) -> FastXML:
    return cls(**{"n_trees": 4, "max_leaf": 6, "C": 5.0, **params})


# Splits


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("ideal", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_block_lowers_the_objective(balanced: bool, ideal: bool, seed: int) -> None:
    X, Y = problem(seed=seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2, X.shape[0])
    rounds = 1 if balanced else 4  # the weights of sides are set before each hyperplane
    options = {"rank_cost": 50.0, "rounds": rounds, "log_cost": 4.0}
    trace = split(X, Y, weight, balanced=balanced, ideal_normaliser=ideal, seed=seed, **options)[4]
    if balanced:
        assert trace[-1] < trace[-2]  # both under the weights of the sides
        trace = trace[:-2]
    assert len(trace) > 4
    assert np.all(np.diff(trace) <= 1e-6 * np.abs(trace[:-1]))
    assert trace[-1] < trace[0]


def _discounts(gains: np.ndarray) -> np.ndarray:
    """The discount of each label where labels are ranked by gain, ties by first seen."""
    rank = np.empty(len(gains), int)
    rank[np.argsort(-gains.astype(np.float32), kind="stable")] = np.arange(len(gains))
    return 1 / np.log2(rank + 2)


@pytest.mark.parametrize("ideal", [False, True])
def test_objective_and_sides_match_the_formula(ideal: bool) -> None:
    X, Y = problem(n=60)
    dense_y = Y.toarray().astype(np.float64)
    weight = np.random.default_rng(0).uniform(0.5, 2, 60).astype(np.float32)
    w, bias, sides, _, trace = split(X, Y, weight, rank_cost=7.0, log_cost=3.0, ideal_normaliser=ideal)
    places = 1 / np.log2(np.arange(Y.shape[1]) + 2)
    normaliser = (-np.sort(-dense_y, axis=1) * places).sum(1) if ideal else np.full(60, places.sum())
    gain = 7.0 * weight[:, None] * dense_y / normaliser[:, None]
    # Labels in the order in which the rows show them: the order of ties.
    seen = list(dict.fromkeys(Y.indices.tolist()))
    discount = np.zeros((2, Y.shape[1]))
    for side in (0, 1):
        discount[side, seen] = _discounts(gain[(sides > 0) == side].sum(0)[seen])
    better = gain @ (discount[1] - discount[0])
    assert np.all(better * sides >= -1e-9)  # no point would rather be on the other side
    margin = X @ w.astype(np.float64) + bias
    value = (
        np.abs(w).sum()
        + abs(bias)
        + (3.0 * weight * np.logaddexp(0, -sides * margin)).sum()
        - (gain * discount[(sides > 0).astype(int)]).sum()
    )
    assert trace[-1] == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("cost", [0.5, 4.0, 40.0])
def test_hyperplane_is_that_of_liblinear(cost: float) -> None:
    X, Y = problem(n=200, seed=3)
    w, bias, sides, right, _ = split(X, Y, log_cost=cost, tolerance=1e-9)
    with_ones = np.hstack([X.toarray(), np.ones((200, 1))]).astype(np.float64)
    twin = LogisticRegression(
        l1_ratio=1, C=cost, solver="liblinear", fit_intercept=False, tol=1e-9, max_iter=5000
    ).fit(with_ones, sides)

    def objective(v: np.ndarray) -> float:
        return float(np.abs(v).sum() + cost * np.logaddexp(0, -sides * (with_ones @ v)).sum())

    ours, theirs = np.append(w, bias).astype(np.float64), twin.coef_[0]
    assert objective(ours) <= objective(theirs) * (1 + 1e-6)
    np.testing.assert_allclose(ours, theirs, atol=2e-3 * max(1, np.abs(theirs).max()))
    np.testing.assert_array_equal(right, X @ w + bias > 0)


def test_balanced_sides_weigh_the_same() -> None:
    X, Y = problem(n=200, seed=4)
    w, bias, sides, _, _ = split(X, Y, balanced=True, tolerance=1e-9)
    share = (sides > 0).mean()
    cost = np.where(sides > 0, 1 / share, 1 / (1 - share))
    twin = LogisticRegression(l1_ratio=1, solver="liblinear", fit_intercept=False, tol=1e-9, max_iter=5000)
    twin.fit(np.hstack([X.toarray(), np.ones((200, 1))]), sides, sample_weight=cost)
    np.testing.assert_allclose(np.append(w, bias), twin.coef_[0], atol=5e-3)


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
    leaves = np.array([_descend(model.forest_, row) for row in new.toarray()])
    np.testing.assert_array_equal(model.leaves(new), leaves)
    forest = model.forest_
    expected = np.zeros((30, 4, Y.shape[1]), np.float32)
    for i, t in np.ndindex(30, 4):
        held = slice(*forest["leaf_start"][leaves[i, t] : leaves[i, t] + 2])
        expected[i, t, forest["leaf_label"][held]] = forest["leaf_value"][held]
    found = model.shortlist(new, k=100)
    scores = sp.csr_matrix((found.scores[model.column], found.labels, found.indptr), (30, Y.shape[1]))
    np.testing.assert_allclose(scores.toarray(), expected.mean(1) * model.scale_, rtol=1e-5, atol=1e-7)
    pairs = Candidates.all_labels(30, Y.shape[1])
    by_tree = model.tree_scores(new, pairs).reshape(30, Y.shape[1], 4)
    np.testing.assert_allclose(by_tree, expected.transpose(0, 2, 1) * model.scale_, rtol=1e-6)
    logs = model.score(new, pairs)[model.column].reshape(30, -1)
    mean = expected.mean(1)
    np.testing.assert_allclose(logs[mean > 0], np.log(mean[mean > 0]), rtol=1e-4, atol=1e-5)
    assert np.all(logs[mean == 0] == np.float32(FLOOR))


@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_hold_the_means_of_their_training_points(weighted: bool) -> None:
    X, Y = problem()
    weight = np.random.default_rng(1).uniform(0.5, 2, 120).astype(np.float32) if weighted else np.ones(120)
    model = small(FastXML).fit(X, Y, sample_weight=weight)
    leaves = model.leaves(X)
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
        np.unique(column, return_counts=True)[1] for column in small(FastXML, C=50.0).fit(X, Y).leaves(X).T
    ]
    assert all(size.max() <= 6 for size in sizes)
    whole = small(FastXML, max_leaf=300).fit(X, Y)
    assert len(whole.forest_["bias"]) == 0
    np.testing.assert_array_equal(whole.leaves(X), np.tile(np.arange(4), (300, 1)))


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
        Candidates(found.indptr, found.labels, found.n_labels, {"pfastrexml": found.scores["pfastxml"]}),
        tail,
        0.7,
        scale=trees.scale_,
    )
    ours = model.shortlist(X, k=100)
    np.testing.assert_array_equal(ours.labels, expected.labels)
    np.testing.assert_allclose(ours.scores["pfastrexml"], expected.scores["pfastrexml"], rtol=1e-5)
    logs = model.score(X, ours)["pfastrexml"]
    np.testing.assert_allclose(np.exp(logs) * model.scale_, ours.scores["pfastrexml"], rtol=1e-4)
    plain = small(PfastreXML, alpha=1.0).fit(X, Y).shortlist(X, k=5)
    np.testing.assert_array_equal(plain.labels, trees.shortlist(X, k=5).labels)
    short = small(PfastreXML, alpha=0.7, gamma=5.0, reranked=1).fit(X, Y).shortlist(X, k=2)
    np.testing.assert_array_equal(short.labels, trees.shortlist(X, k=2).labels)
    assert 0 < small(PfastreXML).fit(X, Y).alpha_ <= 1


def test_means_are_chosen_by_what_they_bring() -> None:
    X, Y = problem(n=300, seed=7)
    data = TrainingSet(X, Y, np.zeros(300, np.int32))
    chosen = small(PfastreXML, alpha=0.3, gamma=5.0).fit(X, Y)
    either = [small(PfastreXML, alpha=0.3, gamma=5.0, unit_means=unit).fit(X, Y) for unit in (True, False)]
    assert chosen.alpha_ == 0.3
    cheaper, others, held_out = chosen._held_out(5, data.view(), None, 1)
    found = cheaper.shortlist(held_out.X, 100)
    weights = inv_propensity(Y)
    values = []
    for unit in (True, False):
        tail = TailClassifiers(gamma=5.0, unit_means=unit).fit(others).score(held_out.X, found)[COLUMN]
        reranked = rerank_with_tail(found, tail, 0.3, scale=cheaper.scale_)
        names = ["PSP@1", "PSP@3", "PSP@5"]
        judged = evaluate((held_out.Y > 0) * 1.0, reranked, names, inv_propensity=weights)
        values.append(np.mean(list(judged.values())))
    assert values[0] != values[1]
    best = either[int(values[1] > values[0])]
    assert chosen.tail_.unit_means == best.tail_.unit_means
    a, b = chosen.shortlist(X, k=5), best.shortlist(X, k=5)
    assert a.scores["pfastrexml"].tobytes() == b.scores["pfastrexml"].tobytes()


def test_re_ranked_lists_do_not_depend_on_the_batch_and_older_models_load() -> None:
    X, Y = problem(n=300, seed=7)
    model = small(PfastreXML, alpha=0.4, gamma=5.0, max_terms=4).fit(X, Y)
    whole = model.shortlist(X, k=5)
    for other in (model.shortlist(X, k=5, n_jobs=4), model.shortlist(np.asarray(X.todense()), k=5)):
        assert other.scores["pfastrexml"].tobytes() == whole.scores["pfastrexml"].tobytes()
    state = model.get_state()
    state["params"] = {name: value for name, value in state["params"].items() if name != "max_terms"}
    again = PfastreXML.from_state(state)  # saved before there was `max_terms`
    for i in range(30):
        first, last = whole.indptr[i], whole.indptr[i + 1]
        found = again.shortlist(X[i], k=5)
        assert found.labels.tobytes() == whole.labels[first:last].tobytes()
        assert found.scores["pfastrexml"].tobytes() == whole.scores["pfastrexml"][first:last].tobytes()


# Laws


@pytest.mark.parametrize("cls", ALL)
def test_same_bytes_for_any_number_of_threads_and_split_of_the_batch(cls: type[FastXML]) -> None:
    X, Y = problem(n=700, d=60)
    one, four = small(cls).fit(X, Y, n_jobs=1), small(cls).fit(X, Y, n_jobs=4)
    for name, values in one.forest_.items():
        assert values.tobytes() == four.forest_[name].tobytes(), name
    order = np.random.default_rng(0).permutation(700)
    whole, moved = one.shortlist(X, k=5, n_jobs=4), one.shortlist(X[order], k=5)
    for i, row in enumerate(order[:50]):
        assert np.array_equal(moved.rows([i]).labels, whole.rows([row]).labels)
        single = one.shortlist(X[row], k=5)
        assert single.labels.tobytes() == whole.rows([row]).labels.tobytes()
        assert single.scores[one.column].tobytes() == whole.rows([row]).scores[one.column].tobytes()
    other = small(cls, random_state=1).fit(X, Y)
    assert other.forest_["child"].tobytes() != one.forest_["child"].tobytes()


@pytest.mark.parametrize("cls", ALL)
def test_containers_of_x_and_rows_of_weight_0(cls: type[FastXML]) -> None:
    X, Y = problem()
    weight = (np.arange(120) % 3 > 0).astype(float)
    sparse = small(cls).fit(X, Y, sample_weight=weight)
    dense = small(cls).fit(X.toarray()[weight > 0], Y[weight > 0])
    for name, values in sparse.forest_.items():
        np.testing.assert_array_equal(values, dense.forest_[name], err_msg=name)
    a, b = sparse.shortlist(X, k=3), sparse.shortlist(X.toarray().astype(np.float64), k=3)
    np.testing.assert_array_equal(a.labels, b.labels)


@pytest.mark.parametrize("cls", ALL)
def test_saved_pickled_and_cloned(cls: type[FastXML], tmp_path: Path) -> None:
    X, Y = problem()
    model = small(cls, propensity=(0.5, 0.4)).fit(X, Y)
    before = model.shortlist(X, k=5)
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert type(again) is cls
        assert again.get_params() == model.get_params()
        after = again.shortlist(X, k=5)
        assert after.labels.tobytes() == before.labels.tobytes()
        assert after.scores[cls.column].tobytes() == before.scores[cls.column].tobytes()
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("cls", ALL)
def test_edge_cases(cls: type[FastXML]) -> None:
    X, Y = problem()
    empty_rows = sp.csr_matrix(X.shape, dtype=np.float32)
    found = small(cls).fit(empty_rows, Y).shortlist(X, k=4)  # nothing parts the points: one leaf
    assert np.all(np.diff(found.indptr) == 4)
    none = small(cls).fit(X, sp.csr_matrix(Y.shape, dtype=np.float32))
    assert len(none.shortlist(X, k=3).labels) == 0
    assert np.all(none.score(X, Candidates.all_labels(120, 15))[cls.column] == np.float32(FLOOR))
    one_label = small(cls).fit(X, Y[:, :1] + sp.csr_matrix(np.ones((120, 1), np.float32)))
    assert np.all(one_label.shortlist(X, k=9).labels == 0)
    one_row = small(cls).fit(X[:1], Y[:1])
    assert set(one_row.shortlist(X[:1], k=99).labels) == set(Y[0].indices)
    assert small(cls).fit(X, Y).shortlist(X[:0], k=3).n_rows == 0


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_trees": 0}, ValueError, "n_trees must be between 1 and 10000, got 0"),
        ({"max_leaf": 1.5}, TypeError, "max_leaf must be an integer, got 1.5"),
        ({"labels_per_leaf": 0}, ValueError, "labels_per_leaf must be at least 1, got 0"),
        ({"C": 0.0}, ValueError, "C must be a number between 1e-06 and 1e"),
        ({"C_rank": np.nan}, ValueError, "C_rank must be a number"),
        ({"rounds": 0}, ValueError, "rounds must be between 1 and 1000"),
        ({"balanced": 1}, TypeError, "balanced must be True or False, got 1"),
        ({"normaliser": "none"}, ValueError, "normaliser must be 'constant' or 'ideal', got 'none'"),
        ({"relevance": "clicks"}, ValueError, "relevance must be 'binary', 'graded' or"),
        ({"propensity": "wiki"}, ValueError, "propensity must be among"),
        ({"tolerance": 2.0}, ValueError, "tolerance must be a number between 1e-06 and 1"),
        ({"random_state": -1}, ValueError, "random_state must be None, an integer from 0 to .*, got -1"),
    ],
)
@pytest.mark.parametrize("cls", ALL)
def test_parameters_are_checked(
    cls: type[FastXML], params: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        cls(**params).fit(*problem(n=20))


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"alpha": 0}, ValueError, r"alpha must be a number in \(0, 1\] or 'auto', got 0"),
        ({"alpha": "best"}, TypeError, r"alpha must be a number in \(0, 1\] or 'auto', got 'best'"),
        ({"gamma": -1.0}, ValueError, "gamma must be a positive number"),
        ({"reranked": 0}, ValueError, "reranked must be at least 1, got 0"),
        ({"unit_means": 0}, TypeError, "unit_means must be True, False or 'auto', got 0"),
    ],
)
def test_parameters_of_the_tail_are_checked(
    params: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        PfastreXML(**params).fit(*problem(n=20))


@pytest.mark.parametrize("cls", ALL)
def test_malformed_input(cls: type[FastXML]) -> None:
    X, Y = problem(n=30)
    model = small(cls)
    with pytest.raises(ValueError, match="not fitted"):
        model.shortlist(X)
    model.fit(X, Y)
    with pytest.raises(ValueError, match="40 features"):
        model.shortlist(X[:, :5])
    with pytest.raises(ValueError, match="k must be at least 1"):
        model.shortlist(X, k=0)
    bad = X.copy()
    bad.data[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(bad, Y)
    assert model.shortlist(X, k=1).n_rows == 30  # what was learned before is still there


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


def test_as_a_stage_of_metaranker() -> None:
    X, Y = problem()
    ranker = MetaRanker(shortlister=["fastxml", "pfastrexml"], n_folds=2, n_jobs=1, effort="low").fit(X, Y)
    assert ranker.rank(X, k=3).labels.shape == (120, 3)


def test_only_ratios_of_weights_count() -> None:
    X, Y = problem()
    plain = small(FastXML).fit(X, Y)
    for factor in (1e-300, 1 / 120, 1e37, 1e300):
        weighted = small(FastXML).fit(X, Y, sample_weight=np.full(120, factor))
        for name, values in plain.forest_.items():
            np.testing.assert_array_equal(values, weighted.forest_[name], err_msg=f"{name}, {factor}")
    far_apart = np.where(np.arange(120) % 2, 1e300, 1e-300)
    assert len(small(FastXML).fit(X, Y, sample_weight=far_apart).forest_["bias"]) > 0


def test_relevances_of_any_ratio() -> None:
    X, Y = problem()
    Y.data[:3] = [1e30, 1e-30, 1.0]
    assert small(FastXML).fit(X, Y).shortlist(X, k=3).n_rows == 120


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
    assert np.all(found.scores["pfastrexml"] > 0)
    logs = model.score(X, found)["pfastrexml"]
    for i in range(120):
        row = slice(*found.indptr[i : i + 2])
        order = np.argsort(-found.scores["pfastrexml"][row], kind="stable")
        assert np.all(np.diff(logs[row][order]) <= 1e-5)


def test_steep_curves_are_refused_before_any_work() -> None:
    for curve in ((1000, 1.5), (0.5, 1e-300), (0.5, np.inf)):
        with pytest.raises(ValueError, match=r"propensity must be a pair \(a, b\) with 0 < a <= 6"):
            small(PfastXML, propensity=curve).fit(*problem(n=20))
    with pytest.raises(ValueError, match="not fitted"):
        FastXML().leaves(problem(n=20)[0])
