"""What reads files of models, and requests, as targets: seeds are in folders of `corpus/readers`."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.mutate import mutate_bytes, mutate_json
from fuzz.uses import Failure, outline, refuse_memory_error

CORPUS = Path(__file__).parent / "corpus"


class ReaderTarget:
    """Mutants of files that a reader reads; it may refuse them by `ValueError` alone."""

    def __init__(self, name: str, read: Callable[[Path], Any]) -> None:
        self.name = f"reader: {name}"
        self.seeds = [(p.name, p.read_bytes()) for p in sorted((CORPUS / "readers" / name).iterdir())]
        self.read = read

    def warm_up(self, scratch: Path) -> None:
        """Read every seed as it is, so that no mutant waits for what the first call imports."""
        for name, content in self.seeds:
            (scratch / name).write_bytes(content)
            with contextlib.suppress(ValueError):
                self.read(scratch / name)

    def run(self, rng: random.Random, scratch: Path) -> str:
        name, content = rng.choice(self.seeds)
        path = scratch / name
        if name.endswith(".json") and rng.random() < 0.7:
            changed = mutate_json(json.loads(content), rng)
            path.write_bytes(json.dumps(changed).encode("utf-8", "surrogatepass"))
        else:
            path.write_bytes(mutate_bytes(content, rng))
        try:
            self.read(path)
        except ValueError as error:
            refuse_memory_error(error)
            if "\n" in str(error):
                raise Failure(f"more than one line: {error}") from error
            return outline(error)
        return "ok"


def reader_targets() -> list[ReaderTarget]:
    """Every reader."""
    return [ReaderTarget(name, read) for name, read in READERS.items()]


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


READERS: dict[str, Callable[[Path], Any]] = {"tensors": _read_tensors, "npy": _read_npy, "requests": _request}
