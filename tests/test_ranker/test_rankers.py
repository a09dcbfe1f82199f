"""Rankers: gradients and inference against slow twins, optima, laws, and what each must learn."""

from functools import partial
from itertools import pairwise, permutations

import numpy as np
import pytest
from makers import same_bytes
from scipy.optimize import approx_fprime, minimize
from sklearn.base import clone
from sklearn.metrics import label_ranking_average_precision_score, ndcg_score

from metarank import _core
from metarank.persist.spec import Saved
from metarank.ranker import (
    AutoRanker,
    BoostedRanker,
    EnsembleRanker,
    LabelCorrections,
    LinearRanker,
    RankingData,
    cross_fit_scores,
    make_ranker,
)
from metarank.ranker.auto_ranker import first_near_the_best, list_quality
from metarank.ranker.boosting import pairs_within, sampled_pairs
from metarank.ranker.linear_ranker import LOSSES as LIST_LOSSES
from metarank.types.candidates import Candidates
from metarank.types.feature_table import FeatureTable

listnet, logistic = (partial(LinearRanker, loss=loss) for loss in ("listnet", "logistic"))
LINEAR = ["logistic", "listnet", "ranksvm", "svmmap"]
BOOSTED = ["lambdarank", "xendcg", "binary"]
AVERAGED = ["pointwise", "listwise"]
FAST = (
    {name: {"l2": 0.1} for name in LINEAR}
    | {name: {"n_rounds": 15} for name in [*BOOSTED, *AVERAGED]}
    | {"ensemble": {"label_columns": ["f0", "f2"], "n_rounds": 15}}
)


def make_lists(n=60, n_features=5, n_labels=9, seed=0, graded=False, uneven=True):
    """Lists whose gains follow a hidden linear score, noisily."""
    rng = np.random.default_rng(seed)
    if uneven:
        keep = rng.random((n, n_labels)) < 0.8
        keep[1] = False  # an empty list
        indptr = np.concatenate([[0], np.cumsum(keep.sum(1))])
        pairs = Candidates(indptr, np.nonzero(keep)[1].astype(np.int32), n_labels)
    else:
        pairs = Candidates.all_labels(n, n_labels)
    values = rng.normal(size=(pairs.n_pairs, n_features)).astype(np.float32)
    values[:, 0] = values[:, 0] * 30 + 100
    hidden = ((values - values.mean(0)) / values.std(0)) @ np.linspace(1.5, -1.0, n_features)
    gains = (hidden + rng.normal(size=len(values)) > 1).astype(np.float32)
    if graded:
        gains *= rng.integers(1, 4, len(gains))
    return FeatureTable(values, [f"f{j}" for j in range(n_features)], pairs), gains


def data_of(table, gains, fold=None, weight=None):
    return RankingData.checked(table, gains, weight, fold, 0)


# --- losses and gradients ----------------------------------------------------


def slow_logistic(s, y):
    return np.sum(np.logaddexp(0, s) - y * s)


def slow_listnet(s, g):
    g = g.astype(np.float64)
    return -np.sum(g / g.sum() * (s - np.log(np.exp(s).sum()))) if g.sum() > 0 else 0.0


def slow_ranksvm(s, g):
    hinge = [max(0.0, 1 - (s[i] - s[j])) ** 2 for i in range(len(s)) for j in range(len(s)) if g[i] > g[j]]
    return np.mean(hinge) if hinge else 0.0


def slow_svmmap(s, g):
    """Over every ranking: 1 - AP + s.(psi - psi*), by the definitions of the paper."""
    relevant = g > 0
    pairs = [(i, j) for i in np.flatnonzero(relevant) for j in np.flatnonzero(~relevant)]
    if not pairs:
        return 0.0
    worst = 0.0
    for order in permutations(range(len(s))):
        rank = np.argsort(order)
        hits = np.cumsum(relevant[list(order)])
        precision = hits / np.arange(1, len(s) + 1)
        loss = 1 - precision[relevant[list(order)]].mean()
        worst = max(worst, loss + sum(-2 * (s[i] - s[j]) for i, j in pairs if rank[i] > rank[j]) / len(pairs))
    return worst


LOSSES = {"logistic": slow_logistic, "listnet": slow_listnet, "ranksvm": slow_ranksvm, "svmmap": slow_svmmap}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("seed", range(2))
def test_loss_and_gradient_agree_with_slow_twin(name, seed):
    rng = np.random.default_rng(seed)
    sizes = [6, 0, 1, 5, 6, 4]
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    scores = rng.normal(scale=1.5, size=indptr[-1])
    gains = rng.integers(0, 2 if name == "logistic" else 4, indptr[-1]).astype(np.float32)
    gains[indptr[4] : indptr[5]] = seed % 2  # one list without, or with only, relevant pairs
    weights = rng.random(len(sizes))

    def slow(s):
        lists = pairwise(indptr)
        return sum(w * LOSSES[name](s[a:b], gains[a:b]) for w, (a, b) in zip(weights, lists) if b > a)

    loss, gradient = _core.list_loss(name, scores, gains, indptr, weights, 1)
    assert loss == pytest.approx(slow(scores), rel=1e-10, abs=1e-12)
    np.testing.assert_allclose(gradient, approx_fprime(scores, slow, 1e-7), atol=2e-6)
    loss4, gradient4 = _core.list_loss(name, scores, gains, indptr, weights, 4)
    assert loss4 == loss
    assert same_bytes(gradient4, gradient)


def test_ranksvm_loss_of_a_long_graded_list_with_tied_scores():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=300).round(1) + 1e4
    gains = rng.integers(0, 6, 300).astype(np.float32)
    better = gains[:, None] > gains
    slack = np.where(better, np.maximum(0, 1 - (scores[:, None] - scores)), 0)
    loss, gradient = _core.list_loss("ranksvm", scores, gains, np.array([0, 300]), np.ones(1), 1)
    assert loss == pytest.approx((slack**2).sum() / better.sum(), rel=1e-9)
    np.testing.assert_allclose(
        gradient, 2 * (slack.sum(0) - slack.sum(1)) / better.sum(), rtol=1e-7, atol=1e-12
    )


@pytest.mark.parametrize("name", ["list_loss", "list_quality"])
def test_kernels_refuse_what_would_be_read_out_of_bounds(name):
    def call(scores, gains, indptr):
        indptr = np.array(indptr)
        arrays = (np.array(scores, float), np.array(gains, np.float32), indptr)
        if name == "list_quality":
            return _core.list_quality(*arrays, 1)
        return _core.list_loss("logistic", *arrays, np.ones(max(0, len(indptr) - 1)), 1)

    for indptr in ([0, 3], [0, 2, 1, 2], [-1, 2], [0, 5, 2], np.zeros(0, np.int64)):
        with pytest.raises(ValueError, match="indptr"):
            call([1, 2], [0, 1], indptr)
    with pytest.raises(ValueError, match="gains"):
        call([1, 2], [1], [0, 2])
    with pytest.raises(ValueError, match="finite"):
        call([1, np.nan], [0, 1], [0, 2])
    with pytest.raises(ValueError, match="mean"):
        _core.linear_scores(np.ones((2, 3), np.float32), np.ones(2), np.ones(3), 0.0, 1)


def test_linear_kernels_agree_with_numpy_and_do_not_depend_on_the_batch():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5000, 37)).astype(np.float32)
    mean, w, g = rng.normal(size=37), rng.normal(size=37), rng.normal(size=5000)
    scores = _core.linear_scores(values, mean, w, 0.5, 1)
    np.testing.assert_allclose(scores, (values - mean) @ w + 0.5, atol=1e-9)
    assert same_bytes(_core.linear_scores(values, mean, w, 0.5, 4), scores)
    assert same_bytes(_core.linear_scores(values[17:18], mean, w, 0.5, 1), scores[17:18])
    gradient = _core.linear_gradient(values, mean, g, 1)
    np.testing.assert_allclose(gradient, g @ (values - mean), atol=1e-8)
    assert same_bytes(_core.linear_gradient(values, mean, g, 4), gradient)


def test_list_quality_agrees_with_scikit_learn():
    rng = np.random.default_rng(1)
    Y = (rng.random((40, 8)) < 0.3).astype(np.float32)
    S = rng.normal(size=(40, 8)).round(1)
    S[:20] = rng.normal(size=(20, 8))
    table = FeatureTable(S.reshape(-1, 1).astype(np.float32), ["s"], Candidates.all_labels(40, 8))
    ap, ndcg, rank_loss = _core.list_quality(S.ravel(), Y.ravel(), table.indptr, 1).T
    for i in range(40):
        if not Y[i].any():
            assert np.isnan([ap[i], ndcg[i], rank_loss[i]]).all()
            continue
        assert ap[i] == pytest.approx(label_ranking_average_precision_score(Y[i : i + 1], S[i : i + 1]))
        if i < 20:
            assert ndcg[i] == pytest.approx(ndcg_score(Y[i : i + 1], S[i : i + 1]))
        d = S[i][Y[i] > 0][:, None] - S[i][Y[i] == 0]
        assert rank_loss[i] == pytest.approx(np.mean((d < 0) + 0.5 * (d == 0)))


# --- optima ------------------------------------------------------------------


def standardised(table):
    values = table.values.astype(np.float64)
    return (values - values.mean(0)) / values.std(0)


@pytest.mark.parametrize("name", ["listnet", "ranksvm", "logistic"])
@pytest.mark.parametrize("graded", [False, True])
def test_smooth_linear_rankers_reach_their_optimum(name, graded):
    table, gains = make_lists(graded=graded)
    table.values[:, 4] = table.values[:, 3] + 1e-3 * table.values[:, 4]  # nearly the same column twice
    l2 = 0.003
    ranker = make_ranker(name, l2=l2).fit(table, gains)
    z, indptr = standardised(table), table.indptr
    target = gains / gains.max() if name == "logistic" else gains
    informative = [np.ptp(gains[a:b]) > 0 if b > a else False for a, b in pairwise(indptr)]
    weight = (
        np.full(60, 1 / len(gains)) if name == "logistic" else np.array(informative) / np.sum(informative)
    )
    slow = LOSSES[name]

    def objective(v):
        s = z @ v[:-1] + v[-1]
        loss = sum(w * slow(s[a:b], target[a:b]) for w, a, b in zip(weight, indptr, indptr[1:]) if w)
        return loss + 0.5 * l2 * v[:-1] @ v[:-1]

    w = ranker.weights_ * table.values.astype(np.float64).std(0)
    found = np.append(w, ranker.intercept_)
    assert np.abs(approx_fprime(found, objective, 1e-6)).max() < 1e-5


def test_svmmap_is_optimal_within_its_gap():
    table, gains = make_lists(n=10, n_labels=6)
    z, indptr, l2 = standardised(table), table.indptr, 0.1
    lists = [(a, b) for a, b in pairwise(indptr) if b > a and np.ptp(gains[a:b]) > 0]

    def objective(w):
        loss = [
            _core.list_loss("svmmap", z[a:b] @ w, gains[a:b], np.array([0, b - a]), np.ones(1), 1)[0]
            for a, b in lists
        ]
        return np.mean(loss) + 0.5 * l2 * w @ w

    ranker = LinearRanker(loss="svmmap", l2=l2).fit(table, gains)
    w = ranker.weights_ * table.values.astype(np.float64).std(0)
    generic = minimize(objective, w, method="Powell", options={"xtol": 1e-6, "ftol": 1e-10})
    assert objective(w) <= generic.fun + 2e-3


def test_corrections_minimise_each_labels_penalised_loss():
    table, gains = make_lists(n=80, n_labels=4)
    data = data_of(table, gains)
    pooled = cross_fit_scores(logistic(l2=0.05), data)
    corrections = LabelCorrections(["f1", "f3"])
    corrections.fit(data, pooled)
    z = standardised(table)[:, [1, 3]]
    for label in range(4):
        at = table.labels == label

        def objective(w, at=at):
            s = z[at] @ w[:2] + pooled[at] * w[2] + w[3]
            away = w[:2] @ w[:2] + (w[2] - 1) ** 2 * pooled.var() + 0.3 * w[3] ** 2
            return np.sum(np.logaddexp(0, s) - gains[at] * s) + 0.5 * corrections.strength_ * away

        w = corrections.weights_[label]
        assert np.abs(approx_fprime(w, objective, 1e-6)).max() < 1e-2
        assert objective(w) < objective(np.array([0.0, 0.0, 1.0, 0.0]))


def test_corrections_learn_what_differs_between_labels_and_leave_rare_ones_alone():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 3)).astype(np.float32)
    table = FeatureTable(x.reshape(-1, 1), ["x"], Candidates.all_labels(100, 3))
    gains = (x * [1, -1, 1] > 0.5).astype(np.float32)
    gains[:, 2] = 0
    corrections = LabelCorrections(["x"])
    corrections.fit(data_of(table, gains.ravel()), np.zeros(300))
    assert corrections.weights_[0, 0] > 0 > corrections.weights_[1, 0]
    assert corrections.weights_[2].tolist() == [0, 1, 0]
    assert corrections.score(table, np.full(300, 0.7))[2] == 0.7


def test_ensemble_is_the_mean_of_its_members_and_sums_its_contributions():
    table, gains = make_lists(n=80)
    ranker = EnsembleRanker(label_columns=["f1"], n_rounds=10).fit(table, gains)
    pooled = ranker.pooled_.score(table)
    parts = [pooled, ranker.corrections_.score(table, pooled), ranker.boosted_.score(table)]
    np.testing.assert_allclose(ranker.score(table), np.mean(parts, axis=0))
    np.testing.assert_allclose(ranker.contributions(table).sum(axis=1), ranker.score(table), atol=1e-5)


def test_penalty_auto_is_the_one_of_least_held_out_loss():
    table, gains = make_lists(n=80)
    fold = np.arange(80) % 4
    ranker = logistic().fit(table, gains, fold=fold)
    data = data_of(table, gains, fold)
    losses = {
        l2: slow_logistic(cross_fit_scores(logistic(l2=l2), data), gains)
        for l2 in LIST_LOSSES["logistic"].grid
    }
    assert ranker.l2_ == min(losses, key=losses.get)


# --- what they learn ---------------------------------------------------------


@pytest.mark.parametrize("name", FAST)
def test_learns_an_obvious_order(name):
    table, gains = make_lists(n=150, uneven=False)
    noise = table.values.copy()
    noise[:, 2] = gains * 2 + np.random.default_rng(0).random(len(gains))
    table = FeatureTable(noise, table.names, table.candidates)
    scores = make_ranker(name, **FAST[name]).fit(table, gains).score(table)
    assert label_ranking_average_precision_score(gains.reshape(150, 9), scores.reshape(150, 9)) > 0.97


@pytest.mark.parametrize("name", ["listnet", "ranksvm", "logistic", *BOOSTED])
def test_graded_gains_change_the_order(name):
    n = 200
    pairs = Candidates.all_labels(n, 3)
    table = FeatureTable(np.tile(np.eye(3, dtype=np.float32), (n, 1)), ["a", "b", "c"], pairs)
    for gains in ([3.0, 1.0, 0.0], [1.0, 3.0, 0.0]):
        scores = make_ranker(name, **FAST[name]).fit(table, np.tile(gains, n)).score(table)[:3]
        assert np.array_equal(np.argsort(-scores), np.argsort(-np.array(gains)))


def test_long_lists_keep_relevant_pairs_and_a_fixed_sample():
    rng = np.random.default_rng(0)
    sizes = np.array([12, 0, 400, 3])
    pairs = Candidates(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([np.arange(s) for s in sizes]).astype(np.int32),
        400,
    )
    gains = (rng.random(415) < 0.1).astype(np.float32)
    row = pairs.row_of_pair
    for longest, expected in ((100, [12, 0, 100, 3]), (400, [12, 0, 400, 3]), (5, [5, 0, 5, 3])):
        kept = pairs_within(gains, row, longest, 0)
        assert np.bincount(row[kept], minlength=4).tolist() == expected
        assert (np.diff(kept) > 0).all()
        if longest > 5:
            assert gains[kept].sum() == gains.sum()


def test_lists_longer_than_lightgbm_takes_are_learned_from():
    n = 10_500
    values = np.random.default_rng(0).random((n + 5, 2)).astype(np.float32)
    pairs = Candidates(np.array([0, n, n + 5]), np.append(np.arange(n), np.arange(5)).astype(np.int32), n)
    table = FeatureTable(values, ["a", "b"], pairs)
    gains = (values[:, 0] > 0.95).astype(np.float32)
    ranker = BoostedRanker(n_rounds=3).fit(table, gains)
    assert ranker.score(table)[gains > 0].mean() > ranker.score(table)[gains == 0].mean()


# --- laws --------------------------------------------------------------------


def all_rankers():
    for name in FAST:
        yield name, make_ranker(name, **FAST[name])
    yield "auto", AutoRanker(candidates=[logistic(), BoostedRanker(n_rounds=5)])


@pytest.mark.parametrize(
    ("name", "ranker"), list(all_rankers()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_laws(name, ranker):
    table, gains = make_lists(graded=True, n=80)
    before = table.values.copy(), gains.copy()
    fitted = clone(ranker).fit(table, gains, seed=3)
    scores = fitted.score(table)
    assert scores.shape == gains.shape
    assert np.isfinite(scores).all()
    assert same_bytes(before[0], table.values)
    assert same_bytes(before[1], gains)

    # Threads do not show, in fitting or scoring.
    threaded = clone(ranker).fit(table, gains, seed=3, n_jobs=4)
    assert same_bytes(threaded.score(table, n_jobs=4), scores)

    # Scores go with their rows, whatever the batch.
    data = data_of(table, gains)
    order = np.random.default_rng(0).permutation(80)
    assert same_bytes(fitted.score(data.lists(order).table), scores[data.pairs_of(order)])
    assert same_bytes(fitted.score(data.lists(order[:1]).table), scores[data.pairs_of(order[:1])])
    assert fitted.score(data.lists(np.array([1])).table).shape == (0,)  # a list without pairs

    # Contributions add up.
    shares = fitted.contributions(table)
    assert shares.shape == (len(scores), 6)
    np.testing.assert_allclose(shares.sum(1), scores, atol=1e-6)

    # State: plain values, and the same bytes after.
    state = fitted.get_state()
    assert_plain(state)
    again = type(fitted).from_state(state)
    assert same_bytes(again.score(table), scores)
    assert_plain(again.get_state())
    np.testing.assert_allclose(again.contributions(table), shares)


def assert_plain(value):
    if isinstance(value, Saved):
        value = value.get_state()
    if isinstance(value, dict):
        assert all(isinstance(key, str) for key in value)
        value = list(value.values())
    if isinstance(value, list):
        for v in value:
            assert_plain(v)
    else:
        assert value is None or isinstance(value, (int, float, str, bool, np.ndarray)), type(value)


@pytest.mark.parametrize("name", [*LINEAR, "lambdarank", "binary"])
def test_weight_zero_removes_a_list(name):
    table, gains = make_lists(n=60)
    weight = np.ones(60)
    weight[::3] = 0
    kept = data_of(table, gains).lists(weight > 0)
    with_zero = make_ranker(name, **FAST[name]).fit(table, gains, sample_weight=weight)
    if name in BOOSTED:
        without = make_ranker(name, **FAST[name]).fit(kept.table, kept.gains)
        assert same_bytes(with_zero.score(table), without.score(table))
    else:  # the columns are still standardised on all pairs
        flipped = gains.copy()
        flipped[np.isin(table.candidates.row_of_pair, np.flatnonzero(weight == 0))] = 0
        again = make_ranker(name, **FAST[name]).fit(table, flipped, sample_weight=weight)
        np.testing.assert_allclose(again.score(table), with_zero.score(table), atol=1e-5)


def test_cross_fit_scores_come_from_fits_without_the_fold():
    table, gains = make_lists(n=60)
    fold = np.arange(60) % 3
    data = data_of(table, gains, fold)
    scores = cross_fit_scores(listnet(l2=0.1), data)
    train, test = data.lists(fold != 1), data.lists(fold == 1)
    expected = listnet(l2=0.1).fit(train.table, train.gains).score(test.table)
    assert same_bytes(scores[data.pairs_of(np.flatnonzero(fold == 1))], expected)
    assert same_bytes(cross_fit_scores(listnet(l2=0.1), data, 3), scores)
    with pytest.raises(ValueError, match="fold"):
        cross_fit_scores(listnet(l2=0.1), data_of(table, gains, np.zeros(60, int)))


def test_sampled_irrelevant_pairs_stand_for_all():
    table, gains = make_lists(n=400)
    data = data_of(table, gains)
    weight = np.repeat(data.weight, data.sizes)
    kept, scaled = sampled_pairs(data.gains, weight, 500, data.seed)
    assert np.isin(np.flatnonzero(gains > 0), kept).all()
    assert (gains[kept] == 0).sum() == 500
    assert scaled[gains[kept] == 0].sum() == pytest.approx((gains == 0).sum())
    whole = BoostedRanker(objective="binary", n_rounds=40).fit(table, gains)
    sampled = BoostedRanker(objective="binary", n_rounds=40, max_irrelevant=500).fit(table, gains)
    assert sampled.score(table).mean() == pytest.approx(whole.score(table).mean(), abs=0.3)
    assert np.corrcoef(sampled.score(table), whole.score(table))[0, 1] > 0.95


# --- several models that are averaged ---------------------------------------


@pytest.mark.parametrize("name", AVERAGED)
def test_out_of_fold_scores_do_not_depend_on_the_gains_of_the_own_fold(name):
    table, gains = make_lists(n=90)
    fold = np.arange(90) % 3
    own = np.repeat(fold == 1, np.diff(table.indptr))
    turned = np.where(own, 1 - gains, gains).astype(np.float32)
    before, after = (make_ranker(name, n_rounds=10) for _ in range(2))
    before, after = (
        before.fit_out_of_fold(data_of(table, gains, fold)),
        after.fit_out_of_fold(data_of(table, turned, fold)),
    )
    assert same_bytes(before[own], after[own])
    assert not np.allclose(before[~own], after[~own])


@pytest.mark.parametrize("name", AVERAGED)
@pytest.mark.parametrize(("n_models", "folds", "models"), [(5, 3, 3), (2, 6, 2), (1, 6, 1), (9, 9, 9)])
def test_as_many_models_as_asked_for_and_folds_allow(name, n_models, folds, models):
    table, gains = make_lists(n=90)
    ranker = make_ranker(name, n_rounds=10, n_models=n_models)
    scores = ranker.fit_out_of_fold(data_of(table, gains, np.arange(90) % folds))
    assert ranker.trees_.n_outputs == models
    assert np.corrcoef(scores, gains)[0, 1] > 0.2
    parts = [ranker.trees_.only(k).predict(table.values) for k in range(models)]
    assert same_bytes(ranker.score(table), np.mean(parts, axis=0))
    assert ranker.trees_in_core() is ranker.trees_


def test_models_draw_irrelevant_pairs_of_their_own():
    table, gains = make_lists(n=90)
    some, other = (
        make_ranker("pointwise", n_rounds=3, max_irrelevant=1, share_irrelevant=share).fit(table, gains)
        for share in (0.3, 1.0)
    )
    counts = [trees.node_count[trees.root].tolist() for trees in (some.trees_, other.trees_)]
    assert max(counts[0]) < min(counts[1])
    assert len(set(some.trees_.threshold)) > 1


def test_a_fold_that_holds_all_that_is_relevant_does_no_harm():
    table, gains = make_lists(n=90)
    fold = np.arange(90) % 3
    gains = np.where(np.repeat(fold == 0, np.diff(table.indptr)), gains, 0).astype(np.float32)
    for name in AVERAGED:
        scores = make_ranker(name, n_rounds=5).fit_out_of_fold(data_of(table, gains, fold))
        assert np.isfinite(scores).all()


def test_listwise_learns_from_the_hardest_pairs_of_long_lists(monkeypatch):
    monkeypatch.setattr("metarank.ranker.boosted_ranker._FIRST_PAIRS", 1000)
    table, gains = make_lists(n=100, n_labels=60, uneven=False)
    whole, part = (
        BoostedRanker(n_models=3, n_rounds=30, hardest=hardest).fit(table, gains) for hardest in (None, 10)
    )
    assert part.trees_.node_count[0] < 0.6 * whole.trees_.node_count[0]
    assert np.corrcoef(part.score(table), whole.score(table))[0, 1] > 0.9


# --- auto --------------------------------------------------------------------


def test_auto_chooses_on_a_sample_and_cross_fits_all():
    table, gains = make_lists(n=120)
    ranker = AutoRanker(candidates=[logistic(l2=0.1), listnet(l2=0.1)], max_pairs=300)
    held_out = ranker.fit_out_of_fold(data_of(table, gains))
    assert held_out.shape == gains.shape
    chosen = make_ranker(ranker.choice_, l2=0.1)
    assert same_bytes(held_out, cross_fit_scores(chosen, data_of(table, gains)))


def test_auto_leaves_trees_out_where_there_are_few_lists():
    table, gains = make_lists(n=30)
    assert AutoRanker().fit(table, gains).choice_ == "logistic"
    table, gains = make_lists(n=80)
    assert set(AutoRanker().fit(table, gains).quality_) == {"ensemble", "lambdarank"}


def test_the_simpler_wins_within_the_tolerance():
    rng = np.random.default_rng(0)
    worse = rng.random(100)
    noise = rng.normal(size=100)
    near = worse + noise - noise.mean() + 0.01
    assert first_near_the_best({"worse": worse, "near": near}, 0.25) == "worse"
    assert first_near_the_best({"worse": worse, "near": near}, 0.0) == "near"
    assert first_near_the_best({"worse": worse, "better": worse + 1}, 0.25) == "better"


def test_quality_weights_lists():
    table, gains = make_lists(n=40)
    scores = np.random.default_rng(0).normal(size=len(gains))
    weight = np.random.default_rng(1).integers(0, 3, 40).astype(float)
    ap, ndcg, loss = _core.list_quality(scores, gains, table.indptr, 1).T
    each = (ap + ndcg + 1 - loss) / 3
    counted = ~np.isnan(each)
    expected = np.average(each[counted], weights=weight[counted])
    assert list_quality(scores, data_of(table, gains, weight=weight), 1).mean() == pytest.approx(expected)


# --- bad input and edge cases -----------------------------------------------


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"gains": np.zeros(3)}, "gains must be"),
        ({"gains": "negative"}, "gains must be"),
        ({"gains": "nan"}, "gains must be"),
        ({"sample_weight": np.ones(3)}, "sample_weight must be"),
        ({"sample_weight": -np.ones(60)}, "sample_weight"),
        ({"sample_weight": np.zeros(60)}, "sample_weight"),
        ({"fold": np.zeros(3, int)}, "fold must be 60 integers"),
    ],
)
def test_bad_input_is_named(change, match):
    table, gains = make_lists()
    if isinstance(change.get("gains"), str):
        bad = {"negative": -1, "nan": np.nan}[change["gains"]]
        change["gains"] = np.where(np.arange(len(gains)) == 4, bad, gains)
    arguments = {"gains": gains} | change
    with pytest.raises(ValueError, match=match):
        listnet(l2=0.1).fit(table, arguments.pop("gains"), **arguments)


def test_bad_parameters_are_named():
    table, gains = make_lists()
    for ranker, match in [
        (listnet(l2=0), "l2"),
        (listnet(l2="best"), "l2"),
        (BoostedRanker(objective="rank"), "objective"),
        (BoostedRanker(n_rounds=0), "n_rounds"),
        (BoostedRanker(n_models=0), "n_models"),
        (LinearRanker(loss="hinge"), "loss"),
        (AutoRanker(candidates=[listnet(), listnet()]), "candidates"),
    ]:
        with pytest.raises(ValueError, match=match):
            ranker.fit(table, gains)
    with pytest.raises(ValueError, match="ranker must be one of"):
        make_ranker("best")
    with pytest.raises(ValueError, match="fitted"):
        listnet().score(table)
    with pytest.raises(ValueError, match="names"):
        listnet(l2=0.1).fit(table, gains).score(FeatureTable(table.values, list("abcde"), table.candidates))


@pytest.mark.parametrize("name", [*LINEAR, "auto", *BOOSTED, *AVERAGED])
def test_without_an_order_to_learn_linear_scores_are_constant_and_trees_refuse(name):
    table, gains = make_lists()
    if name in BOOSTED + AVERAGED:
        with pytest.raises(ValueError, match="gains must differ"):
            make_ranker(name).fit(table, np.zeros_like(gains))
        return
    scores = make_ranker(name).fit(table, np.ones_like(gains)).score(table)
    np.testing.assert_allclose(scores, scores[0], rtol=1e-5, atol=1e-9)


def test_constant_and_huge_columns_do_no_harm():
    table, gains = make_lists()
    values = np.column_stack([table.values, np.full(len(gains), 3.1), table.values[:, 0] * 1e30]).astype(
        np.float32
    )
    wide = FeatureTable(values, [*table.names, "constant", "huge"], table.candidates)
    for name in LINEAR:
        ranker = make_ranker(name, l2=0.01).fit(wide, gains)
        assert np.isfinite(ranker.score(wide)).all()
        assert ranker.weights_[5] == 0
        flat = FeatureTable(np.ones_like(table.values), table.names, table.candidates)
        assert np.ptp(make_ranker(name, l2=0.01).fit(flat, gains).score(flat)) == 0


def test_labels_added_after_the_fit_have_no_correction_of_their_own():
    table, gains = make_lists()
    corrections = LabelCorrections(["f0"])
    corrections.fit(data_of(table, gains), np.zeros(len(gains)))
    n_labels = table.candidates.n_labels
    wider = FeatureTable(table.values[: n_labels + 1], table.names, Candidates.all_labels(1, n_labels + 1))
    pooled = np.linspace(-1, 1, n_labels + 1)
    found = corrections.score(wider, pooled)
    assert found[-1] == pooled[-1]
    narrow = FeatureTable(table.values[:n_labels], table.names, Candidates.all_labels(1, n_labels))
    assert same_bytes(found[:-1], corrections.score(narrow, pooled[:-1]))
