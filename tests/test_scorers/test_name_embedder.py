"""`NameEmbedder`: learned label embeddings as a source of candidates and of evidence."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from metarank import Candidates, Dataset, MetaRanker, load
from metarank.data.vectorizer import TextVectorizer
from metarank.scorers.names.name_embedder import NameEmbedder
from metarank.text.inference import TextModel
from metarank.types.view import TrainingSet, fold_of_rows

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

COLOURS = ["red", "green", "blue", "white", "black"]
THINGS = ["shirt", "shoe", "hat", "watch", "bag"]
NAMES = [f"{colour} things" for colour in COLOURS] + [f"any {thing}" for thing in THINGS]
SMALL = dict(dim=16, n_epochs=12, learning_rate=0.02, batch_size=16)


def products(n=200, seed=0):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(5, size=(n, 2))
    texts = [f"{rng.choice(['nice', 'new'])} {COLOURS[c]} {THINGS[t]}" for c, t in pairs]
    Y = np.zeros((n, 10), np.float32)
    Y[np.arange(n), pairs[:, 0]] = Y[np.arange(n), 5 + pairs[:, 1]] = 1
    return texts, sp.csr_matrix(Y)


@pytest.fixture(scope="module")
def data():
    texts, Y = products()
    vectorizer = TextVectorizer()
    X = vectorizer.fit_transform(texts)
    fold = fold_of_rows(len(texts), 3, 0)
    return TrainingSet(X, Y, fold, label_phrases=NAMES, words=vectorizer.vocabulary_)


@pytest.fixture(scope="module")
def scorer(data):
    return NameEmbedder(**SMALL).fit(data.without_fold(0))


def stack(columns):
    return np.stack(list(columns.values()))


def test_it_learns_which_names_fit(data, scorer):
    held_out = np.flatnonzero(data.fold == 0)
    pairs = Candidates.all_labels(len(held_out), 10)
    columns = scorer.score(data.X[held_out], pairs)
    assert list(columns) == ["embedder_score", "embedder_cosine"]
    relevant = data.Y[held_out].toarray().ravel() > 0
    assert roc_auc_score(relevant, columns["embedder_score"]) > 0.95
    assert np.abs(columns["embedder_cosine"]).max() <= 1 + 1e-6


def test_score_is_that_of_the_vectors(data, scorer):
    pairs = Candidates.all_labels(5, 10)
    queries = scorer.search(data.X[:5])["queries"]
    model = scorer.embedder_
    want = queries @ model.label_vectors_.T + model.label_bias_
    np.testing.assert_allclose(scorer.score(data.X[:5], pairs)["embedder_score"], want.ravel(), rtol=1e-4)
    lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(model.label_vectors_, axis=1)
    cosine = np.divide(queries @ model.label_vectors_.T, lengths, out=np.zeros_like(want), where=lengths > 0)
    np.testing.assert_allclose(
        scorer.score(data.X[:5], pairs)["embedder_cosine"], cosine.ravel(), rtol=1e-4, atol=1e-6
    )


def test_shortlist_is_the_head_of_the_scores(data, scorer):
    short = scorer.shortlist(data.X[:20], 3)
    scores = scorer.score(data.X[:20], Candidates.all_labels(20, 10))["embedder_score"].reshape(20, 10)
    best = np.sort(np.argsort(-scores, axis=1, kind="stable")[:, :3], axis=1)
    np.testing.assert_array_equal(short.labels.reshape(20, 3), best)
    assert short.scores["embedder"].tobytes() == np.take_along_axis(scores, best, 1).ravel().tobytes()
    assert scorer.shortlist(data.X[:2], 99).n_pairs == 20


def test_laws(data, scorer):
    X, pairs = data.X[:20], Candidates.all_labels(20, 10)
    whole = stack(scorer.score(X, pairs))
    assert stack(scorer.score(X, pairs, n_jobs=4)).tobytes() == whole.tobytes()
    again = NameEmbedder.from_state(scorer.get_state())
    assert stack(again.score(X, pairs)).tobytes() == whole.tobytes()
    single = [stack(scorer.score(X[i : i + 1], pairs.rows(slice(i, i + 1)))) for i in range(20)]
    assert np.concatenate(single, axis=1).tobytes() == whole.tobytes()
    refit = NameEmbedder(**SMALL).fit(data.without_fold(0), n_jobs=4)
    assert stack(refit.score(X, pairs)).tobytes() == whole.tobytes()


def test_an_empty_row_has_answers(data, scorer):
    empty = sp.csr_matrix((1, data.X.shape[1]), dtype=np.float32)
    columns = scorer.score(empty, Candidates.all_labels(1, 10))
    assert np.isfinite(stack(columns)).all()
    assert not columns["embedder_cosine"].any()


def test_words_of_greatest_weight_come_first(data, scorer):
    row = sp.csr_matrix(([0.2, 0.9, 0.2], [0, 1, 2], [0, 3]), shape=(1, data.X.shape[1]), dtype=np.float32)
    words = data.words
    assert scorer._texts(row) == [f"{words[1]} {words[0]} {words[2]}"]
    scorer = NameEmbedder(max_words=2)
    scorer.words_ = np.array(words, dtype=object)
    assert scorer._texts(row) == [f"{words[1]} {words[0]}"]


@pytest.mark.parametrize("missing", ["words", "label_phrases"])
def test_words_and_names_must_be_known(data, missing):
    given = dict(words=data.words, label_phrases=NAMES) | {missing: None}
    other = TrainingSet(data.X, data.Y, data.fold, **given)
    with pytest.raises(ValueError, match="are unknown"):
        NameEmbedder(**SMALL).fit(other.view())


def test_in_the_pipeline(tmp_path):
    texts, Y = products()
    embedder = NameEmbedder(combine="text", **SMALL)
    model = MetaRanker(
        shortlister=["neighbors", embedder],
        features=["neighbors", "names", embedder],
        label_text=NAMES,
        shortlist_size=5,
        n_folds=2,
        n_jobs=1,
    ).fit(texts, Y)
    assert {"embedder_score", "z(embedder_cosine)"} <= set(model.feature_columns_)
    before = model.rank(texts[:9], k=4)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.rank(texts[:9], k=4).scores.tobytes() == before.scores.tobytes()


def test_labels_never_seen_are_found_by_their_names(data):
    view = data.view()
    scorer = NameEmbedder(combine="text", **{**SMALL, "n_epochs": 20}).fit(view)
    unseen = TrainingSet(
        data.X,
        sp.csr_matrix((data.Y.shape[0], 12), dtype=np.float32),
        data.fold,
        label_phrases=[*NAMES, "hat in green", "music"],
        words=data.words,
    )
    after = scorer.updated(unseen.view())
    assert after.label_phrases()[10:] == ["hat in green", "music"]
    green_hat = np.flatnonzero((data.Y[:, 1].toarray() * data.Y[:, 7].toarray()).ravel())
    scores = after.score(data.X[green_hat], Candidates.all_labels(len(green_hat), 12))["embedder_score"]
    scores = scores.reshape(-1, 12)
    assert (scores[:, 10] > scores[:, 11]).all()
    old = scorer.score(data.X[:5], Candidates.all_labels(5, 10))["embedder_score"].reshape(5, 10)
    new = after.score(data.X[:5], Candidates.all_labels(5, 12))["embedder_score"].reshape(5, 12)
    assert new[:, :10].tobytes() == old.tobytes()


@pytest.mark.check
@pytest.mark.parametrize("effort", ["low", "medium"])
def test_label_text_learned_adds_it_to_what_auto_chose(effort):
    texts, Y = products(120)
    ds = Dataset(texts=texts, Y=Y, label_names=NAMES)
    model = MetaRanker(label_text="learned", effort=effort, n_folds=2, n_jobs=1, ranker="logistic").fit(ds)
    assert {"z(embedder_score)", "z(name_cosine)"} <= set(model.feature_columns_)
    assert any("NameEmbedder" in line for line in model.choices_)


def test_learned_needs_words_and_names():
    texts, Y = products(60)
    with pytest.raises(ValueError, match="label_text='learned' needs label_names"):
        MetaRanker(label_text="learned", n_folds=2).fit(texts, Y)
    with pytest.raises(ValueError, match="label_text must be 'auto', 'learned'"):
        MetaRanker(label_text="names").fit(texts, Y)
    with pytest.raises(TypeError, match="label_text must be"):
        MetaRanker(label_text=3).fit(texts, Y)


def test_unchanged_names_leave_it_as_it_is(data, scorer):
    assert scorer.updated(data.view()) is scorer
    renamed = TrainingSet(data.X, data.Y, data.fold, label_phrases=["crimson", *NAMES[1:]], words=data.words)
    other = scorer.updated(renamed.view())
    assert other.label_phrases()[0] == "crimson"
    assert scorer.label_phrases() == NAMES


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"combine": "id"}, "combine must be one of"),
        ({"dim": 0}, "dim must be at least 1, got 0"),
        ({"max_words": 0}, "max_words must be at least 1, got 0"),
        ({"dim": 3, "encoder": "bilstm"}, "dim must be even"),
    ],
)
def test_its_own_parameters_are_named(data, wrong, message):
    with pytest.raises(ValueError, match=message):
        NameEmbedder(**wrong).fit(data.view())


def test_threads_are_those_of_the_call(data, scorer, monkeypatch):
    asked = []
    queries = TextModel.queries

    def watched(self, texts, n_jobs=1):
        asked.append(n_jobs)
        return queries(self, texts, n_jobs)

    monkeypatch.setattr(TextModel, "queries", watched)
    scorer.shortlist(data.X[:3], 2, n_jobs=2)
    scorer.score(data.X[:3], Candidates.all_labels(3, 10), n_jobs=3)
    assert asked == [2, 3]
