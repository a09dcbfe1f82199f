"""NameScorer against slow twins, of one name a label and of several; label texts as rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from metarank import _core
from metarank.data.encoder import label_phrases
from metarank.data.vectorizer import TextVectorizer
from metarank.scorers.names.words import COLUMNS, NameScorer
from metarank.types.candidates import Candidates
from metarank.types.label_names import OtherNames
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

    cosine = columns["label name: cosine"].reshape(n, n_labels)
    found = scorer.shortlist(X, k)
    for i in range(n):
        best = [label for label in np.lexsort((np.arange(n_labels), -cosine[i])) if cosine[i, label] > 0][:k]
        row = slice(found.indptr[i], found.indptr[i + 1])
        assert found.labels[row].tolist() == sorted(best)
        assert found.scores["names"][row].tobytes() == cosine[i, sorted(best)].tobytes()


def test_cancelling_values_do_not_propose_a_label_twice():
    text = sp.csr_matrix(np.array([[1, 1, 1]], np.float32))
    found = fitted(text).shortlist(sp.csr_matrix(np.array([[1, -1, 2]], np.float32)), 5)
    assert found.labels.tolist() == [0]
    assert found.scores["names"][0] == pytest.approx(2 / np.sqrt(6 * 3))


def test_bad_input_is_named():
    text = sp.csr_matrix(np.eye(2, 3, dtype=np.float32))
    scorer = fitted(text)
    X = sp.csr_matrix((2, 3), dtype=np.float32)
    Y = sp.csr_matrix((2, 2), dtype=np.float32)
    with pytest.raises(ValueError, match="needs names of the labels"):
        NameScorer().fit(TrainingSet(X, Y, np.zeros(2)).view())
    with pytest.raises(ValueError, match=r"label_text must have shape \(2, 3\), got \(2, 4\)"):
        NameScorer().fit(TrainingSet(X, Y, np.zeros(2), label_text=sp.csr_matrix((2, 4))).view())
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
        ([], [0, 1], "number of entries"),
    ],
)
def test_the_core_refuses_broken_arrays(indptr, indices, message):
    arrays = (np.array(indptr, np.int64), np.array(indices, np.int32), np.ones(len(indices), np.float32))
    with pytest.raises(ValueError, match=message):
        _core.LabelText((*arrays, 3))
    index = _core.LabelText((np.array([0, 1]), np.array([2], np.int32), np.ones(1, np.float32), 3))
    with pytest.raises(ValueError, match=message):
        index.shortlist(arrays, 1, 1)
    with pytest.raises(ValueError, match=message):
        index.evidence(arrays, np.zeros(max(len(indptr), 1), np.int64), np.empty(0, np.int32), 1)


@pytest.mark.parametrize(
    ("indptr", "labels"), [([0, 1], [1]), ([0, 1], [-1]), ([0, 2], [0]), ([1, 1], [0]), ([0, 1, 1], [0])]
)
def test_the_core_refuses_broken_candidates(indptr, labels):
    x = (np.array([0, 1], np.int64), np.array([2], np.int32), np.ones(1, np.float32))
    with pytest.raises(ValueError, match="candidates"):
        _core.LabelText((*x, 3)).evidence(x, np.array(indptr, np.int64), np.array(labels, np.int32), 1)


def test_label_text_from_feature_names():
    words = ["Tea", "green", "of", "tea", "cup of"]
    text = TextVectorizer.of_words(words, np.ones(5)).transform(["green tea", "Cup of TEA tea", "wine", ""])
    expected = np.array([[1, 1, 0, 0, 0], [1 + np.log(2), 0, 1, 0, 1], [0] * 5, [0] * 5])
    norms = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(text.toarray(), expected / np.where(norms, norms, 1), rtol=1e-6)
    assert text.dtype == np.float32
    assert text.has_canonical_format
    weighted = TextVectorizer.of_words(words, np.array([3, 4, 1, 1, 1])).transform(["green tea"])
    np.testing.assert_allclose(weighted.data, [0.6, 0.8], rtol=1e-6)


def test_label_text_from_a_vectorizer():
    v = TextVectorizer().fit(["green tea is a drink", "wine is a drink"])
    names, texts = ["tea", "wine"], ["Tea: a drink", "a drink"]
    text = v.transform(label_phrases(names, texts))
    assert np.array_equal(text.toarray(), v.transform(["tea a drink", "wine a drink"]).toarray())


def with_others(text, others, cls=NameScorer):
    X = sp.csr_matrix((3, text.shape[1]), dtype=np.float32)
    Y = sp.csr_matrix((3, text.shape[0]), dtype=np.float32)
    data = TrainingSet(X, Y, np.arange(3) % 2, label_text=text, label_spelling=text)
    data.other_names = {"label_text": others, "label_spelling": others}
    return cls().fit(data.view())


def made(seed):
    rng = np.random.default_rng(seed)
    n, d, L, M = rng.integers(1, 10, size=4)
    X, text, more = (random_csr(rng, rows, d, 0.4) for rows in (n, L, M))
    return X, text, OtherNames(more, np.sort(rng.integers(0, L, M)).astype(np.int32))


def names_of(text, others, label):
    """The rows of a label's names, its own first."""
    return sp.vstack([text[label], others.text[others.label == label]], "csr")


def best_by_hand(X, text, others):
    """For each pair, one after the other: what the best name says, and how many match."""
    n, L = X.shape[0], text.shape[0]
    out = np.zeros((5, n, L))
    for label in range(L):
        names = names_of(text, others, label)
        columns = np.array(list(fitted(names).score(X, Candidates.all_labels(n, names.shape[0])).values()))
        columns = columns.reshape(4, n, -1)
        best = columns[0].argmax(axis=1)
        out[:4, :, label] = columns[:, np.arange(n), best]
        out[4, :, label] = (columns[1] == 1).sum(axis=1)
    return out.reshape(5, -1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_the_best_name_and_the_shortlist_agree_with_their_twins(seed, k):
    X, text, others = made(seed)
    scorer, pairs = with_others(text, others), Candidates.all_labels(X.shape[0], text.shape[0])
    columns = scorer.score(X, pairs)
    own = fitted(text).score(X, pairs)
    assert all(columns[name].tobytes() == own[name].tobytes() for name in COLUMNS)
    expected = best_by_hand(X, text, others)
    for values, twin in zip(list(columns.values())[4:], expected, strict=True):
        np.testing.assert_array_equal(values, twin)
    found = scorer.shortlist(X, k)
    cosine = columns["label name: cosine, best name"].reshape(X.shape[0], -1)
    for row in range(X.shape[0]):
        order = np.lexsort((np.arange(cosine.shape[1]), -cosine[row]))[:k]
        wanted = np.sort(order[cosine[row][order] > 0])
        inside = slice(found.indptr[row], found.indptr[row + 1])
        np.testing.assert_array_equal(found.labels[inside], wanted)
        np.testing.assert_array_equal(found.scores["names"][inside], cosine[row][wanted])


def test_a_label_is_found_by_its_other_name_alone():
    text = sp.csr_matrix(np.float32([[1, 0, 0], [0, 1, 0]]))
    others = OtherNames(sp.csr_matrix(np.float32([[0, 0, 1]])), np.array([1], np.int32))
    scorer = with_others(text, others)
    x = sp.csr_matrix(np.float32([[0, 0, 2]]))
    assert scorer.shortlist(x, 2).labels.tolist() == [1]
    columns = scorer.score(x, Candidates.all_labels(1, 2))
    assert columns["label name: cosine"].tolist() == [0, 0]
    assert columns["label name: cosine, best name"].tolist() == [0, 1]
    assert columns["label name: number of names found"].tolist() == [0, 1]


def test_many_names_of_one_label_crowd_no_other_out():
    """Its names fill the first places of the index; the search goes on until k labels are found."""
    n_names, L = 40, 3
    text = sp.csr_matrix(np.float32([[1, 0], [1, 1], [1, 2]]))
    others = OtherNames(
        sp.csr_matrix(np.repeat(np.float32([[1, 0]]), n_names, axis=0)), np.zeros(n_names, np.int32)
    )
    found = with_others(text, others).shortlist(sp.csr_matrix(np.float32([[1, 0], [0, 0]])), L)
    assert np.diff(found.indptr).tolist() == [3, 0]
