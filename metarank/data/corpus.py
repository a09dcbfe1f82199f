"""Corpora as Annif documents them: texts with the URIs or names of their subjects, in a file or a folder."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank._util.json import parse_json
from metarank.data.dataset import Dataset
from metarank.data.skos import ENDINGS, begins_as_vocabulary
from metarank.data.text import csv_rows, decode
from metarank.data.vocabulary import cleaned_uri, read_vocabulary
from metarank.data.xc import COMPRESSED, PathLike, read_bytes
from metarank.types.label_descriptions import LabelDescriptions

logger: logging.Logger = logging.getLogger("metarank.data")

_URI = r"<[^\s<>]+>"
MANIFEST = "manifest.json"  # of a saved model
_TSV_LINE = re.compile(rf"[^\t\n]*\t\s*{_URI}(?:\s+{_URI})*\s*$")

# The end of such a line, and how much of it is looked at.
_TSV_END = re.compile(rf"\t\s*{_URI}(?:\s+{_URI})*\s*$")
_TAIL = 1 << 16


class Document(NamedTuple):
    """A text, and its subjects: URIs or names, as they are written; None if it says nothing of subjects."""

    text: str
    subjects: list[str] | None


def read_corpus(
    path: PathLike,
    vocabulary: LabelDescriptions | PathLike | None = None,
    language: str | None = None,
    *,
    labelled: bool = False,
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
    vocabulary : LabelDescriptions, path of a vocabulary, or None
        Y has a column for each label of it, in its order, those without a row too. Subjects that it lacks are
        labels at its end, with a warning that counts them, so that results are judged against all subjects.
        A file is read by `read_vocabulary`. Without one labels are the URIs and names of the corpus, sorted.
    language : str or None
        Language of the names, for a vocabulary in a file.
    labelled : bool
        Whether documents without a subject are left out, as in training; the logger "metarank.data" tells how
        many. By default each document is a row.
    name : str or None
        Name of the data set; None takes the stem of the file or the name of the folder.

    Returns
    -------
    Dataset
        `texts` and Y, in the order of the file, or of the names of files in a folder.

    Raises
    ------
    ValueError
        If there is no document, or none has a subject though `labelled` asks for them; if a line is malformed
        (file and line are named); if no subject is in the vocabulary; if a name stands for several of its
        labels; if the file is a vocabulary; or if `language` is given for no file of a vocabulary.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "corpus.tsv"
    >>> _ = path.write_text('old "ships"\\t<http://x.org/p1>\\n')
    >>> corpus = read_corpus(path)
    >>> corpus.texts, corpus.label_names
    (['old "ships"'], ['http://x.org/p1'])
    """
    path = Path(path)
    if isinstance(vocabulary, LabelDescriptions) or vocabulary is None:
        if language is not None:
            raise ValueError(f"language must be None unless vocabulary is a file, got {language!r:.80}")
    else:
        vocabulary = read_vocabulary(vocabulary, language)
    return corpus_of(None, path, vocabulary, labelled=labelled, name=name)


def corpus_of(
    content: bytes | None,
    path: Path,
    vocabulary: LabelDescriptions | None = None,
    *,
    labelled: bool = False,
    name: str | None = None,
) -> Dataset:
    """What `read_corpus` makes of the content of a file, or of a path without one."""
    documents = list(_documents(path, content))
    if not documents:
        raise ValueError(f"{path}: the corpus is empty, it holds no document")
    if labelled:
        found = [document for document in documents if document.subjects]
        if not found:
            raise ValueError(f"{path}: none of the {len(documents)} documents has a subject")
        if len(found) < len(documents):
            logger.info("%s: left out %d documents without a subject", path, len(documents) - len(found))
        documents = found
    # Without a subject there are no names to match: the labels are those of the vocabulary, or none.
    n_labels = 0 if vocabulary is None else len(vocabulary)
    return Dataset(
        texts=[document.text for document in documents],
        Y=[list(dict.fromkeys(document.subjects or [])) for document in documents]
        if any(document.subjects for document in documents)
        else sp.csr_matrix((len(documents), n_labels), dtype=np.float32),
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
    if "\n" not in head and len(content) > len(head):  # a document longer than that
        end = content.find(b"\n")
        stop = len(content) if end < 0 else end
        return _TSV_END.search(content[stop - _TAIL : stop].decode("utf-8", "replace")) is not None
    lines = [line.rstrip("\r") for line in head.split("\n", 50)[:50] if line.strip()]
    if not lines:
        return False
    if _ending(path) == ".csv":
        try:
            header = next(csv.reader(lines[:1]), [])
        except csv.Error:
            return False
        return {"text", "subject_uris"} <= {field.strip() for field in header}
    if lines[0].startswith("{"):
        return re.search(r'"subjects"\s*:\s*\[\s*(\{|\])', lines[0]) is not None
    return any(_TSV_LINE.match(line) for line in lines)


def _ending(path: Path) -> str:
    return (path.with_suffix("") if path.suffix in COMPRESSED else path).suffix.lower()


def _documents(path: Path, content: bytes | None) -> Iterator[Document]:
    if content is None and path.is_dir():
        return _of_folder(path)
    text = decode(read_bytes(path) if content is None else content, path)
    ending = _ending(path)
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
    try:
        rows = csv_rows(text, ",")
        header = [field.strip() for field in next(rows, (0, []))[1]]
        if "text" not in header:
            raise ValueError(
                f"the CSV of a corpus must have a column 'text', and 'subject_uris' for subjects, got "
                f"{', '.join(header):.200}"
            )
        at, of = header.index("text"), header.index("subject_uris") if "subject_uris" in header else None
        for _, fields in rows:
            yield Document(
                fields[at], None if of is None else [cleaned_uri(uri) for uri in fields[of].split()]
            )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _of_json_lines(text: str, path: Path) -> Iterator[Document]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _of_json(line, f"{path}: line {number}")


def _of_json(text: str, where: str) -> Document:
    try:
        record = parse_json(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} is not JSON: {error.msg} at {error.pos + 1}") from None
    if not isinstance(record, dict) or not isinstance(record.get("text", ""), str):
        raise ValueError(f"{where} must be a JSON object with a text in 'text', got {text!r:.80}")
    if (subjects := record.get("subjects")) is None:
        return Document(record.get("text", ""), None)
    own = subjects if isinstance(subjects, list) else [subjects]
    found = []
    for subject in own:
        key = subject.get("uri", subject.get("label")) if isinstance(subject, dict) else None
        if not isinstance(key, str) or not key.strip():
            raise ValueError(
                f"{where}: subjects must be a list of objects with 'uri' or 'label', got {subject!r:.80}"
            )
        found.append(cleaned_uri(key.strip()))
    return Document(record.get("text", ""), found)


def _files(folder: Path) -> Iterator[Path]:
    """The documents of a folder: those of texts, then those of JSON, by name."""
    for ending in (".txt", ".json"):
        yield from sorted(
            file for file in folder.iterdir() if _ending(file) == ending and not file.name.startswith(".")
        )


def _of_folder(folder: Path) -> Iterator[Document]:
    for file in _files(folder):
        content = read_bytes(file)
        if _ending(file) == ".json":
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
        found = next((path for path in beside if path.exists()), None)
        yield Document(decode(content, file), None if found is None else _keys(found))


def _keys(path: Path) -> list[str]:
    """The subjects of a file with one a line: a URI in angle brackets, or else a name."""
    out = []
    for line in decode(read_bytes(path), path).splitlines():
        fields = [field.strip() for field in line.split("\t")]
        uri = next((field for field in fields if field.startswith("<") and field.endswith(">")), None)
        if (key := uri or next(filter(None, fields), None)) is not None:
            out.append(cleaned_uri(key))
    return list(dict.fromkeys(out))
