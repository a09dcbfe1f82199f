"""Vocabularies of libraries: SKOS, and the TSV and CSV of Annif, as a table of labels."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from metarank._util.printable import first_few
from metarank.data.skos import ENDINGS, Concepts, begins_as_vocabulary, read_triples, syntax_of
from metarank.data.text import csv_rows, decode
from metarank.data.xc import COMPRESSED, PathLike, read_bytes
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.label_relations import relation, without_cycles

_LANGUAGE_COLUMN = "label_"


def read_vocabulary(
    path: PathLike, language: str | None = None, *, deprecated: bool = False
) -> LabelDescriptions:
    """A SKOS vocabulary, or a vocabulary in the TSV or CSV of Annif, as a table of labels.

    Parameters
    ----------
    path : path of a file, plain or compressed (gz, xz, bz2, zst)
        The endings `.ttl`, `.nt`, `.n3`, `.rdf`, `.xml`, `.owl`, `.jsonld`, `.json`, `.tsv`, `.csv` decide;
        without them the content does. SKOS is Turtle, N-Triples, RDF/XML or JSON-LD (pyoxigraph, extra
        ``skos``). A line of the TSV is ``<uri>``, label and, if there is one, notation, without a header. The
        CSV has the columns "uri", "notation" and "label_fi", "label_en" and so on.
    language : str or None
        Language of the names, such as "en". Where a concept has no name in it, one of its regions ("en-GB")
        counts, then one without a language; names in other languages are never taken. Upper and lower case
        are alike. None is for a vocabulary of one language. The one language of a TSV is taken to be this.
    deprecated : bool
        Whether concepts with `owl:deprecated`, and lines of TSV or CSV without a label in any language, which
        mean the same, are labels too.

    Returns
    -------
    LabelDescriptions
        Ids are the URIs, in the order of the file. A name is the first `skos:prefLabel` (else `rdfs:label`);
        further ones, `skos:altLabel` and `skos:hiddenLabel` are alternative names. Parents are `skos:broader`
        and the reverse of `skos:narrower`, related labels `skos:related`. Concepts without a name in the
        language stay, without a name, since documents may have them.

    Warns
    -----
    UserWarning
        Once for the file: concepts left out as deprecated, or because they have no URI; concepts without a
        name; links of broader that close a cycle and are left out (those that a walk from each concept up, in
        the order of URIs, meets last); relations to what is no concept.

    Raises
    ------
    ValueError
        If the content is malformed (file and line are named), holds no concept, or names none in the language
        (the languages that there are, are listed), or if there are several languages and `language` is None.
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
    content = read_bytes(path)
    if not content.strip(b"\xef\xbb\xbf \t\r\n"):
        raise ValueError(f"{path}: the file is empty")
    return _table(_concepts(content, path, language), path, language, deprecated)


def vocabulary_summary(path: PathLike) -> dict[str, int] | None:
    """The sizes of a vocabulary, for a person who is to choose a language; None if a file is none.

    A TSV or CSV is one if its first line is; the other endings of `read_vocabulary` are those of one.
    """
    path = Path(path)
    ending = _ending(path)
    if ending not in ENDINGS or not path.is_file():
        return None
    content = read_bytes(path)
    if ending in (".tsv", ".csv") and not begins_as_vocabulary(content):
        return None
    concepts = _concepts(content, path, None)
    alive = concepts.is_concept - concepts.deprecated
    names = [(spoken, kind) for concept, kind, spoken, _ in concepts.names if concept in alive]
    by_language = Counter(spoken or "no language" for spoken, kind in names if kind < 2)
    return {
        "concepts": len(alive),
        "deprecated": len(concepts.is_concept & concepts.deprecated),
        "without_uri": concepts.without_uri,
        **{f"names in {spoken}": count for spoken, count in sorted(by_language.items())},
        "alternative_names": sum(kind >= 2 for _, kind in names),
        "broader_links": len(set(zip(*concepts.parents))),
        "related_links": len({tuple(sorted(pair)) for pair in zip(*concepts.related)}),
    }


def _ending(path: Path) -> str:
    return (path.with_suffix("") if path.suffix in COMPRESSED else path).suffix.lower()


def _concepts(content: bytes, path: Path, language: str | None) -> Concepts:
    syntax = syntax_of(_ending(path), content)
    if syntax == "tsv":
        return _of_tsv(decode(content, path), path, language)
    if syntax == "csv":
        return _of_csv(decode(content, path), path)
    return read_triples(content, syntax, path)


def _of_tsv(text: str, path: Path, language: str | None) -> Concepts:
    concepts = Concepts()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        uri, _, rest = line.strip().partition("\t")
        if not uri.startswith("<") and rest.lstrip().startswith("<"):
            raise ValueError(
                f"{path}: line {number} has a URI behind a text, as documents have them, not a vocabulary: "
                "read_corpus reads those"
            )
        concept = _new(concepts, uri, path, number)
        label = rest.partition("\t")[0].strip()
        if label:
            concepts.add_name(concept, 0, language, label)
        else:
            concepts.deprecated.add(concept)
    return concepts


def _of_csv(text: str, path: Path) -> Concepts:
    concepts = Concepts()
    try:
        rows = csv_rows(text, ",")
        header = [field.strip() for field in next(rows, (0, []))[1]]
        languages = {
            column: field.removeprefix(_LANGUAGE_COLUMN)
            for column, field in enumerate(header)
            if field.startswith(_LANGUAGE_COLUMN)
        }
        if "uri" not in header or not languages:
            raise ValueError(
                "the CSV of a vocabulary must have the columns 'uri' and 'label_en' or other languages, got "
                f"{', '.join(header):.200} (other tables of labels are read by data.read_labels)"
            )
        at = header.index("uri")
        for number, fields in rows:
            concept = _new(concepts, fields[at], path, number)
            for column, language in languages.items():
                if label := fields[column].strip():
                    concepts.add_name(concept, 0, language, label)
            if concept not in concepts.named:
                concepts.deprecated.add(concept)
    except ValueError as error:
        raise ValueError(f"{path}: {error}".replace(f"{path}: {path}:", f"{path}:")) from None
    return concepts


def _new(concepts: Concepts, uri: str, path: Path, line: int) -> int:
    uri = cleaned_uri(uri.strip())
    if not uri:
        raise ValueError(f"{path}: line {line} has no URI")
    before = len(concepts.uris)
    concept = concepts.at(uri)
    if concept < before:
        raise ValueError(f"{path}: line {line} has the URI {uri!r:.80} a second time")
    concepts.is_concept.add(concept)
    return concept


def cleaned_uri(uri: str) -> str:
    """A URI without the angle brackets around it.

    Examples
    --------
    >>> cleaned_uri("<http://x.org/p1>")
    'http://x.org/p1'
    """
    return uri[1:-1] if uri.startswith("<") and uri.endswith(">") else uri


def _table(concepts: Concepts, path: Path, language: str | None, deprecated: bool) -> LabelDescriptions:
    said = []
    kept = sorted(concepts.is_concept)
    if not kept:
        raise ValueError(f"{path} holds no concept of SKOS (skos:Concept) with a URI")
    out = [] if deprecated else [concept for concept in kept if concept in concepts.deprecated]
    if out:
        said.append(f"{len(out)} deprecated concepts are left out (deprecated=True keeps them)")
        kept = [concept for concept in kept if concept not in concepts.deprecated]
        if not kept:
            raise ValueError(f"{path} holds deprecated concepts only; deprecated=True keeps them")
    if concepts.without_uri:
        said.append(f"{concepts.without_uri} concepts without a URI are left out")
    row = np.full(len(concepts.uris), -1, np.int64)
    row[kept] = np.arange(len(kept))
    names, others = _names(concepts, kept, _choice(concepts, kept, language, path))
    nameless = [concepts.uris[c] for c, name in zip(kept, names) if not name]
    if nameless:
        which = f" in {language!r}" if language is not None else ""
        said.append(f"{len(nameless)} concepts have no name{which}: {first_few(nameless)}")
    n = len(kept)
    pairs = {kind: _pairs(ends, row) for kind, ends in (("p", concepts.parents), ("r", concepts.related))}
    if lost := sum(n_lost for *_, n_lost in pairs.values()):
        said.append(f"{lost} relations to what is no concept here are left out")
    parents, closing = without_cycles(
        relation(*pairs["p"][:2], n), np.argsort(np.argsort([concepts.uris[c] for c in kept], kind="stable"))
    )
    if closing:
        shown = [f"{concepts.uris[kept[a]]} -> {concepts.uris[kept[b]]}" for a, b in closing]
        said.append(f"{len(closing)} links of broader close a cycle and are left out: {first_few(shown)}")
    if said:
        warnings.warn(f"{path}: {'; '.join(said)}", stacklevel=3)
    first, second = (ends[pairs["r"][0] != pairs["r"][1]] for ends in pairs["r"][:2])
    return LabelDescriptions(
        ids=[concepts.uris[concept] for concept in kept],
        names=names,
        alternative_names=others if any(others) else None,
        parents=parents if parents.nnz else None,
        related=relation(first, second, n) if len(first) else None,
    )


def _choice(concepts: Concepts, kept: list[int], language: str | None, path: Path) -> dict[str | None, int]:
    """The languages whose names count, with their order; the first is best."""
    alive = set(kept)
    found: Counter[str | None] = Counter()
    for concept, kind, spoken, _ in concepts.names:
        if kind < 2 and concept in alive:
            found[spoken] += 1
    spoken_of = sorted(spoken for spoken in found if spoken is not None)
    listed = ", ".join(f"{spoken} ({found[spoken]})" for spoken in spoken_of) or "none"
    if language is None:
        if len(spoken_of) > 1:
            raise ValueError(f"language must be given for {path}, which has names in {listed}, got None")
        return {spoken: place for place, spoken in enumerate([*spoken_of, None])}
    wanted = language.strip().lower().replace("_", "-")
    exact: dict[str | None, int] = {spoken: 0 for spoken in _languages(concepts) if spoken.lower() == wanted}
    regions = [spoken for spoken in _languages(concepts) if spoken.lower().startswith(f"{wanted}-")]
    order = exact | {spoken: 1 + i for i, spoken in enumerate([*sorted(regions), None])}
    if not any(found[spoken] for spoken in order):
        raise ValueError(f"language must be one of those of {path}, which are {listed}, got {language!r:.80}")
    return order


def _languages(concepts: Concepts) -> set[str]:
    return {spoken for _, _, spoken, _ in concepts.names if spoken is not None}


def _names(
    concepts: Concepts, kept: list[int], order: dict[str | None, int]
) -> tuple[list[str], list[list[str]]]:
    """The name and the alternative names of each concept."""
    alive = set(kept)
    of: dict[int, list[tuple[int, int, int, str]]] = {}
    for place, (concept, kind, spoken, name) in enumerate(concepts.names):
        if spoken in order and concept in alive:
            # A name is a prefLabel in the best language, an rdfs:label only without one; then as in the file.
            of.setdefault(concept, []).append((kind, order[spoken], place, name))
    names, others = [], []
    for concept in kept:
        own = list(dict.fromkeys(name for name in _in_order(of.pop(concept, []))))
        is_named = bool(own) and own[0] != ""
        names.append(own[0] if is_named else "")
        others.append([name for name in own[1:] if name])
    return names, others


def _in_order(own: list[tuple[int, int, int, str]]) -> Iterator[str]:
    own.sort()
    if own and own[0][0] > 1:  # alternative names alone
        yield ""
    yield from (name for *_, name in own)


def _pairs(ends: tuple[list[int], list[int]], row: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The rows at both ends of relations between labels, and how many a label has to something else."""
    first, second = (row[np.asarray(end, np.int64)] for end in ends)
    both = (first >= 0) & (second >= 0)
    one = (first >= 0) ^ (second >= 0)
    return first[both], second[both], int(np.count_nonzero(one))
