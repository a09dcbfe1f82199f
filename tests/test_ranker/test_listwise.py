"""`ListwiseRanker`: the same bytes on any threads, out-of-fold scores that saw nothing, hard pairs."""

from __future__ import annotations

import numpy as np
import pytest

from metarank.ranker import ListwiseRanker, RankingData
from metarank.types.candidates import Candidates
from metarank.types.feature_table import FeatureTable


def lists(n: int = 60, length: int = 20, seed: int = 0) -> tuple[FeatureTable, np.ndarray]:
    """A column that says something of the gain, and one that does not."""
    rng = np.random.default_rng(seed)
    gains = (rng.random((n, length)) < 0.15).astype(np.float32).ravel()
    values = np.column_stack([gains + rng.normal(size=len(gains)), rng.normal(size=len(gains))])
    return FeatureTable(values.astype(np.float32), ["good", "noise"], Candidates.all_labels(n, length)), gains


def test_it_orders_held_out_lists_by_what_is_good():
    table, gains = lists()
    data = RankingData.checked(table, gains, None, np.arange(60) % 3, 0)
    ranker = ListwiseRanker(n_rounds=30)
    scores = ranker.fit_out_of_fold(data)
    assert len(ranker.members_) == 3
    assert scores[gains > 0].mean() > scores[gains == 0].mean() + 0.1
    # The model that did not see a list scores it.
    own = ranker.members_[1].score(table)
    inside = np.repeat(np.arange(60) % 3 == 1, 20)
    np.testing.assert_array_equal(scores[inside], own[inside])
    total = ranker.contributions(table).sum(axis=1)
    np.testing.assert_allclose(total, ranker.score(table), atol=1e-5)


def test_threads_and_copies_change_no_byte():
    table, gains = lists()
    one, four = (ListwiseRanker(n_rounds=10).fit(table, gains, n_jobs=n) for n in (1, 4))
    again = ListwiseRanker.from_state(one.get_state())
    assert one.score(table).tobytes() == four.score(table).tobytes() == again.score(table, n_jobs=4).tobytes()


def test_of_many_pairs_the_hard_ones_are_learned(monkeypatch):
    import metarank.ranker.listwise as module

    monkeypatch.setattr(module, "_FIRST_PAIRS", 300)
    table, gains = lists(n=100)
    ranker = ListwiseRanker(n_rounds=30, hardest=3, others=0.2)
    data = RankingData.checked(table, gains, None, None, 0)
    kept, weight = ranker._chosen(data, 1)
    assert set(np.flatnonzero(gains > 0)) <= set(kept)
    assert np.all(np.diff(kept) > 0)
    assert len(kept) < len(gains)
    assert set(np.unique(weight)) == {1.0, 5.0}
    assert weight[gains[kept] > 0].max() == 1.0
    scores = ranker.fit_out_of_fold(data)
    assert scores[gains > 0].mean() > scores[gains == 0].mean() + 0.1


@pytest.mark.parametrize(
    ("params", "message"),
    [({"others": 0}, "others must be"), ({"n_models": 0}, "n_models must be"), ({"hardest": -1}, "hardest")],
)
def test_parameters_are_checked(params, message):
    table, gains = lists(n=10)
    with pytest.raises(ValueError, match=message):
        ListwiseRanker(**params).fit(table, gains)


def test_there_must_be_an_order_to_learn():
    table, gains = lists(n=10)
    with pytest.raises(ValueError, match="gains must differ within at least one list"):
        ListwiseRanker().fit(table, np.ones_like(gains))


@pytest.mark.parametrize("first_pairs", [50_000, 300])
def test_a_list_too_long_for_lightgbm_keeps_its_relevant_pairs(first_pairs, monkeypatch):
    import metarank.ranker.listwise as module

    monkeypatch.setattr(module, "_FIRST_PAIRS", first_pairs)
    monkeypatch.setattr(module, "MAX_LIST", 100)
    table, gains = lists(n=3, length=400)
    gains[:] = 0
    gains[390:400] = gains[1190:] = 1  # the last pairs of two lists
    ranker = ListwiseRanker(n_rounds=5, others=1.0)
    kept, _ = ranker._chosen(RankingData.checked(table, gains, None, None, 0), 1)
    assert set(np.flatnonzero(gains)) <= set(kept)
    assert np.bincount(kept // 400).max() <= 100
