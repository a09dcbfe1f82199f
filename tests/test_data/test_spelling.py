"""Words spelled alike against a slow twin, and label names found by them."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import metarank
from metarank import MetaRanker
from metarank.data.dataset import Dataset
from metarank.data.spelling import SpellingIndex
from metarank.data.vectorizer import TextVectorizer
from metarank.scorers.names.words import SpellingScorer
from metarank.shortlist import NeighborShortlister, SpellingShortlister
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet

WORDS = ["erosion", "soil", "soils", "two words", "3d", "räume", "raum", "of", "erosive", "x_1"]


def runs(word):
    marked = "^" + word + "$"
    return {marked[i : i + 4] for i in range(len(marked) - 3)}


def similarity(word, other, words):
    """Cosine of two words' runs, one run after the other."""
    known = [runs(w) if len(w) > 2 and " " not in w else set() for w in words]

    def squared(run):
        return (math.log((1 + len(words)) / (1 + sum(run in of for of in known))) + 1) ** 2

    norms = [math.sqrt(sum(squared(run) for run in runs(w))) for w in (word, other)]
    return sum(squared(run) for run in runs(word) & runs(other)) / (norms[0] * norms[1])


def test_similarities_are_those_of_pairs_one_by_one():
    asked = ["erosions", "soil", "bodenerosion", "räumen", "zzz", "wor"]
    found = SpellingIndex(WORDS, np.ones(len(WORDS)), least=0.2).similar(asked).toarray()
    for i, word in enumerate(asked):
        for j, other in enumerate(WORDS):
            expected = similarity(word, other, WORDS) if len(other) > 2 and " " not in other else 0.0
            assert found[i, j] == pytest.approx(expected if expected >= 0.2 else 0.0, abs=1e-6)
    assert found[1, 1] == pytest.approx(1)  # itself
    assert found[2, 0] > 0.2
    assert found[4].sum() == 0


def test_a_text_is_the_known_words_like_its_own():
    weights = np.arange(1, len(WORDS) + 1, dtype=np.float32)
    index = SpellingIndex(WORDS, weights, least=0.3)
    rows = index.transform(["Erosions, EROSIONS of soil", "", "zzz"])
    mass = weights * (index.similar(["erosions"]).toarray()[0] + index.similar(["soil"]).toarray()[0])
    np.testing.assert_allclose(rows[0].toarray()[0], mass / np.linalg.norm(mass), rtol=1e-6)
    assert rows.dtype == np.float32
    assert rows.has_sorted_indices
    assert np.diff(rows.indptr)[1:].tolist() == [0, 0]


def test_rows_depend_on_their_own_text_only():
    index = SpellingIndex(WORDS, np.ones(len(WORDS)))
    texts = [f"{word}s and {other}" for word in WORDS for other in WORDS]
    together = index.transform(texts)
    for i in (0, 17, 99):
        assert (together[i] != index.transform([texts[i]])).nnz == 0


def test_columns_are_those_of_the_spelled_text():
    rng = np.random.default_rng(0)
    X = sp.csr_matrix((rng.random((6, 10)) < 0.4).astype(np.float32))
    text = SpellingIndex(WORDS, np.ones(10), least=0.2).transform(["soiled", "erode erosion", "none"])
    data = TrainingSet(X, sp.csr_matrix((6, 3), dtype=np.float32), np.zeros(6), label_spelling=text)
    columns = SpellingScorer().fit(data.view()).score(X, Candidates.all_labels(6, 3))
    T = text.toarray().astype(np.float64)
    for p, (i, label) in enumerate((i, j) for i in range(6) for j in range(3)):
        x, t = X[i].toarray()[0].astype(np.float64), T[label]
        norm = np.linalg.norm(x) * np.linalg.norm(t)
        cosine = x @ t / norm if norm else 0
        assert columns["label name: spelling cosine"][p] == pytest.approx(cosine, abs=1e-6)
        assert columns["label name: spelling share"][p] == pytest.approx(
            t[x > 0].sum() / t.sum() if t.any() else 0, abs=1e-6
        )


@pytest.fixture(scope="module")
def model_and_texts():
    topics = ["erosion", "harvest", "painting", "turbine", "medieval"]
    rng = np.random.default_rng(0)
    texts = [
        " ".join([topics[i % 5], *(f"word{j}" for j in rng.integers(0, 30, size=4))]) for i in range(120)
    ]
    Y = sp.csr_matrix(np.eye(5, dtype=np.float32)[np.arange(120) % 5])
    Y = sp.hstack([Y, sp.csr_matrix((120, 1), dtype=np.float32)], "csr")
    names = ["erosions", "harvesting", "paintings", "turbines", "medievalism", "harvesters"]
    votes, spelling = NeighborShortlister(), SpellingShortlister()
    options = {"ranker": "pointwise", "n_jobs": 1}
    model = MetaRanker(shortlister=[votes, spelling], features=[votes, spelling], **options)
    return model.fit(Dataset(X=None, Y=Y, texts=texts, label_names=names)), texts


def test_a_label_without_rows_is_found_by_a_word_like_its_name(model_and_texts):
    model, _ = model_and_texts
    assert 5 in model.rank(["the harvest of word1"], k=3).labels[0]
    assert 5 not in model.rank(["a painting"], k=3).labels[0]


def test_saved_models_and_renamed_labels_keep_their_spelling(model_and_texts, tmp_path):
    model, texts = model_and_texts
    before = model.rank(texts[:10], k=3)
    model.save(tmp_path / "model")
    again = metarank.load(tmp_path / "model")
    assert again.rank(texts[:10], k=3).labels.tolist() == before.labels.tolist()
    again.update_labels(rename={"harvesters": "turbinen"}, add=["erosional"])
    texts = ["a turbine", "the erosion", "a painting"]
    scores = again.decision_function(texts)
    assert scores[0, 5] > scores[1:, 5].max()
    assert scores[1, 6] > scores[[0, 2], 6].max()


def test_the_reader_splits_identifiers_as_the_vectorizer_does():
    vectorizer = TextVectorizer().fit(["train test split", "means"])
    index = SpellingIndex(vectorizer.vocabulary_, vectorizer.idf_, reader=vectorizer)
    assert index.transform(["train_test_splits"]).nnz == 3
