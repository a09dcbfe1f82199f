"""What is SKOS in the triples of a file (Turtle, N-Triples, RDF/XML, JSON-LD), as a stream of pyoxigraph.

No graph is built: names and relations are kept, nothing else; see `experiments/tried.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

_SKOS = "http://www.w3.org/2004/02/skos/core#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_DEPRECATED = "http://www.w3.org/2002/07/owl#deprecated"

# Names by how much they are the name of a concept.
_NAMES = {
    f"{_SKOS}prefLabel": 0,
    _RDFS_LABEL: 1,
    f"{_SKOS}altLabel": 2,
    f"{_SKOS}hiddenLabel": 3,
}
_LINKS = {f"{_SKOS}{name}" for name in ("broader", "narrower", "related")}
ENDINGS = {
    ".ttl": "TURTLE",
    ".turtle": "TURTLE",
    ".n3": "N3",
    ".nt": "N_TRIPLES",
    ".nq": "N_QUADS",
    ".trig": "TRIG",
    ".rdf": "RDF_XML",
    ".xml": "RDF_XML",
    ".owl": "RDF_XML",
    ".jsonld": "JSON_LD",
    ".json": "JSON_LD",
    ".tsv": "tsv",
    ".csv": "csv",
}
_TSV_LINE = re.compile(rb"<?\w[^\s<>]*>?\t(?!\s*<)")
_HEADER = re.compile(rb"(?:\w+,)*uri\s*,")


class Concepts:
    """What a file says of concepts.

    Attributes
    ----------
    seen : dict of URI to itself
        Concepts and whatever they are related to, in the order in which a file speaks of them.
    concepts, deprecated : sets of URIs
    names : dict of URI to list of (kind, language or None, name)
        Kinds are 0 to 3: prefLabel, rdfs:label, altLabel, hiddenLabel.
    parents, related : lists of (URI, URI)
        Concepts, and their parents or the concepts that they are related to.
    """

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}
        self.concepts: set[str] = set()
        self.deprecated: set[str] = set()
        self.names: dict[str, list[tuple[int, str | None, str]]] = {}
        self.parents: list[tuple[str, str]] = []
        self.related: list[tuple[str, str]] = []
        self.without_uri = 0

    def at(self, uri: str) -> str:
        """The URI, noted as seen."""
        return self.seen.setdefault(uri, uri)

    def add_name(self, uri: str, kind: int, language: str | None, name: str) -> None:
        """A name, without blanks around it; an empty one is none."""
        if name := name.strip():
            self.names.setdefault(self.at(uri), []).append((kind, language, name))


def syntax_of(ending: str, content: bytes) -> str:
    """The syntax of a vocabulary, by its ending, or else by its first bytes.

    Examples
    --------
    >>> syntax_of(".ttl", b""), syntax_of("", b"<http://x.org/p1>\\tships"), syntax_of("", b"<?xml ?>")
    ('TURTLE', 'tsv', 'RDF_XML')
    """
    if ending in ENDINGS:
        return ENDINGS[ending]
    head = _head(content)
    if head.startswith((b"<?xml", b"<!DOCTYPE", b"<rdf:RDF")):
        return "RDF_XML"
    if head.startswith((b"{", b"[")):
        return "JSON_LD"
    if _TSV_LINE.match(head):
        return "tsv"
    return "csv" if _HEADER.match(head) else "TURTLE"


def begins_as_vocabulary(content: bytes) -> bool:
    """Whether a TSV or CSV begins as those of vocabularies do: with a URI, or with the column of URIs.

    Examples
    --------
    >>> begins_as_vocabulary(b"<http://x.org/p1>\\tships"), begins_as_vocabulary(b"text,labels")
    (True, False)
    """
    line = _head(content).partition(b"\n")[0]
    return re.match(rb"<[^\s<>]+>(?:\t|$)", line) is not None or (
        _HEADER.match(line) is not None and b"label_" in line
    )


def _head(content: bytes) -> bytes:
    return content[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()


def read_triples(content: bytes, syntax: str, path: Path) -> Concepts:
    """The concepts of a file in a syntax of RDF; see `metarank.data.vocabulary.read_vocabulary`."""
    concepts = Concepts()
    for subject, predicate, value in _triples(content, syntax, path):
        if predicate == f"{_RDF}type":
            if value.value == f"{_SKOS}Concept":
                if subject is None:
                    concepts.without_uri += 1
                else:
                    concepts.concepts.add(concepts.at(subject))
        elif subject is None:
            continue
        elif (kind := _NAMES.get(predicate)) is not None:
            if hasattr(value, "language"):
                concepts.at(subject)
                concepts.add_name(subject, kind, value.language, value.value)
        elif predicate == _DEPRECATED:
            if value.value.strip().lower() in ("true", "1"):
                concepts.deprecated.add(concepts.at(subject))
        elif predicate in _LINKS:
            ends = concepts.at(subject), concepts.at(value.value)
            links = concepts.related if predicate == f"{_SKOS}related" else concepts.parents
            links.append(ends[::-1] if predicate == f"{_SKOS}narrower" else ends)
    return concepts


def _triples(content: bytes, syntax: str, path: Path) -> Iterator[tuple[str | None, str, Any]]:
    """Subject (None without a URI), predicate and object of each triple; ValueError names file and line."""
    try:
        import pyoxigraph
    except ImportError:
        raise ImportError(
            f"{path} is SKOS, which needs pyoxigraph: pip install 'metarank-ltr[skos]'"
        ) from None
    if syntax == "RDF_XML":
        try:  # pyoxigraph takes a document that ends too early for a whole one
            expat.ParserCreate().Parse(content, True)
        except expat.ExpatError as error:
            raise ValueError(f"{path}: line {error.lineno} is no XML: {error}") from None
    try:
        # Vocabularies hold URIs that are not quite valid, which are ids all the same.
        for quad in pyoxigraph.parse(
            content, getattr(pyoxigraph.RdfFormat, syntax), base_iri=path.absolute().as_uri(), lenient=True
        ):
            subject = quad.subject
            is_uri = isinstance(subject, pyoxigraph.NamedNode)
            yield (subject.value if is_uri else None), quad.predicate.value, quad.object
    except SyntaxError as error:
        line = "" if error.lineno is None else f"line {error.lineno}: "
        raise ValueError(f"{path}: {line}{error.msg}") from None
