"""Corpora as Annif documents them: texts with the URIs or names of their subjects, in a file or a folder."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.data.compressed import PathLike, bare, decode, ending_of, plain_or_compressed, read_bytes
from metarank.data.dataset import Dataset
from metarank.data.tables import Table, json_object, naming, of_records, read_file
from metarank.data.vocabulary import cleaned_uri
from metarank.types.label_descriptions import LabelDescriptions

TEXT, URIS, SUBJECTS = "text", "subject_uris", "subjects"
MANIFEST = "manifest.json"  # of a saved model
_URI = r"<[^\s<>]+>"
_TSV_LINE = re.compile(rf"^[^\t\n]*\t[ \t]*{_URI}(?:[ \t]+{_URI})*\s*$", re.MULTILINE)


def read_corpus(
    path: PathLike, vocabulary: LabelDescriptions | None = None, *, name: str | None = None
) -> Dataset:
    """Read a corpus of documents with subjects: TSV, CSV, JSON lines, or a folder.

    Parameters
    ----------
    path : path of a file, plain or compressed (gz, xz, bz2, zst), or of a folder
        The ending decides. `.csv`: the columns "text" and "subject_uris", URIs separated by blanks. `.jsonl`:
        objects with "text" and "subjects", a list of objects with "uri" or else "label". A folder: a document
        is a `.txt` file, with its subjects in the `.tsv` (``<uri>``, tab, name in each line) or else `.key`
        file (a name per line) of the same stem, or a `.json` file with such an object. Any other file is TSV
        without a header: the text, a tab, and URIs separated by blanks; quotes are characters like others. A
        URI may be in angle brackets. Blank lines are skipped.
    vocabulary : LabelDescriptions or None
        See `read_vocabulary`. Y has a column for each of its labels, in its order, even without a row.
        Unknown subjects are added at the end, with a warning, so that evaluation counts all subjects. Without
        a vocabulary, labels are the URIs and names of the corpus, sorted.
    name : str or None
        Name of the data set; None takes the stem of the file or the name of the folder.

    Returns
    -------
    Dataset
        `texts` and Y, in the order of the file, or of the names of files in a folder.

    Raises
    ------
    ValueError
        If there is no document; if a line is malformed (the message has file and line); if no subject is in
        the vocabulary; if several labels share a name; or if the file is a vocabulary.

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
    with naming(path):
        if path.is_dir():
            return corpus_of(_of_folder(path), path, vocabulary, name)
        content = read_bytes(path)
        is_table = ending_of(path) in (".csv", ".jsonl")
        table = read_file(path, content) if is_table else table_of_tsv(decode(content, path), str(path))
        return corpus_of(table, path, vocabulary, name)


def corpus_of(
    table: Table, path: Path, vocabulary: LabelDescriptions | None = None, name: str | None = None
) -> Dataset:
    """The documents of a table, with their subjects."""
    if table.n_rows == 0:
        raise ValueError("the corpus is empty, it holds no document")
    if TEXT not in table.columns:
        raise ValueError(
            f"a corpus must have a column {TEXT!r}, and {URIS!r} or {SUBJECTS!r}, got "
            f"{', '.join(table.columns):.200}"
        )
    if URIS in table.columns:
        keys = [[cleaned_uri(uri) for uri in cell.split()] for cell in table.cells(URIS)]
    else:
        listed = table.cells(SUBJECTS) if SUBJECTS in table.columns else [None] * table.n_rows
        keys = [_keys(subjects, table.where(i)) for i, subjects in enumerate(listed)]
    Y: Any = [list(dict.fromkeys(own)) for own in keys]
    if not any(Y):  # there are no names to match: the labels are those of the vocabulary, or none
        Y = sp.csr_matrix((len(Y), 0 if vocabulary is None else len(vocabulary)), dtype=np.float32)
    return Dataset(
        texts=["" if text is None else text for text in table.cells(TEXT)],
        Y=Y,
        labels=vocabulary,
        name=(path.name.split(".")[0] or path.resolve().name) if name is None else name,
    )


def is_corpus(table: Table) -> bool:
    """Whether a table clearly holds documents with subjects."""
    first = next((cell for cell in table.columns.get(SUBJECTS, ()) if cell), None)
    is_listed = isinstance(first, list) and isinstance(first[0], dict)
    return TEXT in table.columns and (URIS in table.columns or is_listed)


def is_corpus_folder(path: Path) -> bool:
    """Whether a folder holds documents, not a model."""
    return path.is_dir() and any(_files(path)) and not (path / MANIFEST).exists()


def is_tsv(content: bytes) -> bool:
    """Whether a file is clearly a TSV of documents, with URIs in one of its first lines."""
    head = b"".join(content[: 1 << 20].splitlines(keepends=True)[:50])
    return _TSV_LINE.search(head.decode("utf-8", "replace")) is not None


def table_of_tsv(text: str, name: str) -> Table:
    """A line per document: its text, a tab, and URIs with blanks between them."""
    lines = [line.rstrip("\n").partition("\t") for line in io.StringIO(text, newline=None) if line.strip()]
    if lines and re.fullmatch(_URI, lines[0][0]):
        raise ValueError("the file holds a vocabulary, not documents: read_vocabulary, or --vocab, reads it")
    return Table(name, {TEXT: [own for own, *_ in lines], URIS: [uris for *_, uris in lines]})


def _keys(subjects: Any, where: str) -> list[str]:
    """The URIs, or else the labels, of the subjects of an object of JSON."""
    keys = []
    for subject in subjects if isinstance(subjects, list) else [subjects] if subjects is not None else []:
        key = subject.get("uri", subject.get("label")) if isinstance(subject, dict) else None
        if not isinstance(key, str) or not key.strip():
            raise ValueError(
                f"{where}: subjects must be a list of objects with 'uri' or 'label', got {subject!r:.80}"
            )
        keys.append(cleaned_uri(key.strip()))
    return keys


def _files(folder: Path) -> Iterator[Path]:
    """The documents of a folder: those of texts, then those of JSON, by name."""
    for ending in (".txt", ".json"):
        yield from sorted(
            file for file in folder.iterdir() if ending_of(file) == ending and not file.name.startswith(".")
        )


def _of_folder(folder: Path) -> Table:
    records = []
    for file in _files(folder):
        text = decode(read_bytes(file), file)
        if ending_of(file) == ".json":
            records.append(json_object(text, str(file)))
            continue
        places = (plain_or_compressed(folder / f"{bare(file).stem}{ending}") for ending in (".tsv", ".key"))
        beside = next(filter(None, places), None)
        lines = [] if beside is None else decode(read_bytes(beside), beside).split("\n")
        records.append({TEXT: text, SUBJECTS: [{"uri": _key(line)} for line in lines if line.strip()]})
    return of_records(str(folder), records)


def _key(line: str) -> str:
    """The subject of a line: a URI in angle brackets, or else a name."""
    fields = [field.strip() for field in line.split("\t")]
    return next((f for f in fields if f.startswith("<") and f.endswith(">")), next(filter(None, fields)))
