"""The sets in the forms the systems read: repository text and CSR matrices, converted once."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from settings import REFERENCE, SEED, Extreme

from metarank import data
from metarank.scorers.relevance import unit_rows

_BESIDE = Path(__file__).resolve().parents[3] / "shared"
REFERENCE_TOKENS = 335  # makes rows of 243 words on average
TOOL_VARIABLE = "METARANK_REFERENCE_TOOL"


@dataclass(frozen=True)
class Prepared:
    """A set on disk: `train.txt`, and `X`, `Y`, `X_test`, `Y_test` as `.npz`.

    `checksum` is the sha256 of the text of both parts, which everything measured on the set is kept by.
    """

    name: str
    folder: Path
    checksum: str
    sizes: dict[str, float]

    def matrix(self, which: str) -> sp.csr_matrix:
        return sp.load_npz(self.folder / f"{which}.npz").tocsr()


def prepare(name: str | Extreme, cache: Path) -> Prepared:
    """The set `name`, converted on first use.

    Raises
    ------
    FileNotFoundError
        If its source is not there; the message says where it is looked for.
    """
    folder = cache / "data" / str(name)
    described = folder / "set.json"
    if not described.is_file():
        train, test = _source(name)
        folder.mkdir(parents=True, exist_ok=True)
        sizes = _write(train, test, folder)
        checksum = hashlib.sha256()
        for part in ("train", "test"):
            checksum.update((folder / f"{part}.txt").read_bytes())
        (folder / "test.txt").unlink()
        described.write_text(json.dumps({"checksum": checksum.hexdigest(), "sizes": sizes}) + "\n")
    return Prepared(str(name), folder, **json.loads(described.read_text()))


def _source(name: str | Extreme) -> tuple[data.Dataset, data.Dataset]:
    if isinstance(name, Extreme):
        made = data.make_extreme(name.n_rows + name.n_test, name.n_features, name.n_labels, seed=SEED)
        return made.take(slice(name.n_rows)), made.take(slice(name.n_rows, None))
    if name == REFERENCE:
        return _make_reference()
    if name == "pydocs":
        return _pydocs()
    folder = os.environ.get("METARANK_DATA") or _BESIDE / "data"
    train, test = (_load(name, part, folder) for part in ("train", "test"))
    return train, test


def _load(name: str, part: str, folder: str | Path) -> data.Dataset:
    """Relevant and not relevant, whatever the grades; rows scaled to unit length unless they have it."""
    dataset = data.load_named(name, part, data_dir=folder, grades=False)
    X = sp.csr_matrix(dataset.X)
    length = np.sqrt(X.multiply(X).sum(axis=1).A1)
    if np.all(np.abs(length[length > 0] - 1) < 1e-3):
        return dataset
    return replace(dataset, X=unit_rows(X))


def _make_reference() -> tuple[data.Dataset, data.Dataset]:
    """15,000 and 4,000 rows of made text, by the generator that the peers' figures were first stated on."""
    tool = Path(os.environ.get(TOOL_VARIABLE) or _BESIDE / "tools" / "make_synthetic_reference.py")
    if not tool.is_file():
        raise FileNotFoundError(f"{tool}: no such file; {TOOL_VARIABLE} must name the generator")
    with tempfile.TemporaryDirectory() as out:
        arguments = ["--tokens", str(REFERENCE_TOKENS), "--seed", str(SEED)]
        subprocess.run([sys.executable, tool, out, *arguments], check=True, stdout=subprocess.DEVNULL)
        return data.load(Path(out) / "train.txt"), data.load(Path(out) / "test.txt")


def _pydocs() -> tuple[data.Dataset, data.Dataset]:
    train, test = data.load_pydocs("train"), data.load_pydocs("test")
    vectorizer = data.TextVectorizer().fit(train.texts)
    return tuple(replace(part, X=vectorizer.transform(part.texts)) for part in (train, test))


def _write(train: data.Dataset, test: data.Dataset, folder: Path) -> dict[str, float]:
    for part, dataset in (("train", train), ("test", test)):
        data.write_xc(folder / f"{part}.txt", dataset)
    for name, matrix in (("X", train.X), ("Y", train.Y), ("X_test", test.X), ("Y_test", test.Y)):
        sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(matrix), compressed=False)
    return {
        "n": train.n_rows,
        "n_test": test.n_rows,
        "D": train.n_features,
        "L": train.n_labels,
        "nnz_per_row": sp.csr_matrix(train.X).nnz / train.n_rows,
        "labels_per_row": train.Y.nnz / train.n_rows,
    }
