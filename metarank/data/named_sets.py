"""Named benchmark sets, read from a folder that is never part of the repository.

The folder is `data_dir`, or else the environment variable METARANK_DATA. It holds
`mlc/NAME` and `xmlc/NAME` with `train.*` and `test.*` files in repository text and
their sidecars.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from metarank.data.compressed import PathLike, plain_or_compressed
from metarank.data.dataset import Dataset
from metarank.data.readers import load


@dataclass(frozen=True)
class DatasetRecord:
    """A named set and where it is."""

    name: str
    task: str
    path: Path


def list_datasets(data_dir: PathLike | None = None) -> list[DatasetRecord]:
    """The sets in the folder.

    Examples
    --------
    >>> list_datasets("/nonexistent")
    []
    """
    folder = _folder(data_dir)
    return [
        DatasetRecord(path.name, task, path)
        for task in ("mlc", "xmlc")
        if folder is not None and (folder / task).is_dir()
        for path in sorted((folder / task).iterdir())
        if _split_file(path, "train") is not None
    ]


def get(name: str, *, data_dir: PathLike | None = None) -> Path:
    """The folder of a named set.

    Raises
    ------
    FileNotFoundError
        If there is no such set in the folder. Nothing is downloaded, since none of
        the sets has a stable public address; `data/README.md` names their sources.
    """
    path = next((record.path for record in list_datasets(data_dir) if record.name == name), None)
    if path is None:
        where = _folder(data_dir) or "METARANK_DATA (or data_dir), which is not set"
        raise FileNotFoundError(
            f"the data set {name!r} is not in {where}. Put its train and test files into mlc/{name}/ or "
            f"xmlc/{name}/ there; data/README.md names the sources"
        )
    return path


def load_named(
    name: str,
    split: Literal["train", "test"] = "train",
    *,
    data_dir: PathLike | None = None,
    grades: bool | Literal["auto"] = "auto",
    n_jobs: int | None = None,
) -> Dataset:
    """Read one part of a named set.

    Parameters
    ----------
    name : str
        See `list_datasets`.
    split : "train" or "test"
    data_dir : path or None
        Folder of the sets; None: the environment variable METARANK_DATA.
    grades, n_jobs
        See `load`.

    Raises
    ------
    ValueError
        Malformed content.
    FileNotFoundError
        If the set, or this part of it, is not in the folder.
    """
    folder = get(name, data_dir=data_dir)
    path = _split_file(folder, split)
    if path is None:
        raise FileNotFoundError(f"{folder}: there is no {split} file")
    return load(path, grades=grades, name=name, n_jobs=n_jobs)


def _folder(data_dir: PathLike | None) -> Path | None:
    chosen = data_dir if data_dir is not None else os.environ.get("METARANK_DATA")
    return Path(chosen) if chosen else None


def _split_file(folder: Path, split: str) -> Path | None:
    places = (plain_or_compressed(folder / f"{split}{extension}") for extension in (".svm", ".txt"))
    return next((place for place in places if place is not None), None)
