"""Label trees: obvious answers, optimal classifiers, the targets of XReg, and the laws of estimators."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.svm import LinearSVC

from metarank import Dataset, load
from metarank._core import WeightBlocks
from metarank.propensity import inv_propensity
from metarank.rerank import ALPHAS
from metarank.scorers.label_weights import FLOOR
from metarank.scorers.trees.hierarchy import Hierarchy
from metarank.scorers.trees.label_tree import LabelTree
from metarank.scorers.trees.tail import TailClassifiers
from metarank.shortlist import Parabel, XReg
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet

# Solved to the end, nothing dropped: what the optimality of a classifier is checked with.
EXACT = {"tolerance": 1e-6, "max_epochs": 3000, "prune": 0.0, "visitors": 0}
BOTH = [Parabel, XReg]


def problem(n: int = 80, L: int = 12, d: int = 30, seed: int = 0) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Sparse rows, graded relevances; every label has some."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.2, "csr", np.float32, random_state=rng)
    Y = sp.random(n, L, 0.2, "lil", np.float32, random_state=rng)
    Y[np.arange(L), np.arange(L)] = 1.0
    Y = sp.csr_matrix(Y)
    Y.data = np.ceil(Y.data * 4).astype(np.float32)
    return X, Y


def topics(n_topics: int = 6, rows: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Row i is of topic t = i mod 6, has features 3t .. 3t + 2, label 2t, and half the time label 2t + 1."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n_topics * rows, 3 * n_topics), np.float32)
    Y = np.zeros((n_topics * rows, 2 * n_topics), np.float32)
    for i in range(len(X)):
        t = i % n_topics
        X[i, 3 * t : 3 * t + 3] = rng.uniform(0.9, 1.1, 3)
        Y[i, 2 * t] = 1
        Y[i, 2 * t + 1] = (i // n_topics) % 2
    return X, Y


def small(cls: type[LabelTree], **params: object) -> LabelTree:
    return cls(**{"n_trees": 2, "branching": 3, "max_leaf": 3, **params})


def parts(candidates: Candidates) -> dict[str, bytes]:
    arrays = {"indptr": candidates.indptr, "labels": candidates.labels, **candidates.scores}
    return {name: np.asarray(a).tobytes() for name, a in arrays.items()}


def answers(model: LabelTree, X: object, n_jobs: int = 1) -> dict[str, bytes]:
    n = X.shape[0]
    pairs = Candidates.all_labels(n, model.n_labels_)
    return {
        **parts(model.shortlist(X, 5, n_jobs=n_jobs)),
        **{f"points {name}": v for name, v in parts(model.shortlist_points(X, 3, n_jobs=n_jobs)).items()},
        **{f"pairs {name}": v.tobytes() for name, v in model.score(rows(X), pairs, n_jobs=n_jobs).items()},
    }


def rows(X: object) -> sp.csr_matrix:
    return sp.csr_matrix(X, dtype=np.float32)


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


# --- obvious answers ------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "params"),
    [(Parabel, {}), (Parabel, {"loss": "hinge"}), (Parabel, {"loss": "logistic"}), (XReg, {})],
)
def test_topics_are_told_apart(cls, params):
    X, Y = topics()
    model = small(cls, **{"C": 10.0, **params}).fit(X, Y)
    assert model.shortlist(X, 1).labels.tolist() == [2 * (i % 6) for i in range(len(X))]
    if params.get("loss") != "hinge":  # its margin of a coin toss may be -1
        assert (model.shortlist(X, 2).labels.reshape(-1, 2) // 2).tolist() == [[i % 6] * 2 for i in range(48)]


def test_checkerboard():
    """Labels of opposite corners: no label is found by one feature alone."""
    corners = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]], np.float32)
    X, Y = np.repeat(corners, 5, axis=0), np.repeat(np.eye(4, dtype=np.float32), 5, axis=0)
    for cls in BOTH:
        model = cls(n_trees=1, branching=2, max_leaf=1, C=100.0).fit(X, Y)
        assert model.shortlist(corners, 1).labels.tolist() == [0, 1, 2, 3]


def test_grades_are_regressed_on():
    """Rows of one kind with fixed grades: the relevance expected is the grade."""
    X = np.repeat(np.eye(3, dtype=np.float32), 30, axis=0)
    grades = np.array([[4, 1, 0, 2], [0, 3, 2, 0], [1, 0, 4, 1]], np.float32)
    model = small(XReg, C=1000.0, max_leaf=2, branching=2, max_epochs=300)
    model.fit(X, np.repeat(grades, 30, axis=0))
    pairs = Candidates.all_labels(3, 4)
    predicted = 4 * np.exp(model.score(rows(np.eye(3)), pairs)["xreg"]).reshape(3, 4)
    np.testing.assert_allclose(predicted, grades, atol=0.15)
    found = model.shortlist(np.eye(3, dtype=np.float32), 4)
    np.testing.assert_allclose(
        found.to_dense(found.scores["xreg"])[grades > 0], grades[grades > 0], atol=0.15
    )


def test_the_best_points_of_every_label():
    X, Y = topics()
    for cls in BOTH:
        found = small(cls, C=10.0).fit(X, Y).shortlist_points(X, 8, factor=4.0)
        assert (found.n_rows, found.n_labels) == (12, len(X))
        for t in range(6):
            assert set(found.rows([2 * t]).labels % 6) == {t}


# --- the classifiers are optimal ------------------------------------------------


def edges(model: LabelTree) -> tuple[np.ndarray, np.ndarray]:
    """Weights (S, d) and bias (S,) of every edge."""
    tree = model.hierarchy_
    blocks = WeightBlocks(n_features=model.n_features_in_, **model.weights_)
    indptr, indices, values = blocks.decode()
    W = sp.csr_array((values, indices, indptr), shape=(tree.n_slots, model.n_features_in_))
    return W.toarray().astype(np.float64), np.asarray(model.weights_["bias"], np.float64)


def relevance_below(tree: Hierarchy, Y: np.ndarray) -> np.ndarray:
    """Column n: the greatest relevance below node n, 1 at the roots."""
    m = np.ones((len(Y), tree.n_nodes))
    for node in range(tree.n_nodes):
        if node not in tree.roots:
            m[:, node] = Y[:, tree.labels_under(node)].max(axis=1)
    return m


def edge_problems(tree: Hierarchy, Y: np.ndarray, visitors: bool = False) -> list[tuple[np.ndarray, ...]]:
    """(rows, costs, targets) of each slot: XReg, eq. 5 and 6, relevances at most 1.

    With visitors, a leaf is also trained on all other rows, at full cost."""
    m = relevance_below(tree, Y)
    out = []
    for slot, node in enumerate(tree.slot_node):
        child = tree.child[slot]
        below = m[:, child] if child >= 0 else Y[:, ~child]
        cost = m[:, node]
        if visitors and np.all(tree.child[tree.child_start[node] : tree.child_start[node + 1]] < 0):
            cost = np.where(cost > 0, cost, 1.0)
        at = np.flatnonzero(cost > 0)
        out.append((at, cost[at], below[at] / cost[at]))
    return out


def loss_values(loss: str, s: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Losses of margins s for targets z, and their derivatives."""
    if loss == "logistic":
        return z * np.logaddexp(0, -s) + (1 - z) * np.logaddexp(0, s), 1 / (1 + np.exp(-s)) - z
    y = np.where(z > 0, 1.0, -1.0)
    gap = np.maximum(0, 1 - y * s)
    return (gap, -y * (gap > 0)) if loss == "hinge" else (gap**2, -2 * y * gap)


def optimum(loss: str, X1: np.ndarray, z: np.ndarray, cost: np.ndarray) -> float:
    """The least value of the objective, by a slow solver of somebody else."""

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        values, slope = loss_values(loss, X1 @ w, z)
        return 0.5 * w @ w + cost @ values, w + X1.T @ (cost * slope)

    if loss == "hinge" and len(np.unique(z > 0)) == 2:
        svm = LinearSVC(loss="hinge", fit_intercept=False, tol=1e-9, max_iter=100_000)
        svm.fit(X1, z > 0, sample_weight=cost)
        return objective(svm.coef_[0])[0]
    if loss == "hinge":  # no solver of one class
        return np.nan
    options = {"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-9}
    return float(minimize(objective, np.zeros(X1.shape[1]), jac=True, options=options, method="L-BFGS-B").fun)


@pytest.mark.check_beyond(2)
@pytest.mark.parametrize(
    ("cls", "params", "loss"),
    [
        (Parabel, {"loss": "hinge"}, "hinge"),
        (Parabel, {"loss": "squared_hinge"}, "squared_hinge"),
        (Parabel, {"loss": "logistic", "C": 5.0}, "logistic"),
        (Parabel, {"loss": "squared_hinge", "visitors": 10_000}, "squared_hinge"),
        (XReg, {"C": 2.0}, "logistic"),
        (XReg, {"C": 50.0, "cost": "mean"}, "logistic"),
        (XReg, {"C": 2.0, "visitors": 10_000}, "logistic"),
        (XReg, {"C": 2.0, "normalize": "label"}, "logistic"),
        (XReg, {"relevance": "inverse-propensity"}, "logistic"),
        (XReg, {"relevance": "inverse-propensity", "normalize": "label"}, "squared_hinge"),
        (
            XReg,
            {"relevance": "inverse-propensity", "normalize": "label", "loss": "logistic"},
            "logistic",
        ),
        (XReg, {"relevance": "binary"}, "squared_hinge"),
    ],
)
def test_every_edge_minimises_its_objective(cls, params, loss):
    X, Y = problem()
    model = small(cls, **{**EXACT, **params}).fit(X, Y)
    C = model.C or (10 if loss == "logistic" else 1)
    unit = X.toarray().astype(np.float64)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-30)
    X1 = np.hstack([unit, np.ones((len(unit), 1))])
    graded = Y.toarray().astype(np.float64)
    if model.relevance != "graded":
        graded = (graded > 0).astype(np.float64)
    if model.relevance == "inverse-propensity":
        graded *= inv_propensity(Y)
    assert model.scale_ == pytest.approx(graded.max())
    of_all = cls is XReg and model.normalize == "global"
    shares = graded / np.maximum(graded.max(axis=None if of_all else 0), 1e-30)
    W, bias = edges(model)
    checked = 0
    for slot, (at, cost, z) in enumerate(
        edge_problems(model.hierarchy_, shares, params.get("visitors", 0) > 0)
    ):
        cost = C * cost / (len(at) if model.cost == "mean" else 1)
        w = np.append(W[slot], bias[slot])
        reached = 0.5 * w @ w + cost @ loss_values(loss, X1[at] @ w, z)[0]
        best = optimum(loss, X1[at], z, cost)
        if np.isnan(best):
            continue
        # float32 arithmetic and weights of 16 bits
        assert best - 1e-6 <= reached <= best * 1.002 + 1e-4, (slot, reached, best)
        checked += 1
    assert checked > 10


@pytest.mark.parametrize("relevance", ["graded", "inverse-propensity"])
def test_units_of_a_label_do_not_change_what_is_learned(relevance):
    """Relevances of each label in units of their own: divided by their own maxima, the trees are the same,
    and scores follow the units."""
    X, Y = problem(200, 40)
    units = np.random.default_rng(0).uniform(0.1, 100, 40).astype(np.float32)
    other = sp.csr_matrix(Y.multiply(units[None, :]).astype(np.float32))
    one, two = (small(XReg, relevance=relevance, normalize="label").fit(X, y) for y in (Y, other))
    pairs = Candidates.all_labels(200, 40)
    a, b = (m.scale_ * np.exp(m.score(rows(X), pairs)["xreg"].astype(np.float64)) for m in (one, two))
    factor = 1.0 if relevance == "inverse-propensity" else units[pairs.labels]
    np.testing.assert_allclose(b, a * factor, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("relevance", ["graded", "binary"])
def test_one_maximum_is_the_same_as_many_equal_ones(relevance):
    X, Y = problem(200, 40)
    Y = Y.tolil()
    Y[0] = 5
    Y = Y.tocsr().astype(np.float32)
    one, two = (small(XReg, relevance=relevance, normalize=name).fit(X, Y) for name in ("global", "label"))
    assert answers(one, X) == answers(two, X)


def test_one_maximum_of_all_keeps_the_labels_apart():
    """Two labels of the same rows, one of a tenth of the grades: estimates are those of the grades."""
    X = np.repeat(np.eye(2, dtype=np.float32), 50, axis=0)
    Y = np.repeat(np.array([[4.0, 0.4, 0], [0, 0.2, 2]], np.float32), 50, axis=0)
    for name in ("global", "label"):
        model = small(XReg, C=1000.0, max_epochs=300, normalize=name).fit(X, Y)
        assert model.label_scale_.tolist() == pytest.approx([4, 4, 4] if name == "global" else [4, 0.4, 2])
        found = model.shortlist(np.eye(2, dtype=np.float32), 3)
        np.testing.assert_allclose(
            found.to_dense(found.scores["xreg"])[Y[[0, 50]] > 0], [4, 0.4, 0.2, 2], atol=0.1
        )


@pytest.mark.parametrize("relevance", ["graded", "inverse-propensity"])
def test_the_better_normalization_is_found_on_held_out_rows(relevance, tmp_path):
    X, Y = problem(400, 40)
    model = small(XReg, relevance=relevance, normalize="auto").fit(X, Y)
    taken, constant = model.best_params_, relevance != "graded"
    told = ["normalize=global", "normalize=label", "normalize=label, loss=logistic"]
    assert [line.split(":")[1].strip() for line in model.choices_[1:]] == [
        f"XReg with {setting}" for setting in told[: 2 + constant]
    ]
    assert answers(model, X) == answers(small(XReg, **{"relevance": relevance, **taken}).fit(X, Y), X)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert (loaded.normalize, loaded.best_params_) == ("auto", taken)
    assert answers(loaded, X) == answers(model, X)
    more = small(XReg, relevance=relevance, normalize="auto", tune=5).settings_tried()
    first = ["global", "label", *["label"] * constant]
    assert [setting["normalize"] for setting in more] == [*first, *["global"] * (5 - len(first))]
    if constant:  # a loss that is given is not tried against another
        given = small(XReg, relevance=relevance, normalize="auto", loss="logistic").settings_tried()
        assert given == [{"normalize": "global"}, {"normalize": "label"}]


def test_models_saved_before_there_was_a_choice_divided_each_label_by_its_own_maximum():
    saved = load(Path(__file__).parents[1] / "compatibility" / "kinds" / "alone-xreg")
    assert saved.normalize == "label"


def test_inverse_propensities_weigh_the_labels_of_parabel():
    """Where relevance is binary but for a factor of the label, XReg is Parabel times that factor."""
    X, Y = problem(200, 40)
    Y.data[:] = 1
    one = small(Parabel).fit(X, Y)
    two = small(XReg, relevance="inverse-propensity", normalize="label").fit(X, Y)
    weight = inv_propensity(Y)
    pairs = Candidates.all_labels(200, 40)
    by_tree = [one.score(rows(X), pairs)[f"parabel{t}"] for t in (1, 2)]
    expected = np.mean(np.exp(by_tree), axis=0) * weight[pairs.labels]
    scores = two.scale_ * np.exp(two.score(rows(X), pairs)["xreg"])
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-20)
    found = two.shortlist(X, 5, beam=1000)
    best = np.sort(expected.reshape(200, 40), axis=1)[:, -5:]
    listed = np.sort(found.scores["xreg"].reshape(200, 5), axis=1)
    np.testing.assert_allclose(listed, best, rtol=1e-4, atol=1e-20)


def test_small_weights_are_dropped():
    X, Y = problem()
    full, pruned = small(Parabel, prune=0.0).fit(X, Y), small(Parabel, prune=0.3).fit(X, Y)
    (W, bias), (P, pruned_bias) = edges(full), edges(pruned)
    inner = np.isin(full.hierarchy_.slot_node, np.flatnonzero(full.hierarchy_.depth == 0))
    np.testing.assert_allclose(P[inner], np.where(np.abs(W[inner]) > 0.3, W[inner], 0), atol=2e-3)
    np.testing.assert_array_equal(pruned_bias[inner], bias[inner])


# --- bytes ----------------------------------------------------------------------


@pytest.mark.parametrize("cls", BOTH)
def test_many_callers_at_once(cls):
    """Single rows asked for by several threads, which share the scratch of past calls."""
    X, Y = problem(60, 40)
    model = small(cls).fit(X, Y)

    def ask(i: int) -> dict[str, bytes]:
        return parts(model.shortlist(X[i % 60], 3 + i % 5, beam=1 + i % 4))

    alone = [ask(i) for i in range(240)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(240))) == alone


@pytest.mark.parametrize("cls", BOTH)
def test_threads_and_saving_change_no_byte(cls, tmp_path):
    X, Y = problem(200, 40)
    model = small(cls, visitors=2).fit(X, Y, n_jobs=1)
    model.save(tmp_path / "one")
    small(cls, visitors=2).fit(X, Y, n_jobs=4).save(tmp_path / "four")
    assert contents(tmp_path / "one") == contents(tmp_path / "four")
    expected = answers(model, X)
    assert answers(model, X, 4) == expected
    loaded = load(tmp_path / "one")
    assert answers(loaded, X, 2) == expected
    assert loaded.get_params() == model.get_params()
    loaded.save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "one")


@pytest.mark.parametrize("cls", BOTH)
def test_rows_are_answered_one_by_one(cls):
    X, Y = problem(60)
    model = small(cls).fit(X, Y)
    order = np.random.default_rng(0).permutation(60)
    whole = model.shortlist(X, 4)
    assert parts(model.shortlist(X[order], 4)) == parts(whole.rows(order))
    assert parts(model.shortlist(X[7], 4)) == parts(whole.rows([7]))
    assert model.shortlist(X[:0], 4).n_rows == 0


@pytest.mark.parametrize("cls", BOTH)
def test_any_container_of_the_same_numbers(cls):
    X, Y = problem()
    expected = answers(small(cls).fit(X, Y), X)
    shuffled = X.copy()
    for i in range(X.shape[0]):  # columns in descending order
        part = slice(X.indptr[i], X.indptr[i + 1])
        shuffled.indices[part], shuffled.data[part] = X.indices[part][::-1], X.data[part][::-1]
    shuffled.has_sorted_indices = shuffled.has_canonical_format = False
    halves = sp.csr_matrix(  # every value as the sum of two entries
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), X.shape
    )
    wide = sp.csr_matrix(X.shape, dtype=np.float32)
    wide.data, wide.indices, wide.indptr = X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
    for other in (
        X.toarray(),
        X.toarray().astype(np.float64),
        shuffled,
        halves,
        wide,
        sp.csr_array(X),
        X.tocoo(),
    ):
        assert answers(small(cls).fit(other, Y), other) == expected
    assert answers(small(cls).fit(X, Y.toarray()), X) == expected


@pytest.mark.parametrize("cls", BOTH)
def test_a_view_and_a_dataset_are_fitted_alike(cls):
    X, Y = problem()
    expected = answers(small(cls).fit(X, Y), X)
    view = TrainingSet(X, Y, np.zeros(X.shape[0], np.int32)).view()
    assert answers(small(cls).fit(view), X) == expected
    data = Dataset(X=X, Y=Y)
    assert answers(small(cls).fit(data), X) == expected
    assert parts(small(cls).fit(data).shortlist(data, 5)) == parts(small(cls).fit(X, Y).shortlist(X, 5))
    copy = clone(small(cls, beam=3).fit(X, Y))
    assert copy.beam == 3
    assert not hasattr(copy, "n_labels_")


# --- the three questions agree --------------------------------------------------


@pytest.mark.parametrize("cls", BOTH)
def test_shortlists_pairs_and_points_agree(cls):
    X, Y = problem()
    model = small(cls, beam=100).fit(X, Y)
    pairs = Candidates.all_labels(X.shape[0], 12)
    columns = model.score(X, pairs)
    assert list(columns) == [model.column, f"{model.column}1", f"{model.column}2"]
    mean = np.mean([np.exp(columns[f"{model.column}{t}"].astype(np.float64)) for t in (1, 2)], axis=0)
    np.testing.assert_allclose(np.exp(columns[model.column].astype(np.float64)), mean, rtol=1e-4)
    found = model.shortlist(X, 12)
    relevance = found.to_dense(found.scores[model.column])
    np.testing.assert_allclose(relevance.ravel(), model.scale_ * mean, rtol=1e-4)
    points = model.shortlist_points(X, X.shape[0], factor=1000.0)
    np.testing.assert_allclose(points.to_dense(points.scores[model.column]).T, relevance, rtol=1e-4)


def test_a_wider_beam_finds_no_less():
    X, Y = problem(200, 60, seed=3)
    model = Parabel(n_trees=1, branching=2, max_leaf=2, beam=1).fit(X, Y)
    narrow, own, wide = (model.shortlist(X, 5, beam=b) for b in (1, None, 100))
    assert parts(narrow) == parts(own)
    best = [c.to_dense(c.scores["parabel"]).max(axis=1) for c in (narrow, wide)]
    assert np.all(best[1] >= best[0])


# --- calibration and tail classifiers -------------------------------------------


def calibration_error(model: LabelTree, X: object, Y: sp.csr_matrix, k: int = 3) -> float:
    """Ten bins of the scores of each row's top k: mean distance of score and share of relevant pairs."""
    found = model.shortlist(X, k)
    p, y = found.scores[model.column], found.values_of(Y) > 0
    bins = [np.minimum((p * 10).astype(int), 9) == b for b in range(10)]
    return sum(abs(p[b].sum() - y[b].sum()) for b in bins) / len(p)


def test_calibration_where_each_training_row_has_a_word_of_its_own():
    """New rows have no such word: in held-out rows it must not take a part of the length."""
    rng, n, n_new, words = np.random.default_rng(0), 400, 2000, 40
    common, Y = np.zeros((n + n_new, words), np.float32), np.zeros((n + n_new, words), np.float32)
    for row in range(n + n_new):
        named = rng.choice(words, rng.integers(1, 4), replace=False)
        common[row, named] = Y[row, named[0]] = 1
    X = np.hstack([common, np.eye(n + n_new, n, dtype=np.float32)])
    found = Parabel(calibrate=True).fit(X[:n], Y[:n]).shortlist(X[n:], 10)
    rate = (found.values_of(sp.csr_matrix(Y[n:])) > 0).mean()
    assert abs(found.scores["parabel"].mean() - rate) < 0.15 * rate


def test_calibrated_probabilities(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = topics(rows=150)
    X = X + rng.uniform(0, 1, X.shape).astype(np.float32)
    Y = sp.csr_matrix(Y * (rng.random(Y.shape) < 0.7))
    train, test = slice(0, 600), slice(600, 900)
    raw, calibrated = (small(Parabel, calibrate=c).fit(X[train], Y[train]) for c in (False, True))
    before, after = (calibration_error(m, X[test], Y[test]) for m in (raw, calibrated))
    assert after < min(0.06, before / 2)
    slope, offset = calibrated.curve_
    assert slope > 0
    one, other = raw.shortlist(X[test], 12), calibrated.shortlist(X[test], 12)
    np.testing.assert_array_equal(one.labels, other.labels)
    p, q = one.scores["parabel"].astype(np.float64), other.scores["parabel"]
    expected = 1 / (1 + np.exp(-(slope * np.log(p / np.maximum(1 - p, 1e-6)) + offset)))
    usual = (p > 1e-30) & (p < 0.999)
    np.testing.assert_allclose(q[usual], expected[usual], rtol=1e-4)
    scores = calibrated.score(rows(X[test]), other)
    np.testing.assert_allclose(np.exp(scores["parabel"]), q, rtol=1e-4, atol=1e-30)
    np.testing.assert_array_equal(scores["parabel1"], raw.score(rows(X[test]), other)["parabel1"])
    calibrated.save(tmp_path / "M")
    assert answers(load(tmp_path / "M"), X[test]) == answers(calibrated, X[test], 3)
    assert Parabel(calibrate=True).fit(X[:4], Y[:4]).curve_ is None
    assert Parabel(calibrate=True).fit(X[train], Y[train] * 0).curve_ is None
    with pytest.raises(TypeError, match="calibrate must be True or False, got 1"):
        Parabel(calibrate=1).fit(X, Y)


def test_tail_classifiers_re_rank(tmp_path):
    X, Y = problem(150, 30)
    plain, both = (small(XReg, beam=100, tail=t).fit(X, Y) for t in (None, 0.6))
    tail = TailClassifiers().fit(TrainingSet(X, Y, np.zeros(150, np.int32)).view())
    pairs = Candidates.all_labels(150, 30)
    log_p, log_tail = plain.score(X, pairs)["xreg"], tail.score(X, pairs)["tail_log_probability"]
    expected = 0.6 * log_p.astype(np.float64) + 0.4 * log_tail
    np.testing.assert_allclose(both.score(X, pairs)["xreg"], expected, rtol=1e-5)
    found = both.shortlist(X, 4)
    whole = Candidates(pairs.indptr, pairs.labels, 30, {"xreg": both.scale_ * np.exp(expected)})
    np.testing.assert_array_equal(found.labels, whole.top(4).labels)
    np.testing.assert_allclose(found.scores["xreg"], whole.top(4).scores["xreg"], rtol=1e-4)
    assert np.any(found.labels != plain.shortlist(X, 4).labels)
    points = both.shortlist_points(X, 4, factor=1000.0)
    np.testing.assert_array_equal(points.labels, whole.transpose().top(4).labels)
    both.save(tmp_path / "M")
    assert answers(load(tmp_path / "M"), X) == answers(both, X, 4)
    assert answers(small(XReg, tail=1.0).fit(X, Y), X) == answers(small(XReg).fit(X, Y), X)


@pytest.mark.parametrize("relevance", ["graded", "binary", "inverse-propensity"])
def test_the_weight_of_tail_classifiers_is_chosen(relevance):
    X, Y = problem(150, 30)
    model = small(XReg, tail="auto", relevance=relevance).fit(X, Y)
    assert {model.alpha_, model.alpha_points_} <= set(ALPHAS)
    assert (model.tail_ is None) == (min(model.alpha_, model.alpha_points_) == 1)
    of_rows, of_labels = (
        small(XReg, tail=alpha, relevance=relevance).fit(X, Y)
        for alpha in (model.alpha_, model.alpha_points_)
    )
    pairs = Candidates.all_labels(150, 30)
    for found, expected in (
        (model.shortlist(X, 7).to_csr(), of_rows.shortlist(X, 7).to_csr()),
        (model.shortlist_points(X, 7).to_csr(), of_labels.shortlist_points(X, 7).to_csr()),
        (model.score(X, pairs)["xreg"], of_rows.score(X, pairs)["xreg"]),
    ):
        assert (found != expected).sum() == 0
    assert small(XReg, tail="auto").fit(X[:9], Y[:9]).alpha_ == 1
    assert small(XReg, tail="auto").fit(X, Y * 0).alpha_ == 1


def test_points_of_a_label_have_a_weight_of_their_own(tmp_path):
    X, Y = problem(150, 30)
    model = small(XReg, tail="auto").fit(X, Y)
    for alpha, alpha_points in ((1.0, 0.4), (0.4, 1.0), (0.4, 0.4)):
        fixed = {a: small(XReg, tail=a).fit(X, Y) for a in {alpha, alpha_points}}
        tail = TailClassifiers().fit(TrainingSet(X, Y, np.zeros(150, np.int32)).view())
        model._take_rest({"alpha": alpha, "tail": tail, "alpha_points": alpha_points})
        model.save(tmp_path / "M")
        for one in (model, load(tmp_path / "M")):
            assert (one.alpha_, one.alpha_points_) == (alpha, alpha_points)
            assert (one.shortlist(X, 5).to_csr() != fixed[alpha].shortlist(X, 5).to_csr()).nnz == 0
            points, expected = (m.shortlist_points(X, 5).to_csr() for m in (one, fixed[alpha_points]))
            assert (points != expected).nnz == 0


# --- edges of the data ----------------------------------------------------------


@pytest.mark.parametrize("cls", BOTH)
def test_one_label(cls):
    X, _ = problem(20)
    y = np.zeros((20, 1), np.float32)
    y[::2] = 1
    model = small(cls).fit(X, y)
    assert model.shortlist(X, 5).labels.tolist() == [0] * 20
    assert np.all(np.isfinite(model.score(X, Candidates.all_labels(20, 1))[model.column]))
    assert model.shortlist_points(X, 3).n_rows == 1


@pytest.mark.parametrize("cls", BOTH)
def test_no_label_is_seen(cls, tmp_path):
    X, _ = problem(20)
    model = small(cls).fit(X, sp.csr_matrix((20, 7), dtype=np.float32))
    assert model.shortlist(X, 5).n_pairs == 0
    assert model.shortlist_points(X, 5).n_pairs == 0
    assert np.all(model.score(X, Candidates.all_labels(20, 7))[model.column] == FLOOR)
    model.save(tmp_path / "M")
    assert load(tmp_path / "M").shortlist(X, 5).n_pairs == 0


@pytest.mark.parametrize("cls", BOTH)
def test_labels_without_points_are_never_proposed(cls):
    X, Y = problem()
    wide = sp.csr_matrix((Y.data, Y.indices * 2, Y.indptr), (X.shape[0], 25))
    model = small(cls, beam=100).fit(X, wide)
    found = model.shortlist(X, 100)
    assert set(found.labels.tolist()) == set(range(0, 24, 2))
    scores = model.score(X, Candidates.all_labels(X.shape[0], 25))[model.column].reshape(-1, 25)
    assert np.all(scores[:, [*range(1, 25, 2), 24]] == FLOOR)
    assert scores.min() == FLOOR
    assert np.all(np.diff(model.shortlist_points(X, 3).indptr)[1::2] == 0)


@pytest.mark.parametrize("cls", BOTH)
def test_rows_without_features_or_labels(cls):
    X, Y = problem()
    some, others = (sp.diags((np.arange(X.shape[0]) % m > 0).astype(np.float32)) for m in (4, 5))
    X, Y = sp.csr_matrix(some @ X), sp.csr_matrix(others @ Y)
    model = small(cls).fit(X, Y)
    found = model.shortlist(X, 5)
    assert np.all(np.isfinite(found.scores[model.column]))
    assert np.all(np.diff(found.indptr) == 5)
    nothing = small(cls).fit(sp.csr_matrix(X.shape, dtype=np.float32), Y)
    lists = nothing.shortlist(X * 0, 3).labels.reshape(-1, 3)
    assert np.all(lists == lists[0])


@pytest.mark.parametrize("cls", BOTH)
def test_one_row(cls):
    model = small(cls).fit(np.ones((1, 2), np.float32), np.ones((1, 3), np.float32))
    assert model.shortlist(np.ones((1, 2), np.float32), 9).labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize("cls", BOTH)
def test_more_labels_asked_for_than_there_are(cls):
    X, Y = problem()
    assert np.all(np.diff(small(cls, beam=100).fit(X, Y).shortlist(X, 10_000).indptr) == 12)


def test_binary_parabel_reads_no_grades():
    X, Y = problem()
    assert answers(small(Parabel).fit(X, Y), X) == answers(small(Parabel).fit(X, Y > 0), X)


@pytest.mark.parametrize("factor", [1e-3, 7.0])
def test_the_unit_of_relevance_does_not_matter(factor):
    X, Y = problem()
    one, other = small(XReg).fit(X, Y).shortlist(X, 5), small(XReg).fit(X, Y * factor).shortlist(X, 5)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.scores["xreg"] * factor, other.scores["xreg"], rtol=1e-4)


# --- parameters -----------------------------------------------------------------


def test_a_row_of_weight_two_counts_twice():
    X, Y = problem()
    tree = Hierarchy.from_nested([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    weight = np.ones(80)
    weight[:40] = 2
    pairs = Candidates.all_labels(80, 12)
    for cls in BOTH:
        weighted = cls(**EXACT, hierarchy=tree).fit(X, Y, sample_weight=weight)
        twice = cls(**EXACT, hierarchy=tree).fit(sp.vstack([X, X[:40]]), sp.vstack([Y, Y[:40]]))
        plain = cls(**EXACT, hierarchy=tree).fit(X, Y)
        a, b, c = (np.exp(m.score(X, pairs)[cls.column]) for m in (weighted, twice, plain))
        np.testing.assert_allclose(a, b, atol=2e-3)
        assert np.abs(a - c).max() > 2e-2


def test_a_row_of_weight_zero_is_left_out():
    X, Y = problem()
    half = np.arange(80.0) % 2
    for cls in BOTH:
        some = small(cls).fit(X, Y, sample_weight=half)
        assert answers(some, X) == answers(small(cls).fit(X[1::2], Y[1::2]), X)


def test_a_hierarchy_of_the_user():
    X, Y = topics()
    parent = {f"t{t}/{i}": f"t{t}" for t in range(6) for i in range(3)}
    names = [f"t{t}/{i}" for t in range(6) for i in range(2)] + [f"t{t}/2" for t in range(6)]
    tree = Hierarchy.from_parents(parent, label_names=names)
    Y = np.hstack([Y, np.zeros((len(Y), 6), np.float32)])  # labels t/2 are never seen
    for cls in BOTH:
        model = cls(hierarchy=tree, C=10.0).fit(X, Y)
        assert model.hierarchy_.nested() == [[2 * t, 2 * t + 1] for t in range(6)]
        assert model.hierarchy_.n_trees == 1
        assert list(model.score(rows(X), Candidates.all_labels(len(X), 18))) == [cls.column]
        assert (model.shortlist(X, 1).labels // 2).tolist() == [i % 6 for i in range(len(X))]
        assert clone(model).hierarchy.nested() == tree.nested()
    with pytest.raises(ValueError, match="hierarchy must hold the 12 labels of Y, got 18"):
        Parabel(hierarchy=tree).fit(*topics())
    with pytest.raises(TypeError, match="hierarchy must be a Hierarchy or None"):
        Parabel(hierarchy=[[0, 1]]).fit(X, Y)


def test_label_vectors_shape_the_tree():
    X, Y = problem()
    vectors = np.repeat(np.eye(4, dtype=np.float32), 3, axis=0)[::-1]
    for given in (vectors, sp.csr_matrix(vectors)):
        model = Parabel(n_trees=1, branching=2, max_leaf=3, label_vectors=given).fit(X, Y)
        tree = model.hierarchy_
        leaves = {tuple(tree.labels_under(n)) for n in range(tree.n_nodes) if len(tree.labels_under(n)) == 3}
        assert leaves == {(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)}
    with pytest.raises(ValueError, match="label_vectors"):
        Parabel(label_vectors=vectors[:5]).fit(X, Y)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_trees": 0}, ValueError, "n_trees must be between 1 and 10000, got 0"),
        ({"n_trees": 2.0}, TypeError, "n_trees must be an integer, got 2.0"),
        ({"n_trees": True}, TypeError, "n_trees must be an integer, got True"),
        ({"branching": 1}, ValueError, "branching must be between 2 and 256, got 1"),
        ({"max_leaf": 257}, ValueError, "max_leaf must be between 1 and 256, got 257"),
        ({"balanced": 0}, TypeError, "balanced must be True or False, got 0"),
        ({"beam": 0}, ValueError, "beam must be at least 1, got 0"),
        ({"C": 0}, ValueError, "C must be a positive number, at most 1e6, got 0"),
        ({"C": "auto"}, TypeError, "C must be a positive number, at most 1e6, got 'auto'"),
        ({"C": float("nan")}, ValueError, "C must be a positive number, at most 1e6, got nan"),
        ({"tolerance": -1}, ValueError, "tolerance must be a positive number, at most 1e6, got -1"),
        ({"max_epochs": 0}, ValueError, "max_epochs must be at least 1, got 0"),
        ({"prune": -0.1}, ValueError, "prune must be a non-negative number, at most 1e6, got -0.1"),
        ({"visitors": -1}, ValueError, "visitors must be at least 0, got -1"),
        ({"random_state": -1}, ValueError, "random_state must be None, an integer from 0 to .*, got -1"),
        ({"random_state": 1.5}, TypeError, "random_state must be None, an integer from 0 to .*, got 1.5"),
    ],
)
@pytest.mark.parametrize("cls", BOTH)
def test_bad_parameters(cls, params, error, message):
    with pytest.raises(error, match=message):
        cls(**params).fit("neither read", "nor checked")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Parabel(loss="absolute"), "loss must be one of .*, got 'absolute'"),
        (Parabel(link_power=0), "link_power must be between 1 and 5, got 0"),
        (XReg(relevance="high"), "relevance must be .*, got 'high'"),
        (XReg(normalize="row"), "normalize must be one of .*, got 'row'"),
        (
            XReg(relevance="inverse-propensity", loss="squared_hinge"),
            "loss must be 'logistic' or 'auto' for .* with normalize='global', got 'squared_hinge'",
        ),
        (XReg(cost="median"), "cost must be 'sum' or 'mean', got 'median'"),
        (XReg(propensity="books"), "propensity must be among .*, got 'books'"),
        (
            XReg(propensity=(0.5, -1)),
            r"propensity must be a pair \(a, b\) with 0 < a <= 6 and 0.001 <= b <= 10000",
        ),
        (XReg(tail=0), "tail must be a number in .0, 1., 'auto' or None, got 0"),
        (XReg(tail="best"), "tail must be .*, got 'best'"),
        (XReg(propensity=3), "propensity must be among .*, got 3"),
    ],
)
def test_bad_choices(model, message):
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(*problem())


def test_bad_input():
    X, Y = problem()
    model = small(Parabel).fit(X, Y)
    with pytest.raises(ValueError, match="not fitted yet"):
        Parabel().shortlist(X)
    with pytest.raises(ValueError, match="not fitted yet"):
        Parabel().score(X, Candidates.all_labels(80, 12))
    with pytest.raises(ValueError, match="not fitted yet"):
        Parabel().save("nowhere")
    with pytest.raises(ValueError, match="X has 80 rows"):
        Parabel().fit(X, Y[:10])
    with pytest.raises(ValueError, match="requires y"):
        Parabel().fit(X)
    with pytest.raises(ValueError, match="Y must be None where X is a Dataset"):
        Parabel().fit(Dataset(X=X, Y=Y), Y)
    with pytest.raises(ValueError, match="features"):
        model.shortlist(X[:, :5])
    with pytest.raises(ValueError, match="NaN"):
        model.shortlist(np.full((1, 30), np.nan, np.float32))
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        model.shortlist(X, 0)
    with pytest.raises(TypeError, match="k must be an integer, got '5'"):
        model.shortlist_points(X, "5")
    with pytest.raises(ValueError, match="beam must be at least 1, got 0"):
        model.shortlist(X, beam=0)
    with pytest.raises(ValueError, match="factor must be a positive number, at most 1e6, got 0"):
        model.shortlist_points(X, factor=0)
    with pytest.raises(ValueError, match="candidates"):
        model.score(X, Candidates.all_labels(79, 12))
    for weight in (np.ones(3), -np.ones(80), np.zeros(80), np.full(80, np.nan)):
        with pytest.raises(ValueError, match="sample_weight"):
            Parabel().fit(X, Y, sample_weight=weight)


# --- the life of an estimator ---------------------------------------------------


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
@pytest.mark.parametrize("cls", BOTH)
def test_copies_answer_alike(cls, copied, tmp_path):
    X, Y = problem()
    model = small(cls).fit(X, Y)
    assert answers(copied(model), X) == answers(model, X)
    model.save(tmp_path / "m")
    assert answers(copied(load(tmp_path / "m")), X) == answers(model, X)
    assert repr(copied(small(cls))) == repr(small(cls))


def test_a_failure_leaves_what_was_learned(tmp_path):
    X, Y = problem()
    model = small(Parabel).fit(X, Y)
    before = answers(model, X)
    model.set_params(hierarchy=Hierarchy.from_nested([0, 1]))
    with pytest.raises(ValueError, match="hierarchy must hold"):
        model.fit(X[:, :10], Y)
    assert answers(model, X) == before
    model.set_params(hierarchy=None)
    model.save(tmp_path / "m")
    assert answers(load(tmp_path / "m"), X) == before
    fresh = Parabel(hierarchy=Hierarchy.from_nested([0, 1]))
    with pytest.raises(ValueError, match="hierarchy must hold"):
        fresh.fit(X, Y)
    with pytest.raises(ValueError, match="not fitted yet"):
        fresh.shortlist(X)


def test_parameters_set_after_training_count_at_the_next(tmp_path):
    X, Y = problem()
    model = small(Parabel).fit(X, Y)
    before = answers(model, X)
    model.set_params(loss="logistic", link_power=1, path_weight=0.0)
    model.save(tmp_path / "m")
    assert answers(model, X) == answers(load(tmp_path / "m"), X) == before
    model.set_params(beam=0)
    with pytest.raises(ValueError, match="beam must be at least 1, got 0"):
        model.save(tmp_path / "n")
    assert not (tmp_path / "n").exists()


def test_a_given_hierarchy_is_saved(tmp_path):
    X, Y = problem()
    tree = Hierarchy.from_nested([[0, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10, 11]])
    model = Parabel(hierarchy=tree).fit(X, Y)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.hierarchy.nested() == tree.nested()
    assert answers(clone(loaded).fit(X, Y), X) == answers(model, X)


def test_lists_of_labels_take_their_number_from_the_hierarchy():
    X, _ = problem()
    tree = Hierarchy.from_nested([[0, 1], [2, 3]])
    assert Parabel(hierarchy=tree).fit(X, [[0], [1]] * 40).n_labels_ == 4
