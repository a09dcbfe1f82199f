"""A LambdaRank that all workers fit together, on every pair: as good as a local one, an ordinary model."""

from __future__ import annotations

import os
import sys

import makers
import numpy as np
import pytest
import scipy.sparse as sp
from clusters import cluster, digest

pytest.importorskip("distributed")
pytest.importorskip("pandas")

import lightgbm as lgb
from lightgbm.basic import LightGBMError

from metarank import Dataset, MetaRanker, load, metrics
from metarank.distributed import DaskMetaRanker
from metarank.distributed.every_pair import PartTable, columns_of_rows, lists_to_learn
from metarank.ranker import BoostedRanker, RankingData
from metarank.types.candidates import Candidates
from metarank.types.feature_table import FeatureTable
from metarank.types.view import fold_of_rows

SETTINGS = {"effort": "low", "n_folds": 2, "n_jobs": 1, "ranker": BoostedRanker(n_rounds=20)}


@pytest.fixture(scope="module")
def two():
    with cluster(2, processes=True) as client:
        yield client


@pytest.fixture
def many_parts(monkeypatch):
    monkeypatch.setattr("metarank.distributed.dask_stages.PART_ROWS", 30)


def quality(model: MetaRanker, test: Dataset) -> float:
    return float(np.nanmean(metrics.per_row(test.Y, model.decision_function(test), "nDCG@5")))


@pytest.mark.check
def test_as_good_as_a_local_fit_and_an_ordinary_model(two, many_parts, tmp_path):
    rows = makers.dense(600, L=8)
    train, test = rows.take(np.arange(300)), rows.take(np.arange(300, 600))
    model = DaskMetaRanker(two, ranker_pairs="all", **SETTINGS).fit(train)
    local = MetaRanker(**SETTINGS).fit(train)
    fitted = model.to_local()
    assert quality(fitted, test) == pytest.approx(quality(local, test), abs=0.03)
    assert type(fitted) is MetaRanker
    assert type(fitted.ranker_) is BoostedRanker
    assert fitted.feature_columns_ == local.feature_columns_
    assert "ranker: lambdarank on all 2400 pairs of 300 rows" in fitted.choices_
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.rank(test, 3).labels.tobytes() == fitted.rank(test, 3).labels.tobytes()
    assert loaded.explain(test.X[:1], 0).to_dict()
    for told in ("machines", "local_listen_port"):  # nothing of the cluster goes with the model
        assert f"[{told}" not in fitted.ranker_.model_text_
    for kept in (
        "num_leaves: 7",
        "min_data_in_leaf: 20",
        "lambda_l2: 5",
        "feature_fraction: 0.5",
        "max_bin: 63",
    ):
        assert f"[{kept}]" in fitted.ranker_.model_text_
    again = DaskMetaRanker(two, ranker_pairs="all", **SETTINGS).fit(train)
    assert quality(again.to_local(), test) == pytest.approx(quality(local, test), abs=0.03)


class Seen:
    """What each worker's LightGBM is given, in a cluster of threads."""

    def __init__(self, monkeypatch, failures: int = 0) -> None:
        self.fits: list[tuple[np.ndarray, np.ndarray]] = []
        self.failures = failures
        fit = lgb.LGBMRanker.fit

        def look(model, X, y, **options):
            self.fits.append((np.asarray(y), np.asarray(options["group"])))
            if len(self.fits) <= self.failures:
                raise LightGBMError("Socket recv error, Connection reset by peer (code: 104)")
            return fit(model, X, y, **options)

        monkeypatch.setattr(lgb.LGBMRanker, "fit", look)


@pytest.mark.check
def test_lists_are_never_split_and_all_are_learned_from(many_parts, monkeypatch):
    """Shortlists of many lengths: each fit sees each list outside its fold that teaches something, whole."""
    train = makers.many_labels(80)
    seen = Seen(monkeypatch)
    settings = {**SETTINGS, "ranker": BoostedRanker(n_rounds=2), "shortlist_size": 7}
    with cluster(2) as client:
        model = DaskMetaRanker(client, ranker_pairs="all", **settings).fit(train)
    for labels, sizes in seen.fits:
        assert sizes.sum() == len(labels)
        for own in np.split(labels, np.cumsum(sizes)[:-1]):
            assert own.min() < own.max()  # relevant and irrelevant pairs of one row
    assert len(seen.fits) > 3  # two folds and all rows; some of them on both workers
    # A local fit, which takes all of so few rows, looks at the same lists.
    local = Seen(monkeypatch)
    monkeypatch.setattr(BoostedRanker, "_dataset", noting(local, BoostedRanker._dataset))
    MetaRanker(**settings).fit(train)
    assert lengths(local) == lengths(seen)
    assert model.ranker_.arrays_.n_trees == 2


def lengths(seen: Seen) -> list[int]:
    return sorted(np.concatenate([sizes for _, sizes in seen.fits]).tolist())


def noting(seen: Seen, dataset):
    def look(ranker, data, target, params, pair_weight):
        seen.fits.append((target, data.sizes))
        return dataset(ranker, data, target, params, pair_weight)

    return look


@pytest.mark.check
def test_a_fit_begins_again_where_a_worker_was_lost(many_parts, monkeypatch, tmp_path):
    train = makers.dense()
    settings = {**SETTINGS, "ranker": BoostedRanker(n_rounds=3)}
    with cluster(1) as client:
        whole = DaskMetaRanker(client, ranker_pairs="all", **settings).fit(train)
        seen = Seen(monkeypatch, failures=2)
        model = DaskMetaRanker(client, ranker_pairs="all", **settings).fit(train)
        assert len(seen.fits) == 5  # three fits, the first of which begins three times
        assert digest(model, tmp_path / "again") == digest(whole, tmp_path / "whole")
        Seen(monkeypatch, failures=3)
        with pytest.raises(LightGBMError, match="Socket"):
            DaskMetaRanker(client, ranker_pairs="all", **settings).fit(train)


def die_in_lightgbm(mark: str) -> None:
    """Let this worker die at its first fit."""
    fit = lgb.LGBMRanker.fit

    def fatal(*args, **options):
        if not os.path.exists(mark):
            open(mark, "w").close()
            os._exit(1)
        return fit(*args, **options)

    lgb.LGBMRanker.fit = fatal


@pytest.mark.check
def test_no_fit_waits_for_a_worker_that_is_gone(monkeypatch, tmp_path):
    """It is the only one, so that none is left to complain."""
    monkeypatch.setattr("metarank.distributed.every_pair._PATIENCE", 2.0)
    settings = {**SETTINGS, "ranker": BoostedRanker(n_rounds=3)}
    with cluster(1, processes=True) as client:
        client.run(die_in_lightgbm, str(tmp_path / "mark"))
        model = DaskMetaRanker(client, ranker_pairs="all", **settings).fit(makers.dense())
    assert (tmp_path / "mark").exists()
    assert model.ranker_.arrays_.n_trees == 3


def test_fits_are_kept_for_a_run_that_is_started_again(many_parts, monkeypatch, tmp_path):
    train = makers.dense()
    settings = {**SETTINGS, "ranker": BoostedRanker(n_rounds=3), "resume": tmp_path / "kept"}
    with cluster(1) as client:
        first = DaskMetaRanker(client, ranker_pairs="all", **settings).fit(train)
        seen = Seen(monkeypatch)
        second = DaskMetaRanker(client, ranker_pairs="all", **settings).fit(train)
    assert not seen.fits
    assert digest(first, tmp_path / "first") == digest(second, tmp_path / "second")


def test_weights_and_folds_without_a_lesson(many_parts):
    """All rows that count lie in one fold: the fit without it has nothing to learn from."""
    train = makers.dense()
    weight = (fold_of_rows(60, 2, 0) == 1).astype(float)
    with cluster(1) as client:
        model = DaskMetaRanker(client, ranker_pairs="all", **SETTINGS).fit(train, sample_weight=weight)
    assert np.isfinite(model.to_local().decision_function(train)).all()


def test_parts_of_a_table():
    pairs = Candidates.all_labels(4, 3)
    columns = {"a": np.arange(12, dtype=np.float32)}
    own = columns_of_rows(columns, pairs.indptr, np.array([1, 3]))
    assert own["a"].tolist() == [3, 4, 5, 9, 10, 11]
    gains = np.float32([0, 2, 1, 1, 1, 1, 0, 0, 1, 0, 1, 0])
    table = FeatureTable(columns["a"][:, None], ["a"], pairs)
    data = RankingData(table, gains, np.float64([1, 1, 0, 3]), np.int32([0, 0, 1, 1]), 0)
    values, label, weight, sizes = lists_to_learn(PartTable(data, None), np.float32([0, 1, 2]), None)
    assert values.ravel().tolist() == [0, 1, 2, 9, 10, 11]  # the second is all the same, the third weightless
    assert label.tolist() == [0, 2, 1, 0, 1, 0]
    assert weight.tolist() == [1, 1, 1, 3, 3, 3]
    assert sizes.tolist() == [3, 3]
    assert len(lists_to_learn(PartTable(data, None), np.float32([0, 1, 2]), 1)[3]) == 1


@pytest.mark.parametrize(
    ("params", "rule"),
    [
        ({"ranker_pairs": "some"}, "ranker_pairs must be 'sample' or 'all', got 'some'"),
        ({"ranker": "auto"}, "ranker_pairs='all' needs ranker='lambdarank'"),
        ({"ranker": BoostedRanker(objective="binary")}, "ranker_pairs='all' needs ranker='lambdarank'"),
        ({"ranker": BoostedRanker(early_stopping=5)}, "that does not stop early"),
        ({"ranker": BoostedRanker(n_rounds=0)}, "n_rounds must be at least 1, got 0"),
    ],
)
def test_bad_parameters_are_named(two, params, rule):
    with pytest.raises(ValueError, match=rule):
        DaskMetaRanker(two, **{**SETTINGS, "ranker_pairs": "all", **params}).fit(makers.dense())


def test_nothing_to_learn_is_said(two):
    rows = makers.dense()
    train = Dataset(rows.X, sp.csr_matrix(np.ones((60, 4), np.float32)))
    with pytest.raises(ValueError, match="gains must differ within at least one list"):
        DaskMetaRanker(two, ranker_pairs="all", **SETTINGS).fit(train)


def test_what_is_missing_is_named(two, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas is not installed; install the extra 'dask'"):
        DaskMetaRanker(two, ranker_pairs="all", **SETTINGS).fit(makers.dense())
