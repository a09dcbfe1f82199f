"""experiments/model_choice and missing labels in experiments/aggregation: their pieces do what they say."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
_PATH = list(sys.path)
sys.path[:0] = [str(EXPERIMENTS / "model_choice"), str(EXPERIMENTS / "aggregation")]

import judging  # noqa: E402
import missing_labels  # noqa: E402
import ranking_sets  # noqa: E402

_RUN = sys.modules.pop("run", None)
sys.path.insert(0, str(EXPERIMENTS / "model_choice"))
import run as model_choice  # noqa: E402

sys.modules.pop("run")
if _RUN is not None:
    sys.modules["run"] = _RUN
sys.path[:] = _PATH

from metarank.objectives import per_label_auc  # noqa: E402
from metarank.objectives.checks import check_groups  # noqa: E402
from metarank.objectives.ndcg import NdcgLists  # noqa: E402


def test_ndcg_in_two_conventions_by_hand():
    qid = np.array([1, 1, 1, 2, 2, 3, 3])
    y = np.array([2.0, 0, 1, 0, 0, 1, 0])
    scores = np.array([1.0, 3, 2, 5, 4, 7, 7])
    ideal = 3 + 1 / np.log2(3)
    first = (1 / np.log2(3) + 3 / 2) / ideal
    tie = 0.5 * (1 + 1 / np.log2(3))
    np.testing.assert_allclose(judging.of_queries(scores, y, qid), [first, np.nan, tie])
    np.testing.assert_allclose(judging.of_queries(scores, y, qid, benchmark=True), [first, 1, 1 / np.log2(3)])


def test_ndcg_is_that_of_metarank():
    rng = np.random.default_rng(0)
    qid, y = np.sort(rng.integers(0, 30, 400)), rng.integers(0, 4, 400).astype(float)
    scores = rng.normal(size=400).round(1)
    own = NdcgLists(y, check_groups(400, qid=qid)).ndcg(scores)
    assert np.nanmean(judging.of_queries(scores, y, qid)) == pytest.approx(own)


def test_made_sets():
    train, test = ranking_sets.made(3.0, 0)
    assert train.X.shape == (17_000, 20)
    assert test.X.shape == (3_000, 20)
    assert set(train.y) == {0, 1, 2, 3, 4}
    assert not set(train.qid) & set(test.qid)
    again, other = ranking_sets.made(3.0, 0)[0], ranking_sets.made(3.0, 1)[0]
    np.testing.assert_array_equal(again.X, train.X)
    assert not np.array_equal(other.X, train.X)
    some = train.some(np.array([3, 5]))
    assert set(some.qid) == {3, 5}
    assert len(some.y) == 20
    assert len(ranking_sets.joined([train, test]).y) == 20_000


def record(split, size, **means):
    values = {way: [0.5, 0.7, float("nan")] for way in model_choice.WAYS}
    values |= {way: [value, value, float("nan")] for way, value in means.items()}
    spent = dict.fromkeys(values, 1.0)
    return {
        "split": split,
        "size": size,
        "queries": size,
        "values": values,
        "spent": spent,
        "chosen": "linear (l2 1)",
    }


def test_the_page_of_the_choice_says_what_was_measured():
    records = [record(0, 50, auto=0.8), record(1, 50, auto=0.6), record(0, None, auto=0.5) | {"queries": 400}]
    found = {
        "sets": {"made": records},
        "benchmark": {"metarank auto": [0.81, 0.79]},
        "inputs": [],
        "seconds": 1.0,
    }
    page = model_choice.page(found)
    assert "| 50 | 0.6000 | 0.6000 | 0.6000 | 0.6000 | **0.7000** |" in page
    assert "| 400 | **0.6000** |" in page
    assert "at worst it is 0.1000 below it" in page
    assert "| metarank auto | 0.8100 | 0.8000 |" in page
    assert "| CatBoost 0.11.1, RMSE | 0.8304 | |" in page


# --- missing labels ----------------------------------------------------------------


def test_what_is_judged_are_complete_labels():
    rng = np.random.default_rng(1)
    test = missing_labels.Part(np.zeros((200, 1)), (rng.random((200, 2)) < 0.4).astype(float), None)
    scores = rng.normal(size=200)
    found = missing_labels.judged(scores, test, "loss")
    areas = per_label_auc(scores, test.Y)
    np.testing.assert_allclose(found[:2], areas)
    assert found[2:4] == pytest.approx([abs(areas[0] - areas[1]), areas.min()])
    assert found[4] == pytest.approx(areas.mean())
    assert missing_labels.judged(scores, test, "label")[4] != found[4]


def test_every_combination_is_measured_and_told():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    Y = (X[:, :2] + rng.normal(size=(400, 2)) > 0.5).astype(float)
    parts = [missing_labels.Part(X[rows], Y[rows], None) for rows in (slice(0, 300), slice(300, None))]
    records = []
    for name in missing_labels.NAMES:
        for split in range(2):
            for model in missing_labels.MODELS:
                records += missing_labels._of_split(name, split, *parts, model, True)
    assert len(records) == 2 * 2 * 2 * len(missing_labels.METHODS) * 2 * len(missing_labels.PROPENSITIES)
    for one in records:
        assert one["figures"][missing_labels.COMPLETE][-1] == 0
        a, b = one["figures"][missing_labels.WITH][:2]
        first, second = one["figures"][missing_labels.COMPLETE][:2]
        assert one["figures"][missing_labels.WITH][-1] == pytest.approx(abs((a - b) - (first - second)))
    page = missing_labels.page({"records": records, "inputs": ["a: 1"], "seconds": 2.0})
    assert page.count("\n## ") == 5
    assert "of 96 rows beyond chance" in page
    assert "sha256 of a: 1" in page
