"""`NameMentions` against a search of every name in every text, word by word; and models that use it."""

from __future__ import annotations

import math

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker, data, load
from metarank.data.word_order import name_forms, word_rows
from metarank.model.answering.answer import read_request
from metarank.scorers.names.mentions import COLUMNS, SCORE, NameMentions
from metarank.types.candidates import Candidates
from metarank.types.given import Given
from metarank.types.texts import NameForms, WordRows
from metarank.types.view import TrainingSet


def made(seed: int, n: int = 30, n_labels: int = 14) -> tuple[list[list[int]], NameForms]:
    """Texts of few words, so that names overlap, are shared, stand within others, and occur often."""
    rng = np.random.default_rng(seed)
    texts = [rng.integers(1, 7, rng.integers(0, 25)).tolist() for _ in range(n)]
    n_forms = 2 * n_labels
    forms = [rng.integers(1, 7, rng.integers(1, 4)).tolist() for _ in range(n_forms)]
    labels = np.sort(rng.integers(0, n_labels, n_forms)).astype(np.int32)
    return texts, NameForms(WordRows.of(forms), labels, rng.integers(0, 3, n_forms).astype(np.int32))


def training_set(texts: list[list[int]], forms: NameForms, n_labels: int = 14) -> TrainingSet:
    n = len(texts)
    given = Given(n, n_labels, words=WordRows.of(texts))
    Y = sp.csr_matrix((n, n_labels), dtype=np.float32)
    return TrainingSet(np.zeros((n, 1), np.float32), Y, np.arange(n) % 3, given=given, name_forms=forms)


def by_hand(texts: list[list[int]], forms: NameForms, n_labels: int) -> dict[str, np.ndarray]:
    """The columns and the score of all pairs."""
    phrases = [forms.words[[i]].words.tolist() for i in range(len(forms.labels))]
    n = len(texts)

    def places(text: list[int], phrase: list[int]) -> list[int]:
        return [i for i in range(len(text)) if text[i : i + len(phrase)] == phrase]

    held = [sum(bool(places(text, phrase)) for text in texts) for phrase in phrases]
    columns = {name: np.zeros((n, n_labels)) for name in (*COLUMNS, SCORE)}
    for row, text in enumerate(texts):
        every = {(i, i + len(phrase)) for phrase in phrases for i in places(text, phrase)}
        for label in range(n_labels):
            own = [f for f in range(len(phrases)) if forms.labels[f] == label and places(text, phrases[f])]
            if not own:
                continue
            spans = [(i, i + len(p)) for p in {tuple(phrases[f]) for f in own} for i in places(text, list(p))]
            alone = [not any(a <= i and j <= b and b - a > j - i for a, b in every) for i, j in spans]
            best = min(own, key=lambda f: (-forms.kinds[f], -len(phrases[f]), f))
            sharing = {forms.labels[f] for f in range(len(phrases)) if phrases[f] == phrases[best]}
            starts = [i for i, _ in spans]
            rarity = math.log((1 + n) / (1 + held[best]))
            share = sum(alone) / len(alone)
            values = [
                len(spans),
                share,
                1 / (1 + min(starts)),
                1 - min(starts) / len(text),
                (max(starts) - min(starts)) / len(text),
                len(phrases[best]),
                forms.kinds[best],
                len(sharing),
                rarity,
                rarity * math.sqrt(len(phrases[best])) * (0.3 + 0.7 * share) / len(sharing),
            ]
            for name, value in zip(columns, values, strict=True):
                columns[name][row, label] = value
    return columns


@pytest.mark.parametrize("seed", range(6))
def test_every_name_in_every_text(seed):
    texts, forms = made(seed)
    whole = training_set(texts, forms)
    scorer = NameMentions().fit(whole.view())
    expected = by_hand(texts, forms, 14)
    found = scorer.score(whole.given, Candidates.all_labels(len(texts), 14))
    assert list(found) == list(COLUMNS)
    for name, values in found.items():
        np.testing.assert_allclose(values.reshape(-1, 14), expected[name], rtol=1e-6, err_msg=name)
    for k in (1, 3, 100):
        listed = scorer.shortlist(whole.given, k)
        for row in range(len(texts)):
            mentioned = np.flatnonzero(expected["label mention: count"][row])
            order = np.lexsort((mentioned, -expected[SCORE][row, mentioned].astype(np.float32)))
            own = slice(*listed.indptr[row : row + 2])
            assert listed.labels[own].tolist() == sorted(mentioned[order[:k]].tolist())
            wanted = expected[SCORE][row, listed.labels[own]]
            np.testing.assert_allclose(listed.scores[SCORE][own], wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "language", "text", "is_found"),
    [
        ("Vitamin C", None, "vitamin c in food", True),
        ("Vitamin C", None, "vitamin-C", True),
        ("Vitamin C", None, "vitamin and C", False),
        ("Kant, Immanuel", None, "On Immanuel Kant", True),
        ("Mercury (planet)", None, "the orbit of Mercury", True),
        ("Kern <Informatik>", None, "der Kern", True),
        ("Bridges", "english", "building a bridge", True),
        ("Bridges", None, "building a bridge", False),
        ("History of art", "english", "the history of the art", True),
        ("Straße", None, "STRASSE", True),
        ("Ärzte", None, "ÄRZTE", True),
        ("a b c d e f g h i j k l m n", None, "a b c d e f g h i j k l m x", True),  # by its first twelve
        ("!?", None, "!?", False),
        ("", None, "", False),
    ],
)
def test_ways_of_writing(name, language, text, is_found):
    forms = name_forms([name], None, language)
    given = Given(1, 1, words=word_rows([text], language))
    Y = sp.csr_matrix((1, 1), dtype=np.float32)
    whole = TrainingSet(np.zeros((1, 1), np.float32), Y, np.zeros(1), given=given, name_forms=forms)
    found = NameMentions().fit(whole.view()).score(given, Candidates.all_labels(1, 1))
    assert (found["label mention: count"][0] > 0) == is_found


def test_numbers_of_words_do_not_depend_on_the_process():
    assert word_rows(["sea"], None).words.tolist() == [-730283562963872271]
    assert word_rows(["The Seas"], "english").words.tolist() == [-730283562963872271]


def test_a_model_finds_labels_that_no_row_has(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"{a}{b} {b}{a}" for a in "abcdefghijklm" for b in "nopqrstuvwxyz"]
    rows = rng.integers(0, 120, (200, 2))  # of the 169 labels those in front
    texts = [f"{rng.integers(1000)} {names[a]} noise {names[b]} {rng.integers(9)}" for a, b in rows]
    labels = [sorted({int(a), int(b)}) for a, b in rows]
    Y = sp.lil_matrix((200, 169), dtype=np.float32)
    for row, own in enumerate(labels):
        Y[row, own] = 1
    train = data.Dataset(texts=texts, Y=Y.tocsr(), label_names=names)
    model = MetaRanker(n_folds=2, n_jobs=1, effort="low", language="english").fit(train)
    assert any(isinstance(s, NameMentions) for s in model.scorers_)
    new = [f"noise {names[label]} more noise" for label in range(130, 169)]
    assert (model.rank(new, k=10).labels == np.arange(130, 169)[:, None]).any(axis=1).all()
    model.save(tmp_path / "M")
    again = load(tmp_path / "M")
    for other in (again, model):
        for batch in (new, new[:1]):
            assert (
                other.rank(batch, k=3).scores.tobytes() == model.rank(new, k=3).scores[: len(batch)].tobytes()
            )
    # The stages in Python say what the compiled plan says.
    request, asked = read_request(model.fitted_, new), model.answering()
    assert model.fitted_.plan is not None
    (by_plan,) = asked.score(request)
    model.fitted_.__dict__["plan"] = None
    (by_stages,) = model.answering().score(request)
    assert by_plan.scores.tobytes() == by_stages.scores.tobytes()
    # A label that comes later is looked for too, and one that goes is not.
    again.update_labels(add=["nb bn"], remove=[130])
    labels = again.rank(["noise nb bn more noise"], k=169).labels[0].tolist()
    assert labels.index(169) < labels.index(13)  # "bn nb"
    assert 130 not in again.rank(new[:1], k=20).labels


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({"features": ["mentions"]}, "many labels", "X must be texts for NameMentions"),
        ({"features": ["mentions"], "names": False}, "many texts", "the labels must have names"),
    ],
)
def test_what_it_needs_is_said(options, rows, message):
    with pytest.raises(ValueError, match=message):
        MetaRanker(**makers.QUICK, **options).fit(makers.MAKERS[rows]())
