"""Annif's vocabulary as a table of labels, in the words of the project's analyzer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from metarank.types.label_descriptions import LabelDescriptions

# Signs that tell parts of a name apart.
_SIGNS = tuple("()<>[],")
_PARTS = re.compile(r"([()<>\[\],])")
# Of SKOS: what a label is called beside its preferred name.
_OTHER_NAMES = ("altLabel", "hiddenLabel")


def language_of(project: Any) -> str:
    """The language of the names of subjects: that of ``vocab=``, or else the project's."""
    language = project.vocab_lang
    return language if isinstance(language, str) else project.language


def words_of(project: Any) -> Callable[[str], str]:
    """What makes a text of words that the project's analyzer accepts, with blanks between them."""
    tokenize = project.analyzer.tokenize_words
    return lambda text: " ".join(tokenize(text))


def name_words_of(project: Any) -> Callable[[str], str]:
    """As `words_of`, of a name: brackets and commas stay, by which other ways of writing it are known."""
    words = words_of(project)

    def of(name: str) -> str:
        parts = [part if part in _SIGNS else words(part) for part in _PARTS.split(name)]
        return " ".join(filter(None, parts)) if any(part and part not in _SIGNS for part in parts) else ""

    return of


def active_subjects(project: Any) -> dict[str, tuple[int, str]]:
    """URI -> (subject id, name) of the subjects that may be suggested; the name may be empty."""
    language = language_of(project)
    return {
        subject.uri: (number, (subject.labels or {}).get(language) or "")
        for number, subject in project.subjects.active
    }


def label_table(project: Any, warn: Callable[[str], None]) -> LabelDescriptions:
    """All active subjects, by URI: names, and as far as the loaded vocabulary has them other names, broader
    and related subjects.

    Raises
    ------
    annif.exception.NotInitializedException
        If no vocabulary is loaded.
    """
    words, subjects = name_words_of(project), active_subjects(project)
    names = {uri: words(name) for uri, (_, name) in subjects.items()}
    columns: dict[str, Any] = {"ids": list(names), "names": list(names.values())}
    graph = _graph(project, warn)
    if graph is None:
        return LabelDescriptions(**columns)
    columns["alternative_names"] = _other_names(graph, names, language_of(project), words)
    columns["parents"], columns["related"] = (_links(graph, names, of) for of in ("broader", "related"))
    for column in ("alternative_names", "parents", "related"):
        if not any(columns[column]):
            del columns[column]
    try:
        return LabelDescriptions(**columns)
    except ValueError as error:
        if "parents" not in columns:
            raise
        warn(f"broader subjects are left out: {error}")
        del columns["parents"]
        return LabelDescriptions(**columns)


def _graph(project: Any, warn: Callable[[str], None]) -> Any:
    """The vocabulary as SKOS; None if Annif has kept no such file of it."""
    from annif.exception import AnnifException

    try:
        return project.vocab.as_graph()
    except AnnifException as error:
        warn(f"other names and relations of subjects are unknown: {error.format_message()}")
        return None


def _other_names(
    graph: Any, names: dict[str, str], language: str, words: Callable[[str], str]
) -> list[list[str]]:
    others: dict[str, list[str]] = {uri: [] for uri in names}
    for uri, value in _pairs(graph, _OTHER_NAMES):
        if uri in others and getattr(value, "language", None) in (language, None):
            others[uri].append(str(value))
    # A graph has no order; and what differs as a text may be the same words.
    return [
        [name for name in dict.fromkeys(map(words, sorted(others[uri]))) if name and name != names[uri]]
        for uri in names
    ]


def _links(graph: Any, names: dict[str, str], relation: str) -> list[list[str]]:
    links: dict[str, set[str]] = {uri: set() for uri in names}
    for uri, value in _pairs(graph, [relation]):
        if uri in links and str(value) in links and uri != str(value):
            links[uri].add(str(value))
    return [sorted(links[uri]) for uri in names]


def _pairs(graph: Any, properties: Iterable[str]) -> Iterable[tuple[str, Any]]:
    from rdflib.namespace import SKOS

    for name in properties:
        for subject, value in graph.subject_objects(SKOS[name]):
            yield str(subject), value
