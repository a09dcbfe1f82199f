"""Corpora as Annif documents them: texts with the URIs or names of their subjects, in a file or a folder."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank.data.compressed import COMPRESSED, PathLike, decode, ending_of, read_bytes
from metarank.data.dataset import Dataset
from metarank.data.skos import ENDINGS, begins_as_vocabulary
from metarank.data.tables import json_object, naming, read_csv
from metarank.data.vocabulary import cleaned_uri
from metarank.types.label_descriptions import LabelDescriptions

_URI = r"<[^\s<>]+>"
MANIFEST = "manifest.json"  # of a saved model
_TSV_LINE = re.compile(rf"[^\t\n]*\t\s*{_URI}(?:\s+{_URI})*\s*$")


class Document(NamedTuple):
    """A text, and its subjects: URIs or names, as they are written; None if it says nothing of subjects."""

    text: str
    subjects: list[str] | None


def read_corpus(
    path: PathLike,
    vocabulary: LabelDescriptions | None = None,
    *,
    name: str | None = None,
) -> Dataset:
    """Read a corpus of documents with subjects: TSV, CSV, JSON lines, or a folder.

    Parameters
    ----------
    path : path of a file, plain or compressed (gz, xz, bz2, zst), or of a folder
        The ending decides. `.csv`: the columns "text" and "subject_uris", URIs separated by blanks. `.jsonl`:
        objects with "text" and "subjects", a list of objects with "uri" or else "label". A folder: a document
        is a `.txt` file, with its subjects in the `.tsv` (``<uri>``, tab, name a line) or else `.key` file (a
        name a line) of the same stem, or a `.json` file with such an object. Any other file is TSV without a
        header: the text, a tab, and URIs separated by blanks; quotes are characters like others. A URI may
        stand in angle brackets. Blank lines are no documents.
    vocabulary : LabelDescriptions or None
        As `read_vocabulary` gives it. Y has a column for each label of it, in its order, those without a row
        too. Subjects that it lacks are labels at its end, with a warning that counts them, so that results
        are judged against all subjects. Without one labels are the URIs and names of the corpus, sorted.
    name : str or None
        Name of the data set; None takes the stem of the file or the name of the folder.

    Returns
    -------
    Dataset
        `texts` and Y, in the order of the file, or of the names of files in a folder.

    Raises
    ------
    ValueError
        If there is no document; if a line is malformed (file and line are named); if no subject is in the
        vocabulary; if a name stands for several of its labels; or if the file is a vocabulary.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "corpus.tsv"
    >>> _ = path.write_text('old "ships"\\t<http://x.org/p1>\\n')
    >>> corpus = read_corpus(path)
    >>> corpus.texts, corpus.label_names
    (['old "ships"'], ['http://x.org/p1'])
    """
    return corpus_of(None, Path(path), vocabulary, name=name)


def corpus_of(
    content: bytes | None,
    path: Path,
    vocabulary: LabelDescriptions | None = None,
    *,
    name: str | None = None,
) -> Dataset:
    """What `read_corpus` makes of the content of a file, or of a path without one."""
    documents = list(_documents(path, content))
    if not documents:
        raise ValueError(f"{path}: the corpus is empty, it holds no document")
    Y: Any = [list(dict.fromkeys(document.subjects or [])) for document in documents]
    if not any(Y):  # there are no names to match: the labels are those of the vocabulary, or none
        n_labels = 0 if vocabulary is None else len(vocabulary)
        Y = sp.csr_matrix((len(documents), n_labels), dtype=np.float32)
    return Dataset(
        texts=[document.text for document in documents],
        Y=Y,
        labels=vocabulary,
        name=(path.name.split(".")[0] or path.resolve().name) if name is None else name,
    )


def is_corpus(path: Path, content: bytes | None = None) -> bool:
    """Whether a path is beyond doubt a corpus in this form, and no other data file.

    That is a folder with documents that is no model; or a content with URIs where they belong: in the
    header of a CSV, in the first object of JSON lines, in one of the first lines of a TSV.
    """
    if content is None:
        return path.is_dir() and any(_files(path)) and not (path / MANIFEST).exists()
    head = content[: 1 << 20].decode("utf-8-sig", "replace")
    lines = [line.rstrip("\r") for line in head.split("\n", 50)[:50] if line.strip()]
    if not lines:
        return False
    if ending_of(path) == ".csv":
        return {"text", "subject_uris"} <= set(re.split(r'[\s,"]+', lines[0]))
    if lines[0].startswith("{"):
        return re.search(r'"subjects"\s*:\s*\[\s*(\{|\])', lines[0]) is not None
    return any(_TSV_LINE.match(line) for line in lines)


def _documents(path: Path, content: bytes | None) -> Iterator[Document]:
    if content is None and path.is_dir():
        return _of_folder(path)
    text = decode(read_bytes(path) if content is None else content, path)
    ending = ending_of(path)
    is_skos = ending in ENDINGS and ending not in (".tsv", ".csv", ".json")
    if is_skos or (ending != ".jsonl" and begins_as_vocabulary(text[:4096].encode())):
        raise ValueError(f"{path} holds a vocabulary, not documents: read_vocabulary, or --vocab, reads it")
    if ending == ".csv":
        return _of_csv(text, path)
    return _of_json_lines(text, path) if ending == ".jsonl" else _of_tsv(text)


def _of_tsv(text: str) -> Iterator[Document]:
    for line in io.StringIO(text, newline=None):
        if line.strip():
            own, tab, uris = line.rstrip("\n").partition("\t")
            yield Document(own, [cleaned_uri(uri) for uri in uris.split()] if tab else None)


def _of_csv(text: str, path: Path) -> Iterator[Document]:
    with naming(path):
        table = read_csv(text, ",", str(path))
        if "text" not in table.columns:
            raise ValueError(
                "the CSV of a corpus must have a column 'text', and 'subject_uris' for subjects, got "
                f"{', '.join(table.columns):.200}"
            )
    uris = table.columns.get("subject_uris")
    for i, document in enumerate(table.columns["text"]):
        yield Document(document, None if uris is None else [cleaned_uri(uri) for uri in uris[i].split()])


def _of_json_lines(text: str, path: Path) -> Iterator[Document]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _of_json(line, f"{path}: line {number}")


def _of_json(text: str, where: str) -> Document:
    record = json_object(text, where)
    if not isinstance(record.get("text", ""), str):
        raise ValueError(f"{where} must be a JSON object with a text in 'text', got {text!r:.80}")
    if (subjects := record.get("subjects")) is None:
        return Document(record.get("text", ""), None)
    listed = subjects if isinstance(subjects, list) else [subjects]
    keys = []
    for subject in listed:
        key = subject.get("uri", subject.get("label")) if isinstance(subject, dict) else None
        if not isinstance(key, str) or not key.strip():
            raise ValueError(
                f"{where}: subjects must be a list of objects with 'uri' or 'label', got {subject!r:.80}"
            )
        keys.append(cleaned_uri(key.strip()))
    return Document(record.get("text", ""), keys)


def _files(folder: Path) -> Iterator[Path]:
    """The documents of a folder: those of texts, then those of JSON, by name."""
    for ending in (".txt", ".json"):
        yield from sorted(
            file for file in folder.iterdir() if ending_of(file) == ending and not file.name.startswith(".")
        )


def _of_folder(folder: Path) -> Iterator[Document]:
    for file in _files(folder):
        content = read_bytes(file)
        if ending_of(file) == ".json":
            if not content.strip():
                warnings.warn(f"{file}: the file is empty and left out", stacklevel=4)
                continue
            yield _of_json(decode(content, file), str(file))
            continue
        stem = (file.with_suffix("") if file.suffix in COMPRESSED else file).with_suffix("")
        beside = (
            stem.with_name(f"{stem.name}{ending}{packed}")
            for ending in (".tsv", ".key")
            for packed in ("", *COMPRESSED)
        )
        labels_file = next((path for path in beside if path.exists()), None)
        yield Document(decode(content, file), None if labels_file is None else _keys(labels_file))


def _keys(path: Path) -> list[str]:
    """The subjects of a file with one a line: a URI in angle brackets, or else a name."""
    out = []
    for line in decode(read_bytes(path), path).splitlines():
        fields = [field.strip() for field in line.split("\t")]
        uri = next((field for field in fields if field.startswith("<") and field.endswith(">")), None)
        if (key := uri or next(filter(None, fields), None)) is not None:
            out.append(cleaned_uri(key))
    return list(dict.fromkeys(out))
