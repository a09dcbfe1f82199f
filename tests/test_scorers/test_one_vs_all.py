"""`OneVsAll` against dense solutions, refits, and the laws of prediction."""

from __future__ import annotations

import re

import makers
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import LinearSVC

from metarank.data import Dataset, make_extreme, make_multilabel
from metarank.persist import load
from metarank.propensity import PRESETS, inv_propensity
from metarank.scorers.crossfit import held_out_columns, held_out_shortlist
from metarank.scorers.linear.one_vs_all import OneVsAll
from metarank.scorers.linear.shared_ridge import SharedRidge, leave_one_out_ndcg, ridge_by_gradients
from metarank.scorers.linear.squared_hinge import squared_hinge_weights
from metarank.scorers.linear.weight_index import WeightIndex
from metarank.types.arrays import csr_parts
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet

BIAS = 0.3


def problem(n=50, d=80, L=12, seed=0):
    """Sparse rows; label 0 has no row, label 1 all of them."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.2, "csr", np.float32, random_state=rng)
    Y = rng.random((n, L)) < 0.15
    Y[:, 0], Y[:, 1] = False, True
    return X, sp.csr_matrix((Y * rng.integers(1, 4, Y.shape)).astype(np.float32))


def dense_ridge(X, T, C):
    """Weights with the bias feature's last, by the normal equations."""
    A = np.hstack([X.toarray(), np.full((X.shape[0], 1), BIAS)]).astype(float)
    return np.linalg.solve(A.T @ A + np.eye(A.shape[1]) / (2 * C), A.T @ T)


def targets(Y, relevance, rows=slice(None)):
    Y = Y[rows].toarray().astype(float)
    if relevance == "graded":
        return Y
    weight = inv_propensity(Y) if relevance == "inverse-propensity" else 1.0
    return (Y > 0) * weight


def exact(**params):
    return OneVsAll(
        **{"loss": "ridge", "C": 0.5, "intercept_scaling": BIAS, "weights_per_label": None, **params}
    )


def dense_scores(model, X):
    return model.score(X, Candidates.all_labels(X.shape[0], model.index_.n_labels))[model.column].reshape(
        X.shape[0], -1
    )


def top(scores, seen, k):
    order = np.lexsort((np.broadcast_to(seen, (len(scores), len(seen))), -scores[:, seen]), axis=1)
    return np.sort(seen[order[:, :k]], axis=1)


@pytest.mark.parametrize("relevance", ["binary", "graded", "inverse-propensity"])
@pytest.mark.parametrize("n", [50, 120])  # fewer rows than features, and more
def test_ridge_is_the_least_squares_solution(relevance, n):
    X, Y = problem(n)
    model = exact(relevance=relevance).fit(X, Y)
    W = dense_ridge(X, targets(Y, relevance), 0.5)
    expected = X @ W[:-1] + BIAS * W[-1]
    np.testing.assert_allclose(dense_scores(model, X), expected, atol=2e-3)
    assert np.all(dense_scores(model, X)[:, 0] == 0)


def test_conjugate_gradients_reach_the_same_solution():
    X, Y = problem(120)
    direct, iterated = (dense_scores(exact(max_size=s).fit(X, Y), X) for s in (1000, 10))
    np.testing.assert_allclose(iterated, direct, atol=1e-2)


@pytest.mark.parametrize("n", [50, 120])
@pytest.mark.parametrize("relevance", ["binary", "inverse-propensity"])
def test_held_out_scores_are_those_of_refits(n, relevance):
    X, Y = problem(n)
    data = makers.training_set(X, Y)
    model = exact(relevance=relevance)
    columns = held_out_columns(model, data, Candidates.all_labels(*Y.shape))
    held_out = columns["ova_ridge"].reshape(Y.shape)
    proposed = held_out_shortlist(model, data, 4, rows=np.arange(n))
    for fold in range(data.n_folds):
        inside, others = np.flatnonzero(data.fold == fold), np.flatnonzero(data.fold != fold)
        W = dense_ridge(X[others], targets(Y, relevance, others), 0.5)
        expected = X[inside] @ W[:-1] + BIAS * W[-1]
        np.testing.assert_allclose(held_out[inside], expected, atol=1e-4)
        seen = np.flatnonzero(np.diff(Y[others].tocsc().indptr))
        part = proposed.rows(inside)
        np.testing.assert_array_equal(part.labels.reshape(-1, 4), top(held_out[inside], seen, 4))
        scores = np.take_along_axis(held_out[inside], part.labels.reshape(-1, 4), axis=1)
        np.testing.assert_array_equal(part.scores["ova_ridge"].reshape(-1, 4), scores)


@pytest.mark.parametrize("n", [30, 120])
def test_leave_one_out_is_a_refit_without_the_row(n):
    X, Y = problem(n)
    T = targets(Y, "binary")
    H = SharedRidge(X, 2.0).leave_one_out(np.array([0, 7]))
    for row, weights in zip((0, 7), H):
        others = np.delete(np.arange(n), row)
        A = X[others].toarray().astype(float)
        W = np.linalg.solve(A.T @ A + 2 * np.eye(A.shape[1]), A.T @ T[others])
        np.testing.assert_allclose(weights @ T, (X[row] @ W).ravel(), atol=1e-5)
        assert weights[row] == 0


def test_leave_one_out_quality_by_hand():
    """Row 0 is nearest to row 1, whose only label it shares; row 2 has no neighbour."""
    X = sp.csr_matrix(np.array([[1, 0], [1, 0], [0, 1]], np.float32))
    T = sp.csr_matrix(np.array([[1, 0], [1, 0], [0, 1]], np.float32))
    # Of three labels with scores 0 row 2 lists the first: its own, the second, comes at rank 2.
    expected = (1 + 1 + 1 / np.log2(3)) / 3
    assert leave_one_out_ndcg(SharedRidge(X, 1.0), T, np.ones(2), np.ones(2)) == pytest.approx(expected)


def hinge_objective(X, y, w, b, cost):
    """Primal objective at C = 1."""
    margin = np.maximum(0, 1 - y * (X @ w + b))
    return 0.5 * (w @ w + b * b) + np.sum(np.where(y > 0, cost, 1.0) * margin**2)


@pytest.mark.parametrize("cost", [1.0, 4.0])
@pytest.mark.parametrize(("n", "L"), [(60, 12), (200, 40)])
def test_squared_hinge_is_liblinear_s_solution(n, L, cost):
    X, Y = problem(n, 80, L)
    W, bias = hinge_weights(X, Y, cost, tolerance=1e-4, max_epochs=2000)
    for label in range(1, L):
        y = np.where(Y[:, [label]].toarray()[:, 0] > 0, 1, -1)
        if np.all(y > 0):
            continue
        svc = LinearSVC(C=1.0, class_weight={1: cost, -1: 1.0}, tol=1e-6, max_iter=100_000, random_state=0)
        svc.fit(X.astype(np.float64), y)
        np.testing.assert_allclose(W[:, [label]].toarray()[:, 0], svc.coef_[0], atol=2e-3)
        assert bias[label] == pytest.approx(svc.intercept_[0], abs=2e-3)
    assert W[:, 0].nnz == 0
    assert bias[0] == -1


def test_squared_hinge_with_few_rows_at_hand_is_near_the_solution():
    """Long rows, rare labels: most rows never join a working set."""
    ds = make_extreme(600, n_features=2000, n_labels=300, labels_per_row=3, nnz_per_row=30, seed=1)
    norm = np.sqrt(np.asarray(ds.X.multiply(ds.X).sum(axis=1)))
    X = sp.csr_matrix(ds.X.multiply(1 / norm).astype(np.float32))
    (rough, rough_bias), (fine, fine_bias) = (
        hinge_weights(X, ds.Y, 1.0, tolerance=t, max_epochs=e) for t, e in ((0.1, 6), (1e-4, 2000))
    )
    gaps = []
    for label in np.flatnonzero(np.bincount(ds.Y.indices, minlength=300)):
        y = np.where(ds.Y[:, [label]].toarray()[:, 0] > 0, 1, -1)
        a, b = (
            hinge_objective(X, y, W[:, [label]].toarray()[:, 0].astype(float), bias[label], 1.0)
            for W, bias in ((rough, rough_bias), (fine, fine_bias))
        )
        assert a >= b * (1 - 1e-4)
        gaps.append(a / b - 1)
    assert np.mean(gaps) < 0.05


def hinge_weights(X, Y, cost, **params):
    return squared_hinge_weights(
        X,
        Y,
        positive_cost=np.full(Y.shape[1], cost),
        C=1.0,
        weights_per_label=None,
        seed=0,
        n_jobs=1,
        **params,
    )


def test_held_out_scores_of_the_squared_hinge_are_refits():
    X, Y = problem(60)
    data = makers.training_set(X, Y)
    columns = held_out_columns(OneVsAll(), data, Candidates.all_labels(*Y.shape))
    for fold in range(data.n_folds):
        inside = np.flatnonzero(data.fold == fold)
        expected = dense_scores(OneVsAll().fit(data.without_fold(fold)), X[inside])
        np.testing.assert_array_equal(columns["ova_squared_hinge"].reshape(Y.shape)[inside], expected)


def test_C_is_chosen_on_the_view_and_settled_for_its_folds():
    X, Y = problem(60)
    data = makers.training_set(X, Y)
    chosen = OneVsAll(loss="ridge").tuned(data.view())
    assert chosen.C in (1 / 20, 1 / 6, 1 / 2, 3 / 2)
    assert OneVsAll(loss="ridge").fit(data.view()).C_ == chosen.C


@pytest.mark.parametrize("n", [50, 250])
def test_pruning_keeps_the_largest_weights(n):
    X, Y = problem(n, 200)
    ridge, d = SharedRidge(X, 2.0), X.shape[1]
    full, pruned = (ridge.weights(Y, density, 0, 1).toarray() for density in (1.0, 20 / d))
    kept = pruned != 0
    assert kept.sum() == pytest.approx(20 * Y.shape[1], rel=0.1)
    np.testing.assert_array_equal(pruned[kept], full[kept])
    squares, count = np.asarray(X.multiply(X).sum(axis=0))[0], np.diff(X.tocsc().indptr)
    size = np.abs(full) * np.sqrt(np.sqrt(squares / count))[:, None]
    assert size[~kept].max() < size[kept].min()
    by_gradients = ridge_by_gradients(X, Y, 2.0, 20 / d, 0, 1).toarray() != 0
    assert np.mean(by_gradients == kept) > 0.99


@pytest.mark.parametrize("loss", ["squared_hinge", "ridge"])
def test_the_model_keeps_as_many_weights_as_asked(loss):
    X, Y = problem(120, 200)
    model = exact(loss=loss, weights_per_label=20).fit(X, Y)
    assert len(model.index_.weight) == pytest.approx(20 * (Y.shape[1] - 1), rel=0.1)


@pytest.mark.parametrize("layout", ["sparse", "dense"])
@pytest.mark.parametrize(
    "params",
    [{"loss": "ridge"}, {"loss": "ridge", "max_size": 10}, {}, {"relevance": "inverse-propensity"}],
    ids=["ridge", "gradients", "hinge", "weighted hinge"],
)
def test_bytes_depend_on_neither_threads_nor_the_batch(layout, params):
    ds = makers.MAKERS[layout](70, L=40)
    one, four = (OneVsAll(C=0.5, **params).fit(ds.X, ds.Y, n_jobs=j) for j in (1, 4))
    for name, value in one.index_.get_state().items():
        assert np.array_equal(value, four.index_.get_state()[name]), name
    together = one.shortlist(ds.X, 3, n_jobs=4)
    candidates = Candidates.all_labels(*ds.Y.shape)
    scores = dense_scores(one, ds.X)
    for i in (0, 33, 69):
        alone = one.shortlist(ds.X[i : i + 1], 3)
        part = together.rows(np.array([i]))
        assert np.array_equal(alone.labels, part.labels)
        assert alone.scores[one.column].tobytes() == part.scores[one.column].tobytes()
        assert one.score(ds.X[i : i + 1], candidates.rows([i]))[one.column].tobytes() == scores[i].tobytes()


@pytest.mark.parametrize("loss", ["squared_hinge", "ridge"])
def test_shortlist_is_the_top_of_the_scores(loss):
    X, Y = problem(60)
    model = OneVsAll(loss=loss).fit(X, Y)
    seen = np.arange(1, Y.shape[1])
    found = model.shortlist(X, 5)
    np.testing.assert_array_equal(found.labels.reshape(-1, 5), top(dense_scores(model, X), seen, 5))
    everything = model.shortlist(X, 100)
    np.testing.assert_array_equal(everything.labels.reshape(-1, 11), np.tile(seen, (60, 1)))


def test_more_labels_than_a_band():
    rng = np.random.default_rng(0)
    L = 70_000
    W = sp.random(6, L, 0.3, "csr", np.float32, random_state=rng)
    bias = rng.normal(size=L).astype(np.float32)
    X = sp.random(4, 6, 0.7, "csr", np.float32, random_state=rng)
    expected = X @ W.toarray() + bias
    for index in (
        WeightIndex.quantised(W, bias, np.arange(L)),
        WeightIndex.exact(W, np.ones(L), bias, np.arange(L)),
    ):
        scores = index.scores(csr_parts(X), Candidates.all_labels(4, L), 2).reshape(4, L)
        np.testing.assert_allclose(scores, expected, atol=1e-4)
        np.testing.assert_array_equal(
            index.shortlist(csr_parts(X), 3, "s", 1).labels.reshape(4, 3), top(scores, np.arange(L), 3)
        )


@pytest.mark.parametrize("params", [{}, {"loss": "ridge", "propensity": (0.5, 1.0)}])
def test_save_and_load(tmp_path, params):
    X, Y = problem(60)
    model = OneVsAll(**params).fit(X, Y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    assert (loaded.C_, loaded.n_features_in_, loaded.n_labels_) == (model.C_, 80, 12)
    assert dense_scores(loaded, X).tobytes() == dense_scores(model, X).tobytes()
    clone(loaded).fit(X, Y)


def test_any_container_of_the_same_numbers():
    X, Y = problem(40)
    expected = dense_scores(exact().fit(X, Y), X)
    shuffled = X.copy()
    for i in range(X.shape[0]):  # columns in descending order
        part = slice(X.indptr[i], X.indptr[i + 1])
        shuffled.indices[part], shuffled.data[part] = X.indices[part][::-1], X.data[part][::-1]
    shuffled.has_sorted_indices = shuffled.has_canonical_format = False
    wide = sp.csr_matrix((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)
    A = X.toarray()
    for other in (A, A.astype(object), A.tolist(), shuffled, wide, sp.csr_array(X)):
        model = exact().fit(other, Y)
        scores = model.score(other, Candidates.all_labels(*Y.shape))[model.column]
        assert scores.tobytes() == expected.tobytes()
    half, single = A.astype(np.float16), A.astype(np.float16).astype(np.float32)
    one, other = (exact().fit(rows, Y).shortlist(rows, 3) for rows in (half, single))
    assert np.array_equal(one.labels, other.labels)


def test_a_dataset_is_its_x_and_y():
    X, Y = problem(40)
    data = Dataset(X=X, Y=Y)
    model = exact().fit(data)
    assert (model.n_features_in_, model.n_labels_) == (80, 12)
    assert np.array_equal(model.shortlist(data, 3).labels, exact().fit(X, Y).shortlist(X, 3).labels)
    with pytest.raises(ValueError, match="Y must be None where X is a Dataset"):
        OneVsAll().fit(data, Y)


BAD = {
    "loss": ["absolute", None, np.ones(2)],
    "relevance": ["high", "graded", 3],
    "propensity": ["books", (0.5, -1), (0.5,), None],
    "C": [0, -1, True, np.inf, np.nan, 1e300, "best", None, np.ones(2)],
    "weights_per_label": [0, 1.5, "a", True],
    "tolerance": [0, "a", None, True, np.nan, 1e300],
    "max_epochs": [0, 1.5, "a", None, True, 10**12],
    "intercept_scaling": [-1, "a", None, True, np.nan, 1e300],
    "max_size": [-5, 0, 1.5, "a", None, True],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_bad_parameters(name, value):
    """The message has the parameter, the rule and the value, whether the parameter is read or not."""
    with pytest.raises(
        (ValueError, TypeError), match=rf"^{name} must be (?s:.*), got {re.escape(repr(value))}"
    ):
        OneVsAll(**{name: value}).fit("neither read", "nor checked")


def test_numbers_of_numpy_are_numbers():
    X, Y = problem()
    params = {"C": 0.5, "tolerance": 0.25, "max_epochs": 3, "weights_per_label": 5, "max_size": 20}
    own = {name: np.float32(v) if isinstance(v, float) else np.int64(v) for name, v in params.items()}
    for loss in ("squared_hinge", "ridge"):
        one, other = (OneVsAll(loss=loss, **p).fit(X, Y) for p in (params, own))
        assert dense_scores(one, X).tobytes() == dense_scores(other, X).tobytes()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((1, 80), np.nan), "NaN at row 0, column 0"),
        (sp.csr_matrix(([np.inf], [3], [0, 1]), (1, 80), dtype=np.float32), "inf.* at row 0, column 3"),
        (np.full((1, 80), 1e300), "inf"),
        (np.ones((1, 79)), "80 features"),
        (np.ones(80), "2D"),
        ([["a"] * 80], "text"),
        (None, "2D"),
    ],
    ids=["nan", "inf", "huge", "width", "one-dimensional", "text", "none"],
)
def test_bad_rows(X, message):
    good, Y = problem()
    model = exact().fit(good, Y)
    for ask in (model.shortlist, lambda X: model.score(X, Candidates.all_labels(1, 12))):
        with pytest.raises(ValueError, match=message):
            ask(X)


def test_bad_input(tmp_path):
    X, Y = problem()
    everything = Candidates.all_labels(50, 12)
    model = exact().fit(X, Y)
    for ask in (
        lambda: OneVsAll().shortlist(X),
        lambda: OneVsAll().score(X, everything),
        lambda: OneVsAll().save(tmp_path / "model"),
    ):
        with pytest.raises(ValueError, match="this OneVsAll is not fitted yet"):
            ask()
    with pytest.raises(ValueError, match="y is None"):
        OneVsAll().fit(X)
    with pytest.raises(ValueError, match="X has 50 rows"):
        OneVsAll().fit(X, Y[:10])
    with pytest.raises(ValueError, match="inf"):
        OneVsAll().fit(np.full((50, 2), np.inf), Y)
    for k in (0, -1, 2.5, "5", True, None):
        with pytest.raises((ValueError, TypeError), match=rf"k must be .*, got {k!r}"):
            model.shortlist(X, k)
    with pytest.raises(ValueError, match="candidates must have 50 rows and 12 labels, got 49 and 12"):
        model.score(X, everything.rows(slice(0, 49)))
    with pytest.raises(TypeError, match="candidates must be"):
        model.score(X, None)
    empty = TrainingSet(X, Y, np.zeros(50, np.int32)).without_fold(0)
    for learn in (exact().fit, exact().tuned):
        with pytest.raises(ValueError, match="at least one row"):
            learn(empty)


def test_a_failed_fit_leaves_what_was_learned():
    X, Y = problem()
    model = exact().fit(X, Y)
    before = dense_scores(model, X)
    with pytest.raises(ValueError, match="OneVsAll does not take sample_weight"):
        model.fit(X, Y[:, ::-1], sample_weight=np.ones(50))
    assert dense_scores(model, X).tobytes() == before.tobytes()


@pytest.mark.parametrize("loss", ["squared_hinge", "ridge"])
@pytest.mark.parametrize("n", [1, 2])
def test_rows_too_few_for_propensities(loss, n):
    one, other = (
        OneVsAll(loss=loss, relevance=r).fit(np.eye(3)[:n], [[i] for i in range(n)])
        for r in ("inverse-propensity", "binary")
    )
    assert dense_scores(one, np.eye(3)).tobytes() == dense_scores(other, np.eye(3)).tobytes()


def test_propensity_curves_have_names():
    X, Y = problem()
    named, pair = (
        dense_scores(exact(propensity=p).fit(X, Y), X) for p in ("amazon", np.array(PRESETS["amazon"]))
    )
    assert named.tobytes() == pair.tobytes()


@pytest.mark.parametrize(("loss", "score"), [("squared_hinge", -1), ("ridge", 0)])
def test_no_label_seen(loss, score):
    X, Y = problem()
    model = OneVsAll(loss=loss).fit(X, sp.csr_matrix(Y.shape, dtype=np.float32))
    assert model.shortlist(X, 5).n_pairs == 0
    assert np.all(dense_scores(model, X) == score)


def test_rows_without_features_score_the_bias():
    X, Y = problem()
    model = exact().fit(X, Y)
    zero = dense_scores(model, sp.csr_matrix((1, X.shape[1]), dtype=np.float32))[0]
    np.testing.assert_array_equal(zero, model.index_.bias)


def test_gradients_of_a_label_without_rows_are_zero():
    X, Y = problem()
    W = ridge_by_gradients(X, Y, 1.0, 1.0, 0, 1)
    assert W[:, 0].nnz == 0


@pytest.mark.parametrize("loss", ["ridge", "squared_hinge"])
def test_what_a_search_found_gives_the_same_bytes(loss):
    made = make_multilabel(60, n_features=20, n_labels=9, seed=2)
    X, Y = sp.csr_matrix(made.X), made.Y
    scorer = OneVsAll(loss=loss).fit(X, Y)
    found = scorer.search(X[:7])
    expected = scorer.shortlist(X[:7], 4)
    again = scorer.shortlist(X[:7], 4, **found)
    np.testing.assert_array_equal(again.labels, expected.labels)
    np.testing.assert_array_equal(again.final_score, expected.final_score)
    pairs = Candidates.all_labels(7, 9)
    [(name, values)] = scorer.score(X[:7], pairs).items()
    np.testing.assert_array_equal(scorer.score(X[:7], pairs, **found)[name], values)


def test_many_rows_are_not_searched_at_once(monkeypatch):
    monkeypatch.setattr("metarank.scorers.linear.weight_index._MOST_SUMS", 27)
    made = make_multilabel(60, n_features=20, n_labels=9, seed=2)
    scorer = OneVsAll(loss="ridge").fit(sp.csr_matrix(made.X), made.Y)
    assert set(scorer.search(sp.csr_matrix(made.X)[:3])) == {"sums"}
    assert scorer.search(sp.csr_matrix(made.X)[:4]) == {}
