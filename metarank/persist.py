"""Saved models: a versioned folder, checksums, memory-mapped arrays, no pickle.

A model is a tree of dicts, lists, numbers, strings, arrays, CSR matrices and
objects of registered classes. Arrays become ``.npy`` files, weights of
networks ``.safetensors``, long texts ``.txt``
and long lists of strings ``.json``; everything else stands in ``manifest.json``,
which lists each file with its size and SHA-256 and carries a digest of itself.
Equal contents, such as the training rows that several scorers keep, share a file.

A folder is untrusted input: digests tell damage, not malice. So nothing of it is run, classes come from the
register alone, sizes are compared with those of the files before anything is allocated (`Limits`), and each
class checks dtype, shape, range and fit of what it is given (`metarank._state`).
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank._files import can_be_written, of_one_moment, whole_folder
from metarank._npy import map_npy
from metarank._state import check_csr, declared_sizes_up_to
from metarank._tensors import Tensors, read_tensors, write_tensors
from metarank._version import __version__

FORMAT = "metarank-model"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"

# Longer values get a file of their own, so that the manifest stays a page one can read.
_INLINE_CHARACTERS = 2000
_INLINE_STRINGS = 50

_BUILT_IN = {
    "MetaRanker": "metarank.pipeline",
    "MultiObjectiveRanker": "metarank.multi_objective.ranker",
    "LabelEmbedder": "metarank.text.embedder",
    "InputEncoder": "metarank.encoder",
    "PackedStrings": "metarank._strings",
    "FeatureTransform": "metarank.features.transform",
    "TextVectorizer": "metarank.data.vectorizer",
    "LabelNeighbors": "metarank.scorers.neighbors",
    "NeighborShortlister": "metarank.scorers.neighbors",
    "Centroids": "metarank.scorers.centroid",
    "LabelPrior": "metarank.scorers.prior",
    "TailClassifiers": "metarank.scorers.tail",
    "NameScorer": "metarank.scorers.names",
    "SpellingScorer": "metarank.scorers.names",
    "NameEmbedder": "metarank.scorers.name_embedder",
    "ObjectiveScorer": "metarank.scorers.objective",
    "KernelRidge": "metarank.scorers.kernel_ridge",
    "KernelSVM": "metarank.scorers.kernel_svm",
    "ExtraTrees": "metarank.scorers.forest",
    "OneVsAll": "metarank.scorers.one_vs_all",
    "LinearClassifier": "metarank.scorers.linear",
    "BoostedTrees": "metarank.scorers.boosted",
    "Parabel": "metarank.scorers.parabel",
    "XReg": "metarank.scorers.xreg",
    "FastXML": "metarank.scorers.instance_tree",
    "PfastXML": "metarank.scorers.instance_tree",
    "PfastreXML": "metarank.scorers.pfastrexml",
    "KeptScorer": "metarank.scorers.kept",
}
_REGISTERED: dict[str, type] = {}


class ModelError(ValueError):
    """A model folder that is damaged, incomplete, or not a model."""


def register(cls: type) -> type:
    """Make a class with `get_state` and `from_state` part of what can be saved and loaded.

    Use it as a decorator on scorers of your own; the module that defines them
    must be imported before `metarank.load`.
    """
    if cls.__name__ in _BUILT_IN and cls.__module__ != _BUILT_IN[cls.__name__]:
        raise ValueError(f"a class to be saved must have a name of its own, {cls.__name__!r} is metarank's")
    _REGISTERED[cls.__name__] = cls
    return cls


def _class_of(name: str) -> type:
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name in _BUILT_IN:
        cls: type = getattr(importlib.import_module(_BUILT_IN[name]), name)
        return cls
    raise ModelError(
        f"the model holds an object of class {name!r}, which is not known here: import the module "
        "that defines it and mark the class with metarank.persist.register first"
    )


# --- writing ---------------------------------------------------------------


class _Writer:
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
            if _class_of(name) is not type(value):
                raise TypeError(
                    f"{at}: class {name!r} must be marked with metarank.persist.register to be saved"
                )
            return {"__object__": name, "state": self.encode(get_state(), at)}
        raise TypeError(f"{at}: a value of type {type(value).__name__} cannot be saved")


def check_target(path: str | os.PathLike[str]) -> Path:
    """The folder a model may be written to: new, empty, or an earlier model; symbolic links are followed.

    Raises
    ------
    ValueError, OSError
        If anything else stands at `path`, or nothing can be written there.
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
    """Whether it is a model or an empty folder, and a file in it that the model's manifest does not list."""
    if not target.is_dir():
        return False, None
    names = sorted(p.name for p in target.iterdir())
    if MANIFEST not in names or not (target / MANIFEST).is_file():
        return not names, None
    try:
        listed = set(json.loads((target / MANIFEST).read_text(encoding="utf-8"))["files"])
    except (ValueError, KeyError, TypeError):
        return True, None  # no telling
    return True, next((name for name in names if name not in listed | {MANIFEST}), None)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write `model` to the folder `path`, whole or not at all.

    The folder is written beside its final place and renamed; a model that stood
    there before stays until the new one is complete and on the disk, so that a process killed at any
    moment leaves the one or the other. What it left beside is removed by the next save.

    Raises
    ------
    ValueError
        If `path` exists and is not a saved model (or an empty folder).
    OSError
        If the disk is full or not writable; what was there before is untouched.
    """
    with _naming(path), whole_folder(check_target(path)) as folder:
        writer = _Writer(folder)
        root = writer.encode(model, "model")
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "metarank_version": __version__,
            "model": root,
            "files": dict(sorted(writer.files.items())),
        }
        manifest["digest"] = _digest(manifest)
        with open(folder / MANIFEST, "w", encoding="utf-8") as f:
            json.dump(manifest, f, indent=1, ensure_ascii=False)
            f.flush()
            os.fsync(f.fileno())


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """What cannot be written is the model at `path`, not the place beside it that its user never named."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # numpy counts what it could not write
            raise OSError(f"{os.fspath(path)!r} cannot be written: {_one_line(error)}") from error
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


# --- reading ---------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """What a model folder may ask of the process that loads it.

    Parameters
    ----------
    manifest_bytes : int
        Size of the manifest, most of which is decoded into Python objects.
    depth : int
        Lists, mappings and objects within one another.
    files : int
    declared : int
        A size that no array has to bear out, such as the number of features of sparse rows: at most so much,
        or as many as the folder has bytes.

    Examples
    --------
    >>> Limits(depth=8).depth
    8
    """

    manifest_bytes: int = 1 << 24
    depth: int = 64
    files: int = 100_000
    declared: int = 1 << 24

    def __post_init__(self) -> None:
        for name in ("manifest_bytes", "depth", "files", "declared"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be a positive integer, got {value!r}")
            if value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}")


_LIMITS = Limits()


@of_one_moment
def read_manifest(
    path: str | os.PathLike[str], *, verify: bool = True, limits: Limits = _LIMITS
) -> dict[str, Any]:
    """The manifest of a model folder, checked against the folder.

    Raises
    ------
    ModelError
        If the folder is not a model, was written by a newer version, or (with
        `verify`) any file is damaged, missing, or not listed.
    """
    folder = Path(path)
    if not (folder / MANIFEST).is_file():
        raise ModelError(f"{str(folder)!r} is not a metarank model: it has no {MANIFEST}")
    size = (folder / MANIFEST).stat().st_size
    if size > limits.manifest_bytes:
        raise ModelError(
            f"{str(folder / MANIFEST)!r} has {size} bytes, more than {limits.manifest_bytes}: "
            "pass metarank.load larger persist.Limits if it is to be trusted"
        )
    try:
        manifest = _parsed((folder / MANIFEST).read_text(encoding="utf-8"))
        form, version, digest = manifest["format"], manifest["format_version"], manifest["digest"]
        _ = manifest["model"]
        files = {name: (entry["bytes"], entry["sha256"]) for name, entry in manifest["files"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{str(folder / MANIFEST)!r} is damaged: an entry is missing or wrong: {error}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{str(folder / MANIFEST)!r} is damaged: {error}") from None
    if form != FORMAT:
        raise ModelError(f"{str(folder)!r} is not a metarank model: its format is {form!r:.80}")
    if type(version) is not int or version < 1 or version > FORMAT_VERSION:
        raise ModelError(
            f"{str(folder)!r} has format version {version!r:.80}; this metarank ({__version__}) reads 1 to "
            f"{FORMAT_VERSION}: install a newer metarank"
        )
    if _depth_beyond(manifest, limits.depth):
        raise ModelError(f"{str(folder / MANIFEST)!r} is nested deeper than {limits.depth}")
    if len(files) > limits.files:
        raise ModelError(f"{str(folder / MANIFEST)!r} lists more than {limits.files} files")
    if digest != _digest(manifest):
        raise ModelError(f"{str(folder / MANIFEST)!r} is damaged: its digest does not match")
    for name, (n_bytes, sha256) in files.items():
        if Path(name).name != name or "\\" in name or "\0" in name or name == MANIFEST:
            raise ModelError(f"{str(folder / MANIFEST)!r} lists {name!r:.80}, which is no name of a file")
        if type(n_bytes) is not int or n_bytes < 0 or not isinstance(sha256, str):
            raise ModelError(f"{str(folder / MANIFEST)!r} is damaged: the entry of {name!r:.80} is wrong")
    if not verify:
        return manifest  # type: ignore[no-any-return]
    present = {p.name for p in folder.iterdir()} - {MANIFEST}
    for name in sorted(set(files) - present):
        raise ModelError(f"{str(folder)!r} is incomplete: {name!r} is missing")
    for name in sorted(present - set(files)):
        raise ModelError(f"{str(folder)!r} holds {name!r}, which is not part of the model")
    for name, (n_bytes, sha256) in files.items():
        if _regular_size(folder / name) != n_bytes or _sha256(folder / name) != sha256:
            raise ModelError(f"{str(folder / name)!r} is damaged: its checksum does not match the manifest")
    return manifest  # type: ignore[no-any-return]


@of_one_moment
def load(path: str | os.PathLike[str], verify: bool = True, *, limits: Limits = _LIMITS) -> Any:
    """Read a saved model; its arrays stay memory-mapped, so that several processes share one copy of them.

    A folder need not be trusted: whatever it holds, loading and using it runs no code of its own, and reads
    nothing outside of it. It must not change while the model is in use.

    Parameters
    ----------
    path : path-like
        Folder written by ``model.save``.
    verify : bool
        Check every file against its digest first (reads all bytes once). With False damage may go unnoticed
        that leaves the model well-formed; forms, sizes and all indices into arrays are checked either way.
        Indexes over the arrays are built when they are first asked.
    limits : persist.Limits
        What the folder may ask for.

    Returns
    -------
    MetaRanker or MultiObjectiveRanker
        Whatever was saved.

    Raises
    ------
    metarank.persist.ModelError (a ValueError)
        If the folder is damaged, has missing or extra files, is not a model, or holds values that its classes
        do not take; the message names the part.
    """
    if not isinstance(limits, Limits):
        raise TypeError(f"limits must be persist.Limits, got {limits!r:.80}")
    manifest = read_manifest(path, verify=verify, limits=limits)
    sizes = {name: entry["bytes"] for name, entry in manifest["files"].items()}
    try:
        with declared_sizes_up_to(max(limits.declared, sum(sizes.values()))):
            return _Reader(Path(path), sizes).decode(manifest["model"])
    except ModelError as error:
        raise ModelError(f"{str(path)!r} cannot be read: {error}") from error
    except (
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        ValueError,
        OverflowError,
        OSError,
        EOFError,
        RecursionError,
        MemoryError,
    ) as error:
        raise ModelError(f"{str(path)!r} cannot be read: {_one_line(error)}") from error


class _Reader:
    """The inverse of `_Writer`. A file that several parts of a model name is read once.

    Of equal objects, such as a scorer that also proposes labels, there is one. `files` are the sizes by name
    that the manifest lists.
    """

    def __init__(self, folder: Path, files: dict[str, int]) -> None:
        self.folder = folder
        self.files = files
        self.contents: dict[tuple[str, str], Any] = {}
        self.objects: dict[str, Any] = {}

    def decode(self, value: Any, at: str = "model") -> Any:
        if isinstance(value, list):
            return [self.decode(v, f"{at}.{i}") for i, v in enumerate(value)]
        if not isinstance(value, dict):
            return value
        kinds = [key for key in value if key.startswith("__")]
        if not kinds:
            return {k: self.decode(v, f"{at}.{k}") for k, v in value.items()}
        if kinds == ["__object__"]:
            return self.object(value, at)
        decode = _DECODERS.get(kinds[0]) if len(kinds) == 1 else None
        if decode is None:
            raise ModelError(f"{at} is of no known kind")
        try:
            return decode(self, value, at)
        except ModelError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise ModelError(f"{at}: {_one_line(error)}") from error

    def object(self, value: dict[str, Any], at: str) -> Any:
        key = json.dumps(value)
        if key not in self.objects:
            name, state = value["__object__"], value.get("state")
            if not isinstance(name, str) or not isinstance(state, dict):
                raise ModelError(f"{at} must be a class by its name and a state")
            cls: Any = _class_of(name)
            try:
                self.objects[key] = cls.from_state(self.decode(state, at))
            except (ModelError, ImportError):
                raise
            except Exception as error:
                raise ModelError(f"{at}, of class {name}: {_one_line(error)}") from error
        return self.objects[key]

    def array(self, value: dict[str, Any], at: str) -> np.ndarray:
        name = value["__array__"]
        array: np.ndarray = self.once("array", name, map_npy)
        if array.dtype.str != value["dtype"] or list(array.shape) != value["shape"]:
            raise ModelError(
                f"{at}: {name!r} holds {array.dtype.str} {array.shape}, the manifest says "
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

    def text(self, value: dict[str, Any], at: str) -> str:
        text: str = self.once("text", value["__text__"], lambda path: path.read_text(encoding="utf-8"))
        return text

    def strings(self, value: dict[str, Any], at: str) -> list[str]:
        name = value["__strings__"]
        strings = self.once("strings", name, lambda path: _parsed(path.read_text(encoding="utf-8")))
        if not isinstance(strings, list) or not all(isinstance(s, str) for s in strings):
            raise ModelError(f"{at}: {name!r} must be a list of strings")
        return strings

    def tensors(self, value: dict[str, Any], at: str) -> Tensors:
        tensors: Tensors = self.once("tensors", value["__tensors__"], read_tensors)[0]
        return tensors

    def number(self, value: dict[str, Any], at: str) -> float:
        if value["__float__"] not in ("inf", "-inf", "nan"):
            raise ModelError(f"{at} must be 'inf', '-inf' or 'nan' where a number is written so")
        return float(value["__float__"])

    def once(self, kind: str, name: Any, read: Callable[[Path], Any]) -> Any:
        """The content of a member of the folder."""
        if not isinstance(name, str) or name not in self.files:
            raise ModelError(f"the manifest names {name!r:.80}, which it does not list as a file")
        if (kind, name) not in self.contents:
            path = self.folder / name
            size = _regular_size(path)
            if size != self.files[name]:
                raise ModelError(f"{name!r} is damaged: {size} bytes, the manifest says {self.files[name]}")
            try:
                self.contents[kind, name] = read(path)
            except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
                raise ModelError(f"{name!r} is damaged: {_one_line(error)}") from error
        return self.contents[kind, name]


_DECODERS: dict[str, Callable[[_Reader, dict[str, Any], str], Any]] = {
    "__array__": _Reader.array,
    "__csr__": _Reader.csr,
    "__text__": _Reader.text,
    "__strings__": _Reader.strings,
    "__tensors__": _Reader.tensors,
    "__float__": _Reader.number,
}


def _parsed(text: str) -> Any:
    """JSON without the constants NaN and Infinity, which it does not have."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no number of JSON")

    return json.loads(text, parse_constant=refuse)


def _depth_beyond(value: Any, limit: int) -> bool:
    """Whether lists and mappings stand deeper in one another, found without recursion."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def _regular_size(path: Path) -> int:
    """The size of a regular file; ModelError if there is none, or a link, a pipe or a folder."""
    try:
        found = path.lstat()
    except OSError as error:
        raise ModelError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise ModelError(f"{str(path)!r} is damaged: it is not a regular file")
    return found.st_size


def _one_line(error: BaseException) -> str:
    """What an error says, on one line of moderate length."""
    text = f"no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    return " ".join(text.split())[:500]


def _sha256(path: Path) -> str:
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _digest(manifest: dict[str, Any]) -> str:
    content = {k: v for k, v in manifest.items() if k != "digest"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
