"""Label trees: obvious answers, optimal classifiers, the targets of XReg, and the laws of estimators."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
import weight_blocks
from makers import tree_of
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.svm import LinearSVC

from metarank import load
from metarank._util.threads import single_threaded_blas
from metarank.metrics.propensity import inv_propensity
from metarank.scorers.trees.hierarchy import Hierarchy
from metarank.scorers.trees.label_tree import SOLVER, LabelTree
from metarank.scorers.trees.tail import TailClassifiers
from metarank.scorers.trees.tail_reranking import ALPHAS
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


def with_solver(cls: type[LabelTree], **params: object) -> LabelTree:
    """A tree of these parameters, of which those of the solver are constants of its class."""
    own = {name: params.pop(name) for name in ("visitors", "tolerance", "max_epochs") if name in params}
    if own:
        cls = type(cls.__name__, (cls,), {"solver": {loss: known | own for loss, known in SOLVER.items()}})
    return cls(**params)


def small(cls: type[LabelTree], **params: object) -> LabelTree:
    return with_solver(cls, **{"n_trees": 2, "branching": 3, "max_leaf": 3, **params})


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
    W = weight_blocks.decode(model.weights_, model.n_features_in_)
    return W.toarray().astype(np.float64), np.asarray(model.weights_["bias"], np.float64)


def relevance_below(tree: Hierarchy, Y: np.ndarray) -> np.ndarray:
    """Column n: the greatest relevance below node n, 1 at the roots."""
    m = np.ones((len(Y), tree.n_nodes))
    for node in range(tree.n_nodes):
        if node not in tree.roots:
            m[:, node] = Y[:, labels_under(tree, node)].max(axis=1)
    return m


def labels_under(tree: Hierarchy, node: int) -> list[int]:
    children = tree.child[tree.child_start[node] : tree.child_start[node + 1]].tolist()
    return sorted(label for c in children for label in (labels_under(tree, c) if c >= 0 else [~c]))


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

    if loss != "logistic" and len(np.unique(z > 0)) == 2:
        svm = LinearSVC(loss=loss, dual=True, fit_intercept=False, tol=1e-9, max_iter=100_000)
        svm.fit(X1, z > 0, sample_weight=cost)
        return objective(svm.coef_[0])[0]
    if loss == "hinge":  # no solver of one class
        return np.nan
    options = {"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-9}
    with single_threaded_blas():
        found = minimize(objective, np.zeros(X1.shape[1]), jac=True, options=options, method="L-BFGS-B")
    return float(found.fun)


@pytest.mark.check_beyond(2)
@pytest.mark.parametrize(
    ("cls", "params", "loss"),
    [
        (Parabel, {"loss": "hinge"}, "hinge"),
        (Parabel, {"loss": "logistic", "C": 5.0}, "logistic"),
        (Parabel, {"loss": "squared_hinge", "visitors": 10_000}, "squared_hinge"),
        (XReg, {"C": 50.0, "cost": "mean"}, "logistic"),
        (XReg, {"C": 2.0, "visitors": 10_000}, "logistic"),
        (XReg, {"C": 2.0, "normalize": "label"}, "logistic"),
        (XReg, {"relevance": "inverse-propensity"}, "logistic"),
        (XReg, {"relevance": "inverse-propensity", "normalize": "label"}, "squared_hinge"),
    ],
)
def test_every_edge_minimises_its_objective(cls, params, loss):
    X, Y = problem(50, d=15)
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
def test_the_better_normalization_is_found_on_held_out_rows(relevance, tmp_path):
    X, Y = problem(400, 40)
    model = small(XReg, relevance=relevance, normalize="auto").fit(X, Y)
    constant = relevance != "graded"
    settings = [{"normalize": "global"}, {"normalize": "label"}]
    settings += [{"normalize": "label", "loss": "logistic"}] * constant
    others = [answers(small(XReg, relevance=relevance, **setting).fit(X, Y), X) for setting in settings]
    assert answers(model, X) in others
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.normalize == "auto"
    assert answers(loaded, X) == answers(model, X)


def test_inverse_propensities_weigh_the_labels_of_parabel():
    """Where relevance is binary but for a factor of the label, XReg is Parabel times that factor."""
    X, Y = problem(200, 40)
    Y.data[:] = 1
    one = small(Parabel).fit(X, Y)
    two = small(XReg, relevance="inverse-propensity", normalize="label").fit(X, Y)
    weight = inv_propensity(Y)
    pairs = Candidates.all_labels(200, 40)
    by_tree = [one.score(rows(X), pairs)[f"{Parabel.column}, tree {t}"] for t in (1, 2)]
    expected = np.mean(np.exp(by_tree), axis=0) * weight[pairs.labels]
    scores = two.scale_ * np.exp(two.score(rows(X), pairs)[XReg.column])
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-20)
    found = two.shortlist(X, 5, beam=1000)
    best = np.sort(expected.reshape(200, 40), axis=1)[:, -5:]
    listed = np.sort(found.final_score.reshape(200, 5), axis=1)
    np.testing.assert_allclose(listed, best, rtol=1e-4, atol=1e-20)


def test_small_weights_are_dropped():
    X, Y = problem()
    full, pruned = small(Parabel, prune=0.0).fit(X, Y), small(Parabel, prune=0.3).fit(X, Y)
    inner = np.isin(full.hierarchy_.slot_node, full.hierarchy_.roots)
    (W, bias), (P, pruned_bias) = ([a[inner] for a in edges(model)] for model in (full, pruned))
    kept = np.where((W > 0.3) | (W < -0.15), W, 0)
    kept *= ((W**2).sum(1) / (kept**2).sum(1))[:, None] ** 0.25  # others make up for what is dropped
    clear = np.minimum(np.abs(W - 0.3), np.abs(W + 0.15)) > 1e-2  # of the threshold, in 8 bits
    np.testing.assert_allclose(P[clear], kept[clear], atol=2e-2)
    np.testing.assert_array_equal(pruned_bias, bias)


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


# --- the three questions agree --------------------------------------------------


@pytest.mark.parametrize("cls", BOTH)
def test_shortlists_pairs_and_points_agree(cls):
    X, Y = problem()
    model = small(cls, beam=100).fit(X, Y)
    assert answers(small(cls, beam=100).fit(X, Y, n_jobs=4), X, 4) == answers(model, X)
    pairs = Candidates.all_labels(X.shape[0], 12)
    columns = model.score(X, pairs)
    assert list(columns) == [model.column, f"{model.column}, tree 1", f"{model.column}, tree 2"]
    mean = np.mean([np.exp(columns[f"{model.column}, tree {t}"].astype(np.float64)) for t in (1, 2)], axis=0)
    np.testing.assert_allclose(np.exp(columns[model.column].astype(np.float64)), mean, rtol=1e-4)
    found = model.shortlist(X, 12)
    relevance = found.to_dense(found.final_score)
    np.testing.assert_allclose(relevance.ravel(), model.scale_ * mean, rtol=1e-4)
    points = model.shortlist_points(X, X.shape[0], factor=1000.0)
    np.testing.assert_allclose(points.to_dense(points.final_score).T, relevance, rtol=1e-4)


# --- tail classifiers -------------------------------------------


def test_tail_classifiers_re_rank(tmp_path):
    X, Y = problem(150, 30)
    plain, both = (small(XReg, beam=100, tail=t).fit(X, Y) for t in (None, 0.6))
    tail = TailClassifiers().fit(TrainingSet(X, Y, np.zeros(150, np.int32)).view())
    pairs = Candidates.all_labels(150, 30)
    [log_tail] = tail.score(X, pairs).values()
    log_p = plain.score(X, pairs)[XReg.column]
    expected = 0.6 * log_p.astype(np.float64) + 0.4 * log_tail
    np.testing.assert_allclose(both.score(X, pairs)[XReg.column], expected, rtol=1e-5)
    found = both.shortlist(X, 4)
    whole = Candidates(pairs.indptr, pairs.labels, 30, {"": both.scale_ * np.exp(expected)})
    np.testing.assert_array_equal(found.labels, whole.top(4).labels)
    np.testing.assert_allclose(found.final_score, whole.top(4).final_score, rtol=1e-4)
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
        (model.score(X, pairs)[XReg.column], of_rows.score(X, pairs)[XReg.column]),
    ):
        assert (found != expected).sum() == 0
    assert small(XReg, tail="auto").fit(X[:9], Y[:9]).alpha_ == 1
    assert small(XReg, tail="auto").fit(X, Y * 0).alpha_ == 1


# --- parameters -----------------------------------------------------------------


def test_a_row_of_weight_two_counts_twice():
    X, Y = problem()
    tree = tree_of([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    weight = np.ones(80)
    weight[:40] = 2
    pairs = Candidates.all_labels(80, 12)
    for cls in BOTH:
        weighted = with_solver(cls, **EXACT, hierarchy=tree).fit(X, Y, sample_weight=weight)
        twice = with_solver(cls, **EXACT, hierarchy=tree).fit(sp.vstack([X, X[:40]]), sp.vstack([Y, Y[:40]]))
        plain = with_solver(cls, **EXACT, hierarchy=tree).fit(X, Y)
        a, b, c = (np.exp(m.score(X, pairs)[cls.column]) for m in (weighted, twice, plain))
        np.testing.assert_allclose(a, b, atol=5e-3)  # weights are stored in 8 bits
        assert np.abs(a - c).max() > 2e-2


def test_a_row_of_weight_zero_is_left_out():
    X, Y = problem()
    half = np.arange(80.0) % 2
    for cls in BOTH:
        some = small(cls).fit(X, Y, sample_weight=half)
        assert answers(some, X) == answers(small(cls).fit(X[1::2], Y[1::2]), X)


def test_a_hierarchy_of_the_user(tmp_path):
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
        model.save(tmp_path / cls.__name__)
        assert answers(clone(load(tmp_path / cls.__name__)).fit(X, Y), X) == answers(model, X)
    with pytest.raises(ValueError, match="hierarchy must hold the 12 labels of Y, got 18"):
        Parabel(hierarchy=tree).fit(*topics())


def test_label_vectors_shape_the_tree():
    X, Y = problem()
    vectors = np.repeat(np.eye(4, dtype=np.float32), 3, axis=0)[::-1]
    for given in (vectors, sp.csr_matrix(vectors)):
        model = Parabel(n_trees=1, branching=2, max_leaf=3, label_vectors=given).fit(X, Y)
        tree = model.hierarchy_
        below = [tuple(labels_under(tree, n)) for n in range(tree.n_nodes)]
        leaves = {labels for labels in below if len(labels) == 3}
        assert leaves == {(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)}
    with pytest.raises(ValueError, match="label_vectors"):
        Parabel(label_vectors=vectors[:5]).fit(X, Y)


# --- the life of an estimator ---------------------------------------------------


def test_a_failure_leaves_what_was_learned(tmp_path):
    X, Y = problem()
    model = small(Parabel).fit(X, Y)
    before = answers(model, X)
    model.set_params(hierarchy=tree_of([0, 1]))
    with pytest.raises(ValueError, match="hierarchy must hold"):
        model.fit(X[:, :10], Y)
    model.set_params(hierarchy=None, loss="logistic", n_trees=1)  # these count at the next fit
    model.save(tmp_path / "m")
    assert answers(model, X) == answers(load(tmp_path / "m"), X) == before
