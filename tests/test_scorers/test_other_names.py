"""Alternative names: the best of a label's names, against slow twins."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from test_names_scorer import fitted as without_others
from test_names_scorer import random_csr

from metarank.scorers.names.words import COLUMNS, NameScorer, SpellingScorer
from metarank.types.candidates import Candidates
from metarank.types.other_names import OtherNames
from metarank.types.view import TrainingSet


def fitted(text, others, cls=NameScorer):
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
        columns = np.array(
            list(without_others(names).score(X, Candidates.all_labels(n, names.shape[0])).values())
        )
        columns = columns.reshape(4, n, -1)
        best = columns[0].argmax(axis=1)
        out[:4, :, label] = columns[:, np.arange(n), best]
        out[4, :, label] = (columns[1] == 1).sum(axis=1)
    return out.reshape(5, -1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_the_best_name_and_the_shortlist_agree_with_their_twins(seed, k):
    X, text, others = made(seed)
    scorer, pairs = fitted(text, others), Candidates.all_labels(X.shape[0], text.shape[0])
    columns = scorer.score(X, pairs)
    own = without_others(text).score(X, pairs)
    assert all(columns[name].tobytes() == own[name].tobytes() for name in COLUMNS)
    expected = best_by_hand(X, text, others)
    for values, twin in zip(list(columns.values())[4:], expected, strict=True):
        np.testing.assert_array_equal(values, twin)
    found = scorer.shortlist(X, k)
    cosine = columns["best_name_cosine"].reshape(X.shape[0], -1)
    for row in range(X.shape[0]):
        order = np.lexsort((np.arange(cosine.shape[1]), -cosine[row]))[:k]
        wanted = np.sort(order[cosine[row][order] > 0])
        inside = slice(found.indptr[row], found.indptr[row + 1])
        np.testing.assert_array_equal(found.labels[inside], wanted)
        np.testing.assert_array_equal(found.scores["names"][inside], cosine[row][wanted])


def test_a_label_is_found_by_its_other_name_alone():
    text = sp.csr_matrix(np.float32([[1, 0, 0], [0, 1, 0]]))
    others = OtherNames(sp.csr_matrix(np.float32([[0, 0, 1]])), np.array([1], np.int32))
    scorer = fitted(text, others)
    x = sp.csr_matrix(np.float32([[0, 0, 2]]))
    assert scorer.shortlist(x, 2).labels.tolist() == [1]
    columns = scorer.score(x, Candidates.all_labels(1, 2))
    assert columns["name_cosine"].tolist() == [0, 0]
    assert columns["best_name_cosine"].tolist() == [0, 1]
    assert columns["names_matched"].tolist() == [0, 1]


def test_many_names_of_one_label_crowd_no_other_out():
    """Its names fill the first places of the index; the search goes on until k labels are found."""
    n_names, L = 40, 3
    text = sp.csr_matrix(np.float32([[1, 0], [1, 1], [1, 2]]))
    others = OtherNames(
        sp.csr_matrix(np.repeat(np.float32([[1, 0]]), n_names, axis=0)), np.zeros(n_names, np.int32)
    )
    found = fitted(text, others).shortlist(sp.csr_matrix(np.float32([[1, 0], [0, 0]])), L)
    assert np.diff(found.indptr).tolist() == [3, 0]


@pytest.mark.parametrize("cls", [NameScorer, SpellingScorer])
def test_a_range_of_labels_scores_as_before(cls):
    X, text, others = made(3)
    L = text.shape[0]
    scorer = fitted(text, others, cls)
    whole = scorer.score(X, Candidates.all_labels(X.shape[0], L))
    for first, last in ((0, L // 2), (L // 2, L)):
        part = scorer.of_labels(first, last).score(X, Candidates.all_labels(X.shape[0], last - first))
        for name, values in part.items():
            np.testing.assert_array_equal(values, whole[name].reshape(-1, L)[:, first:last].ravel())
