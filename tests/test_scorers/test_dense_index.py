"""HNSW proposes rows: recall, masks, the same bytes however they are asked, saved models."""

from concurrent.futures import ThreadPoolExecutor

import faiss
import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker, load
from metarank.scorers.neighbors.training_rows import DenseRows
from metarank.scorers.neighbors.voting import NeighborShortlister
from metarank.types import dense_index
from metarank.types.candidates import Candidates
from metarank.types.dense_index import HnswIndex, resolved_index
from metarank.types.view import TrainingSet, fold_of_rows

N, D, L = 1500, 10, 7


def clustered(n, d=D, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(40, d))
    return (centres[rng.integers(0, 40, n)] + 0.3 * rng.normal(size=(n, d))).astype(np.float32)


X = clustered(N)
Q = clustered(60, seed=1)
EVERY = np.arange(N, dtype=np.int32)
FOLD = fold_of_rows(N, 3, 0)
ROWS = DenseRows(X)


@pytest.fixture
def any_size(monkeypatch):
    monkeypatch.setattr(dense_index, "LEAST_ROWS", 1)


def training_set(labels_of=lambda Y: Y):
    Y = (np.random.default_rng(2).random((N, L)) < 0.3).astype(np.float32)
    return TrainingSet(X, sp.csr_matrix(labels_of(Y)), FOLD)


def stack(columns):
    return np.stack(list(columns.values()))


@pytest.mark.parametrize("fold", [None, 0])
def test_most_neighbours_are_found_and_their_distances_are_exact(fold):
    voters = EVERY if fold is None else np.flatnonzero(fold != FOLD).astype(np.int32)
    truth, far = ROWS.nearest(Q, voters, 10, "l2", 1)
    ids, distances = ROWS.nearest_proposed(Q, voters, 10, 1)
    assert (ids >= 0).all()
    found = [np.intersect1d(a, b, return_indices=True) for a, b in zip(ids, truth)]
    assert sum(len(same) for same, _, _ in found) >= 0.97 * truth.size
    for i, (_, a, b) in enumerate(found):
        assert distances[i][a].tobytes() == far[i][b].tobytes()
    in_double = np.linalg.norm(Q[:, None].astype(np.float64) - X[ids], axis=2)
    np.testing.assert_allclose(distances, in_double, rtol=1e-5)
    assert np.all(np.diff(distances, axis=1) >= 0)


def test_rows_outside_the_view_are_never_proposed():
    for share in (0.8, 0.3, 0.02):
        within = np.random.default_rng(3).random(N) < share
        ids = ROWS.index().propose(X[~within][:80], 10, within, 1)
        assert within[ids[ids >= 0]].all()
        assert (ids >= 0).mean() > 0.5


def test_an_index_that_looks_everywhere_is_exact(monkeypatch):
    """So what a mask leaves out is what it should, no more."""
    monkeypatch.setattr(HnswIndex, "BREADTH", N)
    for fold in range(3):
        voters = np.flatnonzero(fold != FOLD).astype(np.int32)
        truth = ROWS.nearest(Q, voters, 10, "l2", 1)
        found = ROWS.nearest_proposed(Q, voters, 10, 1)
        assert [a.tobytes() for a in found] == [a.tobytes() for a in truth]


def test_laws(any_size):
    scorer = NeighborShortlister(ks=(3, 8), index="hnsw").fit(training_set().without_fold(0))
    pairs = Candidates.all_labels(len(Q), L)
    whole = stack(scorer.score(Q, pairs))
    assert stack(scorer.score(Q, pairs, n_jobs=4)).tobytes() == whole.tobytes()
    one = [stack(scorer.score(Q[i : i + 1], pairs.rows(slice(i, i + 1)))) for i in range(len(Q))]
    assert np.concatenate(one, axis=1).tobytes() == whole.tobytes()
    order = np.random.default_rng(1).permutation(len(Q))
    mixed = np.concatenate([one[i] for i in order], axis=1)
    assert stack(scorer.score(Q[order], pairs)).tobytes() == mixed.tobytes()
    again = NeighborShortlister.from_state(scorer.get_state())
    assert again.index == "hnsw"
    assert stack(again.score(Q, pairs)).tobytes() == whole.tobytes()


def test_an_index_is_the_same_however_it_was_built():
    want = ROWS.index().arrays()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(4)
    try:
        got = HnswIndex(X.copy()).arrays()
    finally:
        faiss.omp_set_num_threads(before)
    assert {name: np.asarray(a).tobytes() for name, a in got.items()} == {
        name: np.asarray(a).tobytes() for name, a in want.items()
    }


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("links", lambda a: a + N),
        ("links", lambda a: a[:-1]),
        ("levels", lambda a: a + 1),
        ("offsets", lambda a: a + 1),
        ("entry", lambda a: N),
        ("entry", lambda a: -1),
    ],
)
def test_arrays_of_another_index_are_refused(name, change, any_size):
    state = state_with_index()
    state["index_arrays"][name] = change(state["index_arrays"][name])
    with pytest.raises(ValueError, match=r"index_arrays must|of a saved model must be"):
        NeighborShortlister.from_state(state)


def test_links_to_rows_that_are_not_on_their_level_are_refused(any_size):
    state = state_with_index()
    arrays = state["index_arrays"]
    low = int(np.flatnonzero(arrays["levels"] == 1)[0])
    arrays["links"] = arrays["links"].copy()
    arrays["links"][arrays["offsets"][arrays["entry"]] + 2 * HnswIndex.LINKS] = low
    with pytest.raises(ValueError, match="the HNSW graph of a saved model must be"):
        NeighborShortlister.from_state(state)


def state_with_index():
    state = NeighborShortlister(index="hnsw").fit(training_set().view()).get_state()
    return state | {"index_arrays": dict(state["index_arrays"])}


def test_where_too_few_are_found_every_row_is_compared():
    voters = np.array([3, 77, 700, N - 1], np.int32)
    ids, _ = ROWS.nearest_proposed(Q, voters, 9, 1)
    assert ids.tolist() == ROWS.nearest(Q, voters, 9, "l2", 1)[0].tolist()
    assert (ids[:, 4:] == -1).all()


def test_equal_rows_are_all_found(any_size):
    same = DenseRows(np.ones((600, 3), np.float32))
    ids, distances = same.nearest_proposed(same.X[:5], np.arange(600, dtype=np.int32), 10, 1)
    assert (np.sort(ids, axis=1) == np.unique(ids, axis=1)).all()
    assert (ids >= 0).all()
    assert not distances.any()


@pytest.mark.parametrize("size", [3e38, 1e30, 1e-30, 1e-44])
def test_extreme_values_are_searched_as_others_are(size):
    tame = DenseRows(X[:600])
    wild = DenseRows((X[:600] / np.float32(8) * np.float32(size)).astype(np.float32))
    queries = np.concatenate([wild.X[:20], [np.full(D, v, np.float32) for v in (3e38, -3e38, 0)]])
    voters = np.arange(600, dtype=np.int32)
    ids, distances = wild.nearest_proposed(queries, voters, 5, 1)
    assert np.isfinite(distances).all()
    assert (ids >= 0).all()
    if size == 1e30:
        proposed = tame.index().propose(tame.X[:20], 5, None, 1)
        assert np.mean(proposed == wild.index().propose(wild.X[:20], 5, None, 1)) > 0.9


def test_searches_at_the_same_time_build_one_index():
    rows = DenseRows(X)
    with ThreadPoolExecutor(4) as pool:
        built = list(pool.map(lambda _: rows.index(), range(8)))
    assert len({id(index) for index in built}) == 1


def test_the_size_decides():
    assert [resolved_index("auto", n) for n in (100, 49_999, 50_000)] == ["flat", "flat", "hnsw"]
    assert [resolved_index("hnsw", n) for n in (100, 9_999, 10_000)] == ["flat", "flat", "hnsw"]
    assert resolved_index("flat", 10**7) == "flat"
    assert [resolved_index("auto", 60_000, n) for n in (9_999, 40_000)] == ["flat", "hnsw"]


def test_a_saved_model_answers_the_same_and_builds_nothing(tmp_path, monkeypatch, any_size):
    ds = makers.dense(300)
    parts = [NeighborShortlister(ks=(5,), index="hnsw")]
    model = MetaRanker(features=parts, ranker="logistic", n_folds=2, n_jobs=1).fit(ds)
    model.save(tmp_path / "M")
    again = load(tmp_path / "M")
    monkeypatch.setattr(faiss.IndexHNSWFlat, "add", None)
    assert again.rank(ds.X).scores.tobytes() == model.rank(ds.X).scores.tobytes()
    again.save(tmp_path / "again")
    digest = [(tmp_path / name / "manifest.json").read_bytes() for name in ("M", "again")]
    assert digest[0] == digest[1]
