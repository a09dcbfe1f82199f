"""TextVectorizer: terms, weights against scikit-learn, laws, state."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer

from metarank.data.vectorizer import TextVectorizer

TEXTS = [
    "Split arrays or matrices into random train and test subsets: train_test_split",
    "KMeans clusters; see MiniBatchKMeans, means of means",
    "Ünïcode Wörter zählen auch, ÜNÏCODE",
    "",
    "a b c 1 ! ?",
    "random random random split",
]


def same(a, b):
    return a.shape == b.shape and all(
        np.array_equal(getattr(a, part), getattr(b, part)) for part in ("data", "indices", "indptr")
    )


def test_agrees_with_scikit_learn():
    ours = TextVectorizer(split_identifiers=False, word_ngrams=2)
    twin = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), token_pattern=r"(?u)\w\w+", norm="l2")
    X, T = ours.fit_transform(TEXTS), twin.fit_transform(TEXTS)
    assert ours.vocabulary_ == list(twin.get_feature_names_out())
    np.testing.assert_allclose(X.toarray(), T.toarray(), rtol=1e-6)
    assert X.dtype == np.float32
    assert X.has_canonical_format
    assert isinstance(X, sp.csr_matrix)


@pytest.mark.parametrize(
    ("word", "terms"),
    [
        ("train_test_split", ["train_test_split", "train", "test", "split"]),
        ("HTTPServerError", ["httpservererror", "http", "server", "error"]),
        ("MiniBatchKMeans", ["minibatchkmeans", "mini", "batch", "means"]),
        ("KMeans", ["kmeans", "means"]),
        ("conv2d", ["conv2d", "conv"]),
        ("__init__", ["__init__", "init"]),
        ("Split", ["split"]),
        ("naïve", ["naïve"]),
        ("über_uns", ["über_uns", "über", "uns"]),
        ("中文", ["中文"]),
        ("x", []),
    ],
)
def test_identifiers_count_whole_and_in_parts(word, terms):
    assert list(TextVectorizer().terms(word)) == terms


def test_min_df_counts_texts():
    assert TextVectorizer(min_df=2).fit(TEXTS).vocabulary_ == ["random", "split"]
    with pytest.raises(ValueError, match="min_df=9 of the 6 texts"):
        TextVectorizer(min_df=9).fit(TEXTS)


def test_empty_and_unknown_texts_are_empty_rows():
    v = TextVectorizer().fit(TEXTS)
    X = v.transform(["", "zzz unseen", "a", "random"])
    assert np.diff(X.indptr).tolist() == [0, 0, 0, 1]
    assert v.transform([]).shape == (0, len(v.vocabulary_))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=8), st.integers(0, 8))
def test_rows_depend_on_their_own_text(texts, cut):
    v = TextVectorizer(word_ngrams=2).fit(TEXTS)
    whole = v.transform(texts)
    parts = sp.vstack([v.transform(texts[:cut]), v.transform(texts[cut:])], format="csr")
    assert same(whole, parts)
    norms = np.sqrt(whole.multiply(whole).sum(axis=1))
    assert np.all((np.abs(norms - 1) < 1e-6) | (norms == 0))


def test_fit_transform_is_fit_then_transform():
    for parameters in ({}, {"min_df": 2}, {"word_ngrams": 3, "split_identifiers": False}):
        v = TextVectorizer(**parameters)
        with pytest.raises(NotFittedError):
            v.transform(["x"])
        assert same(v.fit_transform(TEXTS), v.transform(TEXTS))


def test_state_round_trip_without_objects():
    v = TextVectorizer(word_ngrams=2, split_identifiers=False).fit(TEXTS)
    state = v.get_state()
    idf = state.pop("idf")
    state = json.loads(json.dumps(state))
    again = TextVectorizer.from_state({**state, "idf": idf})
    assert again.get_params() == v.get_params()
    assert same(v.transform(TEXTS), again.transform(TEXTS))
    assert clone(again).get_params() == v.get_params()
    with pytest.raises(ValueError, match="idf"):
        TextVectorizer.from_state({**state, "idf": idf[:-1]})
    with pytest.raises(ValueError, match="distinct"):
        TextVectorizer.from_state({**state, "vocabulary": ["x"] * len(idf), "idf": idf})


@pytest.mark.parametrize(
    ("parameters", "texts", "error", "words"),
    [
        ({}, "one string", TypeError, "wrap it in a list"),
        ({}, ["fine", 3], TypeError, r"texts\[1\] must be a string, got int"),
        ({}, ["fine", None], TypeError, r"texts\[1\].*NoneType"),
        ({}, ["fine", b"no"], TypeError, r"texts\[1\].*bytes"),
        ({}, [], ValueError, "of the 0 texts"),
        ({}, ["! ?"], ValueError, "must share words"),
        ({"min_df": 0}, ["fine"], ValueError, "min_df"),
        ({"min_df": 0.5}, ["fine"], ValueError, "min_df"),
        ({"word_ngrams": True}, ["fine"], ValueError, "word_ngrams"),
    ],
)
def test_bad_input_is_named(parameters, texts, error, words):
    with pytest.raises(error, match=words):
        TextVectorizer(**parameters).fit(texts)
