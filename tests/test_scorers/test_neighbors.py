"""Distances to a label's nearest points, and votes of the nearest points."""

import pickle
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from metarank._util.printable import ordinal
from metarank.data.vectorizer import TextVectorizer
from metarank.scorers.neighbors import training_rows
from metarank.scorers.neighbors.training_rows import DenseRows, SparseRows
from metarank.scorers.neighbors.voting import NEAREST, LabelNeighbors, NeighborShortlister
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows

L = 9
KINDS = pytest.mark.parametrize("kind", ["dense", "sparse"])


def dense(A):
    return np.asarray(A.todense() if sp.issparse(A) else A, np.float64)


def all_distances(X, Q):
    """(n_queries, n) by metric, in double."""
    X, Q = dense(X), dense(Q)
    difference = Q[:, None, :] - X[None, :, :]
    lengths = np.linalg.norm(Q, axis=1)[:, None] * np.linalg.norm(X, axis=1)[None, :]
    return {
        "l2": np.sqrt((difference**2).sum(axis=2)),
        "l1": np.abs(difference).sum(axis=2),
        "cosine": 1 - np.divide(Q @ X.T, lengths, out=np.zeros_like(lengths), where=lengths > 0),
    }


def far_away(X, Q):
    X, Q = dense(X), dense(Q)
    return {
        "l2": np.sqrt((Q**2).sum(axis=1) + (X**2).sum(axis=1).max()),
        "l1": np.abs(Q).sum(axis=1) + np.abs(X).sum(axis=1).max(),
        "cosine": np.ones(len(Q)),
    }


def slow_raw(view, Q, candidates, k):
    """Eq. 1 of the paper, one pair at a time: (3, k, m)."""
    distances, far = all_distances(view.all_X, Q), far_away(view.all_X, Q)
    indptr, rows = view.rows_by_label
    out = np.empty((3, k, candidates.n_pairs))
    for p, (i, label) in enumerate(zip(candidates.row_of_pair, candidates.labels)):
        points = rows[indptr[label] : indptr[label + 1]]
        for a, metric in enumerate(("l2", "l1", "cosine")):
            nearest = np.sort(distances[metric][i, points])[:k]
            nearest = nearest if len(nearest) else far[metric][[i]]
            out[a, :, p] = np.pad(nearest, (0, k - len(nearest)), mode="edge")
    return out


def problem(kind, seed=0, n=70, n_queries=20, d=37):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n + n_queries, d)).astype(np.float32)
    if kind == "sparse":
        A[rng.random(A.shape) < 0.8] = 0
    A[1] = 0
    Y = (rng.random((n, L)) < 0.15).astype(np.float32)
    Y[:, 4] = 0  # a label without a point
    Y[2] = 0  # a point without a label
    X, Q = A[:n], np.concatenate([A[n:], A[:2]])  # the queries hold two training rows, one of them empty
    if kind == "sparse":
        X, Q = sp.csr_matrix(X), sp.csr_matrix(Q)
    names = rng.random((L, d)) * (rng.random((L, d)) < 0.2)
    names[5] = 0  # a label without a known word
    names /= np.maximum(np.linalg.norm(names, axis=1, keepdims=True), 1e-9)
    text = sp.csr_matrix(names.astype(np.float32))
    return TrainingSet(X, sp.csr_matrix(Y), fold_of_rows(n, 3, seed), label_text=text), Q


def some_pairs(n_rows, seed=0):
    mask = sp.csr_matrix(np.random.default_rng(seed).random((n_rows, L)) < 0.5)
    return Candidates(mask.indptr, mask.indices, L)


def stack(columns):
    return np.stack(list(columns.values()))


@pytest.fixture
def faiss_always(monkeypatch):
    monkeypatch.setattr(training_rows, "FAISS_MIN_ROWS", 1)
    monkeypatch.setattr(training_rows, "FAISS_MIN_QUERIES", 1)


# --- distances to a label's points ---


@KINDS
@pytest.mark.parametrize("fold", [None, 1])
def test_raw_columns_agree_with_slow_twin(kind, fold):
    data, Q = problem(kind)
    view = data.view() if fold is None else data.without_fold(fold)
    pairs = some_pairs(Q.shape[0])
    columns = LabelNeighbors(k=6, columns="raw").fit(view).score(Q, pairs)
    shown = [f"{ordinal(j)} {metric}" for metric in ("L2", "L1", "cosine") for j in range(1, 7)]
    assert list(columns) == [f"{NEAREST}: {what} distance" for what in shown]
    assert all(column.dtype == np.float32 and column.shape == (pairs.n_pairs,) for column in columns.values())
    want = slow_raw(view, Q, pairs, 6).reshape(18, -1)
    np.testing.assert_allclose(stack(columns), want, rtol=1e-5, atol=1e-5)


@KINDS
def test_summary_columns_are_statistics_of_the_raw_ones(kind):
    data, Q = problem(kind)
    pairs = Candidates.all_labels(Q.shape[0], L)
    raw = LabelNeighbors(k=12, columns="raw").fit(data.view()).score(Q, pairs)
    summary = LabelNeighbors(k=12).fit(data.view()).score(Q, pairs)
    shown = ["1st", "2nd", "3rd", "5th", "10th", "12th", *(f"mean of {k}" for k in (3, 5, 10, 12))]
    endings = [" L2 distance"] * 6 + [" L2 distances"] * 4
    assert list(summary)[:10] == [f"{NEAREST}: {what}{end}" for what, end in zip(shown, endings)]
    for name, column in summary.items():
        if name in raw:
            assert column.tobytes() == raw[name].tobytes()
        else:
            k, metric = re.fullmatch(r".* mean of (\d+) (\w+) distances", name).groups()
            first = [raw[f"{NEAREST}: {ordinal(j)} {metric} distance"] for j in range(1, int(k) + 1)]
            np.testing.assert_allclose(column, np.mean(first, axis=0), rtol=1e-6)


@pytest.mark.parametrize("fold", [None, 1])
def test_faiss_proposals_change_no_byte(monkeypatch, faiss_always, fold):
    data, Q = problem("dense", n=300, n_queries=60)
    view = data.view() if fold is None else data.without_fold(fold)
    pairs = some_pairs(Q.shape[0])
    scorers = LabelNeighbors(k=3), NeighborShortlister(ks=(3, 10))
    with_faiss = [stack(scorer.fit(view).score(Q, pairs)) for scorer in scorers]
    assert set(view.shared("training-rows", None)._faiss) == {"l2", "l1", "cosine"}
    monkeypatch.setattr(training_rows, "FAISS_MIN_ROWS", 10**9)
    without = [stack(scorer.fit(view).score(Q, pairs)) for scorer in scorers]
    assert all(a.tobytes() == b.tobytes() for a, b in zip(with_faiss, without))


def uneven(n, scales, seed=0, d=9):
    """Rows of lengths about one number, or of several by turns."""
    rows = np.random.default_rng(seed).normal(size=(n, d))
    with np.errstate(over="ignore"):
        return (rows * np.resize(scales, n)[:, None]).clip(-3e38, 3e38).astype(np.float32)


LENGTHS = [1e-45, 1e-30, 1e-23, 1e-22, 1e-21, 1e-15, 1e-5, 1e18, 2e18, 1e19, 1e25, 1e38]
EXTREME = [*[(s, s) for s in LENGTHS], *[(1, s) for s in LENGTHS[::2]], *[(s, 1) for s in LENGTHS[1::2]]]
MIXED = [([1, 1e-22], [1, 1e-22]), ([1, 1e25, 1e-22], [1, 1e25]), ([1e-22, 1e-21, 0], [1e-22, 0])]


@pytest.mark.parametrize("lengths", [*EXTREME, *MIXED], ids=str)
def test_a_row_of_any_length_has_the_same_neighbors_in_any_batch(monkeypatch, faiss_always, lengths):
    """FAISS squares lengths in 32 bits, where they overflow or vanish: its word on such rows is not taken."""
    n, n_queries = 300, 40
    rows, Q = DenseRows(uneven(n, lengths[0])), uneven(n_queries, lengths[1], seed=1)
    metrics, every = ("l2", "l1", "cosine"), np.arange(n, dtype=np.int32)
    with_faiss = [part.tobytes() for metric in metrics for part in rows.nearest(Q, every, 3, metric, 1)]
    monkeypatch.setattr(training_rows, "FAISS_MIN_ROWS", 10**9)
    exact = [part.tobytes() for metric in metrics for part in rows.nearest(Q, every, 3, metric, 1)]
    assert with_faiss == exact


def test_faiss_proposals_spare_most_scans(faiss_always):
    """The bounds are tight enough to certify lists, and loose enough never to be wrong."""
    rng = np.random.default_rng(0)
    rows = DenseRows(rng.normal(size=(400, 20)).astype(np.float32))
    Q = rng.normal(size=(50, 20)).astype(np.float32)
    distances = all_distances(rows.X, Q)
    distances["l2"] **= 2
    for metric, truth in distances.items():
        ids, bounds = rows._propose(Q, metric, 16, 1)
        for i in range(len(Q)):
            assert bounds[i] <= np.delete(truth[i], ids[i]).min()
            assert bounds[i] >= truth[i, ids[i]].max() - 0.01


def test_neighbors_of_names_the_nearest_points():
    for kind in ("dense", "sparse"):
        data, Q = problem(kind)
        view = data.without_fold(0)
        indptr, rows = view.rows_by_label
        for metric, distances in all_distances(data.X, Q).items():
            scorer = LabelNeighbors(k=3, metrics=(metric,)).fit(view)
            for label in range(L):
                points = rows[indptr[label] : indptr[label + 1]]
                got, far = scorer.neighbors_of(Q[:1], label, k=4)
                want = points[np.argsort(distances[0, points], kind="stable")][:4]
                assert got.tolist() == want.tolist()
                np.testing.assert_allclose(far, distances[0, want], rtol=1e-5, atol=1e-5)
    for asked, message in (
        ((Q[:2], 0), "X must be one row, got 2"),
        ((Q[:1], L), "label must lie in"),
    ):
        with pytest.raises(ValueError, match=message):
            scorer.neighbors_of(*asked)


def test_ties_go_to_the_smaller_row():
    index = DenseRows(np.ones((50, 3), np.float32))
    for metric in ("l2", "l1", "cosine"):
        assert index.nearest(index.X[:1], np.arange(7, 50), 4, metric, 1)[0].tolist() == [[7, 8, 9, 10]]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 12),
    d=st.integers(1, 25),
    k=st.integers(1, 14),
    density=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_any_small_problem(seed, n, d, k, density):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)).astype(np.float32) * (rng.random((n, d)) < density)
    Q = rng.integers(-2, 3, (3, d)).astype(np.float32)
    Y = sp.csr_matrix((rng.random((n, 4)) < 0.4).astype(np.float32))
    pairs = Candidates.all_labels(3, 4)
    for container in (np.asarray, sp.csr_matrix):
        view = TrainingSet(container(X), Y, np.zeros(n, np.int32)).view()
        got = stack(LabelNeighbors(k=k, columns="raw").fit(view).score(container(Q), pairs))
        np.testing.assert_allclose(got, slow_raw(view, Q, pairs, k).reshape(3 * k, -1), rtol=1e-5, atol=1e-6)


# --- votes ---


def slow_votes(view, Q, k):
    """(share of neighbours, share of weight), each (n_queries, L)."""
    sparse = sp.issparse(view.all_X)
    distances = all_distances(view.all_X, Q)["cosine" if sparse else "l2"].astype(np.float32)
    Y = np.zeros((len(view.mask), L))
    Y[view.rows] = view.Y.toarray() > 0
    votes, weighted = np.zeros((2, len(distances), L))
    for i, row in enumerate(distances):
        near = view.rows[np.argsort(row[view.rows], kind="stable")][:k]
        if sparse:
            near = near[row[near] < 1]
            weight = 1 - row[near]
        else:
            weight = 1 / np.maximum(row[near], row[near].max() / 1000)
        if len(near):
            votes[i] = Y[near].mean(axis=0)
            weighted[i] = weight @ Y[near] / weight.sum()
    return votes, weighted


@KINDS
@pytest.mark.parametrize("fold", [None, 2])
def test_votes_agree_with_slow_twin(kind, fold):
    data, Q = problem(kind)
    view = data.view() if fold is None else data.without_fold(fold)
    scorer = NeighborShortlister(ks=(3, 20), names=True).fit(view)
    columns = scorer.score(Q, Candidates.all_labels(Q.shape[0], L))
    votes = ["vote of 3", "weighted vote of 3", "vote of 20", "weighted vote of 20", "vote of similar names"]
    assert list(columns) == [f"neighbors: {vote}" for vote in votes]
    votes, weighted = slow_votes(view, Q, 20)
    alike = (data.label_text @ data.label_text.T).toarray()
    np.fill_diagonal(alike, 0)
    for name, want in zip(list(columns)[2:], (votes, weighted, weighted @ alike)):
        np.testing.assert_allclose(columns[name], want.ravel(), rtol=1e-4, atol=1e-5)


def test_a_rare_label_is_known_by_the_names_of_its_kin():
    words = ["gene", "expression", "data", "music"]
    X = sp.csr_matrix(np.array([[1, 0], [1, 0], [0, 1]], np.float32))
    Y = sp.csr_matrix(np.array([[1, 0, 0], [1, 0, 0], [0, 0, 1]], np.float32))
    names = ["gene expression", "gene expression data", "music"]
    text = TextVectorizer.of_words(words, np.ones(4)).transform(names)
    view = TrainingSet(X, Y, np.zeros(3, np.int32), label_text=text).view()
    scorer = NeighborShortlister(ks=(2,), names=True).fit(view)
    kin = scorer.score(X[:1], Candidates.all_labels(1, 3))["neighbors: vote of similar names"]
    np.testing.assert_allclose(kin, [0, 2 / np.sqrt(6), 0], rtol=1e-6)  # no label is its own kin


@KINDS
@pytest.mark.parametrize("fold", [None, 2])
def test_votes_by_inverse_propensity_agree_with_slow_twin(kind, fold):
    """1 / p_l by eq. 1 of Jain et al. (2016), of the counts of the TrainingView."""
    data, Q = problem(kind)
    view = data.view() if fold is None else data.without_fold(fold)
    scorer = NeighborShortlister(ks=(20,), relevance="inverse-propensity", propensity=(0.6, 2.6)).fit(view)
    C = (np.log(view.n_rows) - 1) * 3.6**0.6
    worth = np.array([1 + C * np.exp(-0.6 * np.log(count + 2.6)) for count in view.label_counts])
    votes, weighted = slow_votes(view, Q, 20)
    columns = scorer.score(Q, Candidates.all_labels(Q.shape[0], L))
    for vote, expected in {"vote": votes, "weighted vote": weighted * worth}.items():
        column = columns[f"neighbors: {vote} of 20"]
        np.testing.assert_allclose(column, expected.ravel(), rtol=1e-4, atol=1e-5)
    short = scorer.shortlist(Q, 4)
    scores = weighted * worth + 1e-6 * view.label_counts / view.n_rows
    np.testing.assert_allclose(
        np.sort(short.scores["neighbor_vote"].reshape(-1, 4))[:, ::-1], -np.sort(-scores)[:, :4], rtol=1e-4
    )


@KINDS
@pytest.mark.parametrize("k", [1, 3, 6, 50])
def test_shortlist_is_the_top_of_the_votes(kind, k):
    data, Q = problem(kind)
    view = data.view()
    scorer = NeighborShortlister(ks=(5,)).fit(view)
    short = scorer.shortlist(Q, k)
    assert np.all(np.diff(short.indptr) == min(k, L))
    vote = scorer.score(Q, Candidates.all_labels(Q.shape[0], L))["neighbors: weighted vote of 5"]
    want = vote.reshape(-1, L) + 1e-6 * view.label_counts / view.n_rows
    got = short.scores["neighbor_vote"].reshape(Q.shape[0], -1)
    np.testing.assert_allclose(np.sort(got)[:, ::-1], -np.sort(-want)[:, : min(k, L)], rtol=1e-5, atol=1e-9)


@KINDS
def test_neighbors_searched_once_serve_both_questions(kind):
    data, Q = problem(kind)
    scorer = NeighborShortlister(ks=(12, 3, 70, 3)).fit(data.view())
    pairs, found = some_pairs(Q.shape[0]), scorer.nearest(Q)
    assert [a.shape for a in found] == [(Q.shape[0], 70)] * 2
    short = scorer.shortlist(Q, 4, neighbors=found)
    assert short.labels.tobytes() == scorer.shortlist(Q, 4).labels.tobytes()
    columns = scorer.score(Q, pairs, neighbors=found)
    for k in (12, 3, 70):
        alone = NeighborShortlister(ks=(k,)).fit(data.view()).score(Q, pairs)
        for name, values in alone.items():
            # What counts as near among dense rows hangs on the farthest neighbour.
            if kind == "sparse" or k == 70 or "weighted" not in name:
                assert columns[name].tobytes() == values.tobytes()
    copied = pickle.loads(pickle.dumps(scorer)).score(Q, pairs)
    assert all(copied[name].tobytes() == values.tobytes() for name, values in columns.items())
    with pytest.raises(ValueError, match="neighbors must be those of the 1 rows of X, got"):
        scorer.score(Q[:1], some_pairs(1), neighbors=found)


def slow_keys(X, q, metric):
    """What orders the rows: in double, features ascending."""
    dot = sq_y = sq_x = l1_y = l1_x = l1 = 0.0
    for y, x in zip(X.T.astype(np.float64), q.astype(np.float64)):
        dot, sq_y, sq_x, l1_y, l1_x = dot + x * y, sq_y + y * y, sq_x + x * x, l1_y + abs(y), l1_x + abs(x)
        l1 = l1 + ((y != 0) & (x != 0)) * (abs(x - y) - abs(x) - abs(y))
    if metric != "cosine":
        return np.maximum(0, sq_x + sq_y - 2 * dot if metric == "l2" else l1_x + l1_y + l1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(dot == 0, 1, np.maximum(0, 1 - dot / np.sqrt(sq_x * sq_y)))


@pytest.mark.parametrize("metric", ["l2", "l1", "cosine"])
@pytest.mark.parametrize(("n", "longest"), [(3000, 3), (33_000, 3), (33_000, 3e15)])
def test_nearest_of_many_rows_with_many_ties(metric, n, longest):
    """Of more than 32,768 rows bounds of cosines leave few to be compared, unless a row is too long."""
    rng = np.random.default_rng(3)
    has = rng.random((n, 24)) < 0.6 / np.arange(1, 25) ** 0.7  # some features in most rows, most in few
    A = np.float32(rng.integers(-1, 4, (n, 24)) * np.sqrt(np.arange(1, 25)) * has)
    A[7], A[8] = 0, longest * A[8]
    A[-50:] = A[:50]
    Q, every, index = (
        np.concatenate([A[100:106], -A[:1], A[7:9]]),
        np.arange(n, dtype=np.int32),
        SparseRows(A),
    )
    for rows, k in ((every, 1), (every, 100), (every[::3], 10), (every[::3], n)):
        ids, distances = index.nearest(sp.csr_matrix(Q), rows, k, metric, 1)
        size = min(k, len(rows))
        assert (ids[:, size:] == -1).all()
        for q, got, far in zip(Q, ids, distances):
            keys = slow_keys(A, q, metric)[rows]
            want = np.argsort(keys, kind="stable")[:size]
            assert np.array_equal(got[:size], rows[want])
            of_keys = np.sqrt(keys[want]) if metric == "l2" else keys[want]
            assert far[:size].tobytes() == of_keys.astype(np.float32).tobytes()


def test_a_query_asked_about_before_has_the_same_answers():
    """Overlaps of the last queries are kept: neither they nor what stood there before leave a trace."""
    rng = np.random.default_rng(5)
    A = rng.random((400, 30)) * (rng.random((400, 30)) < np.linspace(0.01, 1, 30))  # rare and common features
    X = sp.csr_matrix(A.astype(np.float32))
    Y = sp.csr_matrix((rng.random((400, L)) < 0.2).astype(np.float32))
    data = TrainingSet(X, Y, np.zeros(400, np.int32))
    rows, pairs = [X[i] for i in range(8)], Candidates.all_labels(1, L)
    asked = (NeighborShortlister(ks=(5, 40)), LabelNeighbors(metrics=("cosine", "l2")), LabelNeighbors())
    shared = [clone(scorer).fit(data.view()) for scorer in asked]
    assert shared[0].rows_ is shared[1].rows_
    want = {}
    for i, row in enumerate(rows):
        for j, scorer in enumerate(asked):
            alone = clone(scorer).fit(TrainingSet(X.copy(), Y, np.zeros(400, np.int32)).view())
            want[i, j] = stack(alone.score(row, pairs)).tobytes()

    def ask(i, j):
        return stack(shared[j].score(rows[i], pairs)).tobytes() == want[i, j]

    questions = rng.integers(0, 8, 200).tolist(), rng.integers(0, 3, 200).tolist()
    assert all(map(ask, *questions))
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, *questions))


def test_an_empty_row_gets_the_popular_labels():
    data, _ = problem("sparse")
    scorer = NeighborShortlister().fit(data.view())
    empty = sp.csr_matrix((1, 37), dtype=np.float32)
    popular = np.sort(np.lexsort((np.arange(L), -data.view().label_counts))[:3])
    assert scorer.shortlist(empty, 3).labels.tolist() == popular.tolist()
    assert not stack(scorer.score(empty, Candidates.all_labels(1, L))).any()
