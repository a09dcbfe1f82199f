"""The sets in the forms that systems read: matrices, names, and repository text; each is made once.

A folder of a set holds `X`, `Y`, `X_test`, `Y_test` as `.npz`, `names.json` (names of labels and features,
null where unknown), `train.txt`, and `set.json` with its sizes and the sha256 of both parts as text. Where
labels are out of the question for a row, `exclude` and `exclude_test` are the indicator matrices of these
pairs.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank import data
from metarank.data.pydocs import own_labels
from metarank.types.arrays import unit_rows

SHARED = Path(__file__).resolve().parents[3] / "shared"
DATA = Path(os.environ.get("METARANK_DATA") or SHARED / "data")


def prepare(name: str, cache: Path, make: Callable[[Path], dict[str, Any]] | None = None) -> Path:
    """The folder of a set, made on first use.

    `make` writes the files of a set of another kind into the folder, and gives what `set.json` tells of it:
    "checksum" at least, and "L" where systems answer with lists.

    Raises
    ------
    FileNotFoundError
        If the source of the set is not there; the message says where it is looked for.
    """
    folder = cache / name
    if not (folder / "set.json").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        described = make(folder) if make else _matrices(name, folder)
        # Last: a folder without it is made again.
        (folder / "set.json").write_text(json.dumps(described, indent=1) + "\n")
    return folder


def described(folder: Path) -> dict[str, Any]:
    """The sizes and the checksum of a set."""
    return json.loads((folder / "set.json").read_text())


def matrix(folder: Path, which: str) -> sp.csr_matrix:
    return sp.load_npz(folder / f"{which}.npz").tocsr()


def excluded(folder: Path, which: str = "exclude_test") -> sp.csr_matrix | None:
    """The pairs of rows and labels that are out of the question, where there are such."""
    return matrix(folder, which) if (folder / f"{which}.npz").is_file() else None


def write_excluded(folder: Path, which: str, own: np.ndarray, n_labels: int) -> None:
    """`own` is the label that is out of the question for a row, -1 where there is none."""
    row = np.flatnonzero(own >= 0)
    pairs = (np.ones(len(row), np.float32), (row, own[row]))
    sp.save_npz(folder / f"{which}.npz", sp.csr_matrix(pairs, shape=(len(own), n_labels)), compressed=False)


def _matrices(name: str, folder: Path) -> dict[str, Any]:
    train, test = _pydocs() if name == "pydocs" else (_binary(name, part) for part in ("train", "test"))
    described = write(train, test, folder)
    if name == "pydocs":
        _exclude_themselves(folder)
    return described


def _binary(name: str, part: str) -> data.Dataset:
    """Relevant or not, whatever the grades; rows of large sets of unit length unless they have it."""
    dataset = data.load_named(name, part, data_dir=DATA, grades=False)
    if (DATA / "mlc" / name).is_dir():
        return dataset
    X = sp.csr_matrix(dataset.X)
    length = np.sqrt(X.multiply(X).sum(axis=1).A1)
    return dataset if np.allclose(length[length > 0], 1, atol=1e-3) else replace(dataset, X=unit_rows(X))


def _pydocs() -> tuple[data.Dataset, ...]:
    train, test = data.load_pydocs("train"), data.load_pydocs("test")
    vectorizer = data.TextVectorizer().fit(train.texts)
    words = vectorizer.vocabulary_
    return tuple(
        replace(part, X=vectorizer.transform(part.texts), texts=None, feature_names=words)
        for part in (train, test)
    )


def _exclude_themselves(folder: Path) -> None:
    """No document of pydocs is its own label, though none fits its text better."""
    for part, name in (("train", "exclude"), ("test", "exclude_test")):
        documents = data.load_pydocs(part)
        write_excluded(folder, name, own_labels(documents), documents.n_labels)


def write(train: data.Dataset, test: data.Dataset, folder: Path) -> dict[str, Any]:
    """Both parts in all forms, and what `set.json` tells of them."""
    checksum = hashlib.sha256()
    for part, dataset in (("train", train), ("test", test)):
        text = folder / f"{part}.txt"
        data.write_xc(text, dataset)
        checksum.update(text.read_bytes())
    text.unlink()
    for name, values in (("X", train.X), ("Y", train.Y), ("X_test", test.X), ("Y_test", test.Y)):
        sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(values), compressed=False)
    names = {key: getattr(train, key) for key in ("label_names", "label_texts", "feature_names")}
    (folder / "names.json").write_text(json.dumps(names) + "\n")
    return {
        "checksum": checksum.hexdigest(),
        "n": train.n_rows,
        "n_test": test.n_rows,
        "D": train.n_features,
        "L": train.n_labels,
        "nnz_per_row": sp.csr_matrix(train.X).nnz / train.n_rows,
        "labels_per_row": train.Y.nnz / train.n_rows,
    }
