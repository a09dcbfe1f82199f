"""Ranking metrics: worked examples, a slow twin, scikit-learn and trec_eval."""

import warnings

import metrics_by_name as by_name
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from metrics_by_name import RANKING_NAMES, listed_only
from sklearn import metrics as sk

from metarank import _core, metrics
from metarank.data import Dataset
from metarank.metrics.inputs import Inputs
from metarank.types.ranking import Ranking

NEVER_PERFECT = ["P@1", "P@3", "R@3", "RankLoss", "One-error", "Coverage", "MRR@2", "MRR-all", "ADG", "C@2"]


def test_a_data_set_is_matched_by_name():
    """Columns in another order, labels that the ranking does not know, and some that nobody has."""
    Y, scores = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 0]]), np.array([[3.0, 2, 1], [1, 2, 3], [1, 3, 2]])
    known, options = ["a", "b", "c"], {"inv_propensity": np.array([1.0, 3, 2]), "Y_pred": (scores > 2) * 1}
    names = ["P@2", "nDCG", "PSP@1", "MAP", "micro-F1", "macro-F1"]
    ranking = Ranking.from_scores(scores, 3, label_names=known)
    expected = metrics.evaluate(Y, ranking, names, **options)
    order = [2, 0, 1]
    other = Dataset(np.eye(3), Y[:, order], label_names=[known[i] for i in order])
    assert metrics.evaluate(other, ranking, names, **options) == expected
    assert by_name.ndcg(other, ranking) == expected["nDCG"]
    assert metrics.bootstrap(other, ranking, ["MAP"], n_resamples=9) == metrics.bootstrap(
        Y, ranking, ["MAP"], n_resamples=9
    )

    more = Dataset(
        np.eye(3), np.hstack([[[0], [1], [0]], Y, np.zeros((3, 1))]), label_names=["d", *known, "e"]
    )
    wide = Ranking.from_scores(np.hstack([scores, np.full((3, 1), -np.inf)]), 3)
    wider = {
        "inv_propensity": np.array([1.0, 3, 2, 3]),
        "Y_pred": np.hstack([options["Y_pred"], np.zeros((3, 1))]),
    }
    with pytest.warns(UserWarning, match=r"does not know: 1 \('d'\), in 1 of 5 relevant pairs"):
        found = metrics.evaluate(more, ranking, names, **options)
    assert found == metrics.evaluate(np.hstack([Y, [[0], [1], [0]]]), wide, names, **wider)
    counts = {"slices": "label frequency", "label_counts": [9, 1, 1]}
    assert metrics.evaluate(other, ranking, ["R@1"], **counts) == metrics.evaluate(
        Y, ranking, ["R@1"], **counts
    )

    twice = Ranking.from_scores(scores, 3, label_names=["a", "b", "a"])
    with pytest.raises(ValueError, match=r"Y_true must hold names of one label each, got 'a', the name of"):
        metrics.evaluate(other, twice, ["MAP"])
    with pytest.raises(ValueError, match="give the data set in place of its Y"):
        metrics.evaluate(more.Y, ranking, ["MAP"])


def problem(seed, n=40, n_labels=12, tied=False, graded=False, empty_rows=False):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, n_labels)) < 0.3).astype(float)
    if graded:
        Y *= rng.integers(1, 4, Y.shape)
    Y[np.arange(n), rng.integers(n_labels, size=n)] = 1
    if empty_rows:
        Y[::7] = 0
    scores = rng.normal(size=Y.shape).astype(np.float32)
    return Y, np.round(scores) if tied else scores


def slow_standing(Y, scores):
    """(rank, last, above, not_below) of each relevant pair by the definitions."""
    out = []
    for y, s in zip(Y, scores):
        for label in np.flatnonzero(y):
            listed = s > -np.inf
            ahead = (s > s[label]) | ((s == s[label]) & (np.arange(len(s)) < label))
            rank = 1.0 + np.sum(ahead & listed) if listed[label] else np.inf
            irrelevant = y == 0
            out.append(
                (
                    rank,
                    np.sum(s >= s[label]),
                    np.sum(irrelevant & (s > s[label])),
                    np.sum(irrelevant & (s >= s[label])),
                )
            )
    return np.array(out).reshape(-1, 4).T


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("unlisted", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_standing_agrees_with_its_definition(tied, unlisted, dtype):
    Y, scores = problem(1, tied=tied, empty_rows=True)
    scores = scores.astype(dtype)
    scores[np.random.default_rng(2).random(scores.shape) < unlisted] = -np.inf
    expected = slow_standing(Y, scores)
    for container in (scores, listed_only(scores)):
        inputs = Inputs(Y, container)
        np.testing.assert_array_equal(inputs.standing, expected)
        got = (inputs.rank, inputs.last, inputs.not_below)
        np.testing.assert_array_equal(got, [expected[i] for i in (0, 1, 3)])


def test_worked_examples():
    Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    scores = np.array([[0.4, 0.3, 0.1, 0.2], [0.9, 0.5, 0.6, 0.1], [0.1, 0.2, 0.3, 0.4]])
    # ranks of the relevant labels: row 0 at 1 and 4, row 1 at 3, row 2 has none
    d = 1 / np.log2(1 + np.arange(1, 5))
    expected = {
        "P@1": 1 / 3,
        "P@3": (1 / 3 + 1 / 3 + 0) / 3,
        "P@5": (2 / 5 + 1 / 5 + 0) / 3,
        "R@1": 1 / 4,
        "R@3": (1 / 2 + 1) / 2,
        "nDCG@1": 1 / 2,
        "nDCG@3": (d[0] / (d[0] + d[1]) + d[2]) / 2,
        "nDCG": ((d[0] + d[3]) / (d[0] + d[1]) + d[2]) / 2,
        "MAP": ((1 + 2 / 4) / 2 + 1 / 3) / 2,
        "RankLoss": (2 / 4 + 2 / 3) / 2,
        "One-error": 1 / 2,
        "Coverage": (3 + 2) / 2,
        "MRR": (1 + 1 / 3) / 2,
        "MRR@2": 1 / 2,
        "MRR-all": ((1 + 1 / 4) / 2 + 1 / 3) / 2,
        "ADG": ((d[0] + d[3]) / 2 + d[2]) / 2,
        # label 0: 0.4 against 0.9, 0.1; label 1: 0.5 against 0.3, 0.2; label 2: 0.1 against 0.6, 0.3
        "AUC": (1 / 2 + 1 + 0) / 3,
        # of the irrelevant 0.3 0.2 0.9 0.6 0.1 0.1 0.2 0.3 0.4: 0.4 beats 6, ties 1; 0.1 ties 2; 0.5 beats 7
        "micro-AUC": (6.5 + 1 + 7) / (3 * 9),
        "C@1": 2 / 3,
    }
    assert metrics.evaluate(Y, scores, expected) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("Y", "scores", "expected"),
    [
        (
            [[3.0, 1.0, 0.0]],
            [[0.1, 0.3, 0.2]],
            {"nDCG": (1 + 3 / 2) / (3 + 1 / np.log2(3)), "nDCG@1": 1 / 3, "P@1": 1.0},
        ),
        (
            np.ones((2, 3)),
            np.arange(6.0).reshape(2, 3),
            {"MAP": 1, "RankLoss": 0, "Coverage": 2, "P@5": 3 / 5},
        ),
        (
            [[1], [0]],
            [[0.3], [0.2]],
            {"P@1": 0.5, "nDCG@3": 1, "MAP": 1, "RankLoss": 0, "Coverage": 0, "AUC": 1},
        ),
    ],
    ids=["grades", "all labels relevant", "one label"],
)
def test_small_cases(Y, scores, expected):
    assert metrics.evaluate(Y, scores, expected) == pytest.approx(expected)


def test_propensity_scored_worked_example():
    Y = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0]])
    scores = np.array([[0.9, 0.5, 0.1], [0.2, 0.8, 0.4], [0.3, 0.2, 0.1]])
    w = np.array([2.0, 3.0, 4.0])
    d = 1 / np.log2([2, 3, 4])
    got = metrics.evaluate(
        Y, scores, ["PSP@1", "PSP@2", "PSnDCG@2", "PSP-point@1", "PSnDCG-point@2"], inv_propensity=w
    )
    assert got == pytest.approx(
        {
            "PSP@1": (2 + 3) / (4 + 3),
            "PSP@2": (2 + 3) / (6 + 3),
            "PSnDCG@2": (2 + 3) / (4 + 2 * d[1] + 3),
            "PSP-point@1": (2 / 4 + 1) / 2,
            "PSnDCG-point@2": (2 / (4 + 2 * d[1]) + 1) / 2,
        }
    )
    assert by_name.psp_at_k(Y, scores, 1, w) == pytest.approx(5 / 7)
    assert by_name.psndcg_at_k(Y, scores, 2, w, per_point=True) == pytest.approx(got["PSnDCG-point@2"])


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_scikit_learn(seed, tied):
    Y, scores = problem(seed, tied=tied)
    assert by_name.mean_average_precision(Y, scores) == pytest.approx(
        sk.label_ranking_average_precision_score(Y, scores)
    )
    assert by_name.ranking_loss(Y, scores) == pytest.approx(sk.label_ranking_loss(Y, scores))
    assert by_name.coverage(Y, scores) == pytest.approx(sk.coverage_error(Y, scores) - 1)
    assert by_name.auc(Y, scores) == pytest.approx(sk.roc_auc_score(Y, scores, average="macro"))
    assert by_name.micro_auc(Y, scores) == pytest.approx(sk.roc_auc_score(Y, scores, average="micro"))
    assert metrics.auc_per_label(Y, scores) == pytest.approx(sk.roc_auc_score(Y, scores, average=None))
    if not tied:
        graded, _ = problem(seed, graded=True)
        for k in (1, 5, None):
            assert by_name.ndcg(graded, scores, k) == pytest.approx(sk.ndcg_score(graded, scores, k=k))


def test_agrees_with_trec_eval():
    ir = pytest.importorskip("ir_measures")
    Y, scores = problem(5, graded=True)
    qrels = [ir.Qrel(str(i), str(j), int(Y[i, j])) for i, j in zip(*np.nonzero(Y))]
    run = [ir.ScoredDoc(str(i), str(j), float(s)) for (i, j), s in np.ndenumerate(scores)]
    names = {"P@1": ir.P @ 1, "P@5": ir.P @ 5, "nDCG": ir.nDCG, "nDCG@5": ir.nDCG @ 5, "MAP": ir.AP}
    names |= {"MRR": ir.RR, "R@5": ir.R @ 5}
    theirs = ir.calc_aggregate(list(names.values()), qrels, run)
    ours = metrics.evaluate(Y, scores, names)
    for name, measure in names.items():
        assert ours[name] == pytest.approx(theirs[measure], abs=1e-6), name


def test_rows_without_a_relevant_label():
    Y, scores = problem(6, empty_rows=True)
    filled = Y.any(axis=1)
    w = np.linspace(1, 3, Y.shape[1])
    whole = metrics.evaluate(Y, scores, RANKING_NAMES, inv_propensity=w)
    part = metrics.evaluate(Y[filled], scores[filled], RANKING_NAMES, inv_propensity=w)
    for name in RANKING_NAMES:
        if name.startswith("P@"):
            assert whole[name] == pytest.approx(part[name] * filled.mean())
        elif name not in ("AUC", "micro-AUC", "C@2"):
            assert whole[name] == pytest.approx(part[name]), name


def test_nothing_to_measure_is_nan_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = metrics.evaluate(np.zeros((2, 3)), np.ones((2, 3)), RANKING_NAMES, inv_propensity=np.ones(3))
        none = metrics.evaluate(np.zeros((0, 3)), np.ones((0, 3)), RANKING_NAMES, inv_propensity=np.ones(3))
    assert got.pop("P@1") == got.pop("P@3") == 0
    assert got.pop("C@2") == 2 / 3
    assert np.isnan(list(got.values())).all()
    assert np.isnan(list(none.values())).all()


def test_ties_by_label_and_unlisted_never_found():
    Y = [[0, 1, 0]]
    assert by_name.precision_at_k(Y, [[0.5, 0.5, 0.5]], 1) == 0
    assert by_name.precision_at_k(Y, [[0.5, 0.5, 0.5]], 2) == 0.5
    nothing = sp.csr_matrix((1, 3))
    got = metrics.evaluate(
        Y, nothing, ["P@3", "R@3", "nDCG", "MRR", "ADG", "One-error", "MAP", "RankLoss", "Coverage"]
    )
    assert list(got.values()) == pytest.approx([0, 0, 0, 0, 0, 1, 1 / 3, 1, 2])


def test_a_ranking_keeps_its_own_order_of_ties():
    r = Ranking(np.array([[2, 0]]), np.array([[0.5, 0.5]]), n_labels=3)
    assert by_name.precision_at_k([[0, 0, 1]], r, 1) == 1


@pytest.mark.parametrize("name", [n for n in RANKING_NAMES if n not in ("AUC", "micro-AUC", "C@2")])
def test_per_row_values_average_to_the_metric_and_follow_the_rows(name):
    Y, scores = problem(7, empty_rows=True, graded=True)
    w = np.linspace(1, 3, Y.shape[1])
    values = metrics.per_row(Y, scores, name, inv_propensity=w)
    assert values.dtype == np.float64
    assert np.nanmean(values) == pytest.approx(metrics.evaluate(Y, scores, [name], inv_propensity=w)[name])
    order = np.random.default_rng(0).permutation(len(Y))
    permuted = metrics.per_row(Y[order], scores[order], name, inv_propensity=w)
    if name in ("PSP@3", "PSnDCG@3"):  # these are divided by a mean over rows
        np.testing.assert_allclose(permuted, values[order])
    else:
        assert permuted.tobytes() == values[order].tobytes()


@st.composite
def problems(draw):
    n, n_labels = draw(st.integers(1, 6)), draw(st.integers(2, 7))
    cells = n * n_labels
    Y = draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=cells, max_size=cells))
    scores = draw(st.permutations(range(cells)))
    return np.reshape(Y, (n, n_labels)), np.reshape(scores, (n, n_labels)).astype(float), draw(st.randoms())


@settings(max_examples=60, deadline=None)
@given(problems())
def test_permuting_rows_or_labels_changes_nothing(drawn):
    Y, scores, random = drawn
    w = np.linspace(1, 3, Y.shape[1])
    rows, labels = (np.array(random.sample(range(m), m)) for m in Y.shape)
    base = metrics.evaluate(Y, scores, RANKING_NAMES, inv_propensity=w)
    by_row = metrics.evaluate(Y[rows], scores[rows], RANKING_NAMES, inv_propensity=w)
    by_label = metrics.evaluate(Y[:, labels], scores[:, labels], RANKING_NAMES, inv_propensity=w[labels])
    assert by_row == pytest.approx(base, nan_ok=True)
    assert by_label == pytest.approx(base, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_a_perfect_ranking_is_perfect_and_values_are_fractions(drawn):
    Y, scores, _ = drawn
    w = np.linspace(1, 3, Y.shape[1])
    best = [name for name in RANKING_NAMES if name not in NEVER_PERFECT]
    perfect = metrics.evaluate(Y, Y * w, best, inv_propensity=w)
    assert all(np.isnan(v) or v == pytest.approx(1) for v in perfect.values())
    worst = metrics.evaluate(Y, Y * w, ["RankLoss", "One-error"])
    assert all(np.isnan(v) or v == 0 for v in worst.values())
    for name, value in metrics.evaluate(Y, scores, RANKING_NAMES, inv_propensity=w).items():
        assert np.isnan(value) or 0 <= value <= (Y.shape[1] - 1 if name == "Coverage" else 1 + 1e-12)


@pytest.mark.parametrize(
    ("Y", "scores", "names", "message"),
    [
        ([[1, 0]], [[0.1, np.nan]], ["P@1"], "NaN"),
        ([[1, 0]], [[0.1, np.nan]], ["micro-AUC"], "NaN"),
        ([[1, 0]], [[0.1, np.nan]], ["AUC"], "NaN"),
        ([[1, 0]], [[0.1, np.nan]], ["C@1"], "NaN"),
        ([[1, 0]], [[0.1, 0.2, 0.3]], ["P@1"], r"shape of Y_true, \(1, 2\), got \(1, 3\)"),
        ([[1, 0]], [0.1, 0.2], ["P@1"], r"scores must be \(n, L\)"),
        ([1, 0], [[0.1, 0.2]], ["P@1"], "Y_true must be"),
        ([[-1, 0]], [[0.1, 0.2]], ["P@1"], ">= 0, got -1"),
        ([[np.nan, 0]], [[0.1, 0.2]], ["P@1"], "finite"),
        ([[1, 0]], None, ["P@1"], "scores must be given"),
        (np.zeros((1, 0)), np.zeros((1, 0)), ["P@1"], "at least one label"),
        ([[1, 0]], [[0.1, 0.2]], ["PSP@1"], "inv_propensity must be given"),
        ([[1, 0]], [[0.1, 0.2]], ["micro-F1"], "Y_pred must be given"),
    ],
)
def test_bad_input(Y, scores, names, message):
    with pytest.raises(ValueError, match=message):
        metrics.evaluate(Y, scores, names)


def test_weights_are_finite_and_positive():
    for w in ([1.0], [1.0, np.inf], [1.0, 0.0]):
        with pytest.raises(ValueError, match="inv_propensity"):
            metrics.evaluate([[1, 0]], [[0.1, 0.2]], ["PSP@1"], inv_propensity=w)


def test_inputs_are_left_untouched():
    Y = sp.csr_matrix(([1.0, 0.0], [1, 0], [0, 2]), shape=(1, 2))
    before = Y.indices.copy(), Y.data.copy()
    metrics.evaluate(Y, Y, ["P@1", "AUC"])
    np.testing.assert_array_equal(Y.indices, before[0])
    np.testing.assert_array_equal(Y.data, before[1])


@pytest.mark.parametrize("k", [1, 3, 5])
def test_f1_of_the_first_labels_is_that_of_sets(k):
    rng = np.random.default_rng(k)
    Y = (rng.random((40, 12)) < 0.2).astype(int)
    Y[0] = 0
    scores = rng.random((40, 12))
    listed = np.zeros_like(Y)
    np.put_along_axis(listed, np.argsort(-scores, axis=1)[:, :k], 1, axis=1)
    expected = sk.f1_score(Y, listed, average="samples", zero_division=0)
    assert by_name.f1_at_k(Y, scores, k) == pytest.approx(expected)
    assert metrics.evaluate(Y, scores, [f"F1@{k}"])[f"F1@{k}"] == pytest.approx(expected)


def test_the_core_refuses_what_it_could_not_read():
    indptr, labels = np.array([0, 1]), np.array([0], np.int32)
    scores = np.zeros(1, np.float32)
    for bad_indptr in ([0, 2], [1, 1], [0, -1, 1], []):
        bad = np.array(bad_indptr, np.int64)
        with pytest.raises(ValueError):
            _core.top_k_listed(bad, labels, scores, 1, 1)
        with pytest.raises(ValueError):
            _core.standing_listed(bad, labels, indptr, labels, scores, 2, 1)
        with pytest.raises(ValueError):
            _core.standing_listed(indptr, labels, bad, labels, scores, 2, 1)
        with pytest.raises(ValueError):
            _core.descending_rows(bad, np.zeros(1))
    for label in (-1, 1):
        with pytest.raises(ValueError, match="y_labels must lie"):
            _core.standing_listed(indptr, np.array([label], np.int32), indptr, labels, scores, 1, 1)
    with pytest.raises(ValueError, match="same length"):
        _core.top_k_listed(indptr, labels, np.zeros(2, np.float32), 1, 1)
    with pytest.raises(TypeError):
        _core.top_k_listed(indptr, labels.astype(np.int64), scores, 1, 1)
