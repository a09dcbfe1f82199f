"""The sets, as the files that Annif reads: a vocabulary, and records with their subjects, one a line.

Every subject of the records is in the vocabulary, so that a system is judged against all of them; one without
a name has the last part of its URI as its label, which no text contains.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# One training record in five is kept from the sources of ensembles, and one in five of these from the
# ensembles while their settings are chosen.
PART = 5
_NUMBERED = "https://example.org/subject/"
Records = list[tuple[str, list[str]]]


@dataclass(frozen=True)
class Raw:
    """A set as it is found; `turtle` is its vocabulary where it has more than names."""

    train: Records
    test: Records
    names: dict[str, str]
    language: str
    files: list[Path]
    turtle: str | None = None


@dataclass(frozen=True)
class Collection:
    """A set on disk: `folder` has the vocabulary, that of names alone, and the records of `parts`, each in a
    file of its name."""

    name: str
    language: str
    folder: Path
    vocabulary: Path
    names: Path
    uris: list[str]
    named: list[bool]
    parts: dict[str, Records]
    checksums: dict[str, str]

    @property
    def stemmer(self) -> str:
        return {"en": "english", "fi": "finnish"}[self.language]

    def corpus(self, part: str) -> Path:
        return self.folder / f"{part}.tsv"


def collected(name: str, folder: Path) -> Collection:
    """Write the files of a set.

    Raises
    ------
    FileNotFoundError
        If the set is not there.
    """
    raw = SETS[name]()
    folder.mkdir(parents=True, exist_ok=True)
    known = dict.fromkeys(raw.names)
    if raw.turtle is None:
        known |= dict.fromkeys(uri for _, uris in (*raw.train, *raw.test) for uri in uris)
        vocabulary, names = folder / "vocabulary.tsv", folder / "names.tsv"
        rows = (f"<{uri}>\t{raw.names.get(uri) or uri.rsplit('/', 1)[-1]}\n" for uri in known)
        vocabulary.write_text("".join(rows), encoding="utf-8")
        rows = (f"<{uri}>\t{name}\n" for uri, name in raw.names.items())
        names.write_text("".join(rows), encoding="utf-8")
    else:
        vocabulary = names = folder / "vocabulary.ttl"
        vocabulary.write_text(raw.turtle, encoding="utf-8")
    train = raw.train
    kept = [record for record in train if _one_in_five(record[0], "ensembles")]
    parts = {
        "train": train,
        "test": raw.test,
        "sources": [record for record in train if not _one_in_five(record[0], "ensembles")],
        "ensembles": kept,
        "learn": [record for record in kept if not _one_in_five(record[0], "choose")],
        "choose": [record for record in kept if _one_in_five(record[0], "choose")],
    }
    uris = list(known)
    found = Collection(
        name,
        raw.language,
        folder,
        vocabulary,
        names,
        uris,
        [uri in raw.names for uri in uris],
        parts,
        {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in raw.files},
    )
    for part, records in parts.items():
        lines = (f"{text}\t{' '.join(f'<{uri}>' for uri in of)}\n" for text, of in records)
        found.corpus(part).write_text("".join(lines), encoding="utf-8")
    return found


def _base() -> Path:
    return Path(os.environ.get("METARANK_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def _text(file: Path) -> str:
    raw = file.read_bytes()
    return (lzma.decompress(raw) if file.suffix == ".xz" else raw).decode("utf-8-sig")


def _records(file: Path) -> Records:
    """Records of Annif's format."""
    rows = (line.split("\t", 1) for line in _text(file).split("\n") if "\t" in line)
    return [(" ".join(text.split()), [uri.strip("<>") for uri in uris.split()]) for text, uris in rows]


def _one_in_five(text: str, salt: str) -> bool:
    """By content: equal texts fall on one side."""
    return int.from_bytes(hashlib.sha256(f"{salt}\0{text}".encode()).digest()[:8], "big") % PART == 0


def _tib() -> Raw:
    source = _base() / "text" / "tib_records_en"
    files = [source / f"{name}.tsv.xz" for name in ("train", "test", "vocabulary")]
    rows = (line.split("\t") for line in _text(files[2]).split("\n") if "\t" in line)
    names = {row[0].strip("<>"): row[1].strip() for row in rows}
    return Raw(_records(files[0]), _records(files[1]), names, "en", files)


def _llms4subjects() -> Raw:
    source = _base() / "xmlc" / "LLMs4Subjects-dev-en"
    files = [source / f"{name}.txt.xz" for name in ("titles.train", "titles.test", "train", "test", "labels")]
    labels = _text(files[4]).rstrip("\n").split("\n")
    uris = [label if label.startswith("http") else f"{_NUMBERED}{i}" for i, label in enumerate(labels)]
    parts = []
    for texts, points in ((files[0], files[2]), (files[1], files[3])):
        rows = zip(_text(texts).split("\n"), _text(points).split("\n")[1:], strict=True)
        found = [(" ".join(text.split()), row.partition(" ")[0]) for text, row in rows if row]
        parts.append([(text, [uris[int(i)] for i in ids.split(",") if i]) for text, ids in found])
    names = {uri: label for uri, label in zip(uris, labels, strict=True) if uri != label}
    return Raw(*parts, names, "en", files)


def _archaeology() -> Raw:
    source = _base() / "annif" / "archaeology"
    files = [source / "documents.tsv", source / "yso-archaeology.ttl"]
    turtle = _text(files[1])
    names = {}
    for block in re.split(r"\n\s*\n", turtle):
        if concept := re.match(r"yso:(p\d+)\s+rdf:type\s[^;]*skos:Concept\b", block):
            preferred = re.search(r"skos:prefLabel([^;]*)", block)[1]
            names[f"http://www.yso.fi/onto/yso/{concept[1]}"] = re.search(r'"([^"]*)"@fi', preferred)[1]
    # Two records of Annif's tests have a subject that is in no vocabulary.
    records = [record for record in _records(files[0]) if names.keys() >= set(record[1])]
    test = [record for record in records if _one_in_five(record[0], "test")]
    train = [record for record in records if not _one_in_five(record[0], "test")]
    return Raw(train, test, names, "fi", files, turtle)


SETS: dict[str, Callable[[], Raw]] = {
    "tib_records_en": _tib,
    "archaeology": _archaeology,
    "LLMs4Subjects-dev-en": _llms4subjects,
}
