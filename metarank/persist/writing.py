"""`save`: write a model to a folder, completely or not at all."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank._util.files import can_be_written, of_one_moment, whole_folder
from metarank._util.version import __version__
from metarank.persist.classes import ModelError, class_of
from metarank.persist.manifest import FORMAT, FORMAT_VERSION, MANIFEST, digest_of, one_line
from metarank.persist.tensors import Tensors, write_tensors

# Longer values get their own file, so that the manifest stays readable.
_INLINE_CHARACTERS = 2000
_INLINE_STRINGS = 50


class Writer:
    """Encodes a model as JSON values and writes large values to files in `folder`.

    `files` holds the entries of the manifest, by file name. Equal contents share a file.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, dict[str, Any]] = {}
        self.name_of_content: dict[tuple[str, str], str] = {}

    def add(self, stem: str, suffix: str, write: Any) -> str:
        base = "".join(c if c.isalnum() or c in "-_." else "-" for c in stem).strip(".-") or "value"
        name = f"{base}{suffix}"
        n = 2
        while name in self.files:
            name, n = f"{base}-{n}{suffix}", n + 1
        path = self.folder / name
        with open(path, "w+b") as f:
            write(f)
            f.flush()
            f.seek(0)
            sha256 = hashlib.file_digest(f, "sha256").hexdigest()
            earlier = self.name_of_content.setdefault((suffix, sha256), name)
            if earlier == name:
                os.fsync(f.fileno())
        if earlier != name:
            path.unlink()
            return earlier
        self.files[name] = {"bytes": path.stat().st_size, "sha256": sha256}
        return name

    def encode(self, value: Any, at: str) -> Any:
        if value is None or isinstance(value, (bool, str, int)):
            if isinstance(value, str) and len(value) > _INLINE_CHARACTERS:
                return {"__text__": self.add(at, ".txt", lambda f: f.write(value.encode()))}
            return value
        if isinstance(value, (np.bool_, np.integer)):
            return value.item()
        if isinstance(value, (float, np.floating)):
            x = float(value)
            return x if math.isfinite(x) else {"__float__": repr(x)}
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise TypeError(f"{at}: object arrays cannot be saved")
            array = np.ascontiguousarray(value).reshape(value.shape)
            name = self.add(at, ".npy", lambda f: np.save(f, array, allow_pickle=False))
            return {"__array__": name, "dtype": array.dtype.str, "shape": list(array.shape)}
        if sp.issparse(value):
            m = sp.csr_matrix(value)
            return {
                "__csr__": [
                    self.encode(p, f"{at}.{n}")
                    for n, p in (("data", m.data), ("indices", m.indices), ("indptr", m.indptr))
                ],
                "shape": list(m.shape),
            }
        if isinstance(value, (list, tuple)):
            items = list(value)
            if len(items) > _INLINE_STRINGS and all(isinstance(v, str) for v in items):
                text = json.dumps(items, ensure_ascii=False)
                return {"__strings__": self.add(at, ".json", lambda f: f.write(text.encode()))}
            return [self.encode(v, f"{at}.{i}") for i, v in enumerate(items)]
        if isinstance(value, Tensors):
            return {"__tensors__": self.add(at, ".safetensors", lambda f: write_tensors(f, value))}
        if isinstance(value, dict):
            if not all(isinstance(k, str) and not k.startswith("__") for k in value):
                raise TypeError(f"{at}: keys must be strings that do not start with '__'")
            return {k: self.encode(v, f"{at}.{k}") for k, v in value.items()}
        get_state = getattr(value, "get_state", None)
        if get_state is not None:
            name = type(value).__name__
            try:
                known = class_of(name)
            except ModelError:
                known = None
            if known is not type(value):
                raise ModelError(
                    f"{at}: class {name!r} must be marked with metarank.persist.register to be saved"
                )
            return {"__object__": name, "state": self.encode(get_state(), at)}
        raise TypeError(f"{at}: a value of type {type(value).__name__} cannot be saved")


def check_target(path: str | os.PathLike[str]) -> Path:
    """The folder that a model may be written to: new, empty, or an earlier model. Follows symbolic links.

    Raises
    ------
    ValueError, OSError
        If anything else is at `path`, or it is not writable.
    """
    target = Path(path).resolve()
    if target.exists():
        replaceable, foreign = _what_stands(target)
        if not replaceable:
            raise ValueError(
                f"a model goes to a new folder or replaces an earlier model, {str(path)!r} is neither"
            )
        if foreign is not None:
            raise ValueError(
                f"a model replaces an earlier model and nothing else, but {str(path)!r} also holds "
                f"{foreign!r}: move it away first"
            )
    with _naming(path):
        can_be_written(target)
    return target


@of_one_moment
def _what_stands(target: Path) -> tuple[bool, str | None]:
    """Whether it is a model or an empty folder, and a file in it that the model's manifest does not list.

    A folder whose manifest cannot be read, or is that of another program, is no model.
    """
    if not target.is_dir():
        return False, None
    names = sorted(p.name for p in target.iterdir())
    if MANIFEST not in names or not (target / MANIFEST).is_file():
        return not names, None
    try:
        manifest = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
        listed = set(manifest["files"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return False, None
    if manifest.get("format") != FORMAT:
        return False, None
    return True, next((name for name in names if name not in listed | {MANIFEST}), None)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write `model` to the folder `path`, completely or not at all.

    The new folder is written next to `path`, synced to disk, and then renamed. A process that is killed at
    any moment therefore leaves either the earlier model or the new one. The next save removes what a killed
    process left behind.

    Raises
    ------
    ValueError
        If `path` exists and is not a saved model (or an empty folder).
    OSError
        If the disk is full or not writable. The earlier model is untouched.
    """
    with _naming(path), whole_folder(check_target(path)) as folder:
        writer = Writer(folder)
        root = writer.encode(model, "model")
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "metarank_version": __version__,
            "model": root,
            "files": dict(sorted(writer.files.items())),
        }
        manifest["digest"] = digest_of(manifest)
        with open(folder / MANIFEST, "w", encoding="utf-8") as f:
            json.dump(manifest, f, indent=1, ensure_ascii=False)
            f.flush()
            os.fsync(f.fileno())


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name `path` in errors, not the temporary folder next to it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # raised by numpy
            raise OSError(f"{os.fspath(path)!r} cannot be written: {one_line(error)}") from error
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
