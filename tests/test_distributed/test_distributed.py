"""A fit on a cluster gives the model of a local fit, to the byte, with any number of workers."""

from __future__ import annotations

import makers
import numpy as np
import pytest
import scipy.sparse as sp
from clusters import cluster, digest

pytest.importorskip("distributed")

from sklearn.base import clone

from metarank import Dataset, MetaRanker, data, load
from metarank.distributed import DaskMetaRanker
from metarank.distributed.cluster_stages import PART_ROWS, ClusterStages
from metarank.scorers.base import LabelScorer

LOW = {"effort": "low", "n_folds": 2, "n_jobs": 1}
SETTINGS = {
    "dense": LOW,
    "texts": LOW,
    "many labels": LOW,
    "many texts": {"n_folds": 3, "n_jobs": 1},  # trees, ridge and names
}


@pytest.fixture(scope="module")
def two():
    with cluster(2, processes=True) as client:
        yield client


def same(local: MetaRanker, distributed: DaskMetaRanker, tmp_path) -> None:
    assert digest(local, tmp_path / "local") == digest(distributed.to_local(), tmp_path / "distributed")


def test_bad_clients_are_named():
    """First of all, while no client is in use."""
    for wrong, error, rule in (
        (None, ValueError, "client must be a distributed.Client, and there is none"),
        ("tcp://host:8786", TypeError, "client must be a distributed.Client or None"),
    ):
        with pytest.raises(error, match=rule):
            DaskMetaRanker(wrong).fit(makers.dense())
    with cluster(1) as client:
        pass
    with pytest.raises(ValueError, match="client must be connected to a scheduler"):
        DaskMetaRanker(client).fit(makers.dense())


@pytest.mark.check_beyond(1)
@pytest.mark.parametrize("maker", list(SETTINGS))
def test_same_model_as_locally(maker, two, tmp_path):
    train = makers.MAKERS[maker]()
    model = DaskMetaRanker(two, **SETTINGS[maker]).fit(train)
    same(MetaRanker(**SETTINGS[maker]).fit(train), model, tmp_path)


@pytest.mark.check
def test_same_model_with_any_number_of_workers(tmp_path, monkeypatch):
    """Documents of the installed libraries, in many parts."""
    train = data.load_pydocs("train").take(np.arange(120))
    local = digest(MetaRanker(**LOW).fit(train), tmp_path / "local")
    monkeypatch.setattr("metarank.distributed.cluster_stages.PART_ROWS", 30)
    for n_workers in (1, 3, 4):
        with cluster(n_workers) as client:
            model = DaskMetaRanker(client, **LOW).fit(train)
        assert digest(model, tmp_path / f"{n_workers}") == local


@pytest.mark.check
@pytest.mark.parametrize(
    "params",
    [
        {"features": "yang2012", "ranker": "logistic"},
        {"features": ["neighbors", "tail", "linear-svm", "rbf-svm"], "ranker": "auto"},
        {"features": ["prior", "extra-trees"], "shortlister": ["parabel", "one-vs-all"]},
        {"features": [makers.MeanFeature(feature=1), "xreg"], "shortlister": "pfastrexml", "n_jobs": 2},
        {"features": ["neighbors", "neighbors"], "propensity_weight": 0.5},
    ],
    ids=lambda params: str(params["features"])[:40],
)
def test_same_model_with_other_scorers(params, tmp_path):
    """Notes of what was chosen, clashes of names and scorers of a user's own included."""
    train = makers.dense(80)
    settings = {**LOW, **params}
    with cluster(2) as client:
        model = DaskMetaRanker(client, **settings).fit(train)
    same(MetaRanker(**settings).fit(train), model, tmp_path)


@pytest.mark.check
def test_same_model_where_folds_are_without_some_labels(tmp_path):
    """Label names are known and all labels ranked: each fold is described without a few of them."""
    rows = makers.many_texts()
    train = Dataset(texts=rows.texts, Y=rows.Y[:, :40], label_names=rows.label_names[:40])
    with cluster(2) as client:
        model = DaskMetaRanker(client, **LOW).fit(train)
    same(MetaRanker(**LOW).fit(train), model, tmp_path)


@pytest.mark.check
def test_same_model_with_weights_exclusions_and_objectives(tmp_path):
    train = makers.sparse(80)
    rng = np.random.default_rng(0)
    weight, exclude = rng.random(80), sp.csr_matrix(rng.random(train.Y.shape) < 0.1)
    targets = {"a": train.Y, "b": sp.csr_matrix(rng.random(train.Y.shape) < 0.3, dtype=np.float32)}
    with cluster(2) as client:
        weighted = DaskMetaRanker(client, **LOW).fit(train, sample_weight=weight, exclude=exclude)
        several = DaskMetaRanker(client, **LOW).fit(train.X, targets)
    same(MetaRanker(**LOW).fit(train, sample_weight=weight, exclude=exclude), weighted, tmp_path / "1")
    same(MetaRanker(**LOW).fit(train.X, targets), several, tmp_path / "2")


@pytest.mark.check
def test_saved_model_knows_of_no_cluster(two, tmp_path):
    model = DaskMetaRanker(two, **LOW).fit(makers.dense())
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert type(loaded) is MetaRanker
    assert type(model.to_local()) is MetaRanker
    assert loaded.get_params() == MetaRanker(**LOW).get_params()


def test_clone_keeps_the_client(two):
    model = DaskMetaRanker(two, **LOW)
    copy = clone(model)
    assert copy.client is two
    assert copy.get_params(deep=False) == model.get_params(deep=False)


class Failing(LabelScorer):
    """Learns nothing."""

    def fit(self, view, *, n_jobs=1):
        raise ValueError("no such luck")


@pytest.mark.check
def test_error_of_a_task_is_that_of_a_local_fit_and_leaves_nothing_behind(tmp_path):
    with cluster(2) as client:
        model = DaskMetaRanker(client, **LOW).fit(makers.dense())
        before = digest(model.to_local(), tmp_path / "before")
        model.set_params(features=[Failing()])
        with pytest.raises(ValueError, match="no such luck"):
            model.fit(makers.dense())
        model.set_params(features="auto")
        assert digest(model.to_local(), tmp_path / "after") == before
        assert not client.who_has()


def test_parts_hold_each_row_once_and_one_fold_each():
    fold = np.arange(10_000, dtype=np.int32) % 3
    rows = np.flatnonzero(np.arange(10_000) % 7)
    stages = ClusterStages.__new__(ClusterStages)
    stages.data = makers.training_set(np.zeros((10_000, 1), np.float32), sp.csr_matrix((10_000, 2)))
    stages.data.fold = fold
    parts = stages._parts(rows)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(rows)))
    assert all(len(np.unique(fold[rows[part]])) == 1 and len(part) <= PART_ROWS for part in parts)
