"""Named benchmark sets, read from a folder that is never part of the repository.

The folder is `data_dir`, or else the environment variable METARANK_DATA. It holds
`mlc/NAME` and `xmlc/NAME` with `train.*` and `test.*` files in repository text and
their sidecars, and `text/NAME` with raw text that has no split; `META.json`, where it
is there, lists a sha256 of every file.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from metarank._util.json import parse_json
from metarank.data.dataset import Dataset
from metarank.data.guard import check_present
from metarank.data.readers import load
from metarank.data.search_filters import read_attribute_values, read_fashion_styles
from metarank.data.text import read_table
from metarank.data.xc import PathLike, plain_or_compressed, raw_bytes

TASKS = ("mlc", "xmlc")
ENVIRONMENT_VARIABLE = "METARANK_DATA"


@dataclass(frozen=True)
class DatasetRecord:
    """What is known about a named set.

    `path` is its folder, or None where it is not available; sizes are None where nothing states them. The
    sets of the task "text" have no split: `n_train` counts all their rows.
    """

    name: str
    task: str
    n_train: int | None
    n_test: int | None
    n_features: int | None
    n_labels: int | None
    path: Path | None = None

    @property
    def available(self) -> bool:
        return self.path is not None


KNOWN = (
    DatasetRecord("bibtex", "mlc", 4880, 2515, 1836, 159),
    DatasetRecord("birds", "mlc", 322, 323, 271, 19),
    DatasetRecord("citeseer17-single", "mlc", 2865, 1432, 14601, 17),
    DatasetRecord("delicious", "mlc", 12920, 3185, 500, 983),
    DatasetRecord("emotions", "mlc", 391, 202, 72, 6),
    DatasetRecord("medical", "mlc", 333, 645, 1449, 45),
    DatasetRecord("reuters90", "mlc", 7770, 3019, 26377, 90),
    DatasetRecord("scene", "mlc", 1211, 1196, 294, 6),
    DatasetRecord("vowel", "mlc", 528, 462, 10, 11),
    DatasetRecord("yeast", "mlc", 1500, 917, 103, 14),
    DatasetRecord("CiteULike-t-tags", "xmlc", 20755, 5189, 19844, 46141),
    DatasetRecord("EURLex-4K-partial", "xmlc", 1051, 263, 5000, 3993),
    DatasetRecord("LLMs4Subjects-dev-en", "xmlc", 5584, 1253, 18877, 7863),
    DatasetRecord("LastFM-ArtistTags", "xmlc", 9706, 2390, 13058, 8583),
    DatasetRecord("MovieLens-small-users", "xmlc", 7253, 1813, 8119, 671),
    DatasetRecord("Wikispeedia-Links", "xmlc", 3668, 917, 20000, 4018),
    DatasetRecord("YSO-FinnaTitles-27K", "xmlc", 521753, 129743, 80513, 27134),
    DatasetRecord("cooking_stackexchange", "text", 15404, None, None, 736),
    DatasetRecord("fashion_styles", "text", 44439, None, None, 585),
    DatasetRecord("product_attribute_values", "text", 4035, None, None, 5805),
)
# Files of the sets without a split, in the order of their rows, and who reads them.
_TEXT_SETS: dict[str, tuple[tuple[str, ...], Callable[..., Dataset]]] = {
    "cooking_stackexchange": (("cooking.stackexchange.txt",), read_table),
    "fashion_styles": (("styles.csv",), read_fashion_styles),
    "product_attribute_values": (
        ("oa-mine.train.jsonl", "oa-mine.test.jsonl", "ae-110k.train.jsonl", "ae-110k.test.jsonl"),
        read_attribute_values,
    ),
}


def list_datasets(data_dir: PathLike | None = None) -> list[DatasetRecord]:
    """The known sets, with their place where they are available, and further ones found in the folder.

    Examples
    --------
    >>> [r.name for r in list_datasets("/nonexistent") if r.n_labels == 6]
    ['emotions', 'scene']
    """
    folder = _data_dir(data_dir)
    found = {
        (task, path.name): path
        for task in TASKS
        if folder is not None and (folder / task).is_dir()
        for path in sorted((folder / task).iterdir())
        if _split_file(path, "train") is not None
    }
    found |= {
        ("text", name): folder / "text" / name
        for name, (files, _) in _TEXT_SETS.items()
        if folder is not None and all(plain_or_compressed(folder / "text" / name / file) for file in files)
    }
    records = [replace(r, path=found.pop((r.task, r.name), None)) for r in KNOWN]
    return records + [_described_by_meta(task, path) for (task, _), path in found.items()]


def get(name: str, *, data_dir: PathLike | None = None) -> Path:
    """The folder of a named set.

    Raises
    ------
    ValueError
        If there is no such set; close matches are named.
    FileNotFoundError
        If it is known, but not in the folder. None of the sets has a stable public address with a known
        checksum, so nothing is downloaded; the message says where to put the files.
    """
    records = list_datasets(data_dir)
    record = next((r for r in records if r.name == name), None)
    if record is None:
        close = difflib.get_close_matches(name.lower(), [r.name.lower() for r in records], n=3, cutoff=0.5)
        names = [r.name for r in records if r.name.lower() in close] or [r.name for r in records]
        hint = "did you mean" if close else "known are"
        raise ValueError(f"there is no data set {name!r}; {hint} {', '.join(names)}")
    if record.path is None:
        folder = _data_dir(data_dir)
        where = f"{ENVIRONMENT_VARIABLE} (or data_dir), which is not set" if folder is None else f"{folder}"
        files = ", ".join(_TEXT_SETS[name][0]) if name in _TEXT_SETS else "its train and test files"
        raise FileNotFoundError(
            f"the data set {name!r} is not in {where}: put {files} into "
            f"{record.task}/{name}/ there; data/README.md names the source"
        )
    return record.path


def load_named(
    name: str,
    split: Literal["train", "test", "all"] = "train",
    *,
    data_dir: PathLike | None = None,
    grades: bool | Literal["auto"] = "auto",
    verify: bool = True,
    n_jobs: int | None = None,
) -> Dataset:
    """Read one part of a named set, or the whole of one without a split.

    Parameters
    ----------
    name : str
        See `list_datasets`.
    split : "train" or "test"; "all" for the sets of raw text, which have no split
    data_dir : path or None
        Folder of the sets; None: the environment variable METARANK_DATA.
    grades, n_jobs
        See `load`.
    verify : bool
        Whether to compare the files with the sha256 sums of `META.json`, where there is one.

    Raises
    ------
    ValueError
        Unknown name or split, a file that does not agree with its checksum, malformed content.
    FileNotFoundError
        If the set is not in the folder.
    """
    folder = get(name, data_dir=data_dir)
    splits = ("all",) if name in _TEXT_SETS else ("train", "test")
    if split not in splits:
        rule = " or ".join(map(repr, splits))
        raise ValueError(f"split must be {rule} for the data set {name!r}, got {split!r}")
    if name in _TEXT_SETS:
        if verify:
            _verify(folder)
        files, read = _TEXT_SETS[name]
        table: Dataset = read(*(plain_or_compressed(folder / file) for file in files))
        return replace(table, name=name)
    path = _split_file(folder, split)
    if path is None:
        raise FileNotFoundError(f"{folder}: there is no {split} file")
    if verify:
        _verify(folder)
    return load(path, grades=grades, name=name, n_jobs=n_jobs)


def _data_dir(data_dir: PathLike | None) -> Path | None:
    chosen = data_dir if data_dir is not None else os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(chosen) if chosen else None


def _split_file(folder: Path, split: str) -> Path | None:
    places = (plain_or_compressed(folder / f"{split}{extension}") for extension in (".svm", ".txt"))
    return next((place for place in places if place is not None), None)


def _meta(folder: Path) -> dict[str, Any]:
    path = folder / "META.json"
    try:
        content = parse_json(raw_bytes(path).decode("utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise ValueError(f"{path}: not JSON: {error}") from None
    return content if isinstance(content, dict) else {}


def _described_by_meta(task: str, folder: Path) -> DatasetRecord:
    meta = _meta(folder)
    sizes = (meta.get(key) for key in ("n_train", "n_test", "n_features", "n_labels"))
    n_train, n_test, n_features, n_labels = (s if isinstance(s, int) else None for s in sizes)
    return DatasetRecord(folder.name, task, n_train, n_test, n_features, n_labels, folder)


def _verify(folder: Path) -> None:
    there = {path.name: path for path in folder.iterdir() if path.is_file()}
    for file, expected in _sums(folder).items():
        if file not in there:
            raise ValueError(f"{folder}: {file!r:.80} is listed in META.json, but not there")
        check_present(there[file])
        with open(there[file], "rb") as f:
            found = hashlib.file_digest(f, "sha256").hexdigest()
        if found != expected:
            raise ValueError(
                f"{there[file]}: sha256 is {found}, META.json says {' '.join(str(expected).split()):.80}"
            )


def _sums(folder: Path) -> dict[str, str]:
    meta = _meta(folder)
    try:
        sums: dict[str, str] = dict(meta.get("sha256", {}))
        files = meta.get("files", {})
        # By name, or a list whose entries name their file.
        entries = [(e["file"], e) for e in files] if isinstance(files, list) else list(files.items())
        return sums | {file: entry["sha256"] for file, entry in entries}
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{folder / 'META.json'}: sha256 and files must tell the sum of each file, got {error!r}"
        ) from None
