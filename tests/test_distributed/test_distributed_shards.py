"""A model in shards answers as the whole, to the byte, and no shard holds all of it."""

from __future__ import annotations

import makers
import numpy as np
import pytest
import scipy.sparse as sp
from clusters import cluster

pytest.importorskip("distributed")

from metarank import Dataset, MetaRanker
from metarank.distributed import ShardedRanker
from metarank.distributed.shards import RowShard, merged, resolved
from metarank.scorers.linear.one_vs_all import OneVsAll
from metarank.scorers.neighbors.training_rows import training_rows

LOW = {"effort": "low", "n_folds": 2, "n_jobs": 1, "ranker": "pointwise"}


@pytest.fixture(scope="module")
def client():
    with cluster(3) as client:
        yield client


def same(model: MetaRanker, sharded: ShardedRanker, X, k: int = 5, **limits) -> None:
    found, local = sharded.rank(X, k, **limits), model.rank(X, k, **limits)
    assert found.labels.tobytes() == local.labels.tobytes()
    assert found.scores.tobytes() == local.scores.tobytes()


@pytest.mark.parametrize("maker", ["dense", "sparse", "texts", "many labels"])
@pytest.mark.parametrize("n_shards", [1, 3, 7])
def test_same_answers_in_any_number_of_shards(maker, n_shards, client):
    model, rows = makers.fitted(maker), makers.MAKERS[maker]()
    same(model, ShardedRanker(model, n_shards, client=client), rows)


def test_same_answers_of_all_sources_within_limits(client, monkeypatch):
    """Names, spelling, votes by names, ridge and trees; several parts of rows."""
    monkeypatch.setattr("metarank.distributed.prediction.PART_ROWS", 15)
    rows = makers.many_texts()
    model = MetaRanker(n_folds=2, n_jobs=1).fit(rows)
    sharded = ShardedRanker(model, client=client)
    same(model, sharded, rows)
    rng = np.random.default_rng(0)
    exclude = sp.csr_matrix(rng.random(rows.Y.shape) < 0.2)
    same(model, sharded, rows, exclude=exclude, allowed=np.arange(0, 1200, 3))


def test_a_shard_holds_its_share(client):
    rows = makers.many_labels()
    model = MetaRanker(**{**LOW, "features": ["neighbors", "centroids", "prior", "one-vs-all"]}).fit(rows)
    whole = ShardedRanker(model, 1, client=client)
    many = ShardedRanker(model, 4, client=client)
    assert len(many.shard_bytes) == 4
    assert max(many.shard_bytes) < 0.6 * whole.shard_bytes[0]
    same(model, many, rows)


def test_labels_without_a_row_are_as_far_as_in_the_whole(client):
    """Their distance is that of the longest training row, wherever that one is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6)).astype(np.float32)
    Y = sp.csr_matrix(rng.random((60, 8)) < 0.3, dtype=np.float32).tolil()
    Y[:, [2, 5, 7]] = 0
    X[int(Y[:, 0].nonzero()[0][0])] *= 9
    for features in (X, sp.csr_matrix(np.where(np.abs(np.tile(X, (1, 9))) > 1, np.tile(X, (1, 9)), 0))):
        rows = Dataset(features, Y.tocsr())
        model = MetaRanker(**{**LOW, "features": ["neighbors", "centroids"]}).fit(rows)
        same(model, ShardedRanker(model, 4, client=client), rows, 8)


@pytest.mark.parametrize("sparse", [False, True])
def test_merged_search_is_a_single_search(sparse):
    """Rows that occur many times over: ties at every cut."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (120, 4)).astype(np.float32)
    X = sp.csr_matrix(X) if sparse else X
    queries, ids = X[:40], np.arange(120, dtype=np.int32)
    metric = "cosine" if sparse else "l2"
    rows, distances = training_rows(X).nearest(queries, ids, 30, metric, 1)
    shards = [RowShard(X[part], part) for part in np.array_split(ids, 5)]
    found = merged([shard.nearest(queries, 30, 1) for shard in shards], [10, 30])
    assert len(found.open)
    ours, far = resolved(found, queries, [shard.vectors(found.offered) for shard in shards], 1)
    for cut in (10, 30):
        assert np.array_equal(np.sort(ours[:, :cut]), np.sort(rows[:, :cut]))
    assert far.tobytes() == distances.tobytes()


def test_weights_of_some_labels_are_those_of_the_whole():
    rows = makers.sparse(80, L=9)
    scorer = OneVsAll().fit(rows.X, rows.Y)
    parts = (rows.X.indptr.astype(np.int64), rows.X.indices, rows.X.data)
    whole = scorer.index_.shortlist(parts, 9, "score", 1)
    part = scorer.index_.of_labels(3, 7).shortlist(parts, 4, "score", 1)
    own = np.flatnonzero((whole.labels >= 3) & (whole.labels < 7))
    assert np.array_equal(part.labels + 3, whole.labels[own])
    assert part.scores["score"].tobytes() == whole.scores["score"][own].tobytes()


def test_bad_arguments_are_named(client):
    with pytest.raises(TypeError, match="model must be a MetaRanker"):
        ShardedRanker(None, client=client)
    with pytest.raises(ValueError, match="n_shards must be a positive integer"):
        ShardedRanker(makers.fitted("dense"), 0, client=client)
