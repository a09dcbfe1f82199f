"""Every reader as a target: a folder of `corpus/readers` holds its seeds; one is mutated at a time."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from fuzz.mutate import mutate_bytes, mutate_json
from fuzz.uses import Failure, outline, refuse_memory_error

CORPUS = Path(__file__).parent / "corpus"


class ReaderTarget:
    """Mutants of files that a reader reads; it may refuse them by `ValueError` alone.

    `together`: the files belong to one another, and `read` is given the folder.
    """

    def __init__(
        self, name: str, seeds: list[tuple[str, bytes]], read: Callable[[Path], Any], together: bool = False
    ) -> None:
        self.name = f"reader: {name}"
        self.seeds = seeds
        self.read = read
        self.together = together

    def warm_up(self, scratch: Path) -> None:
        """Read every seed as it is, so that no mutant waits for what the first call imports."""
        for name, content in self.seeds:
            (scratch / name).write_bytes(content)
        for name, _ in self.seeds:
            with contextlib.suppress(ValueError):
                self.read(scratch if self.together else scratch / name)

    def run(self, rng: random.Random, scratch: Path) -> str:
        name, content = rng.choice(self.seeds)
        if self.together:
            for other, intact in self.seeds:
                (scratch / other).write_bytes(intact)
        path = scratch / name
        if name.endswith(".json") and rng.random() < 0.7:
            changed = mutate_json(json.loads(content), rng)
            path.write_bytes(json.dumps(changed).encode("utf-8", "surrogatepass"))
        else:
            path.write_bytes(mutate_bytes(content, rng))
        try:
            self.read(scratch if self.together else path)
        except ValueError as error:
            refuse_memory_error(error)
            if "\n" in str(error):
                raise Failure(f"more than one line: {error}") from error
            return outline(error)
        return "ok"


def reader_targets() -> list[ReaderTarget]:
    """Every reader."""
    found = [(name, read, False) for name, read in READERS.items()]
    found += [(name, read, True) for name, read in FOLDER_READERS.items()]
    return [ReaderTarget(name, _seeds(name), read, together) for name, read, together in found]


def _seeds(name: str) -> list[tuple[str, bytes]]:
    return [(p.name, p.read_bytes()) for p in sorted((CORPUS / "readers" / name).iterdir())]


def _read_data(path: Path) -> None:
    from metarank import data

    dataset = data.load(path, sidecars=False, n_jobs=1)
    dataset.summary()


def _read_columns(path: Path) -> None:
    from metarank.data.columns import read_columns

    for name in (columns := read_columns(path)).numeric:
        columns.numbers(name, "--columns")


def _read_tensors(path: Path) -> None:
    from metarank.persist.tensors import read_tensors

    tensors = read_tensors(path)
    for values in tensors.values():
        values.sum()


def _read_npy(path: Path) -> None:
    from metarank._util.npy import map_npy

    array = map_npy(path)
    if array.dtype.kind in "biuf":
        array.sum()


def _read_label_lists(path: Path) -> None:
    from metarank.apps.cli._reading import read_label_lists
    from metarank.types.label_table import LabelTable

    read_label_lists(str(path), LabelTable(3, ["the sea", "bread", "7"]), 4, option="--allowed")


def _inspect(path: Path) -> None:
    """The command line: exit code 0, or 2 with one line on stderr."""
    from metarank.apps.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(["inspect", str(path)])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
    if code == 2:
        if len(err.getvalue().strip().splitlines()) != 1:
            raise Failure(f"not one line on stderr: {err.getvalue()[:300]!r}")
        raise ValueError(re.sub(r"\S*/\S*", "PATH", err.getvalue().strip()))
    if code != 0:
        raise Failure(f"exit code {code}: {err.getvalue()[:300]!r}")


def _read_partitions(path: Path) -> None:
    from metarank.distributed import read

    read(str(path), block_bytes=16).collect().summary()


@cache
def _answerer(kind: str) -> Any:
    """What answers requests, of a small model; fitted in the worker, where threads may be started."""
    from fuzz.targets import dense_data, fitted, sparse_data, text_data
    from metarank.apps.serve.answers import Answerer

    model = fitted({"dense": dense_data, "sparse": sparse_data, "text": text_data}[kind])
    return Answerer(model)


def _request(path: Path) -> None:
    """A request's body, named after its path and the kind of model: an answer, or a refusal of the client."""
    from fastapi import HTTPException

    where, kind, _ = path.name.split("-")
    try:
        getattr(_answerer(kind), where)(path.read_bytes())
    except HTTPException as error:
        if error.status_code != 422:
            raise Failure(f"status {error.status_code}: {error.detail}") from None
        raise ValueError(error.detail) from None


def _read_beside(file: str, folder: Path) -> None:
    from metarank import data

    data.load(folder / file, n_jobs=1).summary()


def _read_collection(folder: Path) -> None:
    """A folder of data sets with one of them; its place tells the name."""
    from metarank import data

    place = folder / "sets" / "mlc" / "own"
    place.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file():
            (place / path.name).write_bytes(path.read_bytes())
    data.list_datasets(folder / "sets")
    data.load_named("own", data_dir=folder / "sets", n_jobs=1)


READERS: dict[str, Callable[[Path], Any]] = {
    "xc": _read_data,
    "arff": _read_data,
    "columns": _read_columns,
    "partitions": _read_partitions,
    "label-lists": _read_label_lists,
    "tensors": _read_tensors,
    "npy": _read_npy,
    "command-line": _inspect,
    "requests": _request,
}
# Files that are read together.
FOLDER_READERS: dict[str, Callable[[Path], Any]] = {
    "beside-text": partial(_read_beside, "train.txt"),
    "beside-table": partial(_read_beside, "train.csv"),
    "beside-arff": partial(_read_beside, "train.arff"),
    "collection": _read_collection,
}
