"""The five sets: short texts, and labels with names."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from attributes import read_attribute_values, read_fashion_styles

from metarank import data
from metarank.data.compressed import plain_or_compressed
from metarank.data.pydocs import own_labels

SETS = (
    "fashion_styles",
    "cooking_stackexchange",
    "product_attribute_values",
    "LLMs4Subjects-dev-en",
    "pydocs",
)
# The files of the sets of raw text, which have no split, in the order of their rows, and who reads them.
_RAW: dict[str, tuple[tuple[str, ...], Callable[..., data.Dataset]]] = {
    "cooking_stackexchange": (("cooking.stackexchange.txt",), data.load),
    "fashion_styles": (("styles.csv",), read_fashion_styles),
    "product_attribute_values": (
        ("oa-mine.train.jsonl", "oa-mine.test.jsonl", "ae-110k.train.jsonl", "ae-110k.test.jsonl"),
        read_attribute_values,
    ),
}
_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
# Between title and abstract of LLMs4Subjects-dev-en.
_END_OF_TITLE = "¤"


@dataclass(frozen=True)
class Titles:
    """Texts with labels, the texts distinct or not.

    `names` are what a model may read of the labels, one text a label; `own` is the label that is out of the
    question for a row (the document itself), -1 where there is none.
    """

    name: str
    texts: list[str]
    Y: sp.csr_matrix
    names: list[str]
    own: np.ndarray

    @property
    def checksum(self) -> str:
        """sha256 of texts, names and labels."""
        digest = hashlib.sha256("\n".join([*self.texts, *self.names]).encode())
        for array in (self.Y.indptr, self.Y.indices):
            digest.update(array.astype(np.int64).tobytes())
        return digest.hexdigest()

    def take(self, rows: np.ndarray) -> Titles:
        """The given rows, in the given order."""
        return Titles(self.name, [self.texts[i] for i in rows], self.Y[rows], self.names, self.own[rows])


def load(name: str) -> Titles:
    """All rows of a set.

    Raises
    ------
    FileNotFoundError
        If it is not in $METARANK_DATA; the message says where it is looked for.
    """
    if name == "pydocs":
        return of_dataset(data.load_pydocs(), own_labels(data.load_pydocs()))
    folder = Path(os.environ.get("METARANK_DATA") or _BESIDE)
    if name in _RAW:
        files, read = _RAW[name]
        paths = [plain_or_compressed(folder / "text" / name / file) for file in files]
        if None in paths:
            raise FileNotFoundError(f"it is not in {folder}")
        return of_dataset(replace(read(*paths), name=name))
    train, test = (data.load_named(name, part, data_dir=folder, grades=False) for part in ("train", "test"))
    texts = [text.partition(_END_OF_TITLE)[0].strip() for text in (*train.titles, *test.titles)]
    joined = data.Dataset(
        texts=texts,
        Y=sp.vstack([train.Y, test.Y], format="csr"),
        label_names=train.label_names,
        label_texts=train.label_texts,
        name=name,
    )
    return of_dataset(joined)


def of_dataset(dataset: data.Dataset, own: np.ndarray | None = None) -> Titles:
    """The texts, and the labels' texts or names, of a `Dataset`."""
    Y = sp.csr_matrix((np.ones_like(dataset.Y.data), dataset.Y.indices, dataset.Y.indptr), dataset.Y.shape)
    own = np.full(dataset.n_rows, -1, np.int32) if own is None else own
    return Titles(dataset.name, dataset.texts, Y, dataset.label_texts or dataset.label_names, own)


def normalised(text: str) -> str:
    """What makes two texts the same query: case, width of letters and blanks do not count.

    >>> normalised(" Navy  BLUE ")
    'navy blue'
    """
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())
