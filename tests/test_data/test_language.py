"""Languages: stems, what they are of, how texts and names meet by them, and the saved form."""

import json
import threading

import pytest
from sklearn.base import clone

from metarank._util.languages import LANGUAGES, check_language
from metarank.data.language import Stems, detected_language, stop_words
from metarank.data.spelling import SpellingIndex
from metarank.data.vectorizer import TextVectorizer, language_of

TEXTS = [
    "The bridges of the town carry loads, and they are old",
    "A bridge is a load-bearing structure: KMeansClusters and train_test_splits",
    "Running water in the kettle for the tea",
    "Kettles run hot",
]


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("english", ["bridges", "bridge", "bridging"]),
        ("EN", ["Universities", "university"]),
        ("de", ["Häuser", "Häusern", "Haus"]),
        ("german", ["Brücken", "brücke"]),
        ("fi", ["siltoja", "silta"]),
        ("fr", ["continuer", "continué"]),
        ("ru", ["мосты", "моста"]),
    ],
)
def test_forms_of_a_word_are_one_term(language, words):
    terms = [TextVectorizer(language=language).terms(word) for word in words]
    if language != "fi":  # Finnish stems differ where consonants change; both are shorter than the word
        assert len(set(map(tuple, terms))) == 1
    assert all(len(term) <= len(word) for (term,), word in zip(terms, words))


@pytest.mark.parametrize(("code", "name"), [*LANGUAGES.items(), (None, None), ("auto", "auto")])
def test_codes_and_names_are_the_same_language(code, name):
    assert check_language(code) == check_language(name) == name
    if name not in (None, "auto"):
        assert isinstance(Stems(name)["word"], str)
        assert all(word == word.lower() for word in stop_words(name))


@pytest.mark.parametrize("language", ["klingon", "", 7])
def test_a_language_that_is_none_is_refused(language):
    said = f"^language must be None, 'auto', one of .*english.*, got {language!r}"
    with pytest.raises(ValueError, match=said):
        TextVectorizer(language=language).fit(TEXTS)


def test_identifiers_and_runs_of_words_are_stemmed():
    v = TextVectorizer(language="english", word_ngrams=2)
    assert v.terms("KMeansClusters") == ["kmeansclust", "mean", "cluster"]
    assert v.terms("old bridges") == ["old", "bridg", "old bridg"]


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["The history of the bridges in the south of France"], "english"),
        (["Die Geschichte der Brücken in der Stadt und auf dem Land"], "german"),
        (["Le pont de la ville est dans le sud et il est vieux"], "french"),
        (["Sillat ja niiden historia: ne ovat vanhoja, ja se on totta"], "finnish"),
        (["kmeans bridge kettle"], None),
        ([""], None),
        ([], None),
        (["the kettle", "der Kessel"], None),
    ],
)
def test_language_is_found_by_its_commonest_words_where_they_are_clear(texts, language):
    assert language_of(texts) == language
    assert detected_language([]) is None


def test_auto_takes_the_language_of_the_texts_and_keeps_it():
    auto, english = TextVectorizer(language="auto").fit(TEXTS), TextVectorizer(language="en").fit(TEXTS)
    assert (auto.language_, english.language_) == ("english", "english")
    assert auto.vocabulary_ == english.vocabulary_
    assert auto.transform(["die Brücke"]).nnz == 0
    assert TextVectorizer(language="auto").fit(["kettle", "tea"]).language_ is None
    assert clone(auto).language == "auto"


def test_names_and_spellings_meet_other_forms():
    v = TextVectorizer(language="english").fit(TEXTS)
    plain = TextVectorizer().fit(["bridges of towns", "tea"])
    named = v.transform(["Kettle", "Bridging loads"])
    assert (v.transform(["many bridges with a load"]) @ named.T).toarray()[0].argmax() == 1
    assert plain.transform(["bridge"]).nnz == 0
    index = SpellingIndex(v.vocabulary_, v.idf_, reader=v)
    assert v.vocabulary_[index.transform(["Bridges"]).toarray().argmax()] == "bridg"


@pytest.mark.parametrize("language", [None, "en", "english", "auto"])
def test_saved_and_restored_alike(language):
    v = TextVectorizer(language=language).fit(TEXTS)
    state = v.get_state()
    assert ("language" in state) == (language is not None)  # as older versions save it
    again = TextVectorizer.from_state(json.loads(json.dumps({**state, "idf": None})) | {"idf": state["idf"]})
    assert (again.language, again.language_) == (v.language, v.language_)
    a, b = v.transform(["old bridges", "Kettle"]), again.transform(["old bridges", "Kettle"])
    assert (a != b).nnz == 0
    assert again.get_state().keys() == state.keys()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"language": "klingon"}, "language"),
        ({"language": 3}, "language"),
        ({"stems": None}, "language_ must be that of language='en', got None"),
        ({"stems": "german"}, "language_ must be that of language='en', got 'german'"),
        ({"stems": "english\n"}, "stems"),
    ],
)
def test_a_saved_language_that_is_none_is_refused(changed, said):
    state = TextVectorizer(language="en").fit(TEXTS).get_state()
    with pytest.raises(ValueError, match=said):
        TextVectorizer.from_state(state | changed)


def test_any_number_of_threads_finds_the_same_stems():
    words = [f"{stem}{end}" for stem in ("bridg", "kettl", "walk") for end in ("es", "ing", "ed", "e")] * 50
    expected = [Stems("english")[word] for word in words]
    shared, found = Stems("english"), {}

    def read(number):
        found[number] = [shared[word] for word in words]

    threads = [threading.Thread(target=read, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[i] == expected for i in range(8))
