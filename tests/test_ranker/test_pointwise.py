"""`PointwiseRanker`: out-of-fold scores for nothing, draws that stand for all pairs."""

import numpy as np
import pytest
from sklearn.base import clone
from test_rankers import data_of, make_lists, same_bytes

from metarank.ranker import PointwiseRanker, Ranker, make_ranker


def quick(**params) -> PointwiseRanker:
    return PointwiseRanker(n_rounds=10, **params)


def fold_of(n: int, k: int) -> np.ndarray:
    return (np.arange(n) % k).astype(np.int32)


def test_out_of_fold_scores_do_not_depend_on_the_gains_of_the_own_fold():
    table, gains = make_lists(n=90)
    fold = fold_of(90, 3)
    own = np.repeat(fold == 1, np.diff(table.indptr))
    turned = np.where(own, 1 - gains, gains).astype(np.float32)
    ranker = quick(irrelevant=1.0)
    before = clone(ranker).fit_out_of_fold(data_of(table, gains, fold))
    after = clone(ranker).fit_out_of_fold(data_of(table, turned, fold))
    assert same_bytes(before[own], after[own])
    assert not np.allclose(before[~own], after[~own])


def test_the_score_is_the_mean_of_the_models_log_odds():
    table, gains = make_lists(n=90)
    ranker = quick().fit(table, gains, fold=fold_of(90, 3))
    assert len(ranker.model_texts_) == 3
    mean = ranker.arrays_.predict(table.values).mean(axis=1)
    np.testing.assert_allclose(ranker.score(table), mean, rtol=1e-12)
    np.testing.assert_allclose(ranker.contributions(table).sum(axis=1), mean, rtol=1e-6)


@pytest.mark.parametrize(("n_models", "folds", "models"), [(5, 3, 3), (2, 6, 2), (1, 6, 1)])
def test_as_many_models_as_asked_for_and_folds_allow(n_models, folds, models):
    table, gains = make_lists(n=90)
    ranker = quick(n_models=n_models)
    scores = ranker.fit_out_of_fold(data_of(table, gains, fold_of(90, folds)))
    assert len(ranker.model_texts_) == models
    assert np.isfinite(scores).all()
    assert np.corrcoef(scores, gains)[0, 1] > 0.2


def test_drawn_pairs_hold_all_relevant_ones_and_the_weight_of_all_others():
    table, gains = make_lists(n=90, graded=True)
    weight = np.linspace(0, 2, 90)
    data = data_of(table, gains, fold_of(90, 3), weight)
    seen = np.arange(90) % 3 != 0
    kept, weights = quick(irrelevant=0.2)._drawn(0, data, seen)
    of_pair = np.repeat(np.where(seen, weight, 0), np.diff(table.indptr))
    relevant = np.flatnonzero((gains > 0) & (of_pair > 0))
    assert np.isin(relevant, kept).all()
    assert np.array_equal(kept, np.unique(kept))
    irrelevant = gains[kept] == 0
    assert weights[irrelevant].sum() == pytest.approx(of_pair[gains == 0].sum())
    np.testing.assert_array_equal(weights[~irrelevant], of_pair[kept][~irrelevant])
    assert irrelevant.sum() == round(0.2 * np.sum((gains == 0) & (of_pair > 0)))
    assert not np.array_equal(kept, quick(irrelevant=0.2)._drawn(1, data, seen)[0])


@pytest.mark.parametrize(
    ("irrelevant", "least", "share"),
    [(0.05, 100, 0.05), (1e-9, 100, 0), (None, 100, 100), (None, 1, 0.2), (None, 10**9, 1), (1.0, 1, 1)],
)
def test_a_share_that_is_passed_wins_over_the_least_number_of_the_default(
    monkeypatch, irrelevant, least, share
):
    monkeypatch.setattr("metarank.ranker.pointwise._LEAST_DRAWN", least)
    table, gains = make_lists(n=90)
    kept, _ = quick(irrelevant=irrelevant)._drawn(0, data_of(table, gains), np.ones(90, bool))
    there = np.count_nonzero(gains == 0)
    assert there > 200
    expected = share if share > 1 else max(1, round(share * there))
    assert np.count_nonzero(gains[kept] == 0) == expected


def test_the_order_is_learned_and_rows_may_be_permuted():
    table, gains = make_lists(n=200, uneven=False)
    ranker = quick().fit(table, gains)
    scores = ranker.score(table)
    assert scores[gains > 0].mean() > scores[gains == 0].mean() + 0.5
    order = np.random.default_rng(0).permutation(200)
    moved = data_of(table, gains).lists(order).table
    assert same_bytes(ranker.score(moved), scores.reshape(200, -1)[order].ravel())


def test_the_same_bytes_for_any_number_of_threads_and_after_saving():
    table, gains = make_lists(n=90, graded=True)
    one, four = quick().fit(table, gains, n_jobs=1), quick().fit(table, gains, n_jobs=4)
    assert one.model_texts_ == four.model_texts_
    again = Ranker.from_state(one.get_state())
    assert same_bytes(again.score(table), one.score(table, n_jobs=4))


def test_a_fold_that_holds_all_that_is_relevant_does_no_harm():
    table, gains = make_lists(n=90)
    fold = fold_of(90, 3)
    gains = np.where(np.repeat(fold == 0, np.diff(table.indptr)), gains, 0).astype(np.float32)
    scores = quick().fit_out_of_fold(data_of(table, gains, fold))
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"n_models": 0}, ValueError, "n_models must be at least 1, got 0"),
        ({"n_rounds": True}, TypeError, "n_rounds must be an integer, got True"),
        ({"irrelevant": 0.0}, ValueError, r"irrelevant must be a number in \(0, 1\] or None, got 0.0"),
        ({"irrelevant": "all"}, TypeError, "irrelevant must be a number"),
    ],
)
def test_bad_parameters_are_named(params, error, match):
    table, gains = make_lists(n=30)
    with pytest.raises(error, match=match):
        PointwiseRanker(**params).fit(table, gains)


def test_without_an_order_to_learn_it_refuses():
    table, gains = make_lists(n=30)
    with pytest.raises(ValueError, match="gains must differ"):
        make_ranker("pointwise").fit(table, np.zeros_like(gains))
