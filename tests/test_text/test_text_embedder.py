"""`LabelEmbedder`: it learns, keeps to the contract, and gives the same bytes for any number of threads."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from metarank import Candidates, Dataset, load
from metarank.metrics import evaluate
from metarank.text import LabelEmbedder
from metarank.text.index import LabelIndex
from metarank.text.kinds import COMBINES, ENCODER_KINDS
from metarank.text.subword_vectors import first_vectors
from metarank.text.subwords import TokenLists

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

COLOURS = ["red", "green", "blue", "white", "black"]
THINGS = ["shirt", "shoe", "hat", "watch", "bag"]
NAMES = [f"colour: {c}" for c in COLOURS] + [f"type: {t}" for t in THINGS]
SMALL = {"subword_dim": 16, "hidden_dim": 16, "embedding_dim": 16, "n_jobs": 1, "batch_size": 32}


def products(n, seed=0):
    """Titles such as "nice red shirt", with the colour and the thing as labels."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n):
        c, t = rng.integers(5, size=2)
        words = [rng.choice(["nice", "new", "men", "women"]), COLOURS[c], THINGS[t]]
        texts.append(" ".join(words))
        labels.append([int(c), 5 + int(t)])
    Y = np.zeros((n, 10), np.float32)
    for row, ids in zip(Y, labels):
        row[ids] = 1
    return texts, Y


def fitted(n=200, **params):
    texts, Y = products(n)
    return LabelEmbedder(**{**SMALL, "n_epochs": 4, "learning_rate": 0.01, **params}).fit(texts, Y, NAMES)


@pytest.fixture(scope="module")
def model():
    """A small fitted model; not to be changed."""
    return fitted(n_epochs=8)


def answers(model, texts):
    ranking = model.rank(texts, k=3)
    return [a.tobytes() for a in (ranking.labels, ranking.scores, model.decision_function(texts))]


@pytest.mark.check_beyond(3)
@pytest.mark.parametrize(
    ("combine", "encoder"),
    [*((c, e) for c in COMBINES for e in ("bow", "mean")), *(("lale", e) for e in ENCODER_KINDS[:2])],
)
def test_every_model_learns(combine, encoder):
    model = fitted(combine=combine, encoder=encoder, n_epochs=10, learning_rate=0.02, patience=10)
    texts, Y = products(100, seed=1)
    found = evaluate(Y, model.rank(texts, k=2), ["P@2"])["P@2"]
    assert found > 0.85
    assert len(model.history_["nDCG@5"]) >= model.best_epoch_ >= 1


def test_warp_learns():
    model = fitted(loss="warp", encoder="bow", n_epochs=10, learning_rate=0.02, patience=10)
    texts, Y = products(100, seed=1)
    assert evaluate(Y, model.rank(texts, k=2), ["P@2"])["P@2"] > 0.9


def test_sampled_labels_learn_the_same_probabilities():
    """The correction for labels left out keeps probabilities where they were."""
    texts, Y = products(300)
    rare = np.hstack([Y, np.zeros((300, 200), np.float32)])
    names = [*NAMES, *(f"other: {i}" for i in range(200))]
    params = {**SMALL, "encoder": "bow", "n_epochs": 8, "learning_rate": 0.02, "validation_fraction": 0.0}
    mean = {
        sampled: LabelEmbedder(**params, sampled_labels=sampled)
        .fit(texts, rare, names)
        .predict_proba(texts)
        .sum(axis=1)
        .mean()
        for sampled in (None, 40)
    }
    assert mean[None] == pytest.approx(2, abs=0.4)
    assert mean[40] == pytest.approx(2, abs=0.4)


def test_threads_and_repetition_give_the_same_bytes():
    texts, _ = products(40, seed=2)
    expected = answers(fitted(n_epochs=2), texts)
    for n_jobs in (1, 4):
        before = torch.get_num_threads()
        model = fitted(n_epochs=2, n_jobs=n_jobs)
        assert torch.get_num_threads() == before
        assert answers(model, texts) == expected
    assert answers(fitted(n_epochs=2, random_state=1), texts) != expected


def test_rows_are_scored_one_by_one(model):
    texts, _ = products(20, seed=3)
    scores = model.decision_function(texts)
    for i, text in enumerate(texts):
        assert model.decision_function([text]).tobytes() == scores[i].tobytes()
    order = np.random.default_rng(0).permutation(20)
    permuted = model.decision_function([texts[i] for i in order])
    assert permuted.tobytes() == scores[order].tobytes()


def test_rank_and_candidates_agree_with_all_scores(model):
    texts, _ = products(20, seed=3)
    scores = model.decision_function(texts)
    ranking = model.rank(texts, k=12)
    assert ranking.labels.shape == (20, 12)
    assert (ranking.labels[:, 10:] == -1).all()
    np.testing.assert_array_equal(ranking.scores[:, :10], -np.sort(-scores, axis=1))
    pairs = Candidates.all_labels(20, 10)
    assert model.score_candidates(texts, pairs).tobytes() == scores.tobytes()
    named = [[model.label_names_[3], 1]] * 20
    np.testing.assert_array_equal(model.score_candidates(texts, named), scores[:, [1, 3]].ravel())
    np.testing.assert_allclose(model.predict_proba(texts), 1 / (1 + np.exp(-scores)), rtol=1e-6)
    np.testing.assert_allclose(
        model.encode(texts) @ model.label_vectors_.T + model.label_bias_, scores, atol=1e-4
    )


def test_texts_without_known_subwords_get_the_biases(model):
    scores = model.decision_function(["", "☃☃", "   "])
    for row in scores:
        np.testing.assert_array_equal(row, model.label_bias_)
    assert model.rank([], k=3).labels.shape == (0, 3)


def test_only_the_first_subwords_of_a_long_text_count(model):
    long = "red shirt " * 10_000
    assert np.isfinite(model.decision_function([long])).all()
    np.testing.assert_array_equal(
        model.decision_function([long]), model.decision_function([long + " blue hat"])
    )


def test_labels_never_seen_in_training():
    texts, Y = products(100)
    kept = [0, 1, 2, 3, 5, 6, 7, 8]
    params = {**SMALL, "n_epochs": 3}
    for combine in ("lale", "text", "concat", "gile"):
        model = LabelEmbedder(combine, "bow", **params).fit(texts, Y[:, kept], [NAMES[i] for i in kept])
        more = model.add_labels(["type: bag", "colour: black"])
        assert (model.n_labels_, more.n_labels_) == (8, 10)
        assert more.label_names_[8:] == ["type: bag", "colour: black"]
        np.testing.assert_array_equal(more.label_vectors_[:8], model.label_vectors_)
        np.testing.assert_array_equal(
            more.label_vectors_[8:], model.encode_names(["type: bag", "colour: black"])
        )
        scores = more.decision_function(["nice red shirt"])
        np.testing.assert_array_equal(scores[:, :8], model.decision_function(["nice red shirt"]))
        assert more.rank(["new black bag"], k=10).labels.shape == (1, 10)
        one_by_one = model.add_labels(["type: bag"]).add_labels(["colour: black"])
        assert one_by_one.label_vectors_.tobytes() == more.label_vectors_.tobytes()


def test_names_that_stay_are_not_encoded_again(model, monkeypatch):
    """And those that change give what encoding all anew gives."""
    whole = model.with_names(["hue: red", *NAMES[1:], "type: sock"])
    asked = []
    encode = LabelEmbedder._encoded

    def watched(self, names, n_jobs):
        asked.append(list(names))
        return encode(self, names, n_jobs)

    monkeypatch.setattr(LabelEmbedder, "_encoded", watched)
    again = model.with_names(["hue: red", *NAMES[1:], "type: sock"])
    assert asked == [["hue: red", "type: sock"]]
    assert again.label_vectors_.tobytes() == whole.label_vectors_.tobytes()
    anew = LabelEmbedder.from_state(again.get_state())
    anew._settle(1)
    assert anew.label_vectors_.tobytes() == whole.label_vectors_.tobytes()
    assert model.with_names(NAMES) is model


def test_names_may_be_equal_empty_or_missing():
    texts, Y = products(60)
    names = ["colour", "colour", "", "", *NAMES[4:]]
    model = LabelEmbedder(**SMALL, n_epochs=1).fit(texts, Y, names)
    assert model.decision_function(texts).shape == (60, 10)
    unnamed = LabelEmbedder("id", **SMALL, n_epochs=1).fit(texts, Y)
    assert unnamed.label_names_ is None
    with pytest.raises(ValueError, match="names say nothing"):
        unnamed.encode_names(["colour"])
    with pytest.raises(ValueError, match="label_names must be given for combine='lale'"):
        LabelEmbedder(**SMALL).fit(texts, Y)


@pytest.mark.parametrize("combine", COMBINES)
def test_the_smallest_inputs(combine):
    params = {**SMALL, "n_epochs": 1}
    one = LabelEmbedder(combine, **params).fit(["red"], [[0]], ["colour"])
    assert one.rank(["red"], k=2).labels.tolist() == [[0, -1]]
    without = LabelEmbedder(combine, **params).fit(["red", ""], np.zeros((2, 3)), ["a", "b", "c"])
    assert np.isfinite(without.decision_function(["blue"])).all()
    two = LabelEmbedder(combine, sampled_labels=1, **params).fit(["red", "green"], [[0], [1]], ["a", "b"])
    assert np.isfinite(two.decision_function(["red"])).all()


def test_datasets_and_label_lists():
    texts, Y = products(60)
    lists = [[NAMES[i] for i in np.flatnonzero(row)] for row in Y]
    expected = LabelEmbedder(**SMALL, n_epochs=1).fit(texts, Y, NAMES).decision_function(texts)
    by_lists = LabelEmbedder(**SMALL, n_epochs=1).fit(texts, lists, NAMES)
    assert by_lists.decision_function(texts).tobytes() == expected.tobytes()
    ds = Dataset(texts=texts, Y=sp.csr_matrix(Y), label_names=NAMES)
    model = LabelEmbedder(**SMALL, n_epochs=1).fit(ds)
    assert model.decision_function(ds).tobytes() == expected.tobytes()
    with pytest.raises(ValueError, match="a Dataset without"):
        model.rank(Dataset(X=np.ones((2, 2)), Y=[[0], [1]]))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"combine": "sum"}, "combine must be one of"),
        ({"encoder": "gru"}, "encoder must be one of"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"name_activation": "tanh"}, "name_activation must be one of"),
        ({"bias": "none"}, "bias must be one of"),
        ({"device": "tpu"}, "device must be one of"),
        ({"hidden_dim": 15}, "hidden_dim must be even"),
        ({"vocabulary_size": 1}, "vocabulary_size must be at least 2, got 1"),
        ({"n_epochs": 0}, "n_epochs must be at least 1, got 0"),
        ({"learning_rate": -1.0}, "learning_rate must be a positive number, at most 1e6, got -1.0"),
        ({"validation_fraction": 1.0}, r"validation_fraction must be a number in \[0, 1\), got 1.0"),
        ({"sampled_labels": 0}, "sampled_labels must be at least 1, got 0"),
        ({"n_jobs": 0}, "n_jobs must be"),
        (
            {"encoder": "mean", "name_activation": "relu"},
            "name_activation must be 'linear' for encoder='mean'",
        ),
        ({"id_penalty": -1}, "id_penalty must be a number in"),
        ({"id_penalty": 0.1, "combine": "text"}, "id_penalty must be 0 for combine='text'"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        LabelEmbedder(**{**SMALL, **params}).fit(["red"], [[0]], ["colour"])


def test_bad_input_is_named(model):
    fit = LabelEmbedder(**SMALL).fit
    with pytest.raises(ValueError, match="NaN at row 0, column 1"):
        fit(["a", "b"], np.array([[1, np.nan], [0, 1]]), ["x", "y"])
    with pytest.raises(ValueError, match=r"Y must have a row a text \(2\), got 1"):
        fit(["a", "b"], np.array([[1, 0]]), ["x", "y"])
    with pytest.raises(ValueError, match=r"label_names must hold one name a label \(2\), got 3"):
        fit(["a"], np.array([[1, 0]]), ["x", "y", "z"])
    with pytest.raises(ValueError, match="at least one text"):
        fit([], np.zeros((0, 2)), ["x", "y"])
    with pytest.raises(TypeError, match="got one string"):
        model.rank("red shirt")
    with pytest.raises(TypeError, match=r"texts\[1\] must be a string, got None"):
        model.rank(["red", None])
    with pytest.raises(TypeError, match=r"label_names\[0\] must be a string, got 7"):
        fit(["a"], [[0]], [7])
    with pytest.raises(ValueError, match="k must be a positive integer"):
        model.rank(["red"], k=0)
    with pytest.raises(ValueError, match="not fitted"):
        LabelEmbedder().rank(["red"])


def test_clone_keeps_parameters():
    model = LabelEmbedder("concat", "cnn", hidden_dim=8, bias="global")
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("combine", ["lale", "concat"])
def test_an_interrupted_training_goes_on_as_if_it_had_not_been(combine, tmp_path):
    params = {"combine": combine, "encoder": "bow", "sampled_labels": 6}
    texts, Y = products(200)
    whole = fitted(**params, n_epochs=4)
    path = tmp_path / "checkpoint.safetensors"
    for n_epochs in (1, 3, 4, 4):
        model = LabelEmbedder(**{**SMALL, **params, "learning_rate": 0.01, "n_epochs": n_epochs})
        model.fit(texts, Y, NAMES, checkpoint=path)
    assert answers(model, texts[:20]) == answers(whole, texts[:20])
    assert (model.history_, model.best_epoch_) == (whole.history_, whole.best_epoch_)
    with pytest.raises(ValueError, match="of other texts, labels or parameters"):
        clone(model).set_params(random_state=1).fit(texts, Y, NAMES, checkpoint=path)
    path.write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match="cannot be read"):
        clone(model).fit(texts, Y, NAMES, checkpoint=path)


def test_faiss_proposes_and_scores_stay(model):
    texts, _ = products(20, seed=3)
    other = model.add_labels([f"{a} {b} {c}" for a in THINGS for b in THINGS for c in COLOURS])
    exact = other.rank(texts, k=5)
    other.search = "faiss"
    found = other.rank(texts, k=5)
    assert np.mean(found.scores == exact.scores) > 0.9
    scores = other.decision_function(texts)
    np.testing.assert_array_equal(found.scores, np.take_along_axis(scores, found.labels.astype(int), 1))
    assert other.rank(texts[3:4], k=5).scores.tobytes() == found.scores[3].tobytes()
    assert other.rank(texts, k=400).labels.shape == (20, 400)


def test_the_index_of_labels_finds_the_greatest_products():
    rng = np.random.default_rng(0)
    F, Q = (rng.normal(size=(n, 16)).astype(np.float32) for n in (2000, 30))
    F *= rng.uniform(0.1, 3, (2000, 1)).astype(np.float32)
    bias = rng.normal(size=2000).astype(np.float32)
    best = np.argsort(-(Q @ F.T + bias), axis=1)[:, :5]
    pairs = LabelIndex(F, bias).propose(Q, 64, 1)
    rows = np.split(pairs.labels, pairs.indptr[1:-1])
    assert np.mean([np.isin(b, row).mean() for b, row in zip(best, rows)]) > 0.95
    again = LabelIndex(F, bias).propose(Q[::-1], 64, 4)
    np.testing.assert_array_equal(
        np.concatenate(np.split(again.labels, again.indptr[1:-1])[::-1]), pairs.labels
    )


def test_save_and_load(model, tmp_path):
    texts, _ = products(20, seed=3)
    model.save(tmp_path / "M")
    again = load(tmp_path / "M")
    assert answers(again, texts) == answers(model, texts)
    assert again.get_params() == model.get_params()
    assert again.history_ == model.history_
    weights = next((tmp_path / "M").glob("*weights.safetensors"))
    theirs = pytest.importorskip("safetensors.numpy").load_file(weights)
    for name, values in model.weights_.items():
        np.testing.assert_array_equal(theirs[name], values)
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ValueError, match="checksum"):
        load(tmp_path / "M")
    again.add_labels(["colour: pink"]).save(tmp_path / "M2")
    assert load(tmp_path / "M2").n_labels_ == 11


@pytest.mark.check
def test_neither_import_nor_prediction_needs_torch(model, tmp_path):
    model.save(tmp_path / "M")
    code = (
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, *others):\n"
        "        if name == 'torch':\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "import metarank\nfrom metarank.text import LabelEmbedder\n"
        f"model = metarank.load({str(tmp_path / 'M')!r})\n"
        "print(model.rank(['red shirt'], k=2).labels.tolist(), model.add_labels(['x']).n_labels_)\n"
        "try:\n    LabelEmbedder().fit(['a'], [[0]], ['x'])\n"
        "except ImportError as error:\n    print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert str(model.rank(["red shirt"], k=2).labels.tolist()) in out
    assert "pip install 'metarank-ltr[text]'" in out


# --- what a new user met ---------------------------------------------------------


@pytest.mark.parametrize("other", [{"name_activation": "relu"}, {"learning_rate": 0.02}, {"batch_size": 16}])
def test_a_checkpoint_of_other_parameters_is_refused(tmp_path, other):
    texts, Y = products(60)
    small = {**SMALL, "encoder": "bow", "n_epochs": 1}
    LabelEmbedder(**small).fit(texts, Y, NAMES, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="of other texts, labels or parameters"):
        LabelEmbedder(**{**small, "n_epochs": 2, **other}).fit(texts, Y, NAMES, checkpoint=tmp_path / "c")


def test_a_damaged_checkpoint_is_refused(tmp_path):
    texts, Y = products(60)
    model = LabelEmbedder(**{**SMALL, "encoder": "bow", "n_epochs": 1})
    model.fit(texts, Y, NAMES, checkpoint=tmp_path / "c")
    content = bytearray((tmp_path / "c").read_bytes())
    content[-20] ^= 0xFF
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(ValueError, match=r"cannot be read: .*checksum"):
        model.set_params(n_epochs=2).fit(texts, Y, NAMES, checkpoint=tmp_path / "c")


@pytest.mark.parametrize(
    ("path", "error"), [("no/such/c", FileNotFoundError), (".", ValueError), ("", ValueError), (5, TypeError)]
)
def test_where_no_checkpoint_can_be_is_told_before_work(tmp_path, monkeypatch, path, error):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("metarank.text.embedder.require_extra", lambda *a: pytest.fail("work has begun"))
    with pytest.raises(error, match="checkpoint must be"):
        LabelEmbedder(**SMALL).fit(["a"], [["x"]], checkpoint=path)


def test_parameters_set_after_the_fit_are_those_of_the_next_fit(model, tmp_path):
    texts, _ = products(5, seed=3)
    changed = copy.copy(model).set_params(encoder="bow", combine="id", max_length=1)
    assert answers(changed, texts) == answers(model, texts)
    assert changed.add_labels(["colour: pink"]).n_labels_ == len(NAMES) + 1
    changed.save(tmp_path / "m")
    assert answers(load(tmp_path / "m"), texts) == answers(model, texts)
    with pytest.raises(ValueError, match="search must be one of"):
        copy.copy(model).set_params(search="best").rank(texts)


@pytest.mark.parametrize("texts", [pd.DataFrame({"t": ["red"]}), {"red": 1}, {"red"}, None, 5])
def test_what_is_no_sequence_of_texts_is_refused(model, texts):
    with pytest.raises(TypeError, match="texts must be a sequence of strings"):
        model.rank(texts)


def test_a_model_that_has_searched_can_be_pickled(model):
    texts, _ = products(5)
    searching = copy.copy(model).set_params(search="faiss")
    ranked = answers(searching, texts)
    assert answers(pickle.loads(pickle.dumps(searching)), texts) == ranked


def test_half_a_pair_of_surrogates_is_an_unknown_character(model):
    assert answers(model, ["\ud800 red shirt"]) == answers(model, ["? red shirt"])
    odd = LabelEmbedder(**{**SMALL, "encoder": "bow", "n_epochs": 1})
    odd.fit(["\ud800 red"] * 20, [["x"]] * 20)


@pytest.mark.parametrize(
    "queries", [np.ones(16, np.float32), np.ones((1, 3)), np.full((1, 16), np.nan)], ids=str
)
def test_vectors_that_encode_did_not_give_are_refused(model, queries):
    with pytest.raises(ValueError, match="queries must be"):
        model.rank_vectors(queries)


# --- the encoder "mean" --------------------------------------------------------------


def test_a_mean_is_saved_and_its_bytes_do_not_depend_on_threads(tmp_path):
    texts, Y = products(120)
    one, four = (
        LabelEmbedder(**{**SMALL, "n_jobs": n_jobs}, encoder="mean", id_penalty=0.15, n_epochs=3).fit(
            texts, Y, NAMES, unlabelled=["green scarf", "old hat"]
        )
        for n_jobs in (1, 4)
    )
    one.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.id_penalty == 0.15
    assert answers(one, texts[:9]) == answers(four, texts[:9]) == answers(loaded, texts[:9])


def test_vectors_begin_alike_for_subwords_of_the_same_texts():
    """Against a slow twin: the mutual information by loops, its singular vectors by LAPACK."""
    rng = np.random.default_rng(0)
    lists = [rng.choice(np.arange(1, 12), rng.integers(1, 7)) for _ in range(40)]
    indptr = np.concatenate([[0], np.cumsum([len(tokens) for tokens in lists])]).astype(np.int64)
    found = first_vectors(TokenLists(indptr, np.concatenate(lists).astype(np.int32)), 13, dim=5, seed=0)
    together, df = np.zeros((13, 13)), np.zeros(13)
    for tokens in map(sorted, map(set, lists)):
        df[tokens] += 1
        for a in tokens:
            for b in tokens:
                together[a, b] += 0 if a == b else 1 / (len(tokens) - 1)
    total = together.sum(axis=1)
    smooth = total**0.75 / (total**0.75).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(together / np.outer(total, smooth))
    information = np.where(together > 0, np.maximum(information, 0), 0)
    left, values, _ = np.linalg.svd(information)
    slow = left[:, :5] * np.sqrt(values[:5]) * np.log(4 / 3 * 41 / (df + 1))[:, None]
    slow /= np.sqrt(df @ (slow**2).sum(axis=1) / df.sum())
    np.testing.assert_allclose(found @ found.T, slow @ slow.T, atol=0.02)
    np.testing.assert_allclose(found[[0, 12]], 0, atol=1e-6)


def test_further_texts_teach_words_that_no_row_has():
    texts, Y = products(150)
    further = [
        f"{word} {old}" for word in ("red", "scarlet") for old in ("silk", "rose", "wine", "silk")
    ] * 20
    small = {**SMALL, "encoder": "mean", "n_epochs": 2}
    taught = LabelEmbedder(**small).fit(texts, Y, NAMES, unlabelled=further)
    red, scarlet, green = taught.encode(["red", "scarlet", "green"])
    assert red @ scarlet > 3 * abs(green @ scarlet)
    assert not LabelEmbedder(**small).fit(texts, Y, NAMES).encode(["q"]).any()
    with pytest.raises(TypeError, match="unlabelled must be a sequence of strings"):
        LabelEmbedder(**small).fit(texts, Y, NAMES, unlabelled="red")
