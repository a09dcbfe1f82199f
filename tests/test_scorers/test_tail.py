"""Tail classifiers, and the sparse means they share with the centroids."""

import json
import pickle

import makers
import numpy as np
import pytest
import scipy.sparse as sp
from scipy import optimize

from metarank import MetaRanker, _core, load
from metarank.apps.report.words import reasons
from metarank.metrics import wp_at_k
from metarank.propensity import inv_propensity
from metarank.rerank import choose_alpha, rerank_with_tail
from metarank.scorers.neighbors.label_means import LabelMeans
from metarank.scorers.trees import tail_likelihood
from metarank.scorers.trees.pfastrexml import PfastreXML
from metarank.scorers.trees.tail import COLUMN, TailClassifiers, unit_rows
from metarank.types.arrays import csr_parts
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows

KINDS = pytest.mark.parametrize("kind", ["dense", "sparse"])


def problem(kind, seed=0, n=60, n_queries=20, d=37, L=9):
    rng = np.random.default_rng(seed)
    A = rng.gamma(1.0, size=(n + n_queries, d)).astype(np.float32)
    if kind == "sparse":
        A[rng.random(A.shape) < 0.8] = 0
    A[1] = 0
    Y = (rng.random((n, L)) < 0.15) * rng.integers(1, 4, (n, L)).astype(np.float32)
    Y[:, 4] = 0
    X, Q = A[:n], np.concatenate([A[n:], A[:2]])
    if kind == "sparse":
        X, Q = sp.csr_matrix(X), sp.csr_matrix(Q)
    return TrainingSet(X, sp.csr_matrix(Y), fold_of_rows(n, 3, seed)), Q


def to_dense(A):
    return np.asarray(A.todense() if sp.issparse(A) else A, np.float64)


def slow(X, Y, Q, candidates, gamma, unit_means):
    """Eq. 5 and 7, one pair at a time, in double."""

    def unit(A):
        length = np.linalg.norm(A, axis=1, keepdims=True)
        return A / np.where(length > 0, length, 1)

    X, Q, Y = unit(to_dense(X)), unit(to_dense(Q)), to_dense(Y)
    out = np.empty(candidates.n_pairs)
    for p, (i, label) in enumerate(zip(candidates.row_of_pair, candidates.labels)):
        mean = X[Y[:, label] > 0].sum(axis=0) / max(1, np.sum(Y[:, label] > 0))
        if unit_means:
            sq = 2 * (1 - Q[i] @ mean / max(np.linalg.norm(mean), 1e-30))
        else:
            sq = np.sum((Q[i] - mean) ** 2) if mean.any() else Q[i] @ Q[i] + 1
        out[p] = -np.log1p(np.exp(gamma / 2 * sq))
    return out


@KINDS
@pytest.mark.parametrize("gamma", [30.0, 2])
@pytest.mark.parametrize("unit_means", [True, False])
@pytest.mark.parametrize("fold", [None, 1])
def test_agrees_with_slow_twin(kind, gamma, unit_means, fold):
    data, Q = problem(kind)
    view = data.view() if fold is None else data.without_fold(fold)
    mask = sp.csr_matrix(np.random.default_rng(0).random((Q.shape[0], 9)) < 0.5)
    pairs = Candidates(mask.indptr, mask.indices, 9)
    columns = TailClassifiers(gamma=gamma, unit_means=unit_means).fit(view).score(Q, pairs)
    assert list(columns) == [COLUMN]
    assert columns[COLUMN].dtype == np.float32
    expected = slow(data.X, data.Y.multiply(view.mask[:, None]), Q, pairs, gamma, unit_means)
    np.testing.assert_allclose(columns[COLUMN], expected, rtol=1e-5, atol=1e-5)


@KINDS
def test_laws(kind):
    data, Q = problem(kind)
    pairs = Candidates.all_labels(Q.shape[0], 9)
    fitted = TailClassifiers(max_terms=5, gamma=7).fit(data.view(), n_jobs=1)
    whole = fitted.score(Q, pairs)[COLUMN]
    threaded = TailClassifiers(max_terms=5, gamma=7).fit(data.view(), n_jobs=4)
    assert threaded.score(Q, pairs, n_jobs=4)[COLUMN].tobytes() == whole.tobytes()
    again = TailClassifiers.from_state(fitted.get_state())
    assert again.get_params() == fitted.get_params()
    assert again.score(Q, pairs)[COLUMN].tobytes() == whole.tobytes()
    order = np.random.default_rng(1).permutation(Q.shape[0])
    mixed = fitted.score(Q[order], pairs)[COLUMN].reshape(-1, 9)
    assert mixed.tobytes() == whole.reshape(-1, 9)[order].tobytes()
    one = fitted.score(Q[3:4], Candidates.all_labels(1, 9))[COLUMN]
    assert one.tobytes() == whole[27:36].tobytes()


@pytest.mark.parametrize("unit_means", [True, False])
def test_products_are_the_same_bits_by_postings_and_pair_by_pair(unit_means):
    """Features that many means have, and rare ones: a mean is run down, or all are added up at once."""
    rng = np.random.default_rng(8)
    X = sp.random(400, 60, 0.05, "csr", dtype=np.float32, random_state=rng).tolil()
    X[:, :10] = rng.random((400, 10)) + 0.1  # in every mean
    data = TrainingSet(X.tocsr(), sp.random(400, 150, 0.02, "csr", random_state=rng), np.zeros(400, np.int32))
    tail = TailClassifiers(unit_means=unit_means, gamma=3).fit(data.view())
    whole = Candidates.all_labels(40, 150)
    Q = data.X[:40]
    at_once = tail.score(Q, whole)[COLUMN]
    expected = slow(data.X, data.Y, Q, whole, 3, unit_means)
    np.testing.assert_allclose(at_once, expected, rtol=1e-5, atol=1e-5)
    fresh = TailClassifiers.from_state(tail.get_state())  # nothing was asked of it yet: no postings
    few = Candidates(np.array([0, 3]), np.array([2, 70, 149], np.int32), 150)
    for i in range(40):
        singly = fresh.score(Q[i], few)[COLUMN]
        assert singly.tobytes() == at_once.reshape(40, 150)[i, few.labels].tobytes()
    copied = pickle.loads(pickle.dumps(tail))
    assert copied.score(Q, whole, n_jobs=3)[COLUMN].tobytes() == at_once.tobytes()


@KINDS
def test_lengths_of_rows_play_no_part(kind):
    data, Q = problem(kind)
    pairs = Candidates.all_labels(Q.shape[0], 9)
    unit = TrainingSet(unit_rows(data.X), data.Y, data.fold)
    values = [X.data if kind == "sparse" else X for X in (unit.X, unit_rows(unit.X))]
    assert np.shares_memory(*values)  # nothing to do
    a = TailClassifiers().fit(data.view()).score(Q, pairs)[COLUMN]
    b = TailClassifiers().fit(unit.view()).score(unit_rows(Q), pairs)[COLUMN]
    assert a.tobytes() == b.tobytes()
    lengths = np.linalg.norm(to_dense(unit.X), axis=1)
    np.testing.assert_allclose(lengths, np.arange(60) != 1, rtol=1e-6)
    huge = sp.csr_matrix(np.array([[3e38, 3e38]], np.float32)) if kind == "sparse" else np.full((1, 2), 1e18)
    np.testing.assert_allclose(to_dense(unit_rows(huge)), np.sqrt(0.5), rtol=1e-6)


def test_sparse_means_add_rows_in_order():
    rng = np.random.default_rng(2)
    X = sp.random(300, 80, 0.1, "csr", dtype=np.float32, random_state=rng)
    Y = sp.random(300, 150, 0.03, "csc", random_state=rng)
    indptr, rows = Y.indptr.astype(np.int64), Y.indices.astype(np.int32)
    members = sp.csr_matrix((np.ones(len(rows)), rows, indptr), shape=(150, 300))
    sums = members @ X  # SciPy adds the rows of each label in the order given, in double
    sums.sort_indices()
    counts = np.diff(indptr)
    expected = (sums.data / np.repeat(counts, np.diff(sums.indptr))).astype(np.float32)
    for n_jobs in (1, 4):
        means = LabelMeans.of_rows(X, indptr, rows, 1.0, n_jobs=n_jobs)
        np.testing.assert_array_equal(means.means.indptr, sums.indptr)
        np.testing.assert_array_equal(means.means.indices, sums.indices)
        assert means.means.data.tobytes() == expected.tobytes()
        np.testing.assert_array_equal(means.known, counts > 0)
        np.testing.assert_array_equal(means.sq_norm, _core.csr_sq_norms(80, *csr_parts(means.means)))
    short = LabelMeans.of_rows(X, indptr, rows, 1.0, max_terms=6, n_jobs=2)
    assert np.diff(short.means.indptr).max() == 6
    assert short.means.has_sorted_indices
    np.testing.assert_array_equal(short.sq_norm, means.sq_norm)
    for whole, kept in zip(means.means.toarray(), short.means.toarray()):
        largest = np.lexsort((np.arange(80), -np.abs(whole)))[:6]
        np.testing.assert_array_equal(np.flatnonzero(kept), np.sort(largest[whole[largest] != 0]))
        np.testing.assert_array_equal(kept[kept != 0], whole[kept != 0])


def test_few_terms_come_close():
    data, Q = problem("sparse", n=300, d=200)
    pairs = Candidates.all_labels(Q.shape[0], 9)
    whole, short, all_terms = (
        TailClassifiers(max_terms=m).fit(data.view()).score(Q, pairs)[COLUMN] for m in (None, 150, 10_000)
    )
    assert all_terms.tobytes() == whole.tobytes()
    assert 0 < np.abs(short - whole).mean() < 0.1 * np.abs(whole).mean()


def slow_likelihood(mu, X, y, p, gamma):
    """Eq. 6 of one label: its logarithm, and the gradient in mu."""
    v = np.exp(gamma / 2 * ((X - mu) ** 2).sum(axis=1))
    u = v / (1 + v) - (1 - y) * v / (1 + v - p)
    return np.log((1 - y) + p * (2 * y - 1) / (1 + v)).sum(), gamma * (u @ X - mu * u.sum())


def climbed(kind, gamma, unit_means, monkeypatch, **options):
    """Fitted to all points (none too far to count), with the rows and labels as the twin takes them."""
    monkeypatch.setattr(tail_likelihood, "NEGATIVES", 1000)
    data, _ = problem(kind, **options)
    data.X[1, 0] = 1  # no row of zeros
    tail = TailClassifiers(gamma=gamma, unit_means=unit_means, solution="likelihood").fit(data.view())
    X, Y = to_dense(unit_rows(data.X)), to_dense(data.Y) > 0
    return tail, X, Y, 1 / inv_propensity(Y)


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@KINDS
@pytest.mark.parametrize("gamma", [1.5, 8, 30])
@pytest.mark.parametrize("unit_means", [True, False])
def test_likelihood_has_no_better_solution_nearby(kind, gamma, unit_means, monkeypatch):
    tail, X, Y, p = climbed(kind, gamma, unit_means, monkeypatch, L=5, d=12, n=40)
    means = to_dense(tail.means_.means)
    assert not means[4].any()  # no point
    for label in range(4):
        y, mu = Y[:, label].astype(float), means[label]
        near = (y > 0) | (X @ X[y > 0].mean(axis=0) > 0)  # what shares nothing does not count

        def value(m, y=y[near], label=label, near=near):
            m = m / np.linalg.norm(m) if unit_means else m
            return slow_likelihood(m, X[near], y, p[label], gamma)[0]

        start = X[y > 0].mean(axis=0)
        assert value(mu) >= value(start) - 1e-6
        from_start = optimize.minimize(lambda m: -value(m), start, method="BFGS")
        assert value(mu) >= -from_start.fun - 1e-5
        by_differences = optimize.approx_fprime(mu, value, 1e-6)
        np.testing.assert_allclose(by_differences, 0, atol=2e-3 * gamma)
        if not unit_means:
            gradient = slow_likelihood(mu, X[near], y[near], p[label], gamma)[1]
            np.testing.assert_allclose(gradient, 0, atol=1e-4 * gamma * y.sum())


@pytest.mark.parametrize("gamma", [1.5, 30])
@pytest.mark.parametrize("unit", [True, False])
def test_likelihood_never_falls(gamma, unit):
    rng = np.random.default_rng(5)
    rows = unit_rows(rng.gamma(0.3, size=(120, 10)).astype(np.float32))
    label = np.repeat(np.arange(4), 30)
    positive = rng.random(120) < np.array([0.1, 0.3, 0.9, 1])[label]
    positive[::30] = True
    p = np.array([0.2, 0.5, 1, 0.9])

    def climb(steps):
        rows64 = sp.csr_matrix(rows.astype(np.float64))
        return tail_likelihood.Ascent(rows64, label, positive, p, gamma, unit).run(steps)

    values = np.array([climb(steps).log_likelihood for steps in range(25)])
    assert np.diff(values, axis=0).min() >= -1e-9
    assert np.any(values[-1] > values[0] + (1e-6 if gamma == 30 else 0.1))
    means = climb(200).solution().toarray()
    for i in range(4):
        x, y = rows[label == i].astype(np.float64), positive[label == i]
        expected = slow_likelihood(means[i], x, y, p[i], gamma)[0] - y.sum() * np.log(p[i])
        np.testing.assert_allclose(climb(200).log_likelihood[i], expected, rtol=1e-5)


@pytest.mark.check_beyond(2)
@KINDS
@pytest.mark.parametrize("unit_means", [True, False])
def test_laws_of_the_likelihood_solution(kind, unit_means, monkeypatch):
    data, Q = problem(kind, n=200, L=90)
    parameters = {"solution": "likelihood", "unit_means": unit_means, "gamma": 4, "propensity": (0.5, 0.4)}
    pairs = Candidates.all_labels(Q.shape[0], 90)
    tail = TailClassifiers(**parameters).fit(data.view())
    whole = tail.score(Q, pairs)[COLUMN]
    threaded = TailClassifiers(**parameters).fit(data.view(), n_jobs=4)
    assert threaded.score(Q, pairs, n_jobs=4)[COLUMN].tobytes() == whole.tobytes()
    assert np.abs(whole - TailClassifiers(gamma=4).fit(data.view()).score(Q, pairs)[COLUMN]).max() > 1e-3
    # Other labels play no part.
    labels = np.random.default_rng(6).permutation(90)
    mixed = TrainingSet(data.X, data.Y[:, labels], data.fold)
    a = TailClassifiers(**parameters).fit(mixed.view()).score(Q, pairs)[COLUMN].reshape(-1, 90)
    assert a.tobytes() == whole.reshape(-1, 90)[:, labels].tobytes()
    # Rows outside the View play none either.
    kept = np.flatnonzero(data.fold != 1)
    fewer = TrainingSet(data.X[kept], data.Y[kept], np.zeros(len(kept), np.int32))
    b, c = (
        TailClassifiers(**parameters).fit(view).score(Q, pairs)[COLUMN]
        for view in (data.without_fold(1), fewer.view())
    )
    assert b.tobytes() == c.tobytes()
    # The order of the rows decides which of equally near rows is among the nearest, and nothing else.
    monkeypatch.setattr(tail_likelihood, "NEGATIVES", 200)
    rows = np.random.default_rng(7).permutation(200)
    mixed = TrainingSet(data.X[rows], data.Y[rows], data.fold[rows])
    d, e = (TailClassifiers(**parameters).fit(some.view()).score(Q, pairs)[COLUMN] for some in (data, mixed))
    np.testing.assert_allclose(d, e, rtol=1e-4)


@KINDS
def test_likelihood_solution_is_saved_and_old_states_load(kind):
    data, Q = problem(kind)
    pairs = Candidates.all_labels(Q.shape[0], 9)
    for parameters in ({"solution": "likelihood", "max_terms": 3, "propensity": (0.5, 0.4)}, {}):
        fitted = TailClassifiers(**parameters).fit(data.view())
        state = fitted.get_state()
        state["propensity"] = json.loads(json.dumps(state["propensity"]))
        again = TailClassifiers.from_state(state)
        assert again.get_params() == fitted.get_params()
        assert again.score(Q, pairs)[COLUMN].tobytes() == fitted.score(Q, pairs)[COLUMN].tobytes()
        if kind == "sparse" and parameters:
            assert np.diff(fitted.means_.means.indptr).max() == 3
    del state["solution"], state["propensity"]
    old = TailClassifiers.from_state(state)
    assert old.get_params() == fitted.get_params()
    assert old.score(Q, pairs)[COLUMN].tobytes() == fitted.score(Q, pairs)[COLUMN].tobytes()


@KINDS
@pytest.mark.parametrize("unit_means", [True, False])
def test_likelihood_of_labels_without_points_with_one_and_with_all(kind, unit_means):
    x = np.array([[1, 0, 0], [0.6, 0.8, 0], [0, 0, 0], [0.8, 0, 0.6]], np.float32)
    Y = np.array([[0, 1, 0, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1]], np.float32)
    X = sp.csr_matrix(x) if kind == "sparse" else x
    view = TrainingSet(X, sp.csr_matrix(Y), np.zeros(4, np.int32)).view()
    tail = TailClassifiers(solution="likelihood", unit_means=unit_means, gamma=3).fit(view)
    none, one, zeros, everywhere = to_dense(tail.means_.means)
    np.testing.assert_array_equal(tail.means_.known, [0, 1, 1, 1])
    assert not none.any()
    assert not zeros.any()
    assert one[0] > 0
    assert np.all(one[1:] < 0)  # away from the points without it
    assert np.all(everywhere > 0)
    assert np.all(np.isfinite(tail.score(X, Candidates.all_labels(4, 4))[COLUMN]))
    empty = TrainingSet(X[:1], sp.csr_matrix((1, 4), dtype=np.float32), np.zeros(1, np.int32)).view()
    assert not TailClassifiers(solution="likelihood").fit(empty).means_.known.any()


def test_pfastrexml_with_the_likelihood_solution(tmp_path):
    data, _ = problem("sparse", n=100)
    parameters = {"n_trees": 3, "alpha": 0.5, "gamma": 3.0, "propensity": (0.5, 0.4)}
    model = PfastreXML(**parameters, unit_means=True, tail_solution="likelihood").fit(data.X, data.Y)
    expected = TailClassifiers(gamma=3.0, solution="likelihood", propensity=(0.5, 0.4)).fit(data.view())
    assert model.tail_.means_.means.data.tobytes() == expected.means_.means.data.tobytes()
    model.save(tmp_path / "M")
    again = load(tmp_path / "M")
    assert again.get_params() == model.get_params()
    assert again.tail_.get_params() == model.tail_.get_params()
    found, means = (
        model.shortlist(data.X, 5),
        PfastreXML(**parameters).fit(data.X, data.Y).shortlist(data.X, 5),
    )
    assert again.shortlist(data.X, 5).scores[model.column].tobytes() == found.scores[model.column].tobytes()
    assert means.scores[model.column].tobytes() != found.scores[model.column].tobytes()
    with pytest.raises(ValueError, match="tail_solution"):
        PfastreXML(tail_solution="sgd").fit(data.X, data.Y)


@pytest.mark.parametrize("cut", [{"label_rows": np.array([5], np.int32)}, {"max_terms": 0}])
def test_the_core_refuses_bad_arrays(cut):
    arguments = {
        "n_features": 2,
        "indptr": np.array([0, 1]),
        "indices": np.zeros(1, np.int32),
        "data": np.ones(1, np.float32),
        "label_indptr": np.array([0, 1]),
        "label_rows": np.zeros(1, np.int32),
        "max_terms": 2,
        "n_threads": 1,
    }
    _core.label_means_sparse(**arguments)
    with pytest.raises(ValueError, match="must"):
        _core.label_means_sparse(**(arguments | cut))


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"gamma": 0}, ValueError),
        ({"gamma": np.inf}, ValueError),
        ({"gamma": "30"}, TypeError),
        ({"unit_means": 1}, TypeError),
        ({"max_terms": 0}, ValueError),
        ({"max_terms": 2.5}, TypeError),
        ({"solution": "sgd"}, ValueError),
        ({"propensity": "none"}, ValueError),
    ],
)
def test_bad_parameters(parameters, error):
    data, _ = problem("sparse")
    with pytest.raises(error, match=next(iter(parameters))):
        TailClassifiers(**parameters).fit(data.view())
    with pytest.raises(ValueError, match="37 features"):
        TailClassifiers().fit(data.view()).score(np.ones((1, 3), np.float32), Candidates.all_labels(1, 9))


def test_a_rare_label_is_found_again():
    """A predictor that knows frequencies only, re-ranked: the labels of near training points come first."""
    rng = np.random.default_rng(4)
    centres = rng.gamma(1.0, size=(30, 50)).astype(np.float32)
    label = np.concatenate([np.arange(30), rng.integers(0, 3, 60)])  # 27 labels have a single point

    def points(labels):
        return centres[labels] + rng.gamma(0.1, size=(len(labels), 50)).astype(np.float32)

    Y = sp.csr_matrix((np.ones(90, np.float32), label, np.arange(91)), shape=(90, 30))
    tail = TailClassifiers().fit(TrainingSet(points(label), Y, np.zeros(90, np.int32)).view())
    pairs, truth = Candidates.all_labels(30, 30), np.eye(30)
    frequency = np.asarray(Y.mean(axis=0)).ravel()
    c = Candidates(pairs.indptr, pairs.labels, 30, {"score": frequency[pairs.labels]})
    scores = tail.score(points(np.arange(30)), pairs)[COLUMN]
    alpha = choose_alpha(c, scores, truth, metric="WP@1")
    assert alpha < 1
    assert wp_at_k(truth, c, 1) < 0.1
    assert wp_at_k(truth, rerank_with_tail(c, scores, alpha), 1) > 0.9


@KINDS
def test_a_model_with_it_is_saved_and_explained(kind, tmp_path):
    ds = makers.MAKERS[kind]()
    model = MetaRanker(**{**makers.QUICK, "features": ["tail"]}).fit(ds)
    assert any(COLUMN in name for name in model.feature_columns_)
    model.save(tmp_path / "M")
    again = load(tmp_path / "M")
    assert again.decision_function(ds.X).tobytes() == model.decision_function(ds.X).tobytes()
    assert "probability" in reasons(again.explain(ds.take([0]), 0))[0].text
