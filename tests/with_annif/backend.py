"""What the backend guarantees, by Annif's own classes; a script, as `commands.py` is.

`python tests/with_annif/backend.py`, by a Python that has both Annif and metarank.
"""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import Any

import commands
from commands import PROJECTS, TOPICS, documents, empty_tables_of_nltk, uri, vocabulary, write_corpus

EXCLUDING = f"""
[excluding]
name=Without roads
language=en
backend=metarank
analyzer=snowball(english)
vocab=works(en,exclude={uri("roads")})
effort=low
"""


@contextlib.contextmanager
def refused(kind: type[Exception], said: str) -> Any:
    told = None
    try:
        yield
    except kind as error:
        told = str(error)
    assert told is not None, f"{kind.__name__} is not raised"
    assert said in told, told


def project(name: str) -> Any:
    """A project as a new process has it."""
    from annif.registry import AnnifRegistry

    return AnnifRegistry("projects.cfg", "data", False).get_project(name)


def load(topics: dict[str, tuple[str, str]], force: bool = False) -> None:
    from annif.vocab import VocabFileSKOS

    Path("v.ttl").write_text(vocabulary(topics))
    project("plain").vocab.load_vocabulary(VocabFileSKOS("v.ttl"), force=force)


def corpus(path: str, name: str = "plain") -> Any:
    from annif.corpus import DocumentFileTSV

    return DocumentFileTSV(path, project(name).subjects)


def suggest(name: str, *texts: str, **params: Any) -> list[list[tuple[str, float]]]:
    from annif.corpus import Document

    of = project(name)
    found = of.backend.suggest([Document(text=text) for text in texts], params)
    return [[(of.subjects[s.subject_id].uri, s.score) for s in row] for row in found]


def scores_fall_along_the_ranking() -> None:
    rows = suggest("plain", *(text for text, _ in documents(20, 9)), limit=8)
    for row in rows:
        scores = [score for _, score in row]
        assert len(row) == 8
        assert all(0 < score <= 1 for score in scores)
        assert all(a > b for a, b in itertools.pairwise(scores)), scores
    backend = project("plain").backend
    backend.initialize()
    words = [" ".join(project("plain").analyzer.tokenize_words(text)) for text, _ in documents(20, 9)]
    ranked = backend._model.rank(words, k=8)
    assert [[found for found, _ in row] for row in rows] == [
        [backend._model.labels_.ids[label] for label in row] for row in ranked.labels
    ]


def a_limit_keeps_the_first() -> None:
    texts = [text for text, _ in documents(5, 9)]
    assert [row[:3] for row in suggest("plain", *texts, limit=8)] == suggest("plain", *texts, limit="3")
    assert suggest("plain", *texts, limit=0) == [[]] * 5


def a_document_does_not_depend_on_its_batch() -> None:
    texts = [text for text, _ in documents(40, 9)]
    assert suggest("plain", *texts) == [suggest("plain", text)[0] for text in texts]


def without_words_nothing_is_suggested() -> None:
    assert suggest("plain", "", "j", "12 ...", "xylophone") == [[], [], [], []]


def cached_training_is_the_training() -> None:
    before = suggest("plain", "quay and crane")
    project("plain").train("cached")
    assert suggest("plain", "quay and crane") == before


def errors_are_those_of_annif() -> None:
    from annif.exception import ConfigurationException, NotInitializedException, NotSupportedException

    Path("empty.tsv").write_text("")
    Path("unknown.tsv").write_text("some words\t<http://example.org/nobody>\n")
    for path in ("empty.tsv", "unknown.tsv"):
        with refused(NotSupportedException, "no documents"):
            project("plain").train(corpus(path))
    for setting, value, said in (
        ("effort", "much", "effort must be"),
        ("n_folds", "few", "n_folds must be a number"),
        ("n_folds", "1", "n_folds must be"),
        ("shortlist_size", "0", "shortlist_size must be"),
        ("min_df", "x", "min_df must be"),
    ):
        with refused(ConfigurationException, said):
            project("plain").train(corpus("train.tsv"), {"metarank": {setting: value}})
    with refused(ConfigurationException, "limit must be"):
        suggest("plain", "quay", limit="many")
    with refused(NotInitializedException, "not found"):
        suggest("excluding", "quay")
    with refused(NotInitializedException, "train with a corpus first"):
        project("excluding").train("cached")


def an_error_leaves_the_model() -> None:
    before = suggest("plain", "quay and crane")
    with contextlib.suppress(Exception):
        project("plain").train(corpus("train.tsv"), {"metarank": {"effort": "much"}})
    assert suggest("plain", "quay and crane") == before


def a_broken_model_is_said() -> None:
    from annif.exception import OperationFailedException

    manifest = Path("data/projects/plain/metarank-model/manifest.json")
    kept = manifest.read_bytes()
    manifest.write_bytes(b"{")
    try:
        with refused(OperationFailedException, "cannot load the model"):
            suggest("plain", "quay")
    finally:
        manifest.write_bytes(kept)


def excluded_subjects_are_not_suggested() -> None:
    project("excluding").train(corpus("train.tsv", "excluding"))
    rows = suggest("excluding", *(text for text, _ in documents(20, 9)), limit=8)
    assert rows[0]
    assert uri("roads") not in {found for row in rows for found, _ in row}


def the_vocabulary_may_change() -> None:
    rows = [text for text, _ in documents(20, 9)]
    fewer = {topic: TOPICS[topic] for topic in TOPICS if topic != "roads"}
    load(fewer)
    suggested = {label for row in suggest("plain", *rows, limit=8) for label, _ in row}
    assert suggested
    assert uri("roads") not in suggested
    # The words of the second are those of a subject that is there.
    more = {"windmills": ("mills", ""), "bridging": ("spans", "")} | fewer
    load(more)
    found = {label for label, _ in suggest("plain", "windmills by a river", limit=9)[0]}
    assert {uri("windmills"), uri("bridging")} <= found
    # Annif numbers all subjects anew.
    load(dict(reversed(more.items())), force=True)
    assert suggest("plain", "ship at the quay with cargo and crane")[0][0][0] == uri("harbours")
    load(TOPICS, force=True)


def a_cycle_of_broader_subjects_is_told() -> None:
    from annif.vocab import VocabFileSKOS

    from metarank.apps.annif.vocabulary import label_table

    broader = "<http://www.w3.org/2004/02/skos/core#broader>"
    first, second = uri("bridges"), uri("tunnels")
    cycle = f"\n<{first}> {broader} <{second}> . <{second}> {broader} <{first}> ."
    told: list[str] = []
    for more, parents in (("", False), (f"\n<{first}> {broader} <{second}> .", True), (cycle, False)):
        Path("v.ttl").write_text(vocabulary(TOPICS) + more)
        project("plain").vocab.load_vocabulary(VocabFileSKOS("v.ttl"), force=True)
        table = label_table(project("plain"), told.append)
        assert len(table) == len(TOPICS)
        assert (table.parents is not None) == parents
        assert table.alternative_names[table.ids.index(first)] == ["viaduct"]
    assert len(told) == 1
    assert "broader" in told[0]
    load(TOPICS, force=True)


def learning_adds_documents() -> None:
    from annif.corpus import Document, DocumentList, SubjectSet

    of = project("plain")
    subject = of.subjects.by_uri(uri("dams"))
    new = DocumentList([Document(text="quay of the study survey", subject_set=SubjectSet([subject]))] * 20)
    before = dict(suggest("plain", "quay of the study survey", limit=8)[0])[uri("dams")]
    of.learn(new)
    assert dict(suggest("plain", "quay of the study survey", limit=8)[0])[uri("dams")] > before


def main() -> None:
    from metarank.apps.annif import register

    register()
    register()
    import annif.corpus  # before annif.vocab, which Annif cannot import first

    assert annif.corpus
    empty_tables_of_nltk(Path("nltk_data").resolve())
    Path("projects.cfg").write_text(PROJECTS + EXCLUDING)
    write_corpus(Path("train.tsv"), documents(200, 1))
    load(TOPICS)
    project("plain").train(corpus("train.tsv"), jobs=1)
    for check in (
        scores_fall_along_the_ranking,
        a_limit_keeps_the_first,
        a_document_does_not_depend_on_its_batch,
        without_words_nothing_is_suggested,
        cached_training_is_the_training,
        errors_are_those_of_annif,
        an_error_leaves_the_model,
        a_broken_model_is_said,
        excluded_subjects_are_not_suggested,
        the_vocabulary_may_change,
        a_cycle_of_broader_subjects_is_told,
        learning_adds_documents,
    ):
        print(check.__name__.replace("_", " "), flush=True)
        check()
    print("the backend does as it should")


if __name__ == "__main__":
    commands.in_a_folder(main)
