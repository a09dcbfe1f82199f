"""Results kept between runs: an interrupted run resumes, a changed method is measured anew."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).with_name("cache")

Result = dict[str, Any]


class Cache:
    """One JSON file of numbers and one file of arrays for each (set, method).

    Parameters
    ----------
    fresh : bool
        Ignore what is there.
    """

    def __init__(self, *, fresh: bool = False, folder: Path = FOLDER) -> None:
        self.fresh = fresh
        self.folder = folder

    def get(self, set_name: str, method: str, key: str, compute: Callable[[], Result]) -> Result:
        """The kept result where `key` is the same, or the one computed now. Arrays stay arrays."""
        stem = self.folder / f"{set_name}--{method}"
        numbers, arrays = stem.with_suffix(".json"), stem.with_suffix(".npz")
        if not self.fresh and numbers.is_file() and arrays.is_file():
            kept = json.loads(numbers.read_text())
            if kept["key"] == key:
                with np.load(arrays, allow_pickle=False) as file:
                    return {**kept["numbers"], **{name: file[name] for name in file.files}}
        result = compute()
        is_array = {name: isinstance(value, np.ndarray) for name, value in result.items()}
        self.folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(arrays, **{n: v for n, v in result.items() if is_array[n]})
        plain = {n: v for n, v in result.items() if not is_array[n]}
        numbers.write_text(json.dumps({"key": key, "numbers": plain}, indent=1) + "\n")
        return result

    def has(self, set_name: str, method: str, key: str) -> bool:
        """Whether `get` would compute nothing."""
        stem = self.folder / f"{set_name}--{method}"
        numbers = stem.with_suffix(".json")
        return (
            numbers.is_file()
            and stem.with_suffix(".npz").is_file()
            and json.loads(numbers.read_text())["key"] == key
        )


@functools.cache
def source_digest(paths: tuple[Path, ...]) -> str:
    """sha256 of source files and of those in folders, as they were when first asked for.

    A method's result is kept as long as its sources are the same.
    """
    digest = hashlib.sha256()
    for path in paths:
        inside = sorted(p for suffix in ("py", "cpp", "h") for p in path.rglob(f"*.{suffix}"))
        for file in inside if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()
