"""Vectors of labels in the space of X: cosines against a slow twin, proposals, models, bad input."""

from __future__ import annotations

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker, load
from metarank.data import LabelDescriptions, make_multilabel
from metarank.scorers.names.given_vectors import LabelVectorScorer
from metarank.types.candidates import Candidates
from metarank.types.label_names import LabelVectors
from metarank.types.view import TrainingSet

DATA = make_multilabel(80, n_features=6, n_labels=4, seed=1)
NAMED = [["abcd"[j] for j in row.indices] for row in DATA.Y]


def fitted(X, own, **params):
    Y = sp.csr_matrix((X.shape[0], len(own.vectors)), dtype=np.float32)
    data = TrainingSet(X, Y, np.arange(X.shape[0]) % 2, label_vectors=own)
    return LabelVectorScorer(**params).fit(data.view())


def drawn(n=7, L=9, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X, V = (rng.normal(size=(rows, d)).astype(np.float32) for rows in (n, L))
    X[0], V[1] = 0, 0
    return X, V


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_cosines_and_proposals_agree_with_their_twins(layout):
    X, V = drawn()
    scale = np.float32([2, 0.5, 1, 4, 1, 8])
    shown = np.hstack([np.ones((7, 2), np.float32), X * scale[:5]])
    given = shown if layout == "dense" else sp.csr_matrix(shown)
    scorer = fitted(given, LabelVectors(V, 2, scale[:5]))
    found = scorer.score(given, Candidates.all_labels(7, 9))["label vector: cosine"].reshape(7, 9)
    norms = np.linalg.norm(X.astype(float), axis=1)[:, None] * np.linalg.norm(V.astype(float), axis=1)
    wanted = np.divide(X.astype(float) @ V.T.astype(float), norms, out=np.zeros((7, 9)), where=norms > 0)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    best = scorer.shortlist(given, 3)
    for row in range(7):
        order = np.argsort(-found[row], kind="stable")[:3]
        inside = slice(best.indptr[row], best.indptr[row + 1])
        np.testing.assert_array_equal(best.labels[inside], np.sort(order[found[row][order] > 0]))


def test_the_graph_proposes_what_comparison_finds(monkeypatch):
    X, V = drawn(30, 400, 8)
    a = fitted(X, LabelVectors(V)).shortlist(X, 10)
    monkeypatch.setattr("metarank.scorers.names.given_vectors.AUTO_ROWS", 400)
    graph = fitted(X, LabelVectors(V))
    b = graph.shortlist(X, 10)
    same = [np.intersect1d(a.rows([i]).labels, b.rows([i]).labels).size for i in range(1, 30)]
    assert np.mean(same) > 9.5
    again = graph.score(X, b)["label vector: cosine"]
    assert b.scores["label-vectors"].tobytes() == again.tobytes()


def table(width=6, **more) -> LabelDescriptions:
    means = np.array([DATA.X[DATA.Y[:, [j]].toarray().ravel() > 0].mean(axis=0) for j in range(4)])
    vectors = np.vstack([means, DATA.X[:1]])[:, :width]
    return LabelDescriptions(names=[*"abcd", "unseen"], vectors=vectors, **more)


def test_a_model_takes_the_vectors_and_ranks_labels_without_rows(tmp_path):
    params = {**makers.QUICK, "shortlister": ["label-vectors"], "shortlist_size": 2}
    model = MetaRanker(**params).fit(DATA.X, NAMED, labels=table())
    assert "unseen" in model.rank(DATA.X[:1], k=5).names[0]
    auto = MetaRanker(**makers.QUICK).fit(DATA.X, NAMED, labels=table())
    assert any("label vector: cosine" in name for name in auto.feature_columns_)
    whole = auto.decision_function(DATA.X)
    parts = [auto.decision_function(DATA.X[i : i + 9]) for i in range(0, 80, 9)]
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    auto.save(tmp_path / "M")
    assert load(tmp_path / "M").decision_function(DATA.X).tobytes() == whole.tobytes()
    model.update_labels(add=[{"name": "new", "vector": DATA.X[5]}])
    assert "new" in model.rank(DATA.X[5:6], k=5).names[0]
    model.partial_fit(DATA.X[:3], [["new"]] * 3)
    assert "new" in model.rank(DATA.X[5:6], k=5).names[0]


@pytest.mark.parametrize(
    ("X", "width", "message"),
    [
        (DATA.X, 5, "in the space of dense X, which has 6 columns, got vectors of 5 numbers"),
        (["some words"] * 80, 6, "got vectors of 6 numbers, and texts or sparse features"),
    ],
)
def test_vectors_of_another_space_are_refused(X, width, message):
    with pytest.raises(ValueError, match=message):
        MetaRanker(**makers.QUICK).fit(X, NAMED, labels=table(width))


def test_vectors_in_the_space_of_a_block():
    """The block is kept, whatever it weighs, and compared as it was given."""
    noise = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
    X = {"text": ["one two", "two three"] * 40, "noise": noise, "place": DATA.X}
    model = MetaRanker(**makers.QUICK, features=["label-vectors", "votes"]).fit(X, NAMED, labels=table())
    assert any("label vector: cosine" in name for name in model.feature_columns_)
    (own,) = [scorer for scorer in model.scorers_ if isinstance(scorer, LabelVectorScorer)]
    alone = fitted(DATA.X, LabelVectors(table().vectors))
    pairs = Candidates.all_labels(80, 5)
    encoded = model.encoder_.encode(X)
    [of_model], [of_scorer] = own.score(encoded, pairs).values(), alone.score(DATA.X, pairs).values()
    np.testing.assert_allclose(of_model, of_scorer, atol=1e-5)
    with pytest.raises(ValueError, match=r"one block of X, got 5 numbers; blocks of vectors: 'noise' \(3\)"):
        MetaRanker(**makers.QUICK).fit(X, NAMED, labels=table(5))


def test_the_source_needs_vectors():
    with pytest.raises(ValueError, match="needs vectors of the labels"):
        MetaRanker(**makers.QUICK, features=["label-vectors"]).fit(DATA)
