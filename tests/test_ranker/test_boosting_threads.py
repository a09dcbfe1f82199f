"""LightGBM has as many threads as its work is worth, at most `n_jobs`, and they leave no trace."""

import pickle

import lightgbm as lgb
import numpy as np
import pytest

from metarank import MultiObjectiveRanker
from metarank._util import threads as module
from metarank._util.threads import WORK_OF_A_THREAD, threads_for
from metarank.ranker import BoostedRanker
from metarank.types.candidates import Candidates
from metarank.types.feature_table import FeatureTable

COLUMNS = 64
# Rows of 8 pairs, a tenth of them relevant; half of the rows are left out, in turn or for want of one.
SMALL, LARGE = 200, 1600
RANKERS = {
    "pointwise": BoostedRanker(objective="binary", n_models=2, max_irrelevant=10**7, n_rounds=2),
    "lambdarank": BoostedRanker(n_rounds=2),
    "binary": BoostedRanker(objective="binary", n_rounds=2, max_irrelevant=10**7),
}


@pytest.fixture
def threads(monkeypatch) -> list[int]:
    """How many threads each training had."""
    seen: list[int] = []
    booster = lgb.Booster

    def noting(params, *args, **kwargs):
        seen.append(params["num_threads"])
        return booster(params, *args, **kwargs)

    monkeypatch.setattr(lgb, "Booster", noting)
    monkeypatch.setattr(module, "WORK_OF_A_THREAD", LARGE * 8 * COLUMNS // 7)
    return seen


def pairs(n_rows: int) -> tuple[FeatureTable, np.ndarray]:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(8 * n_rows, COLUMNS)).astype(np.float32)
    gains = (values[:, 0] + rng.normal(size=len(values)) > 1.8).astype(np.float32)
    names = [f"c{j}" for j in range(COLUMNS)]
    return FeatureTable(values, names, Candidates.all_labels(n_rows, 8)), gains


@pytest.mark.parametrize("work", [0, 1, WORK_OF_A_THREAD - 1, WORK_OF_A_THREAD, 3 * WORK_OF_A_THREAD, 10**12])
@pytest.mark.parametrize("n_jobs", [1, 2, 64])
def test_threads_grow_with_the_work_up_to_n_jobs(work, n_jobs):
    assert threads_for(work, n_jobs) == min(n_jobs, max(1, work // WORK_OF_A_THREAD))


@pytest.mark.parametrize("name", RANKERS)
def test_a_small_table_is_learned_by_one_thread(name, threads):
    RANKERS[name].fit(*pairs(SMALL), n_jobs=8)
    assert set(threads) == {1}


@pytest.mark.parametrize("name", RANKERS)
def test_a_large_table_is_learned_by_several_to_the_same_bytes(name, threads):
    table, gains = pairs(LARGE)
    texts = []
    for n_jobs in (1, 2, 3):
        threads.clear()
        fitted = RANKERS[name].fit(table, gains, n_jobs=n_jobs)
        texts.append(pickle.dumps(fitted.trees_))
        assert max(threads) == n_jobs
    assert texts[0] == texts[1] == texts[2]


def test_several_objectives_leave_no_trace_of_threads(threads):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * module.WORK_OF_A_THREAD // 32 + 1, 32)).astype(np.float32)
    Y = (X[:, :2] + rng.normal(size=(len(X), 2)) > 1).astype(np.float32)
    scores = [MultiObjectiveRanker(n_rounds=2, n_jobs=n).fit(X, Y).predict(X) for n in (1, 2)]
    assert {1, 2} <= set(threads)
    np.testing.assert_array_equal(*scores)
