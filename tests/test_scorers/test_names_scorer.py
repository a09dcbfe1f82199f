"""NameScorer against slow twins, its laws, and label texts as rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from metarank import _core
from metarank.data.label_text import label_text_matrix
from metarank.data.vectorizer import TextVectorizer
from metarank.scorers.names.words import COLUMNS, NameScorer
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet


def random_csr(rng, n, d, density, signed=False):
    # Values on a coarse grid make ties of the cosine likely.
    values = rng.integers(-3 if signed else 1, 4, size=(n, d)) * (rng.random((n, d)) < density)
    return sp.csr_matrix(values.astype(np.float32))


def fitted(text, n_rows=3):
    X = sp.csr_matrix((n_rows, text.shape[1]), dtype=np.float32)
    Y = sp.csr_matrix((n_rows, text.shape[0]), dtype=np.float32)
    return NameScorer().fit(TrainingSet(X, Y, np.arange(n_rows) % 2, label_text=text).view())


def twin_columns(X, text, candidates):
    """One pair after the other, dense, in double."""
    X, T = X.toarray().astype(np.float64), text.toarray().astype(np.float64)
    out = np.zeros((4, candidates.n_pairs))
    for p, (i, label) in enumerate(zip(candidates.row_of_pair, candidates.labels)):
        x, t = X[i], T[label]
        norms = np.sqrt((x * x).sum()) * np.sqrt((t * t).sum())
        words = np.flatnonzero(t)
        if len(words):
            present = x[words] != 0
            weights = np.abs(t[words])
            out[:, p] = (
                (x * t).sum() / norms if norms else 0,
                present.mean(),
                weights[present].sum() / weights.sum(),
                len(words),
            )
    return dict(zip(COLUMNS, out))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 9))
def test_columns_and_shortlist_agree_with_their_twins(seed, signed, k):
    rng = np.random.default_rng(seed)
    n, d, n_labels = rng.integers(1, 12, size=3)
    X, text = random_csr(rng, n, d, 0.4, signed), random_csr(rng, n_labels, d, 0.3, signed)
    text.eliminate_zeros()
    scorer = fitted(text)
    pairs = Candidates.all_labels(n, n_labels)
    columns = scorer.score(X, pairs)
    for name, expected in twin_columns(X, text, pairs).items():
        np.testing.assert_allclose(columns[name], expected, rtol=1e-6, atol=1e-7)

    cosine = columns["name_cosine"].reshape(n, n_labels)
    found = scorer.shortlist(X, k)
    for i in range(n):
        best = [label for label in np.lexsort((np.arange(n_labels), -cosine[i])) if cosine[i, label] > 0][:k]
        row = slice(found.indptr[i], found.indptr[i + 1])
        assert found.labels[row].tolist() == sorted(best)
        assert found.scores["names"][row].tobytes() == cosine[i, sorted(best)].tobytes()


def test_threads_batches_and_order_change_no_byte():
    rng = np.random.default_rng(0)
    X, text = random_csr(rng, 150, 60, 0.2), random_csr(rng, 90, 60, 0.1)
    scorer = fitted(text)
    found = scorer.shortlist(X, 7)
    columns = scorer.score(X, found)
    assert columns["name_cosine"].tobytes() == found.scores["names"].tobytes()
    four = scorer.shortlist(X, 7, n_jobs=4)
    assert four.labels.tobytes() == found.labels.tobytes()
    assert four.scores["names"].tobytes() == found.scores["names"].tobytes()
    for name, values in scorer.score(X, found, n_jobs=4).items():
        assert values.tobytes() == columns[name].tobytes()
    order = rng.permutation(150)
    for rows in (order, np.arange(40), np.array([149])):
        part = scorer.shortlist(X[rows], 7)
        expected = found.rows(rows)
        assert np.array_equal(part.labels, expected.labels)
        assert part.scores["names"].tobytes() == expected.scores["names"].tobytes()
        for name, values in scorer.score(X[rows], expected).items():
            whole = Candidates(found.indptr, found.labels, 90, {name: columns[name]}).rows(rows)
            assert values.tobytes() == whole.scores[name].tobytes()


def test_the_same_for_dense_unsorted_and_wide_index_types():
    rng = np.random.default_rng(1)
    X, text = random_csr(rng, 5, 9, 0.6), random_csr(rng, 4, 9, 0.5)
    scorer = fitted(text)
    pairs = Candidates.all_labels(5, 4)
    expected = scorer.score(X, pairs)
    coo = X.tocoo()
    shuffled = rng.permutation(coo.nnz)
    twice = sp.coo_matrix(
        (
            np.concatenate([coo.data[shuffled] / 2] * 2),
            (np.concatenate([coo.row[shuffled]] * 2), np.concatenate([coo.col[shuffled]] * 2)),
        ),
        X.shape,
    )
    unsorted = sp.csr_matrix((5, 9), dtype=np.float32)
    order = np.argsort(twice.row, kind="stable")
    unsorted.data, unsorted.indices = twice.data[order].astype(np.float32), twice.col[order].astype(np.int32)
    unsorted.indptr = np.concatenate([[0], np.cumsum(np.bincount(twice.row, minlength=5))]).astype(np.int32)
    unsorted.has_canonical_format = unsorted.has_sorted_indices = False
    before = unsorted.indices.copy()
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for other in (X.toarray(), unsorted, wide):
        for name, values in scorer.score(other, pairs).items():
            assert values.tobytes() == expected[name].tobytes()
    assert np.array_equal(unsorted.indices, before)


def test_empty_rows_labels_and_batches():
    text = sp.csr_matrix(np.array([[1, 0], [0, 0]], np.float32))
    scorer = fitted(text)
    X = sp.csr_matrix(np.array([[0, 0], [2, 0]], np.float32))
    columns = scorer.score(X, Candidates.all_labels(2, 2))
    assert columns["name_cosine"].tolist() == [0, 0, 1, 0]
    assert columns["name_words"].tolist() == [1, 0, 1, 0]
    assert all(np.isfinite(values).all() for values in columns.values())
    found = scorer.shortlist(X, 100)
    assert found.indptr.tolist() == [0, 0, 1]
    assert scorer.shortlist(X[:0], 3).n_rows == 0
    assert scorer.score(X[:0], Candidates.all_labels(0, 2))["name_share"].shape == (0,)


def test_cancelling_values_do_not_propose_a_label_twice():
    text = sp.csr_matrix(np.array([[1, 1, 1]], np.float32))
    found = fitted(text).shortlist(sp.csr_matrix(np.array([[1, -1, 2]], np.float32)), 5)
    assert found.labels.tolist() == [0]
    assert found.scores["names"][0] == pytest.approx(2 / np.sqrt(6 * 3))


def test_state_round_trip_and_shared_index():
    rng = np.random.default_rng(2)
    X, text = random_csr(rng, 6, 8, 0.5), random_csr(rng, 5, 8, 0.4)
    data = TrainingSet(X, sp.csr_matrix((6, 5), dtype=np.float32), np.arange(6) % 3, label_text=text)
    whole, part = NameScorer().fit(data.view()), NameScorer().fit(data.without_fold(1))
    assert whole._index is part._index
    again = NameScorer.from_state(whole.get_state())
    pairs = Candidates.all_labels(6, 5)
    for name, values in whole.score(X, pairs).items():
        assert values.tobytes() == again.score(X, pairs)[name].tobytes()


def test_bad_input_is_named():
    text = sp.csr_matrix(np.eye(2, 3, dtype=np.float32))
    scorer = fitted(text)
    X = sp.csr_matrix((2, 3), dtype=np.float32)
    Y = sp.csr_matrix((2, 2), dtype=np.float32)
    with pytest.raises(ValueError, match="label_text=None"):
        NameScorer().fit(TrainingSet(X, Y, np.zeros(2)).view())
    with pytest.raises(ValueError, match=r"label_text must have shape \(2, 3\), got \(2, 4\)"):
        NameScorer().fit(TrainingSet(X, Y, np.zeros(2), label_text=sp.csr_matrix((2, 4))).view())
    with pytest.raises(ValueError, match=r"X must have 3 features, got shape \(2, 5\)"):
        scorer.score(sp.csr_matrix((2, 5), dtype=np.float32), Candidates.all_labels(2, 2))
    with pytest.raises(ValueError, match="candidates must be of 2 labels, got 3"):
        scorer.score(X, Candidates.all_labels(2, 3))
    with pytest.raises(ValueError, match="as many rows as X"):
        scorer.score(X, Candidates.all_labels(3, 2))
    for k, error in ((0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match="k must be"):
            scorer.shortlist(X, k)


@pytest.mark.parametrize(
    ("indptr", "indices", "message"),
    [
        ([1, 2], [0, 1], "start at 0"),
        ([0, 3], [0, 1], "number of entries"),
        ([0, 2, 1, 2], [0, 1], "must not decrease"),
        ([0, 2], [1, 0], "ascending"),
        ([0, 2], [1, 1], "ascending"),
        ([0, 2], [0, 3], "below the number of features"),
        ([0, 2], [-1, 0], "ascending"),
        ([], [0, 1], "must not be empty"),
    ],
)
def test_the_core_refuses_broken_arrays(indptr, indices, message):
    arrays = (np.array(indptr, np.int64), np.array(indices, np.int32), np.ones(len(indices), np.float32))
    with pytest.raises(ValueError, match=message):
        _core.LabelText(3, *arrays)
    index = _core.LabelText(3, np.array([0, 1], np.int64), np.array([2], np.int32), np.ones(1, np.float32))
    with pytest.raises(ValueError, match=message):
        index.shortlist(*arrays, 1, 1)
    with pytest.raises(ValueError, match=message):
        index.evidence(*arrays, np.zeros(max(len(indptr), 1), np.int64), np.empty(0, np.int32), 1)


@pytest.mark.parametrize(
    ("indptr", "labels"), [([0, 1], [1]), ([0, 1], [-1]), ([0, 2], [0]), ([1, 1], [0]), ([0, 1, 1], [0])]
)
def test_the_core_refuses_broken_candidates(indptr, labels):
    x = (np.array([0, 1], np.int64), np.array([2], np.int32), np.ones(1, np.float32))
    with pytest.raises(ValueError, match="candidates"):
        _core.LabelText(3, *x).evidence(*x, np.array(indptr, np.int64), np.array(labels, np.int32), 1)


def test_label_text_from_feature_names():
    words = ["Tea", "green", "of", "tea", "cup of"]
    text = label_text_matrix(["green tea", "Cup of TEA tea", "wine", ""], feature_names=words)
    expected = np.array([[1, 1, 0, 0, 0], [1 + np.log(2), 0, 1, 0, 1], [0] * 5, [0] * 5])
    norms = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(text.toarray(), expected / np.where(norms, norms, 1), rtol=1e-6)
    assert text.dtype == np.float32
    assert text.has_canonical_format
    weighted = label_text_matrix(["green tea"], feature_names=words, idf=np.array([3, 4, 1, 1, 1]))
    np.testing.assert_allclose(weighted.data, [0.6, 0.8], rtol=1e-6)


def test_label_text_from_a_vectorizer():
    v = TextVectorizer().fit(["green tea is a drink", "wine is a drink"])
    names, texts = ["tea", "wine"], ["Tea: a drink", "a drink"]
    text = label_text_matrix(names, texts, vectorizer=v)
    assert np.array_equal(text.toarray(), v.transform(["tea a drink", "wine a drink"]).toarray())


def test_label_text_checks_its_input():
    v = TextVectorizer().fit(["green tea"])
    for both in ({}, {"vectorizer": v, "feature_names": ["tea"]}):
        with pytest.raises(ValueError, match="exactly one of"):
            label_text_matrix(["tea"], **both)
    with pytest.raises(ValueError, match="label_texts must have 1 entries, got 2"):
        label_text_matrix(["tea"], ["a", "b"], vectorizer=v)
    with pytest.raises(ValueError, match="idf must have shape"):
        label_text_matrix(["tea"], feature_names=["tea"], idf=np.ones(2))
    with pytest.raises(TypeError, match=r"label_names\[1\]"):
        label_text_matrix(["tea", 3], feature_names=["tea"])
