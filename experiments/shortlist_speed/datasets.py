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
from metarank.data.pydocs import own_labels
from metarank.types.arrays import unit_rows

_BESIDE = Path(__file__).resolve().parents[3] / "shared"
REFERENCE_TOKENS = 335  # makes rows of 243 words on average
TOOL_VARIABLE = "METARANK_REFERENCE_TOOL"


@dataclass(frozen=True)
class Prepared:
    """A set on disk: `train.txt`, and `X`, `Y`, `X_test`, `Y_test` as `.npz`.

    `names.json` has the names of its labels and features, null where unknown. Where labels are out of the
    question for a row, `exclude` and `exclude_test` are the indicator matrices of these pairs.

    `checksum` is the sha256 of the text of both parts, which everything measured on the set is kept by.
    """

    name: str
    folder: Path
    checksum: str
    sizes: dict[str, float]

    def matrix(self, which: str) -> sp.csr_matrix:
        return sp.load_npz(self.folder / f"{which}.npz").tocsr()

    def has(self, which: str) -> bool:
        return (self.folder / f"{which}.npz").is_file()


def prepare(source: str | Path | Extreme, cache: Path) -> Prepared:
    """A set, by its name or the folder of its files, converted on first use.

    Raises
    ------
    FileNotFoundError
        If its source is not there; the message says where it is looked for.
    """
    name = source.name if isinstance(source, Path) else str(source)
    folder = cache / "data" / name
    described = folder / "set.json"
    if not (described.is_file() and (folder / "names.json").is_file()):
        train, test = _source(source)
        folder.mkdir(parents=True, exist_ok=True)
        sizes = _write(train, test, folder)
        if name == "pydocs":
            _exclude_themselves(folder)
        checksum = hashlib.sha256()
        for part in ("train", "test"):
            checksum.update((folder / f"{part}.txt").read_bytes())
        (folder / "test.txt").unlink()
        described.write_text(json.dumps({"checksum": checksum.hexdigest(), "sizes": sizes}) + "\n")
    return Prepared(name, folder, **json.loads(described.read_text()))


def _source(name: str | Path | Extreme) -> tuple[data.Dataset, data.Dataset]:
    if isinstance(name, Extreme):
        made = data.make_extreme(name.n_rows + name.n_test, name.n_features, name.n_labels, seed=SEED)
        return made.take(slice(name.n_rows)), made.take(slice(name.n_rows, None))
    if name == REFERENCE:
        return _make_reference()
    if name == "pydocs":
        return _pydocs()
    train, test = (_unit(_load(name, part)) for part in ("train", "test"))
    return train, test


def _load(source: str | Path, part: str) -> data.Dataset:
    """Relevant and not relevant, whatever the grades."""
    if isinstance(source, Path):
        files = sorted(source.glob(f"{part}.txt*"))
        if not files:
            raise FileNotFoundError(f"{source} has no {part}.txt")
        return data.load(files[0], grades=False)
    folder = os.environ.get("METARANK_DATA") or _BESIDE / "data"
    return data.load_named(source, part, data_dir=folder, grades=False)


def _unit(dataset: data.Dataset) -> data.Dataset:
    """Rows scaled to unit length unless they have it."""
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
    words = vectorizer.vocabulary_
    return tuple(
        replace(part, X=vectorizer.transform(part.texts), texts=None, feature_names=words)
        for part in (train, test)
    )


def _exclude_themselves(folder: Path) -> None:
    """No document of pydocs is its own label, though none fits its text better."""
    for part, name in (("train", "exclude"), ("test", "exclude_test")):
        documents = data.load_pydocs(part)
        own = own_labels(documents)
        row = np.flatnonzero(own >= 0)
        pairs = (np.ones(len(row), np.float32), (row, own[row]))
        sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(pairs, shape=documents.Y.shape), compressed=False)


def _write(train: data.Dataset, test: data.Dataset, folder: Path) -> dict[str, float]:
    for part, dataset in (("train", train), ("test", test)):
        data.write_xc(folder / f"{part}.txt", dataset)
    for name, matrix in (("X", train.X), ("Y", train.Y), ("X_test", test.X), ("Y_test", test.Y)):
        sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(matrix), compressed=False)
    names = {key: getattr(train, key) for key in ("label_names", "label_texts", "feature_names")}
    (folder / "names.json").write_text(json.dumps(names) + "\n")
    return {
        "n": train.n_rows,
        "n_test": test.n_rows,
        "D": train.n_features,
        "L": train.n_labels,
        "nnz_per_row": sp.csr_matrix(train.X).nnz / train.n_rows,
        "labels_per_row": train.Y.nnz / train.n_rows,
    }
