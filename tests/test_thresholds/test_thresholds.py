"""Thresholds: kernels and cuts against slow twins, optima by brute force, laws, and hard inputs."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from metarank import _core, persist
from metarank.metrics.logistic import fit_label_logistic
from metarank.thresholds import METRICS, THRESHOLDS, Calibrator, LearnedThresholds
from metarank.thresholds.instance_threshold import InstanceThreshold, best_thresholds, rescaled
from metarank.thresholds.lists import ScoredLists
from metarank.thresholds.rules import GlobalThreshold, HalfF1Thresholds, LabelThresholds
from metarank.thresholds.set_metrics import quality
from metarank.thresholds.subset import SubsetThreshold
from metarank.thresholds.sweep import Sweep
from metarank.types.candidates import Candidates


def make_scored(n=120, n_labels=6, seed=0, full=True, empty=True):
    """Logits whose probabilities are right, distorted by the same increasing function for all."""
    rng = np.random.default_rng(seed)
    true = rng.normal(-1.2, 1.8, (n, n_labels)) + rng.normal(0, 0.7, n_labels)
    Y = rng.random((n, n_labels)) < expit(true)
    if not empty:
        Y[np.arange(n), true.argmax(1)] = True
    scores = 0.4 * true + 3.0
    keep = np.ones((n, n_labels), bool) if full else rng.random((n, n_labels)) < 0.7
    if not full:
        keep[2] = False
    indptr = np.concatenate([[0], np.cumsum(keep.sum(1))])
    pairs = Candidates(indptr, np.nonzero(keep)[1].astype(np.int32), n_labels)
    return pairs, scores[keep], Y[keep].astype(np.float32), true[keep]


def fitted(threshold="auto", n_folds=5, seed=0, **made):
    pairs, scores, gains, _ = make_scored(seed=seed, **made)
    learner = LearnedThresholds(threshold).fit(pairs, scores, gains, fold=np.arange(pairs.n_rows) % n_folds)
    return learner, pairs, scores, gains


def lists_of(Z, Y, missed=0.0):
    Z = np.asarray(Z, np.float64)
    return ScoredLists(Candidates.all_labels(*Z.shape), Z.ravel(), np.asarray(Y).ravel() > 0, missed)


# --- kernels against slow twins ----------------------------------------------


def test_falling_logits_twin():
    """Isotonic regression of the probabilities of each list along it, where ties go by place."""
    rng = np.random.default_rng(2)
    pairs, _, _, z = make_scored(n=40, full=False)
    scores = np.round(z + rng.normal(size=len(z)), 1).astype(np.float32)
    found = _core.falling_logits(z, scores, pairs.indptr)
    for a, b in zip(pairs.indptr[:-1], pairs.indptr[1:]):
        if a == b:
            continue
        order = np.lexsort((np.arange(b - a), -scores[a:b]))
        by_list = IsotonicRegression(increasing=False).fit_transform(np.arange(b - a), expit(z[a:b][order]))
        np.testing.assert_allclose(expit(found[a:b][order]), by_list, rtol=1e-9)
        assert (np.diff(found[a:b][order]) <= 0).all()
    again = _core.falling_logits(found, scores, pairs.indptr)
    np.testing.assert_array_equal(again, found)
    far = _core.falling_logits(np.array([-900.0, 900]), np.float32([1, 0]), np.array([0, 2]))
    np.testing.assert_array_equal(far, [0, 0])


def test_context_twin():
    rng = np.random.default_rng(0)
    pairs, _, _, s = make_scored(n=30, full=False)
    s = np.round(s, 1)
    X = _core.list_context(s, pairs.indptr)
    rank = _core.list_ranks(s, pairs.indptr)
    for i in rng.permutation(30):
        a, b = pairs.indptr[i : i + 2]
        best_first = sorted(s[a:b], reverse=True)
        for j in range(a, b):
            r = rank[j]
            other = best_first[1 if r == 0 and b - a > 1 else 0]
            expected = [
                1,
                s[j],
                expit(s[a:b]).sum() - expit(s[j]),
                np.log(1 + r),
                r == 0,
                np.clip(other, -8, 8),
                s[j] - np.clip(other, -8, 8),
                0 if r == 0 else min(5, best_first[r - 1] - s[j]),
                0 if r + 1 == b - a else min(5, s[j] - best_first[r + 1]),
            ]
            np.testing.assert_allclose(X[j], expected, atol=1e-12)


def logistic_problem(p, q, k=3, m=160):
    rng = np.random.default_rng([p, q])
    X = np.column_stack([np.ones(m), rng.normal(size=(m, p - 1))])
    index = rng.integers(0, k, m).astype(np.int32)
    z = X @ rng.normal(size=p) + (X[:, :q] * rng.normal(size=(k, q))[index]).sum(1)
    return X, index, (rng.random(m) < expit(z)).astype(float), rng.integers(0, 3, m).astype(float)


def logistic_twin(problem, q, k, label_ridge):
    """Newton's method on one matrix that has a column for every coefficient."""
    X, index, y, w = problem
    own = np.zeros((len(X), k, q))
    own[np.arange(len(X)), index] = X[:, :q]
    wide = np.column_stack([X, own.reshape(len(X), -1)])
    penalty = np.r_[1e-6, np.full(X.shape[1] - 1, 1e-2), np.full(k * q, label_ridge)]
    beta = np.zeros(wide.shape[1])
    for _ in range(50):
        P = expit(wide @ beta)
        hessian = (wide * (w * P * (1 - P))[:, None]).T @ wide + np.diag(penalty)
        beta -= np.linalg.solve(hessian, wide.T @ (w * (P - y)) + penalty * beta)
    return beta[: X.shape[1]], beta[X.shape[1] :].reshape(k, q)


@pytest.mark.parametrize(("p", "q"), [(1, 0), (2, 0), (2, 1), (2, 2), (4, 3), (9, 0), (9, 1), (9, 2)])
def test_logistic_fit_twin(p, q):
    k = 3
    problem = logistic_problem(p, q, k)
    # A last label without a pair keeps no terms.
    beta, B = fit_label_logistic(*problem, np.zeros(p), np.full((k + 1, q), 0.5), label_ridge=0.7)
    twin, twin_B = logistic_twin(problem, q, k, 0.7)
    np.testing.assert_allclose(beta, twin, atol=1e-4)
    np.testing.assert_allclose(B, np.r_[twin_B, np.zeros((1, q))], atol=1e-4)
    X, index, *_ = problem
    z = X @ beta + (X[:, :q] * B[index]).sum(1)
    np.testing.assert_allclose(_core.label_logistic_scores(X, index, beta, B), z)


def test_logistic_fit_refuses_labels_without_a_penalty():
    X, index, y, w = logistic_problem(2, 1)
    with pytest.raises(ValueError, match="label_ridge must be positive"):
        fit_label_logistic(X, index, y, w, np.zeros(2), np.zeros((3, 1)), label_ridge=0.0)


def expected_f1(p, k):
    """By enumeration of all label sets; p descending, the first k kept."""
    total = 0.0
    for y in product([0, 1], repeat=len(p)):
        weight = np.prod([q if t else 1 - q for q, t in zip(p, y)])
        total += weight * (1.0 if k + sum(y) == 0 else 2 * sum(y[:k]) / (k + sum(y)))
    return total


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=7), st.booleans())
def test_expected_f1_by_enumeration(p, allow_empty):
    p = np.sort(np.array(p))[::-1].copy()
    got = int(_core.expected_f1_sizes(p, np.array([0, len(p)]), 0.0, 25, allow_empty)[0])
    values = [expected_f1(p, k) for k in range(len(p) + 1)]
    assert allow_empty or got > 0
    assert values[got] >= max(values[0 if allow_empty else 1 :]) - 1e-12


def test_expected_f1_of_labels_beyond_those_enumerated():
    p = np.full(4, 0.55)
    for unseen in (0.0, 8.0, 1e9):
        assert _core.expected_f1_sizes(p, np.array([0, 4]), unseen, 25, False)[0] == 4
    p = np.array([0.9, 0.4, 0.35, 0.3])
    alone, among_many = (_core.expected_f1_sizes(p, np.array([0, 4]), u, 25, False)[0] for u in (0.0, 6.0))
    assert alone < among_many == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _core.list_ranks(np.array([np.nan]), np.array([0, 1])), "scores must be finite"),
        (lambda: _core.list_ranks(np.zeros(2), np.array([0, 3])), "indptr must start at 0"),
        (
            lambda: _core.label_logistic_scores(np.ones((1, 1)), np.int32([1]), np.ones(1), np.ones((1, 1))),
            "index must lie in",
        ),
        (
            lambda: _core.expected_f1_sizes(np.array([1.5]), np.array([0, 1]), 0.0, 25, True),
            "probabilities must lie in",
        ),
    ],
)
def test_kernels_refuse_what_they_cannot_follow(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- cuts ----------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 25), st.booleans(), st.sampled_from([0.0, 3.0]))
def test_f1_cuts_by_brute_force(seed, m, soft, missed):
    rng = np.random.default_rng(seed)
    z, group = np.round(rng.normal(size=m), 1), rng.integers(0, 3, m)
    y = rng.random(m) if soft else (rng.random(m) < 0.4).astype(float)
    cuts = Sweep(z, group, 3).best_f1(y, missed)
    for g in range(3):
        zg, yg = z[group == g], y[group == g]
        if len(zg) == 0:
            assert np.isnan(cuts[g])
            continue

        def f1(t, zg=zg, yg=yg):
            kept = zg >= t
            return 2 * yg[kept].sum() / max(1e-300, kept.sum() + yg.sum() + missed)

        assert f1(cuts[g]) >= max(f1(t) for t in [*zg, np.inf]) - 1e-12


def test_fewest_mistakes_by_brute_force():
    rng = np.random.default_rng(4)
    for _ in range(50):
        z, y, group = np.round(rng.normal(size=20), 1), rng.random(20), rng.integers(0, 2, 20)
        cuts = Sweep(z, group, 2).fewest_mistakes(y)
        for g in range(2):
            zg, yg = z[group == g], y[group == g]
            mistakes = [np.where(zg >= t, 1 - yg, yg).sum() for t in [cuts[g], *zg, np.inf]]
            assert mistakes[0] <= min(mistakes) + 1e-12


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 25), st.sampled_from([0.0, 0.3, 1.0]), st.booleans())
def test_f1_of_groups_by_brute_force(seed, m, prior, always):
    """What each group can reach beside a prior, and the one cut of the greatest mean over groups."""
    rng = np.random.default_rng(seed)
    z, group, y = np.round(rng.normal(size=m), 1), rng.integers(0, 4, m), rng.random(m)
    if always:
        z[rng.random(m) < 0.3] = np.inf
    sweep = Sweep(z, group, 4)

    def f1(t, g, weight=0.0):
        kept = (z >= t) & (group == g)
        below = kept.sum() + y[group == g].sum() + weight
        return (2 * y[kept].sum() + weight * prior) / below if below else 0.0

    reached = [max(f1(t, g, 5.0) for t in [*z[group == g], np.nan]) for g in range(4)]
    np.testing.assert_allclose(sweep.greatest_f1(y, prior, 5.0), reached)
    means = {t: sum(f1(t, g) for g in range(4)) for t in [*z, sweep.best_mean_f1(y)]}
    assert means[sweep.best_mean_f1(y)] >= max(means.values()) - 1e-12


def test_global_cut_worked_by_hand():
    # Sorted: 3+, 2+, 1-, 0.5+, -1-, ...: F1 of the prefixes 1/2, 4/5, 2/3, 6/7, 3/4: keep four.
    lists = lists_of([[3, -1, 1], [2, 0.5, -2], [-3, -4, -5]], [[1, 0, 0], [1, 1, 0], [0, 0, 0]])
    cut = GlobalThreshold().fit(lists, "micro-f1")
    assert cut.threshold == pytest.approx(-0.25)
    assert not cut.keep_best
    assert quality("micro-f1", cut.keep(lists), lists)[0] == pytest.approx(6 / 7)


def test_missed_labels_do_not_teach_to_keep_nothing():
    """Of half the rows no relevant label is a candidate: a set of nothing is not right there."""
    rng = np.random.default_rng(0)
    Z = rng.normal(-2, 0.3, (400, 3))
    Z[:, 0] += 3
    Y = np.zeros((400, 3))
    Y[::2, 0] = rng.random(200) < 0.6
    kept = []
    for missed in (1 - Y.sum(axis=1).astype(int), 0):
        learned = LearnedThresholds().fit(
            Candidates.all_labels(400, 3), Z.ravel(), Y.ravel(), fold=np.arange(400) % 5, missed=missed
        )
        kept.append(learned.keep(Candidates.all_labels(400, 3), Z.ravel(), "example-f1").reshape(400, 3))
    assert kept[0][:, 0].all(), "the likeliest label of each row"
    assert not kept[1].any()


def test_a_label_never_seen_is_cut_where_micro_f1_is():
    lists = lists_of([[2, 0.5], [1, -2]], [[1, 1], [0, 0]])
    cut = LabelThresholds(100.0).fit(lists, "macro-f1")
    new = ScoredLists(Candidates(np.array([0, 2]), np.int32([5, 7]), 9), np.array([9.0, -9.0]))
    assert cut.keep(new).tolist() == [True, False]


def test_half_f1_cut_worked_by_hand():
    """Two labels, one likely and one not; one cut for both keeps all: its least probability is .2."""
    p = np.array([[0.8, 0.2]])
    lists = lists_of(np.log(p / (1 - p)), [[1, 0]])
    cut = HalfF1Thresholds().fit(lists, "macro-f1")
    # The best label of the row is kept in any case, so the cut of the greatest mean is at the other.
    everywhere = 0.4
    reached = [
        (2 * 0.8 + 5 * everywhere) / (1 + 0.8 + 5),
        (2 * 0.2 + 5 * everywhere) / (1 + 0.2 + 5),
        everywhere,
    ]
    np.testing.assert_allclose(expit(cut.thresholds), np.divide(reached, 2))
    new = ScoredLists(Candidates(np.array([0, 3]), np.int32([0, 1, 7]), 9), np.array([9.0, -2.0, -1.3]))
    assert cut.keep(new).tolist() == [True, False, True]


def test_macro_f1_of_many_labels_with_few_pairs_is_not_left_to_chance():
    """Half of the F1 a label reaches holds on new rows; the best cut of a handful of pairs does not."""
    rng = np.random.default_rng(0)

    def drawn(n):
        labels = np.sort(
            rng.permuted(np.tile(np.arange(600, dtype=np.int32), (n, 1)), axis=1)[:, :20], axis=1
        )
        z = rng.normal(-2, 2, labels.size)
        pairs = Candidates(np.arange(n + 1) * 20, labels.ravel(), 600)
        return ScoredLists(pairs, z, rng.random(z.size) < expit(z))

    few, new = drawn(150), drawn(6000)
    half, own = (
        quality("macro-f1", cut.fit(few, "macro-f1").keep(new), new)[0]
        for cut in (HalfF1Thresholds(), LabelThresholds(100))
    )
    assert half > own + 0.02


@pytest.mark.parametrize("seed", range(5))
def test_instance_targets_by_brute_force(seed):
    """A cut with the fewest mistakes; for F1, of those that keep something, one of greatest F1."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        n_labels = int(rng.integers(1, 7))
        Z = np.round(rng.normal(size=(1, n_labels)), 1)
        Y = rng.random((1, n_labels)) < 0.4
        lists = lists_of(Z, Y)
        s, y = rescaled(lists.probabilities, lists.row, 1), Y.ravel()
        fewest = min(np.sum((s >= cut) != y) for cut in [*s, 2.0])
        assert np.sum((s >= best_thresholds(s, lists)[0]) != y) == fewest
        cuts = [*s] if y.any() else [*s, 2.0]
        sets = [s >= cut for cut in cuts]
        mistakes = [np.sum(kept != y) for kept in sets]
        f1 = [2 * np.sum(kept & y) / max(1, np.sum(kept) + np.sum(y)) for kept in sets]
        found = s >= best_thresholds(s, lists, for_f1=True)[0]
        assert np.sum(found != y) == min(mistakes)
        best = max(f for f, m in zip(f1, mistakes) if m == min(mistakes))
        assert 2 * np.sum(found & y) / max(1, np.sum(found) + np.sum(y)) == best


def test_instance_cut_is_the_least_squares_fit():
    pairs, _, gains, true = make_scored(n=300, n_labels=5)
    lists = ScoredLists(pairs, true, gains > 0)
    cut = InstanceThreshold().fit(lists, "micro-f1")
    assert cut.by_label
    s = rescaled(lists.probabilities, lists.row, 300)
    t = best_thresholds(s, lists, for_f1=True)
    X = np.column_stack([np.ones(300), s.reshape(300, 5)])
    expected = X @ np.linalg.lstsq(X, t, rcond=None)[0]
    np.testing.assert_allclose(s.reshape(300, 5) @ cut.weights + cut.bias, expected, atol=1e-4)


def test_subset_prefers_sets_seen_in_training():
    Y = np.repeat([[1, 1, 0], [0, 0, 1]], 20, axis=0)
    Z = np.where(Y > 0, 1.0, -1.0)
    cut = SubsetThreshold().fit(lists_of(Z, Y), "subset-accuracy")
    cut.prior_weight = 1.0
    doubtful = lists_of([[2.0, -0.5, -2.0]], [[1, 1, 0]])
    assert cut.keep(doubtful).tolist() == [True, True, False]
    certain = lists_of([[9.0, -9.0, 9.0]], [[1, 0, 1]])
    assert cut.keep(certain).tolist() == [True, False, True]


def test_quality_worked_by_hand():
    lists = lists_of([[1, 1], [1, 1], [1, 1]], [[1, 0], [1, 1], [0, 0]])
    kept = np.array([1, 1, 1, 0, 0, 0], bool)
    values = {m: quality(m, kept, lists)[0] for m in METRICS}
    assert values["micro-f1"] == pytest.approx(4 / 6)
    assert values["macro-f1"] == pytest.approx((1 + 0) / 2)
    assert values["example-f1"] == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    assert values["hamming"] == pytest.approx(-2 / 6)
    assert values["subset-accuracy"] == pytest.approx(1 / 3)
    assert quality("micro-f1", kept, lists_of(np.ones((3, 2)), [[1, 0], [1, 1], [0, 0]], 4.0))[0] == 0.4
    missed = lists_of(np.ones((3, 2)), [[1, 0], [1, 1], [0, 0]], np.array([0.0, 2, 1]))
    values = {m: quality(m, kept, missed)[0] for m in METRICS}
    assert values["micro-f1"] == pytest.approx(4 / 9)
    assert values["macro-f1"] == pytest.approx((1 + 0) / 2)
    assert values["example-f1"] == pytest.approx((2 / 3 + 2 / 5 + 0) / 3)
    assert values["hamming"] == pytest.approx(-5 / 6)
    assert values["subset-accuracy"] == 0
    weight = np.array([[2.0, 1, 0]])
    for them in (lists, missed):
        twice = them.rows(np.array([0, 0, 1]))
        for m in METRICS:
            again = quality(m, kept[[0, 1, 0, 1, 2, 3]], twice)[0]
            assert quality(m, kept, them, weight)[0] == pytest.approx(again)


# --- calibration ---------------------------------------------------------------


def test_labels_that_are_no_candidates_count_in_macro_f1():
    pairs = Candidates(np.array([0, 1, 2]), np.int32([0, 1]), 4)
    lists = ScoredLists(pairs, np.zeros(2), np.array([True, True]), np.ones(2), np.array([1, 0, 1, 0]))
    # Label 0: found in one row of two. Label 1: in its row. Label 2: not found. Label 3: in no row.
    assert quality("macro-f1", np.ones(2, bool), lists)[0] == pytest.approx((2 / 3 + 1 + 0) / 3)


def test_calibration_undoes_a_distortion():
    pairs, scores, gains, true = make_scored(n=600, n_labels=8)
    z = Calibrator().fit(pairs, scores, gains > 0, np.arange(600) % 10).cross_fitted_

    def loss(logits):
        return np.mean(np.logaddexp(0, logits) - gains * logits)

    assert loss(z) < 0.5 * loss(scores)
    assert loss(z) < 1.03 * loss(true)


def test_learned_cuts_beat_one_half_on_unseen_rows():
    pairs, scores, gains, _ = make_scored(n=400, seed=1)
    learner = LearnedThresholds().fit(pairs, scores, gains, fold=np.arange(400) % 5)
    pairs, scores, gains, true = make_scored(n=3000, seed=1)
    lists = ScoredLists(pairs, true, gains > 0)
    for metric in METRICS:
        kept = learner.keep(pairs, scores, metric)
        assert quality(metric, kept, lists)[0] >= quality(metric, true >= 0, lists)[0] - 0.012, metric
    assert (
        quality("macro-f1", learner.keep(pairs, scores, "macro-f1"), lists)[0]
        > 0.03 + (quality("macro-f1", true >= 0, lists)[0])
    )


# --- laws ------------------------------------------------------------------------


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_rows_are_judged_alone(threshold, full):
    learner, pairs, scores, _ = fitted(threshold, full=full, empty=False)
    order = np.random.default_rng(0).permutation(pairs.n_rows)
    for some in (order, order[:1], order[:33]):
        part = pairs.rows(some)
        at = np.concatenate([np.arange(pairs.indptr[i], pairs.indptr[i + 1]) for i in some]).astype(int)
        expected = learner.probabilities(pairs, scores)[at]
        assert learner.probabilities(part, scores[at]).tobytes() == expected.tobytes()
        for metric in METRICS:
            assert (learner.keep(part, scores[at], metric) == learner.keep(pairs, scores, metric)[at]).all()


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_same_bytes_again_and_after_a_round_trip(threshold, tmp_path):
    learner, pairs, scores, _ = fitted(threshold)
    again = fitted(threshold)[0]
    persist.save(learner, tmp_path / "model")
    for other in (again, LearnedThresholds.from_state(learner.get_state()), persist.load(tmp_path / "model")):
        assert other.summary() == learner.summary()
        assert other.probabilities(pairs, scores).tobytes() == learner.probabilities(pairs, scores).tobytes()
        for metric in METRICS:
            assert (other.keep(pairs, scores, metric) == learner.keep(pairs, scores, metric)).all()


def test_cross_label_terms_survive_a_round_trip():
    rng = np.random.default_rng(0)
    first = rng.normal(size=800)
    z = np.column_stack([first, 0.1 * rng.normal(size=800), rng.normal(size=800)])
    Y = np.column_stack([first > 0, first > 0.2, rng.random(800) < 0.3])
    pairs = Candidates.all_labels(800, 3)
    learned = Calibrator().fit(pairs, z.ravel(), Y.ravel(), np.arange(800) % 5)
    assert any(m.cross is not None for m in learned.members_.values())
    restored = Calibrator.from_state(learned.get_state())
    assert restored.logits(pairs, z.ravel()).tobytes() == learned.logits(pairs, z.ravel()).tobytes()
    one = Candidates.all_labels(1, 3)
    assert restored.logits(one, z[7]).tobytes() == learned.logits(pairs, z.ravel())[21:24].tobytes()


# --- hard inputs -------------------------------------------------------------------


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize(
    "case", ["nothing", "everything", "constant", "one label", "three rows", "one pair", "huge"]
)
def test_hard_inputs(threshold, case):
    n, n_labels = {"one label": (40, 1), "three rows": (3, 4), "one pair": (1, 1)}.get(case, (40, 4))
    pairs, scores, gains, _ = make_scored(n=n, n_labels=n_labels)
    gains[1::n_labels] = 0  # a label without relevant rows (but for one label)
    if case == "nothing":
        gains[:] = 0
    elif case == "everything":
        gains[:] = 3
    elif case == "constant":
        scores = np.full(len(scores), 2.0)
    elif case == "huge":
        scores = scores * 1e30
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        learner = LearnedThresholds(threshold).fit(pairs, scores, gains, fold=np.arange(n) % 3)
    p = learner.probabilities(pairs, scores)
    assert p.dtype == np.float32
    assert ((p >= 0) & (p <= 1)).all()
    for metric in METRICS:
        kept = learner.keep(pairs, scores, metric)
        assert kept.shape == scores.shape
        assert kept.dtype == bool
        if case == "nothing":
            assert not kept.any()
        if case == "everything" and threshold != "instance":
            assert kept.all()


def test_rows_without_candidates_and_unknown_labels():
    learner, *_ = fitted(full=False, empty=False)
    odd = Candidates(np.array([0, 0, 1]), np.int32([5]), 6)
    for metric in METRICS:
        assert learner.keep(odd, np.array([9.0]), metric).shape == (1,)
