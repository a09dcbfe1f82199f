"""Model folders: `save` writes one, completely or not at all; `load` reads one, which is untrusted input.

The manifest lists each file with its size and digest, and carries a digest of itself.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from metarank._util.files import can_be_written, of_one_moment, whole_folder
from metarank._util.npy import map_npy
from metarank._util.version import __version__
from metarank.persist.card import README, is_card, with_words_of
from metarank.persist.fields import check_csr
from metarank.persist.hub import HUB, fetched
from metarank.persist.spec import Saved, restored
from metarank.persist.tensors import Tensors, read_tensors, write_tensors
from metarank.persist.trust import (
    LIMITS,
    TOGETHER,
    Limits,
    ModelError,
    Stored,
    class_of,
    declared_sizes_up_to,
    known_class,
)

FORMAT = "metarank-model"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
# The process, or the machine, has reached its limit of open files.
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
# Longer values get their own file, so that the manifest stays readable.
_INLINE_CHARACTERS = 2000
_INLINE_STRINGS = 50

PathLike = str | os.PathLike[str]


# --- writing -------------------------------------------------------------------------


def save(model: Any, path: PathLike, card: str | None = None) -> None:
    """Write `model` to the folder `path`, completely or not at all, with a card beside it if there is one.

    The new folder is written next to `path`, synced to disk, and then renamed. On Linux, a process that is
    killed at any moment therefore leaves either the earlier model or the new one. It may also leave a hidden
    folder `.metarank-...` next to `path`, which can be deleted.

    Raises
    ------
    ValueError
        If `path` exists and is not a saved model (or an empty folder).
    OSError
        If the disk is full or not writable. The earlier model is untouched.
    """
    target = check_target(path)
    with whole_folder(target) as folder:
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
        pages = {MANIFEST: json.dumps(manifest, indent=1, ensure_ascii=False).encode()}
        if card is not None:
            pages[README] = with_words_of(target / README, card)
        for name, content in pages.items():
            with open(folder / name, "wb") as f:
                f.write(content)
                f.flush()
                os.fsync(f.fileno())


def check_target(path: PathLike) -> Path:
    """The folder that a model may be written to: new, empty, or an earlier model. Follows symbolic links.

    Raises
    ------
    ValueError, OSError
        If anything else is at `path`, or it is not writable.
    """
    target = Path(path).resolve()
    if target.exists():
        _check_replaceable(target, path)
    can_be_written(target)
    return target


@of_one_moment
def _check_replaceable(target: Path, path: PathLike) -> None:
    """ValueError unless it is an empty folder, or a model and nothing beside it but its card.

    A folder whose manifest cannot be read, or is that of another program, is not a model.
    """
    names = {p.name for p in target.iterdir() if not is_card(p)} if target.is_dir() else {""}
    if not names:
        return
    try:
        manifest = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
        listed = {MANIFEST, *manifest["files"]} if manifest["format"] == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        listed = None
    if listed is None:
        raise ValueError(f"a model needs a new folder or that of an earlier model, got {str(path)!r}")
    if names - listed:
        raise ValueError(
            f"a model replaces an earlier model and nothing else, but {str(path)!r} also holds "
            f"{min(names - listed)!r}: move it away first"
        )


class Writer:
    """Encodes a model as JSON values and writes large values to files in `folder`.

    `files` holds the entries of the manifest, by file name. Equal contents share a file.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, dict[str, Any]] = {}
        self.name_of_content: dict[tuple[str, str], str] = {}

    def add(self, stem: str, suffix: str, write: Callable[[IO[bytes]], Any]) -> str:
        """The name of the file that `write` fills, or of an earlier one of the same content."""
        base = "".join(c if c.isalnum() or c in "-_." else "-" for c in stem).strip(".-") or "value"
        name, n = f"{base}{suffix}", 2
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
        if isinstance(value, (np.bool_, np.number)):
            value = value.item()
        is_long = isinstance(value, str) and len(value) > _INLINE_CHARACTERS
        if isinstance(value, (list, tuple)) and len(value) > _INLINE_STRINGS:
            is_long = all(isinstance(v, str) for v in value)
        if is_long:
            text = json.dumps(value, ensure_ascii=False)
            return {"__json__": self.add(at, ".json", lambda f: f.write(text.encode()))}
        if value is None or isinstance(value, (bool, str, int)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"__float__": repr(value)}
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise TypeError(f"{at}: object arrays cannot be saved")
            array = np.ascontiguousarray(value).reshape(value.shape)
            name = self.add(at, ".npy", lambda f: np.save(f, array, allow_pickle=False))
            return {"__array__": name, "dtype": array.dtype.str, "shape": list(array.shape)}
        if sp.issparse(value):
            m = sp.csr_matrix(value)
            parts = [(name, getattr(m, name)) for name in ("data", "indices", "indptr")]
            return {"__csr__": [self.encode(p, f"{at}.{n}") for n, p in parts], "shape": list(m.shape)}
        if isinstance(value, (list, tuple)):
            return [self.encode(v, f"{at}.{i}") for i, v in enumerate(value)]
        if isinstance(value, Tensors):
            return {"__tensors__": self.add(at, ".safetensors", lambda f: write_tensors(f, value))}
        if isinstance(value, dict):
            if not all(isinstance(k, str) and not k.startswith("__") for k in value):
                raise TypeError(f"{at}: keys must be strings that do not start with '__'")
            return {k: self.encode(v, f"{at}.{k}") for k, v in value.items()}
        name, get_state = type(value).__name__, getattr(value, "get_state", None)
        if get_state is None:
            raise TypeError(f"{at}: a value of type {name} cannot be saved")
        if known_class(name) is not type(value):
            raise ModelError(f"{at}: class {name!r} must be marked by metarank.persist.register to be saved")
        return {"__object__": name, "state": self.encode(get_state(), at)}


# --- the manifest ----------------------------------------------------------------------


@of_one_moment
def read_manifest(path: PathLike, *, verify: bool = True, limits: Limits = LIMITS) -> dict[str, Any]:
    """The manifest of a model folder.

    Raises
    ------
    ModelError
        If the folder is not a model or is of another format; with `verify`, if any file is damaged, missing,
        a link or not listed.
    """
    folder = Path(path)
    manifest = _decoded(folder, limits)
    if not verify:
        return manifest
    present, listed = {p.name: is_card(p) for p in folder.iterdir()}, set(manifest["files"])
    for name in sorted(listed - present.keys()):
        raise ModelError(f"{str(folder)!r} is incomplete: {name!r} is missing")
    for name in sorted(present.keys() - listed - {MANIFEST}):
        if not present[name]:
            raise ModelError(f"{str(folder)!r} holds {name!r}, which is not part of the model")
    for name, entry in manifest["files"].items():
        _check_size(folder / name, entry["bytes"])
        if sha256_of(folder / name) != entry["sha256"]:
            raise ModelError(f"{str(folder / name)!r} is damaged: its checksum does not match the manifest")
    return manifest


def _decoded(folder: Path, limits: Limits) -> dict[str, Any]:
    """The manifest, checked by itself."""
    path = folder / MANIFEST
    name = repr(str(path))
    if not os.path.lexists(path):
        reason = f"it has no {MANIFEST}" if os.path.lexists(folder) else f"there is no folder {str(folder)!r}"
        raise ModelError(f"{str(folder)!r} is not a metarank model: {reason}")
    size = _regular_file(path).st_size
    if size > limits.manifest_bytes:
        raise ModelError(
            f"{name} has {size} bytes, more than {limits.manifest_bytes}: if you trust it, pass larger "
            "persist.Limits to metarank.load"
        )
    try:
        manifest: dict[str, Any] = parsed(path.read_text(encoding="utf-8"))
        form, version, digest = manifest["format"], manifest["format_version"], manifest["digest"]
        files = {key: (entry["bytes"], entry["sha256"]) for key, entry in manifest["files"].items()}
        _, actual = manifest["model"], digest_of(manifest)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ModelError(f"{name} is damaged: {_one_line(error)}") from None
    if form != FORMAT:
        raise ModelError(f"{str(folder)!r} is not a metarank model: its format is {form!r:.80}")
    if type(version) is not int or version != FORMAT_VERSION:
        raise ModelError(
            f"{str(folder)!r} has format version {version!r:.80}; this metarank ({__version__}) reads "
            f"{FORMAT_VERSION}: fit and save the model again"
        )
    if _is_deeper(manifest, limits.depth):
        raise ModelError(f"{name} is nested deeper than {limits.depth}")
    if len(files) > limits.files:
        raise ModelError(f"{name} lists more than {limits.files} files")
    if digest != actual:
        raise ModelError(f"{name} is damaged: its digest does not match")
    for key, (n_bytes, sha256) in files.items():
        # A plain name on every system, and not that of the manifest.
        if key in ("", ".", "..", MANIFEST) or any(c in key for c in "/\\:\0"):
            raise ModelError(f"{name} lists {key!r:.80}, which is not a name of a file")
        if type(n_bytes) is not int or n_bytes < 0 or not isinstance(sha256, str):
            raise ModelError(f"{name} is damaged: the entry of {key!r:.80} is wrong")
    return manifest


def parsed(text: str) -> Any:
    """Parse JSON; ValueError for NaN and Infinity, which are not JSON."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a number of JSON")

    return json.loads(text, parse_constant=refuse)


def _is_deeper(value: Any, limit: int) -> bool:
    """Whether lists and mappings are nested deeper than this. Does not recurse."""
    level = [value]
    for _ in range(limit + 1):
        children = (parent.values() if isinstance(parent, dict) else parent for parent in level)
        level = [child for some in children for child in some if isinstance(child, (dict, list))]
    return bool(level)


def _regular_file(path: Path) -> os.stat_result:
    """The status of a regular file; ModelError if it is missing, a link, a pipe or a folder."""
    try:
        status = path.lstat()
    except OSError as error:
        raise ModelError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise ModelError(f"{str(path)!r} is damaged: it is not a regular file")
    return status


def _check_size(path: Path, n_bytes: int) -> None:
    """ModelError unless it is a regular file of this size."""
    size = _regular_file(path).st_size
    if size != n_bytes:
        raise ModelError(f"{str(path)!r} is damaged: {size} bytes, the manifest says {n_bytes}")


def _one_line(error: BaseException) -> str:
    """The message of an error, on one line of moderate length."""
    text = f"no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    return " ".join(text.split())[:500]


def sha256_of(path: Path) -> str:
    """SHA-256 of the content of a file, in hexadecimal."""
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def digest_of(manifest: dict[str, Any]) -> str:
    """SHA-256 of all entries except `digest`, in sorted order; an error for text that UTF-8 cannot write."""
    content = {k: v for k, v in manifest.items() if k != "digest"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


# --- reading -------------------------------------------------------------------------


def load(path: PathLike, verify: bool = True, *, encoder: Any = None, limits: Limits = LIMITS) -> Any:
    """Read a saved model. Large arrays are memory-mapped: several processes share one copy.

    The folder may be untrusted: loading and using the model runs no code from the folder and reads no file
    outside it, except the encoder of texts that it names. That is loaded by its library from this machine,
    and a folder only if it holds plain modules and safetensors; `encoder` loads what you name instead. The
    folder must not change while the model is in use.

    Parameters
    ----------
    path : path-like or str
        Folder written by ``model.save``, or "hf://OWNER/NAME" or "hf://OWNER/NAME@REVISION": a repository of
        the Hugging Face hub (extra ``hub``), of which only the model's own files are downloaded.
    verify : bool
        Check every file against its digest first, which reads all bytes once. With False, damage that leaves
        the model well-formed goes unnoticed; types, sizes and all indices into arrays are always checked.
        Search indexes are built on first use.
    encoder : as in `MetaRanker`, optional
        The encoder of texts of a model that was fitted with an object, or another path of it. By default it
        is loaded by name, only from this machine; a warning appears if it is missing or different.
    limits : persist.Limits
        Limits on what the folder may allocate.

    Returns
    -------
    MetaRanker, MultiObjectiveRanker, ThresholdLearner, LabelEmbedder or a shortlister
        The object that was saved.

    Raises
    ------
    metarank.persist.ModelError (a ValueError)
        If the folder is damaged, has missing or extra files, is not a model, or holds values that its classes
        refuse. The message names the part.
    OSError
        If the process has reached its limit of open files (``ulimit -n``). Each array of more than 64 KiB
        needs one.
    """
    if not isinstance(limits, Limits):
        raise TypeError(f"limits must be persist.Limits, got {limits!r:.80}")
    if isinstance(path, str) and path.startswith(HUB):
        path = fetched(
            path, MANIFEST, lambda folder: read_manifest(folder, verify=False, limits=limits)["files"]
        )
    model = _read(path, verify, limits)
    if not hasattr(model, "get_state"):
        raise ModelError(f"{str(path)!r} holds a {type(model).__name__}, and no model")
    if isinstance(model, Saved):
        model.make_ready(encoder)
    return model


@of_one_moment
def _read(path: PathLike, verify: bool, limits: Limits) -> Any:
    folder = Path(path)
    manifest = read_manifest(folder, verify=verify, limits=limits)
    sizes = {name: entry["bytes"] for name, entry in manifest["files"].items()}
    try:
        with declared_sizes_up_to(limits.declared, TOGETHER * limits.declared):
            model = Reader(folder, sizes).decode(manifest["model"])
            return model.read({}) if isinstance(model, Stored) else model
    except Exception as error:
        if isinstance(error, ImportError) or getattr(error, "errno", None) in _NO_DESCRIPTOR:
            raise
        raise ModelError(f"{str(path)!r} cannot be read: {_one_line(error)}") from error


class Reader:
    """The inverse of `Writer`.

    A file that several parts of a model share is read once, and equal objects become one object. `files`
    holds the sizes that the manifest lists, by file name.
    """

    def __init__(self, folder: Path, files: dict[str, int]) -> None:
        self.folder = folder
        self.files = files
        self.contents: dict[tuple[str, Callable[[Path], Any]], Any] = {}
        self.objects: dict[str, Stored] = {}

    def decode(self, value: Any, at: str = "model") -> Any:
        if isinstance(value, list):
            return [self.decode(v, f"{at}.{i}") for i, v in enumerate(value)]
        if not isinstance(value, dict):
            return value
        kinds = [key for key in value if key.startswith("__")]
        if not kinds:
            return {k: self.decode(v, f"{at}.{k}") for k, v in value.items()}
        decode = _DECODERS.get(kinds[0]) if len(kinds) == 1 else None
        if decode is None:
            raise ModelError(f"{at} is of no known kind")
        with _naming_part(at):
            return decode(self, value, at)

    def object(self, value: dict[str, Any], at: str) -> Stored:
        key = json.dumps(value)
        if key not in self.objects:
            name, state = value["__object__"], value.get("state")
            if not isinstance(name, str) or not isinstance(state, dict):
                raise ModelError(f"{at} must be a class by its name and a state")
            cls: Any = class_of(name)
            decoded = self.decode(state, at)

            def make(sizes: dict[str, int]) -> Any:
                with _naming_part(f"{at}, of class {name}"):
                    return restored(cls, decoded, sizes)

            self.objects[key] = Stored(cls, make)
        return self.objects[key]

    def array(self, value: dict[str, Any], at: str) -> np.ndarray:
        array: np.ndarray = self.once(value["__array__"], map_npy)
        if array.dtype.str != value["dtype"] or list(array.shape) != value["shape"]:
            raise ModelError(
                f"{at}: {value['__array__']!r} holds {array.dtype.str} {array.shape}, the manifest says "
                f"{value['dtype']!r:.80} {value['shape']!r:.80}"
            )
        return array

    def csr(self, value: dict[str, Any], at: str) -> sp.csr_matrix:
        data, indices, indptr = (self.decode(part, at) for part in value["__csr__"])
        n_rows, n_columns = value["shape"]
        for part in (data, indices, indptr):
            if not isinstance(part, np.ndarray) or part.ndim != 1:
                raise ModelError(f"{at}: a sparse matrix has three arrays of one dimension")
        if not all(type(n) is int and 0 <= n < 2**31 for n in (n_rows, n_columns)):
            raise ModelError(f"{at}: the shape of a sparse matrix must be two sizes below 2^31")
        if len(indptr) != n_rows + 1 or len(data) != len(indices):
            raise ModelError(f"{at}: the arrays of a sparse matrix must fit its shape and each other")
        if not all(part.dtype in (np.int32, np.int64) for part in (indices, indptr)):
            raise ModelError(f"{at}: the indices of a sparse matrix must be int32 or int64")
        check_csr(indptr, indices, n_columns, at)
        m = sp.csr_matrix((n_rows, n_columns), dtype=data.dtype)
        m.data, m.indices, m.indptr = data, indices, indptr
        m.has_sorted_indices = m.has_canonical_format = True
        return m

    def strings(self, value: dict[str, Any], at: str) -> Any:
        strings = self.once(value["__json__"], _strings)
        return list(strings) if isinstance(strings, list) else strings

    def tensors(self, value: dict[str, Any], at: str) -> Any:
        return self.once(value["__tensors__"], read_tensors)

    def number(self, value: dict[str, Any], at: str) -> float:
        if value["__float__"] not in ("inf", "-inf", "nan"):
            raise ModelError(f"{at} must be a number, 'inf', '-inf' or 'nan'")
        return float(value["__float__"])

    def once(self, name: Any, read: Callable[[Path], Any]) -> Any:
        """The content of a file of the folder, read once."""
        if not isinstance(name, str) or name not in self.files:
            raise ModelError(f"the manifest names {name!r:.80}, which it does not list as a file")
        if (name, read) not in self.contents:
            _check_size(self.folder / name, self.files[name])
            self.contents[name, read] = read(self.folder / name)
        return self.contents[name, read]


def _strings(path: Path) -> str | list[str]:
    strings = parsed(path.read_text(encoding="utf-8"))
    if not all(isinstance(s, str) for s in (strings if isinstance(strings, list) else [strings])):
        raise ValueError(f"{path.name!r} must be a string or a list of strings")
    json.dumps(strings, ensure_ascii=False).encode()  # an error for a lone surrogate, which UTF-8 has not
    return strings


@contextmanager
def _naming_part(part: str) -> Iterator[None]:
    """Name the part of the model that an error is of."""
    try:
        yield
    except (ModelError, ImportError, OSError):
        raise
    except Exception as error:
        raise ModelError(f"{part}: {_one_line(error)}") from error


_DECODERS: dict[str, Callable[[Reader, dict[str, Any], str], Any]] = {
    "__object__": Reader.object,
    "__array__": Reader.array,
    "__csr__": Reader.csr,
    "__json__": Reader.strings,
    "__tensors__": Reader.tensors,
    "__float__": Reader.number,
}
