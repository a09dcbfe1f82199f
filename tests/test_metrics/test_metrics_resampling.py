"""Bootstrap intervals against a plain loop over resampled rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import metrics
from metarank.metrics import resampling
from metarank.types.ranking import Ranking

NAMES = ["P@1", "nDCG@3", "MAP", "PSP@3", "PSP-point@3", "AUC", "micro-AUC", "C@1", "micro-F1", "macro-F1"]
NAMES += ["example-F1", "Hamming", "LabelCoverage", "WP@2", "Tau@2", "XMAD@2", "RMSE", "AUPRC"]
NAMES += ["WN-l@2", "XRMSE-l@2"]
OVER_LABELS = ["C@1", "macro-F1", "LabelCoverage"]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    Y = (rng.random((25, 8)) < 0.25).astype(float)
    Y[::6] = 0
    scores = (Y + rng.normal(size=Y.shape)).astype(np.float32)
    return {"Y_true": Y, "scores": scores, "Y_pred": scores > 0.8, "inv_propensity": np.linspace(1, 4, 8)}


def slow_bootstrap(data, names, n_resamples, level, seed):
    n = len(data["Y_true"])
    draws = []
    for b in range(n_resamples):
        index = np.sort(np.random.default_rng([seed, b]).integers(n, size=n))
        part = {k: v if k == "inv_propensity" else v[index] for k, v in data.items()}
        draws.append(list(metrics.evaluate(names=names, **part).values()))
    draws = np.array(draws)
    value = metrics.evaluate(names=names, **data)
    for j, name in enumerate(names):
        if name in OVER_LABELS:
            draws[:, j] = np.clip(draws[:, j] + value[name] - draws[:, j].mean(), 0, 1)
    low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return dict(zip(names, zip(low, high)))


def test_agrees_with_a_loop(data, monkeypatch):
    monkeypatch.setattr(resampling, "_CELLS_AT_ONCE", 7 * 25)  # several chunks
    got = metrics.bootstrap(names=NAMES, n_resamples=40, level=0.9, seed=3, **data)
    expected = slow_bootstrap(data, NAMES, 40, 0.9, 3)
    values = metrics.evaluate(names=NAMES, **data)
    for name in NAMES:
        assert got[name].value == values[name]
        assert got[name][1:] == pytest.approx(expected[name]), name
        assert got[name].low <= got[name].high


@pytest.mark.parametrize("wrap", [sp.csr_matrix, lambda s: Ranking.from_scores(s, 8)])
def test_every_container_gives_the_same_intervals(data, wrap):
    names = ["P@1", "MAP", "AUC", "micro-AUC", "C@1"]
    base = metrics.bootstrap(data["Y_true"], data["scores"], names, n_resamples=20)
    assert metrics.bootstrap(data["Y_true"], wrap(data["scores"]), names, n_resamples=20, n_jobs=4) == base


def test_same_seed_same_bytes(data):
    one, again, other = (metrics.bootstrap(names=["MAP"], n_resamples=50, seed=s, **data) for s in (1, 1, 2))
    assert one == again
    assert one != other


def test_an_interval_covers_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    truth, covered = 0.6, 0
    for _ in range(60):
        right = rng.random(80) < truth
        Y = np.column_stack([right, ~right])
        p = metrics.bootstrap(Y, np.tile([1.0, 0.0], (80, 1)), ["P@1"], n_resamples=200, level=0.9)["P@1"]
        covered += p.low <= truth <= p.high
    assert 45 <= covered <= 60


def test_intervals_of_rare_labels_hold_the_value():
    rng = np.random.default_rng(2)
    Y = sp.csr_matrix((np.ones(300), (np.arange(300), rng.integers(200, size=300))), shape=(300, 200))
    scores = (Y + sp.random(300, 200, 0.02, random_state=rng)).tocsr()
    got = metrics.bootstrap(Y, scores, OVER_LABELS, n_resamples=200, Y_pred=scores > 0.9)
    for name, (value, low, high) in got.items():
        assert low < value < high, name


def test_nothing_to_measure():
    got = metrics.bootstrap(np.zeros((3, 2)), np.ones((3, 2)), ["MAP"], n_resamples=5)["MAP"]
    assert np.isnan(got).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"n_resamples": 0}, "n_resamples"), ({"level": 1.0}, "level"), ({"level": 95}, "level")],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        metrics.bootstrap([[1, 0]], [[1.0, 0.0]], ["P@1"], **arguments)
    with pytest.raises(ValueError, match="at least one row"):
        metrics.bootstrap(np.zeros((0, 2)), np.zeros((0, 2)), ["P@1"])
