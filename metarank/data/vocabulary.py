"""Vocabularies of libraries: SKOS, and the TSV and CSV of Annif, as a table of labels."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from metarank._util.modules import outside
from metarank._util.printable import first_few
from metarank.data.compressed import PathLike, decode, ending_of, read_bytes
from metarank.data.skos import Concepts, read_triples, syntax_of
from metarank.data.tables import naming, read_csv
from metarank.types.label_descriptions import LabelDescriptions, relation, without_cycles

_LANGUAGE = "label_"


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


def _concepts(content: bytes, path: Path, language: str | None) -> Concepts:
    syntax = syntax_of(ending_of(path), content)
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
        _add(concepts, uri, {language: rest.partition("\t")[0]}, f"{path}: line {number}")
    return concepts


def _of_csv(text: str, path: Path) -> Concepts:
    concepts = Concepts()
    with naming(path):
        table = read_csv(text, ",", str(path))
        languages = {c: c.removeprefix(_LANGUAGE) for c in table.columns if c.startswith(_LANGUAGE)}
        if "uri" not in table.columns or not languages:
            raise ValueError(
                "the CSV of a vocabulary must have the columns 'uri' and 'label_en' or other languages, got "
                f"{', '.join(table.columns):.200} (other tables of labels are read by data.read_labels)"
            )
        for i, uri in enumerate(table.columns["uri"]):
            labels: dict[str | None, str] = {
                language: table.columns[column][i] for column, language in languages.items()
            }
            _add(concepts, uri, labels, table.where(i))
    return concepts


def _add(concepts: Concepts, uri: str, labels: Mapping[str | None, str], where: str) -> None:
    """A line of TSV or CSV: a concept, and its label by language."""
    uri = cleaned_uri(uri.strip())
    if not uri:
        raise ValueError(f"{where} has no URI")
    if uri in concepts.seen:
        raise ValueError(f"{where} has the URI {uri!r:.80} a second time")
    concepts.concepts.add(concepts.at(uri))
    for language, label in labels.items():
        concepts.add_name(uri, 0, language, label)
    if uri not in concepts.names:
        concepts.deprecated.add(uri)


def cleaned_uri(uri: str) -> str:
    """A URI without the angle brackets around it.

    Examples
    --------
    >>> cleaned_uri("<http://x.org/p1>")
    'http://x.org/p1'
    """
    return uri[1:-1] if uri.startswith("<") and uri.endswith(">") else uri


def _table(concepts: Concepts, path: Path, language: str | None, deprecated: bool) -> LabelDescriptions:
    remarks = []
    all_uris = [uri for uri in concepts.seen if uri in concepts.concepts]
    uris = [uri for uri in all_uris if deprecated or uri not in concepts.deprecated]
    if not uris:
        kept = " that is not deprecated; deprecated=True keeps those" if all_uris else ""
        raise ValueError(f"{path} holds no concept of SKOS (skos:Concept) with a URI{kept}")
    if len(uris) < len(all_uris):
        n_out = len(all_uris) - len(uris)
        remarks.append(f"{n_out} deprecated concepts are left out (deprecated=True keeps them)")
    if concepts.without_uri:
        remarks.append(f"{concepts.without_uri} concepts without a URI are left out")
    names, others = _names(concepts, uris, _languages(concepts, uris, language, path))
    if nameless := [uri for uri, name in zip(uris, names) if not name]:
        which = f" in {language!r}" if language is not None else ""
        remarks.append(f"{len(nameless)} concepts have no name{which}: {first_few(nameless)}")
    row = {uri: i for i, uri in enumerate(uris)}
    n_lost = sum((a in row) != (b in row) for a, b in [*concepts.parents, *concepts.related])
    if n_lost:
        remarks.append(f"{n_lost} relations to what is no concept here are left out")
    links = {
        kind: relation(
            [row[a] for a, b in pairs if a in row and b in row and (kind == "parents" or a != b)],
            [row[b] for a, b in pairs if a in row and b in row and (kind == "parents" or a != b)],
            len(uris),
        )
        for kind, pairs in (("parents", concepts.parents), ("related", concepts.related))
    }
    parents, closing = without_cycles(links["parents"], np.argsort(np.argsort(uris, kind="stable")))
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
        related=links["related"] if links["related"].nnz else None,
    )


def _languages(
    concepts: Concepts, uris: list[str], language: str | None, path: Path
) -> dict[str | None, int]:
    """The languages whose names count, with their order; the first is best."""
    count = Counter(spoken for uri in uris for kind, spoken, _ in concepts.names.get(uri, ()) if kind < 2)
    named = sorted(spoken for spoken in count if spoken is not None)
    listed = ", ".join(f"{spoken} ({count[spoken]})" for spoken in named) or "none"
    if language is None:
        if len(named) > 1:
            raise ValueError(f"language must be given for {path}, which has names in {listed}, got None")
        return {spoken: place for place, spoken in enumerate([*named, None])}
    wanted = language.strip().lower().replace("_", "-")
    every = sorted(
        {spoken for names in concepts.names.values() for _, spoken, _ in names if spoken is not None}
    )
    order: dict[str | None, int] = {spoken: 0 for spoken in every if spoken.lower() == wanted}
    regions = [spoken for spoken in every if spoken.lower().startswith(f"{wanted}-")]
    order |= {spoken: 1 + i for i, spoken in enumerate([*regions, None])}
    if not any(count[spoken] for spoken in order):
        raise ValueError(f"language must be one of those of {path}, which are {listed}, got {language!r:.80}")
    return order


def _names(
    concepts: Concepts, uris: list[str], order: dict[str | None, int]
) -> tuple[list[str], list[list[str]]]:
    """The name and the alternative names of each concept.

    A name is a prefLabel in the best language, an rdfs:label only without one; then as in the file.
    """
    names, others = [], []
    for uri in uris:
        known = [
            (kind, order[spoken], name)
            for kind, spoken, name in concepts.names.get(uri, ())
            if spoken in order
        ]
        known.sort(key=lambda entry: entry[:2])
        distinct = list(dict.fromkeys(name for *_, name in known))
        is_named = bool(known) and known[0][0] < 2
        names.append(distinct[0] if is_named else "")
        others.append(distinct[is_named:])
    return names, others
