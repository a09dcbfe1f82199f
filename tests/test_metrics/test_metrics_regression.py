"""Graded and regression metrics: worked examples, slow twins, outside libraries and the paper's lemmas."""

import metrics_by_name as by_name
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from metrics_by_name import RANKING_NAMES, listed_only
from scipy.stats import kendalltau
from sklearn import metrics as sk

from metarank import metrics
from metarank.data import Dataset
from metarank.metrics.inputs import Inputs
from metarank.metrics.rerank import rerank_with_tail
from metarank.scorers.trees.tail_reranking import choose_alpha
from metarank.types.candidates import Candidates
from metarank.types.ranking import Ranking

POINTWISE = ["WP", "WN", "Tau", "WP-regret", "Regression-error", "XMAD", "XRMSE"]
NAMES = [f"{n}{way}@{k}" for n in POINTWISE for way in ("", "-l") for k in (1, 3, 40)]
NAMES += ["MAD", "MAD-l", "RMSE", "AUPRC"]


def problem(seed, n=30, n_labels=12, unlisted=0.4, tied=False):
    """Grades of 0 to 2.5, predictions >= 0, some labels not listed (-inf)."""
    rng = np.random.default_rng(seed)
    Y = rng.integers(1, 6, (n, n_labels)) * 0.5 * (rng.random((n, n_labels)) < 0.3)
    Y[::7] = 0
    scores = rng.random((n, n_labels)) * 2
    scores = np.round(scores) if tied else scores
    scores[rng.random(scores.shape) < unlisted] = -np.inf
    scores[3] = -np.inf
    return Y, scores.astype(np.float32)


def order(s):
    """Listed labels, best first, ties to the smaller id."""
    return [label for label in np.argsort(-s, kind="stable") if s[label] > -np.inf]


def slow(name, k, Y, scores):
    """The definitions, row by row over dense matrices."""
    scale = Y.max()
    predicted = np.where(np.isneginf(scores), 0, scores).astype(float)
    errors = np.abs(predicted - Y) / scale
    top = [order(s)[:k] for s in scores]
    if name in ("WP", "WN"):
        weight = 1 / np.log2(2 + np.arange(k)) if name == "WN" else np.ones(k)
        gained = sum(np.dot(y[t], weight[: len(t)]) for y, t in zip(Y, top))
        best = sum(np.dot(np.sort(y)[::-1][:k], weight[: min(k, len(y))]) for y in Y)
        return gained / best
    if name == "WP-regret":
        return np.mean([(np.sort(y)[::-1][:k].sum() - y[t].sum()) / k for y, t in zip(Y, top)]) / scale
    if name == "Tau":
        wrong = pairs = 0
        for y, t in zip(Y, top):
            places = min(k, len(y))
            pairs += places * np.sum(y > 0)
            for p in range(places):
                grade = y[t[p]] if p < len(t) else 0
                wrong += sum(y[m] > grade for m in range(len(y)) if m not in t[: p + 1])
        return 1 - wrong / pairs
    if name == "Regression-error":
        return np.mean([e[t].sum() / k for e, t in zip(errors, top)])
    largest = -np.sort(-errors, axis=1)[:, :k]
    if name == "XMAD":
        return np.mean(largest.sum(axis=1) / k)
    if name == "XRMSE":
        return np.mean(np.sqrt((largest**2).sum(axis=1) / k))
    if name == "MAD":
        return np.mean(errors.sum(axis=1))
    if name == "RMSE":
        return np.sqrt(np.mean(errors**2))
    finite = np.where(np.isneginf(scores), -1e9, scores)
    return sk.average_precision_score(Y.ravel() > 0, finite.ravel())


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("unlisted", [0.0, 0.5, 1.0])
def test_agrees_with_the_definitions(tied, unlisted):
    Y, scores = problem(1, unlisted=unlisted, tied=tied)
    for container in (scores, listed_only(scores), Ranking.from_scores(scores, 12)):
        got = metrics.evaluate(Y, container, NAMES)
        for name in NAMES:
            m = metrics.Metric.parse(name)
            swapped = (Y.T, scores.T) if m.name.endswith("-l") else (Y, scores)
            expected = slow(m.name.removesuffix("-l"), m.k, *swapped)
            assert got[name] == pytest.approx(expected, rel=1e-9), name


@pytest.mark.parametrize("tied", [False, True])
def test_every_container_gives_the_same_bytes(tied):
    Y, scores = problem(2, tied=tied)
    csr = listed_only(scores)
    shuffled = csr.copy()
    for i in range(len(Y)):  # unsorted indices, int64
        part = slice(*shuffled.indptr[i : i + 2])
        shuffled.indices[part], shuffled.data[part] = shuffled.indices[part][::-1], shuffled.data[part][::-1]
    shuffled = sp.csr_array(
        (shuffled.data, shuffled.indices.astype(np.int64), shuffled.indptr), shape=csr.shape
    )
    containers = [scores, scores.tolist(), np.asfortranarray(scores.astype(np.float64)), csr, shuffled]
    containers += [sp.coo_matrix(csr), Candidates.from_csr(csr), Ranking.from_scores(scores, 15)]
    names, w = NAMES + RANKING_NAMES, np.linspace(1.5, 9, Y.shape[1])
    values = [
        metrics.evaluate(Y, s, names, inv_propensity=w, n_jobs=1 + i % 4) for i, s in enumerate(containers)
    ]
    assert all(other == values[0] for other in values[1:])
    assert metrics.evaluate(sp.csc_array(Y), scores, names, inv_propensity=w) == values[0]
    by_label = metrics.evaluate(Y.T, Candidates.from_csr(csr).transpose(), ["WP@3", "XMAD@3"], n_jobs=1)
    assert by_label == {"WP@3": values[0]["WP-l@3"], "XMAD@3": values[0]["XMAD-l@3"]}


def test_rows_permute():
    Y, scores = problem(3)
    order = np.random.default_rng(0).permutation(len(Y))
    for name in ("XMAD@3", "XRMSE@3", "MAD", "WP-regret@3", "Regression-error@3", "WP@3", "Tau@3"):
        rows = metrics.per_row(Y, scores, name)
        assert metrics.per_row(Y[order], listed_only(scores)[order], name).tobytes() == rows[order].tobytes()
    labels = metrics.per_row(Y, scores, "XMAD-l@3")
    np.testing.assert_array_equal(labels, metrics.per_row(Y.T, scores.T, "XMAD@3"))


def test_worked_example():
    Y = np.array([[2.0, 0, 1, 0], [0, 1, 0, 0]])
    scores = sp.csr_matrix(np.array([[1.5, 0.5, 0, 0], [0, 0, 2.0, 0]]))
    # errors 0.5 0.5 1 0 and 0 1 2 0, halved by the greatest relevance
    d = 1 / np.log2(3)
    expected = {
        "WP@1": 2 / 3,
        "WP@2": 2 / 4,
        "WN@2": 2 / (2 + d + 1),
        "Tau@1": 1 - 1 / 3,  # row 1: label 1 is wrongly below label 2
        "Tau@2": 1 - (1 + 2) / 6,  # row 0: label 2 below label 1; row 1: below both places
        "WP-regret@1": (0 + 1) / 2 / 2,
        "WP-regret@2": ((3 - 2) / 2 + 1 / 2) / 2 / 2,
        "Regression-error@1": (0.5 + 2) / 2 / 2,
        "Regression-error@2": (1 / 2 + 2 / 2) / 2 / 2,
        "XMAD@1": (1 + 2) / 2 / 2,
        "XMAD@2": (1.5 / 2 + 3 / 2) / 2 / 2,
        "XMAD@8": (2 / 8 + 3 / 8) / 2 / 2,
        "XRMSE@2": (np.sqrt(1.25 / 2) + np.sqrt(5 / 2)) / 2 / 2,
        "MAD": (2 + 3) / 2 / 2,
        "RMSE": np.sqrt((1.5 + 5) / 8) / 2,
        "AUPRC": 1 / 3 * 1 / 2 + 2 / 3 * 3 / 8,
        "WP-l@1": 2 / 4,
        "XMAD-l@1": (0.5 + 1 + 2 + 0) / 4 / 2,
        "MAD-l": (0.5 + 1.5 + 3 + 0) / 4 / 2,
    }
    got = metrics.evaluate(Y, scores, list(expected))
    assert got == pytest.approx(expected)
    assert metrics.evaluate(Y, scores, ["XMAD@2"], scale=1)["XMAD@2"] == 2 * got["XMAD@2"]


def test_wp_with_propensities_is_psp():
    Y, scores = problem(4)
    Y, w = (Y > 0).astype(float), np.linspace(1, 7, Y.shape[1])
    psp = metrics.evaluate(Y, scores, ["PSP@3", "PSnDCG@3"], inv_propensity=w)
    assert metrics.evaluate(Y * w, scores, ["WP@3", "WN@3"]) == pytest.approx(
        {"WP@3": psp["PSP@3"], "WN@3": psp["PSnDCG@3"]}
    )


def test_outside_libraries():
    Y, scores = problem(5, unlisted=0.0)
    Y, scores = np.delete(Y, 3, axis=0), np.delete(scores, 3, axis=0)
    for y, s in zip(Y[1:5], scores[1:5]):  # a single row: nDCG
        assert by_name.wn_at_k([y], [s], 4) == pytest.approx(sk.ndcg_score([y], [s], k=4))
    got = metrics.evaluate(Y, scores, ["RMSE", "MAD", "AUPRC"], scale=1)
    assert got["RMSE"] == pytest.approx(sk.root_mean_squared_error(Y.ravel(), scores.ravel()))
    assert got["MAD"] == pytest.approx(sk.mean_absolute_error(Y, scores) * Y.shape[1])
    assert got["AUPRC"] == pytest.approx(sk.average_precision_score(Y > 0, scores, average="micro"))
    precision, recall, thresholds = metrics.precision_recall_curve(Y, scores)
    sk_precision, sk_recall, sk_thresholds = sk.precision_recall_curve(Y.ravel() > 0, scores.ravel())
    at = np.searchsorted(sk_thresholds, thresholds)
    np.testing.assert_allclose(precision, sk_precision[at])
    np.testing.assert_allclose(recall, sk_recall[at])


def test_tau_counts_the_pairs_of_kendall():
    rng = np.random.default_rng(6)
    for L in (2, 5, 9):
        y, s = rng.permutation(L) + 1.0, rng.permutation(L) + 0.0
        wrong = (1 - kendalltau(y, s).statistic) * (L - 1) / (4 * L)
        assert by_name.tau_at_k([y], [s], L) == pytest.approx(1 - wrong)
        assert by_name.tau_at_k([y], [y], L) == 1


def test_nothing_relevant_and_nothing_listed():
    empty = sp.csr_matrix((3, 4))
    got = metrics.evaluate(empty, empty, NAMES)
    for name, value in got.items():
        undefined = metrics.Metric.parse(name).name.removesuffix("-l") in ("WP", "WN", "Tau", "AUPRC")
        assert np.isnan(value) if undefined else value == 0, name
    no_rows = metrics.evaluate(np.zeros((0, 4)), np.zeros((0, 4)), ["XMAD@2", "RMSE", "WP@2", "AUPRC"])
    assert np.isnan(list(no_rows.values())).all()
    Y = sp.csr_matrix([[0, 2.0], [1.0, 0]])
    got = metrics.evaluate(Y, sp.csr_matrix((2, 2)), ["Tau@1", "WP@1", "XMAD@1", "MAD-l", "AUPRC"])
    assert got == {"Tau@1": 0, "WP@1": 0, "XMAD@1": 0.75, "MAD-l": 0.75, "AUPRC": 0.5}
    assert metrics.evaluate([[2.0]], [[1.0]], ["XMAD@3", "MAD", "Tau@3"]) == {
        "XMAD@3": pytest.approx(1 / 6),
        "MAD": 0.5,
        "Tau@3": 1.0,
    }


@pytest.mark.parametrize("name", ["XMAD@2", "Regression-error@2", "MAD-l"])
def test_predictions_must_be_finite(name):
    for bad in (np.nan, np.inf):
        for container in (np.array([[bad, 1.0]]), sp.csr_matrix([[bad, 1.0]])):
            with pytest.raises(ValueError, match="scores must"):
                metrics.evaluate([[1, 0]], container, [name])
    with pytest.raises(ValueError, match="NaN"):
        by_name.auprc([[1, 0]], [[np.nan, 1.0]])


SCALES = [(0, "positive"), (np.nan, "finite"), ("1", "scale"), (True, "scale")]


@pytest.mark.parametrize(("scale", "message"), SCALES)
def test_bad_scale(scale, message):
    with pytest.raises((ValueError, TypeError), match=message):
        metrics.evaluate([[1, 0]], [[1.0, 0.0]], ["XMAD@1"], scale=scale)


def test_threads_and_batches_give_the_same_bytes():
    rng = np.random.default_rng(7)
    Y = sp.random(1200, 500, 0.01, "csr", random_state=rng)
    scores = sp.random(1200, 500, 0.05, "csr", random_state=rng, dtype=np.float32)
    options = {"inv_propensity": np.linspace(1, 3, 500)}
    one, four = (metrics.evaluate(Y, scores, RANKING_NAMES, **options, n_jobs=n) for n in (1, 4))
    assert one == four
    for name in ("XMAD@5", "XRMSE@5", "MAD", "Regression-error@5"):
        whole = metrics.per_row(Y, scores, name, scale=1, n_jobs=1)
        assert metrics.per_row(Y, scores, name, scale=1, n_jobs=4).tobytes() == whole.tobytes()
        parts = [metrics.per_row(Y[r], scores[r], name, scale=1) for r in (slice(0, 7), slice(7, None))]
        assert np.concatenate(parts).tobytes() == whole.tobytes()


relevances = st.floats(0, 8, width=32).map(lambda v: v if v > 1e-3 else 0.0)


@st.composite
def truth_and_prediction(draw):
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 9)))
    return tuple(draw(hnp.arrays(np.float64, shape, elements=relevances)) for _ in range(2))


@settings(max_examples=60, deadline=None)
@given(truth_and_prediction(), st.integers(1, 5), st.booleans(), st.booleans())
def test_lemmas_3_1_and_a_1(data, k, sparse, labelwise):
    Y, predicted = data
    scores = sp.csr_matrix(predicted) if sparse else predicted
    way = "-l" if labelwise else ""
    regret, error, xmad, xrmse = (
        metrics.per_row(Y, scores, f"{name}{way}@{cut}")
        for name, cut in (("WP-regret", k), ("Regression-error", k), ("XMAD", 2 * k), ("XRMSE", 2 * k))
    )
    assert np.all(regret >= 0)
    assert np.all(regret <= 2 * xmad + 1e-9)
    assert np.all(np.maximum(regret, error) / 2 <= xmad + 1e-9)
    assert np.all(xmad <= xrmse + 1e-9)


@settings(max_examples=60, deadline=None)
@given(truth_and_prediction(), st.booleans())
def test_lemma_3_2(data, sparse):
    """What AUPRC loses is bounded by k XMAD@k, for k at least the number of errors in any row."""
    Y, predicted = data
    if not Y.any():
        return
    k, relevant = max(1, (predicted != Y).sum(axis=1).max()), Y > 0
    scores = sp.csr_matrix(predicted) if sparse else predicted
    values = metrics.evaluate(Y, scores, [f"XMAD@{k}", "AUPRC"], scale=1)
    assert by_name.auprc(Y, Y) == pytest.approx(1)
    b = 2 * len(Y) * k * values[f"XMAD@{k}"] / (Y[relevant].min() * relevant.sum())
    lost = b * (1 + np.log(1 + 1 / b)) if b > 0 else 0
    assert values["AUPRC"] >= 1 - lost - 1e-9


def test_rerank_with_tail():
    _, scores = problem(9)
    c = Candidates.from_csr(listed_only(scores))
    tail = np.random.default_rng(0).uniform(-9, 0, c.n_pairs)
    relevance = c.scores["score"].astype(float)
    for alpha in (0.0, 0.3, 1.0):
        new = rerank_with_tail(c, tail, alpha, scale=2)
        kept = relevance > 0
        expected = 2 * (relevance[kept] / 2) ** alpha * np.exp(tail[kept]) ** (1 - alpha)
        np.testing.assert_allclose(new.scores["score"], expected, rtol=1e-6)
        np.testing.assert_array_equal(new.labels, c.labels[kept])
    unchanged = rerank_with_tail(c, tail, 1.0)
    np.testing.assert_array_equal(unchanged.scores["score"], c.scores["score"][kept])
    both = Candidates(c.indptr, c.labels, c.n_labels, {"xreg": relevance, "tree_0": relevance / 2})
    new = rerank_with_tail(both, tail, 0.5)
    assert list(new.scores) == ["xreg", "tree_0"]
    np.testing.assert_array_equal(new.scores["tree_0"], both.scores["tree_0"][kept])


def test_choose_alpha_takes_the_best_of_a_mean():
    Y, _ = problem(40, unlisted=0)
    rng = np.random.default_rng(2)
    c = Candidates.from_csr(sp.csr_matrix(Y / Y.max() + rng.random(Y.shape)))
    tail = np.where(Y.ravel() > 0, -1.0, -2.0) * rng.gamma(1.0, size=c.n_pairs)
    names, grid = ["WP@1", "WP@3", "WP@5"], np.linspace(0, 1, 21)
    means = [
        np.mean(list(metrics.evaluate(Y, rerank_with_tail(c, tail, alpha), names).values())) for alpha in grid
    ]
    best = grid[np.flatnonzero(np.array(means) >= max(means) - 1e-9)[-1]]
    assert choose_alpha(c, tail, Y, names, grid, scale=1.0) == best
    # Ties: the weaker intervention, also where there is nothing to choose by.
    assert choose_alpha(c, np.full(c.n_pairs, -1.0), Y, ["WP@3"], scale=1.0) == 1.0
    assert choose_alpha(c, tail, sp.csr_matrix(Y.shape), ["WP@3"], scale=1.0) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 1.5}, "alpha"),
        ({"scale": 0}, "scale"),
        ({"tail_scores": np.zeros(3)}, "tail_scores must have shape"),
        ({"tail_scores": np.array([0.0, 1.0])}, "at most 0"),
        ({"tail_scores": np.array([0.0, -np.inf])}, "finite"),
        ({"candidates": Candidates.all_labels(1, 2)}, "no scores"),
        ({"candidates": Candidates.from_csr(sp.csr_matrix([[np.nan, 1.0]]))}, "must be finite"),
        ({"alpha": "a"}, "alpha must be a number in .* got 'a'"),
        ({"alpha": True}, "alpha must be a number"),
        ({"scale": "1"}, "scale must be finite and positive, got '1'"),
        ({"tail_scores": ["a"] * 2}, "tail_scores must be numbers, got dtype <U1"),
        ({"candidates": np.eye(2)}, "candidates must be Candidates, got ndarray"),
    ],
)
def test_bad_reranking(arguments, message):
    c = Candidates.from_csr(sp.csr_matrix([[0.5, 1.0]]))
    with pytest.raises((ValueError, TypeError), match=message):
        rerank_with_tail(**({"candidates": c, "tail_scores": np.zeros(2), "alpha": 0.5} | arguments))


def test_messages_say_where_and_what_to_do():
    Y, scores = np.eye(3, 4), np.zeros((3, 4))
    scores[1, 2] = np.nan
    with pytest.raises(ValueError, match="got nan"):
        by_name.xmad_at_k(Y, scores, 2)
    for container in (Y.T, sp.csr_matrix(Y.T), Candidates.from_csr(sp.csr_matrix(Y.T))):
        with pytest.raises(ValueError, match=r"got \(4, 3\): .*scores\.transpose\(\)"):
            by_name.wp_at_k(Y, container, 2)
    with pytest.raises(ValueError, match=r"got \(3, 3\)$"):
        by_name.wp_at_k(Y, np.eye(3), 2)
    with pytest.raises(ValueError, match=r"Dataset\(Y=lists of labels\), got rows of unequal length"):
        by_name.wp_at_k([[0], [1, 2]], np.eye(2, 3), 1)
    lists = Dataset(Y=[[0], [1, 2]], label_names=["a", "b", "c"]).Y
    assert by_name.wp_at_k(lists, np.eye(2, 3), 1) == 1.0


def test_rows_of_inputs_keep_the_scale():
    inputs = Inputs([[4.0, 0], [1.0, 0]], [[1.0, 0], [1.0, 0]])
    assert inputs.rows(np.array([1])).scale == inputs.swapped.scale == 4.0
