"""Vocabularies of libraries: SKOS, and the TSV and CSV of Annif, as a table of labels.

SKOS is a stream of triples from pyoxigraph: names and relations are kept, and no graph is built.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.parsers import expat

import numpy as np

from metarank._util.extra import require_extra
from metarank._util.modules import outside
from metarank._util.printable import first_few
from metarank.data.compressed import PathLike, decode, ending_of, read_bytes
from metarank.data.tables import naming, read_csv
from metarank.types.label_descriptions import LabelDescriptions, relation, without_cycles

_SKOS = "http://www.w3.org/2004/02/skos/core#"
_TYPE, _CONCEPT = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", f"{_SKOS}Concept"
_DEPRECATED = "http://www.w3.org/2002/07/owl#deprecated"
_LINKS = _BROADER, _NARROWER, _RELATED = f"{_SKOS}broader", f"{_SKOS}narrower", f"{_SKOS}related"
# Of the names of a concept, the first two are those that it is called by.
_NAMES = (
    f"{_SKOS}prefLabel",
    "http://www.w3.org/2000/01/rdf-schema#label",
    f"{_SKOS}altLabel",
    f"{_SKOS}hiddenLabel",
)
_READ = {_TYPE, _DEPRECATED, *_NAMES, *_LINKS}
_LANGUAGE = "label_"

# What a file says of a concept: its URI, a property, a value, and the language of that.
Fact = tuple[str, str, str, str | None]
# A name of a concept: place of the property among `_NAMES`, the concept's URI, name, language.
Named = tuple[int, str, str, str | None]


def read_vocabulary(
    path: PathLike, language: str | None = None, *, deprecated: bool = False
) -> LabelDescriptions:
    """A SKOS vocabulary, or a vocabulary in the TSV or CSV of Annif, as a table of labels.

    Parameters
    ----------
    path : path of a file, plain or compressed (gz, xz, bz2, zst)
        The ending decides: `.ttl`, `.nt`, `.n3`, `.rdf`, `.xml`, `.jsonld`, `.json`, `.tsv` or `.csv`. SKOS
        is Turtle, N-Triples, RDF/XML or JSON-LD (pyoxigraph, extra ``skos``). A line of the TSV is ``<uri>``,
        label and, if there is one, notation, without a header. The CSV has the columns "uri", "notation" and
        "label_fi", "label_en" and so on.
    language : str or None
        Language of the names, such as "en". Without a name in it, a concept has that of a region
        ("en-GB"), then one without a language, but never one in another language. Upper and lower case are
        equal. None is for a vocabulary of one language. A TSV is assumed to be in this language.
    deprecated : bool
        Whether deprecated concepts are labels: those with `owl:deprecated`, and lines of TSV or CSV without a
        label.

    Returns
    -------
    LabelDescriptions
        Ids are the URIs, in the order of the file. A name is the first `skos:prefLabel` (else `rdfs:label`);
        further ones, `skos:altLabel` and `skos:hiddenLabel` are alternative names. Parents are `skos:broader`
        and the reverse of `skos:narrower`, related labels `skos:related`. Concepts without a name in the
        language are kept, without a name, since documents may have them. Those without a URI are not read.

    Warns
    -----
    UserWarning
        Once for the file: concepts left out as deprecated; concepts without a name; links of broader that
        close a cycle, which are left out (the last ones on a walk up from each concept, in the order of
        URIs); relations to something that is not a concept.

    Raises
    ------
    ValueError
        If the ending is unknown, the content is malformed or has no concept, no concept has a name in the
        language (the message lists the others), or there are several languages and `language` is None.
    ImportError
        If pyoxigraph is missing and the file is SKOS.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "subjects.csv"
    >>> _ = path.write_text("uri,notation,label_en,label_fi\\nhttp://x.org/p1,,ships,laivat\\n")
    >>> read_vocabulary(path, "fi").names
    ['laivat']
    """
    path = Path(path)
    if language is not None and (not isinstance(language, str) or not language.strip()):
        raise ValueError(f"language must be a language such as 'en' or None, got {language!r:.80}")
    content, ending = read_bytes(path), ending_of(path)
    with naming(path):
        if ending == ".tsv":
            facts = _of_tsv(decode(content, path), language)
        elif ending == ".csv":
            facts = _of_csv(decode(content, path), path)
        else:
            facts = _of_triples(content, ending, path)
        return _table(facts, path, language, deprecated)


def _of_tsv(text: str, language: str | None) -> Iterator[Fact]:
    for number, line in enumerate(text.split("\n"), 1):
        uri, _, rest = line.strip().partition("\t")
        if not uri.startswith("<") and rest.lstrip().startswith("<"):
            raise ValueError(f"line {number} has a URI after a text: read_corpus reads documents")
        if uri:
            yield from _facts(uri, {language: rest.partition("\t")[0]})


def _of_csv(text: str, path: Path) -> Iterator[Fact]:
    columns = read_csv(text, ",", str(path)).columns
    languages = [column for column in columns if column.startswith(_LANGUAGE)]
    if "uri" not in columns or not languages:
        raise ValueError(
            "a vocabulary in CSV must have the columns 'uri' and 'label_en' or other languages, got "
            f"{', '.join(columns):.200} (data.read_labels reads other tables)"
        )
    for i, uri in enumerate(columns["uri"]):
        yield from _facts(uri, {c.removeprefix(_LANGUAGE): columns[c][i] for c in languages})


def _facts(uri: str, labels: Mapping[str | None, str]) -> Iterator[Fact]:
    """What a line of TSV or CSV says of a concept, with its label by language."""
    uri = cleaned_uri(uri.strip())
    yield uri, _TYPE, _CONCEPT, None
    for language, label in labels.items():
        yield uri, _NAMES[0], label, language
    if not any(label.strip() for label in labels.values()):
        yield uri, _DEPRECATED, "true", None


def cleaned_uri(uri: str) -> str:
    """A URI without the angle brackets around it.

    Examples
    --------
    >>> cleaned_uri("<http://x.org/p1>")
    'http://x.org/p1'
    """
    return uri[1:-1] if uri.startswith("<") and uri.endswith(">") else uri


def _of_triples(content: bytes, ending: str, path: Path) -> Iterator[Fact]:
    require_extra("skos", "pyoxigraph")
    import pyoxigraph

    syntax = pyoxigraph.RdfFormat.from_extension(ending[1:])
    if syntax is None:
        raise ValueError(f"a vocabulary must be .tsv, .csv, or RDF such as .ttl or .rdf, got {ending!r}")
    try:
        if syntax == pyoxigraph.RdfFormat.RDF_XML:  # one that ends too early is a whole one to pyoxigraph
            expat.ParserCreate().Parse(content, True)
        # Vocabularies hold URIs that are not quite valid, which are ids all the same.
        base = path.absolute().as_uri()
        for quad in pyoxigraph.parse(content, syntax, base_iri=base, lenient=True):
            if isinstance(quad.subject, pyoxigraph.NamedNode):
                language = getattr(quad.object, "language", None)
                yield quad.subject.value, quad.predicate.value, quad.object.value, language
    except (SyntaxError, expat.ExpatError) as error:
        raise ValueError(str(error)) from None


def _table(facts: Iterable[Fact], path: Path, language: str | None, deprecated: bool) -> LabelDescriptions:
    """The table of labels of what a file says of concepts."""
    seen: dict[str, None] = {}  # in the order in which the file speaks of them
    of: defaultdict[str, list[tuple[str, str, str | None]]] = defaultdict(list)
    for uri, what, value, spoken in facts:
        if what in _READ and (what != _TYPE or value == _CONCEPT):
            of[what].append((uri, value.strip(), spoken))
            seen.update({uri: None, value: None} if what in _LINKS else {uri: None})
    concepts = {uri for uri, *_ in of[_TYPE]}
    old = {uri for uri, value, _ in of[_DEPRECATED] if value.lower() in ("true", "1")}
    uris = [uri for uri in seen if uri in concepts and (deprecated or uri not in old)]
    if not uris:
        kept = " that is not deprecated; deprecated=True keeps those" if concepts else ""
        raise ValueError(f"the file holds no concept of SKOS (skos:Concept) with a URI{kept}")
    row = {uri: i for i, uri in enumerate(uris)}
    called = [(kind, *fact) for kind, what in enumerate(_NAMES) for fact in of[what] if fact[1]]
    names, others = _names(uris, [name for name in called if name[1] in row], language)
    remarks = []
    if len(uris) < len(concepts):
        n_out = len(concepts) - len(uris)
        remarks.append(f"{n_out} deprecated concepts are left out (deprecated=True keeps them)")
    if nameless := [uri for uri, name in zip(uris, names) if not name]:
        which = f" in {language!r}" if language is not None else ""
        remarks.append(f"{len(nameless)} concepts have no name{which}: {first_few(nameless)}")
    upward = [(a, b) for a, b, _ in of[_BROADER]] + [(b, a) for a, b, _ in of[_NARROWER]]
    across = [(a, b) for a, b, _ in of[_RELATED] if a != b]
    if n_lost := sum((a in row) != (b in row) for a, b in upward + across):
        remarks.append(f"{n_lost} relations to unknown concepts are left out")
    links = [[(row[a], row[b]) for a, b in pairs if a in row and b in row] for pairs in (upward, across)]
    parents, related = (relation([a for a, _ in pairs], [b for _, b in pairs], len(uris)) for pairs in links)
    parents, closing = without_cycles(parents, np.argsort(np.argsort(uris, kind="stable")))
    if closing:
        shown = [f"{uris[a]} -> {uris[b]}" for a, b in closing]
        remarks.append(f"{len(closing)} links of broader close a cycle and are left out: {first_few(shown)}")
    if remarks:
        warnings.warn(f"{path}: {'; '.join(remarks)}", stacklevel=outside())
    return LabelDescriptions(
        ids=uris,
        names=names,
        alternative_names=others if any(others) else None,
        parents=parents if parents.nnz else None,
        related=related if related.nnz else None,
    )


def _names(
    uris: Sequence[str], known: Sequence[Named], language: str | None
) -> tuple[list[str], list[list[str]]]:
    """The name and the alternative names of each concept.

    A name is a prefLabel in the best language, an rdfs:label only without one; then as in the file.
    """
    count = Counter(spoken for kind, _, _, spoken in known if kind < 2)
    listed = sorted(f"{spoken} ({n})" for spoken, n in count.items() if spoken is not None)
    spoken_of = f"those of the file, which are {', '.join(listed) or 'none'}"
    if language is None and len(listed) > 1:
        raise ValueError(f"language must be one of {spoken_of}, got None")
    wanted = None if language is None else language.strip().lower().replace("_", "-")

    def tier(spoken: str | None) -> int:
        if spoken is None:
            return 2
        return 0 if wanted in (None, spoken.lower()) else 1 if spoken.lower().startswith(f"{wanted}-") else 3

    if language is not None and all(tier(spoken) == 3 for spoken in count):
        raise ValueError(f"language must be one of {spoken_of}, got {language!r:.80}")
    kinds: dict[str, dict[str, int]] = {uri: {} for uri in uris}  # of the names of each concept, best first
    for kind, uri, name, spoken in sorted(known, key=lambda own: (own[0], tier(own[3]), own[3] or "")):
        if tier(spoken) < 3:
            kinds[uri].setdefault(name, kind)
    is_named = [min(own.values(), default=2) < 2 for own in kinds.values()]
    distinct = [list(own) for own in kinds.values()]
    names = [own[0] if named else "" for own, named in zip(distinct, is_named)]
    return names, [own[named:] for own, named in zip(distinct, is_named)]
