"""`make_files`: write a generated data set as the files a user would have."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from metarank._util.files import whole_file
from metarank.data.dataset import Dataset
from metarank.data.pydocs import load_pydocs
from metarank.data.synthetic import make_extreme
from metarank.data.xc import write_xc


def make_files(
    name: str,
    out: str | os.PathLike[str],
    *,
    rows: int = 15_000,
    features: int = 5_000,
    labels: int = 4_000,
    seed: int = 0,
) -> list[Path]:
    """Write a data set that needs no download into a folder.

    Parameters
    ----------
    name : {"pydocs", "synthetic"}
        "pydocs": `train.jsonl` and `test.jsonl` (columns "text" and "labels"), `labels.txt` and
        `label_text.txt` (name and one-line summary of each label). "synthetic": repository text
        `train.txt` and `test.txt` (a fifth of the rows) by `make_extreme`.
    out : path of the folder, made where it is missing
    rows, features, labels : int
        Sizes of "synthetic".
    seed : int
        Of the split, and of "synthetic" as a whole.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    ValueError
        If a size is out of range.

    Examples
    --------
    >>> import tempfile
    >>> from metarank import data
    >>> files = make_files("synthetic", tempfile.mkdtemp(), rows=100, features=50, labels=20)
    >>> [data.load(file).n_rows for file in files]
    [80, 20]
    """
    folder = Path(out)
    if name == "synthetic":
        per_row = min(50.0, max(1.0, features / 2))
        both = make_extreme(rows, features, labels, nnz_per_row=per_row, seed=seed)
        order = np.random.default_rng([seed, 1]).permutation(rows)
        n_test = rows // 5
        folder.mkdir(parents=True, exist_ok=True)
        parts = {"train": np.sort(order[n_test:]), "test": np.sort(order[:n_test])}
        for split, part in parts.items():
            write_xc(folder / f"{split}.txt", both.take(part))
        return [folder / f"{split}.txt" for split in parts]
    folder.mkdir(parents=True, exist_ok=True)
    train = load_pydocs("train", seed)
    contents = {
        "train.jsonl": _json_lines(train),
        "test.jsonl": _json_lines(load_pydocs("test", seed)),
        "labels.txt": train.label_names or [],
        "label_text.txt": [" ".join(text.split()) for text in train.label_texts or []],
    }
    for file, lines in contents.items():
        with whole_file(folder / file, "wb") as f:
            f.writelines(f"{line}\n".encode() for line in lines)
    return [folder / file for file in contents]


def _json_lines(dataset: Dataset) -> list[str]:
    names, Y = np.array(dataset.label_names, dtype=object), dataset.Y
    return [
        json.dumps({"text": text, "labels": names[Y.indices[Y.indptr[i] : Y.indptr[i + 1]]].tolist()})
        for i, text in enumerate(dataset.texts or [])
    ]
