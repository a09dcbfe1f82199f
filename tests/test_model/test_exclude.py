"""Excluded labels are out of the question: in training, in lists, in sets, in probabilities."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import Candidates, MetaRanker, data


@pytest.fixture(scope="module", params=[None, "neighbors"])
def fitted(request):
    both = data.make_multilabel(150, n_features=8, n_labels=6, seed=2)
    model = MetaRanker(
        shortlister=request.param, shortlist_size=4, effort="low", ranker="logistic", n_jobs=1
    ).fit(both.take(slice(0, 100)))
    return model, both.take(slice(100, 150))


def test_never_listed_decided_or_given_a_chance(fitted):
    model, test = fitted
    own = [[i % 6, 5] if i % 3 else [] for i in range(test.n_rows)]
    mask = np.zeros(test.Y.shape, bool)
    for i, labels in enumerate(own):
        mask[i, labels] = True
    ranking = model.rank(test, k=6, exclude=own)
    assert not ranking.to_csr().toarray()[mask].any()
    assert not model.predict(test, exclude=own).toarray()[mask].any()
    probabilities = model.predict_proba(test, exclude=own)
    assert sp.issparse(probabilities) == bool(model.shortlisters_)
    assert not sp.csr_matrix(probabilities).toarray()[mask].any()
    scores = model.decision_function(test, exclude=own)
    for row, excluded in zip(scores, mask):
        assert row[excluded].max(initial=-np.inf) <= row[~excluded].min()
    assert model.score(test, exclude=own) <= 1
    plain = model.rank(test, k=6)
    free = ~mask.any(axis=1)
    np.testing.assert_array_equal(ranking.labels[free], plain.labels[free])
    again = model.rank(test, k=6, exclude=sp.csr_matrix(mask))
    np.testing.assert_array_equal(ranking.labels, again.labels)


def test_no_candidate_in_training():
    """Leaving pairs out of training changes what is learned."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)).astype(np.float32)
    Y = np.eye(4, dtype=np.float32)[np.argmax(X, axis=1)]
    with_all = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(X, Y)
    irrelevant = [np.flatnonzero(row == 0)[:1].tolist() for row in Y]
    without = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(X, Y, exclude=irrelevant)
    assert not np.array_equal(with_all.predict_proba(X), without.predict_proba(X))


def test_without_by_hand():
    candidates = Candidates(np.array([0, 2, 2, 3]), np.array([1, 4, 4]), 5, {"s": np.array([1.0, 2, 3])})
    kept = candidates.without(Candidates(np.array([0, 1, 2, 2]), np.array([4, 0]), 5))
    assert kept.indptr.tolist() == [0, 1, 1, 2]
    assert kept.labels.tolist() == [1, 4]
    assert kept.scores["s"].tolist() == [1, 3]
