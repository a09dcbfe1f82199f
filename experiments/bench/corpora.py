"""Sets as the files that Annif reads: a vocabulary, and records with their subjects, one a line.

A set's folder has `vocabulary.tsv` or `.ttl`, `names.tsv` of the named subjects alone, records in `train.tsv`
and `test.tsv`, and in `sources.tsv` and `ensembles.tsv` four and one in five of the training records, in
`learn.tsv` and `choose.tsv` four and one in five of the latter. `Y.npz` and `Y_test.npz` have a column for
each of the "uris" in `subjects.json`, all subjects of the vocabulary and of the records: systems are judged
against all of them. One without a name has the last part of its URI as its label, which no text has.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from declared import Figures
from sets import DATA

from metarank.data.compressed import read_bytes

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


def write(raw: Raw, folder: Path) -> Figures:
    """The files of a set, and its sizes."""
    uris, described = _matrices(raw, folder)
    if raw.turtle is None:
        _write(
            folder / "vocabulary.tsv", (f"<{u}>\t{raw.names.get(u) or u.rsplit('/', 1)[-1]}" for u in uris)
        )
        _write(folder / "names.tsv", (f"<{uri}>\t{name}" for uri, name in raw.names.items()))
    else:
        (folder / "vocabulary.ttl").write_text(raw.turtle, encoding="utf-8")
    kept = [record for record in raw.train if one_in_five(record[0], "ensembles")]
    parts = {
        "train": raw.train,
        "test": raw.test,
        "sources": [record for record in raw.train if not one_in_five(record[0], "ensembles")],
        "ensembles": kept,
        "learn": [record for record in kept if not one_in_five(record[0], "choose")],
        "choose": [record for record in kept if one_in_five(record[0], "choose")],
    }
    for part, records in parts.items():
        _write(folder / f"{part}.tsv", (f"{text}\t{' '.join(f'<{u}>' for u in of)}" for text, of in records))
    subjects = {"language": raw.language, "uris": uris, "named": [uri in raw.names for uri in uris]}
    (folder / "subjects.json").write_text(json.dumps(subjects))
    return described


def write_texts(raw: Raw, folder: Path) -> Figures:
    """A set of texts in its own parts, with `texts.json` as those of `named_texts.py`, and its sizes."""
    uris, described = _matrices(raw, folder)
    parts = {"train": raw.train, "test": raw.test}
    texts = {part: [text for text, _ in records] for part, records in parts.items()}
    names = [raw.names.get(uri, "") for uri in uris]
    (folder / "texts.json").write_text(json.dumps({**texts, "names": names}))
    return described


def _matrices(raw: Raw, folder: Path) -> tuple[list[str], Figures]:
    """`Y.npz` and `Y_test.npz` of a set; its subjects, those with a name first, and its sizes."""
    uris = list(dict.fromkeys([*raw.names, *(uri for _, of in (*raw.train, *raw.test) for uri in of)]))
    matrices = [indicator(records, uris) for records in (raw.train, raw.test)]
    for name, Y in zip(("Y", "Y_test"), matrices):
        sp.save_npz(folder / f"{name}.npz", Y)
    seen, used = (Y.getnnz(axis=0) for Y in matrices)
    named = np.array([uri in raw.names for uri in uris])
    return uris, {
        "checksum": hashlib.sha256(b"".join(file.read_bytes() for file in raw.files)).hexdigest(),
        "n": len(raw.train),
        "n_test": len(raw.test),
        "L": len(uris),
        "named": len(raw.names),
        "trained": int(np.count_nonzero(seen)),
        "gold": int(used.sum()),
        "unseen": int(used[seen == 0].sum()),
        "unseen_nameless": int(used[(seen == 0) & ~named].sum()),
    }


def _write(file: Path, lines) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def indicator(records: Records, uris: list[str]) -> sp.csr_matrix:
    place = {uri: i for i, uri in enumerate(uris)}
    rows = [sorted({place[uri] for uri in of}) for _, of in records]
    indptr, indices = np.cumsum([0, *map(len, rows)]), np.array([i for row in rows for i in row], np.int32)
    return sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(rows), len(uris)))


def one_in_five(text: str, salt: str) -> bool:
    """By content: equal texts fall on one side."""
    return int.from_bytes(hashlib.sha256(f"{salt}\0{text}".encode()).digest()[:8], "big") % PART == 0


# --- the sets ----------------------------------------------------------------------


def _text(file: Path) -> str:
    return read_bytes(file).decode()


def _records(file: Path) -> Records:
    """Records of Annif's format."""
    rows = (line.split("\t", 1) for line in _text(file).split("\n") if "\t" in line)
    return [(" ".join(text.split()), [uri.strip("<>") for uri in uris.split()]) for text, uris in rows]


def tib() -> Raw:
    source = DATA / "text" / "tib_records_en"
    files = [source / f"{name}.tsv.xz" for name in ("train", "test", "vocabulary")]
    rows = (line.split("\t") for line in _text(files[2]).split("\n") if "\t" in line)
    names = {row[0].strip("<>"): row[1].strip() for row in rows}
    return Raw(_records(files[0]), _records(files[1]), names, "en", files)


def llms4subjects() -> Raw:
    source = DATA / "xmlc" / "LLMs4Subjects-dev-en"
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


def archaeology() -> Raw:
    source = DATA / "annif" / "archaeology"
    files = [source / "documents.tsv", source / "yso-archaeology.ttl"]
    turtle = _text(files[1])
    names = {}
    for block in re.split(r"\n\s*\n", turtle):
        if concept := re.match(r"yso:(p\d+)\s+rdf:type\s[^;]*skos:Concept\b", block):
            preferred = re.search(r"skos:prefLabel([^;]*)", block)[1]
            names[f"http://www.yso.fi/onto/yso/{concept[1]}"] = re.search(r'"([^"]*)"@fi', preferred)[1]
    # Two records of Annif's tests have a subject that is in no vocabulary.
    records = [record for record in _records(files[0]) if names.keys() >= set(record[1])]
    test = [record for record in records if one_in_five(record[0], "test")]
    train = [record for record in records if not one_in_five(record[0], "test")]
    return Raw(train, test, names, "fi", files, turtle)
