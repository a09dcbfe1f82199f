"""Saved models: a versioned folder, checksums, memory-mapped arrays, no pickle.

A model is a tree of dicts, lists, numbers, strings, arrays, CSR matrices and
objects of registered classes. Arrays become ``.npy`` files, weights of
networks ``.safetensors``, long texts ``.txt``
and long lists of strings ``.json``; everything else stands in ``manifest.json``,
which lists each file with its size and SHA-256 and carries a digest of itself.
Equal contents, such as the training rows that several scorers keep, share a file.
"""

from __future__ import annotations

import errno
import hashlib
import importlib
import json
import math
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

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
    empty = target.is_dir() and not any(target.iterdir())
    if target.exists() and not empty and not (target / MANIFEST).is_file():
        raise ValueError(
            f"a model goes to a new folder or replaces an earlier model, {str(path)!r} is neither"
        )
    if target.exists() and not empty and (foreign := _files_of_others(target)):
        raise ValueError(
            f"a model replaces an earlier model and nothing else, but {str(path)!r} also holds {foreign!r}: "
            "move it away first"
        )
    parent = next(p for p in target.parents if p.exists())
    if not parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(parent))
    os.rmdir(tempfile.mkdtemp(prefix=".metarank-", dir=parent))  # permissions alone do not tell
    return target


def _files_of_others(folder: Path) -> str | None:
    """A file in a model folder that its manifest does not list; None where there is none or no telling."""
    try:
        listed = set(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"])
    except (ValueError, KeyError, TypeError, OSError):
        return None
    return next((p.name for p in sorted(folder.iterdir()) if p.name not in listed | {MANIFEST}), None)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write `model` to the folder `path`, whole or not at all.

    The folder is written beside its final place and renamed; a model that stood
    there before stays until the new one is complete.

    Raises
    ------
    ValueError
        If `path` exists and is not a saved model (or an empty folder).
    OSError
        If the disk is full or not writable; what was there before is untouched.
    """
    target = check_target(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    try:
        writer = _Writer(staging)
        root = writer.encode(model, "model")
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "metarank_version": __version__,
            "model": root,
            "files": dict(sorted(writer.files.items())),
        }
        manifest["digest"] = _digest(manifest)
        with open(staging / MANIFEST, "w", encoding="utf-8") as f:
            json.dump(manifest, f, indent=1, ensure_ascii=False)
            f.flush()
            os.fsync(f.fileno())
        os.chmod(staging, 0o777 & ~_umask())
        _put_in_place(staging, target)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _put_in_place(staging: Path, target: Path) -> None:
    """Rename `staging` to `target`; what stood there goes once the new one is in place."""
    if not target.exists():
        os.rename(staging, target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
    try:
        os.rename(target, old / "model")
        os.rename(staging, target)
    except BaseException:
        if not target.exists():
            os.rename(old / "model", target)
        raise
    finally:
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# --- reading ---------------------------------------------------------------


def read_manifest(path: str | os.PathLike[str], *, verify: bool = True) -> dict[str, Any]:
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
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise ModelError(f"{str(folder)!r} is not a metarank model: its format is {manifest['format']!r}")
        version, digest, _ = manifest["format_version"], manifest["digest"], manifest["model"]
        files = {name: (entry["bytes"], entry["sha256"]) for name, entry in manifest["files"].items()}
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ModelError(f"{str(folder / MANIFEST)!r} is damaged: {error}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{str(folder / MANIFEST)!r} is damaged: an entry is missing or wrong: {error}"
        ) from None
    if not isinstance(version, int) or version < 1 or version > FORMAT_VERSION:
        raise ModelError(
            f"{str(folder)!r} has format version {version!r}; this metarank ({__version__}) reads 1 to "
            f"{FORMAT_VERSION}: install a newer metarank"
        )
    if digest != _digest(manifest):
        raise ModelError(f"{str(folder / MANIFEST)!r} is damaged: its digest does not match")
    if not verify:
        return manifest  # type: ignore[no-any-return]
    present = {p.name for p in folder.iterdir()} - {MANIFEST}
    for name in sorted(set(files) - present):
        raise ModelError(f"{str(folder)!r} is incomplete: {name!r} is missing")
    for name in sorted(present - set(files)):
        raise ModelError(f"{str(folder)!r} holds {name!r}, which is not part of the model")
    for name, (size, sha256) in files.items():
        file = folder / name
        if file.is_symlink() or not file.is_file():
            raise ModelError(f"{str(file)!r} is damaged: it is not a regular file")
        if file.stat().st_size != size or _sha256(file) != sha256:
            raise ModelError(f"{str(file)!r} is damaged: its checksum does not match the manifest")
    return manifest  # type: ignore[no-any-return]


def load(path: str | os.PathLike[str], verify: bool = True) -> Any:
    """Read a saved model; its arrays stay memory-mapped, so that several processes share one copy of them.

    Parameters
    ----------
    path : path-like
        Folder written by ``model.save``.
    verify : bool
        Check every file against its digest first (reads all bytes once). With
        False the model is mapped at once, and only the manifest is checked. Either way indexes
        over the arrays are built when they are first asked.

    Returns
    -------
    MetaRanker or MultiObjectiveRanker
        Whatever was saved.

    Raises
    ------
    metarank.persist.ModelError (a ValueError)
        If the folder is damaged, has missing or extra files, or is not a model.
    """
    manifest = read_manifest(path, verify=verify)
    try:
        return _Reader(Path(path), set(manifest["files"]), verify).decode(manifest["model"])
    except ModelError:
        raise
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OSError, EOFError) as error:
        raise ModelError(f"{str(path)!r} cannot be read: {error}") from error


class _Reader:
    """The inverse of `_Writer`. A file that several parts of a model name is mapped once.

    Of equal objects, such as a scorer that also proposes labels, there is one.
    """

    def __init__(self, folder: Path, files: set[str], verify: bool = True) -> None:
        self.folder = folder
        self.files = files
        self.verify = verify
        self.arrays: dict[str, np.ndarray] = {}
        self.objects: dict[str, Any] = {}

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(v) for v in value]
        if not isinstance(value, dict):
            return value
        if "__array__" in value:
            return self.array(value)
        if "__csr__" in value:
            data, indices, indptr = (self.decode(p) for p in value["__csr__"])
            m = sp.csr_matrix(tuple(value["shape"]), dtype=data.dtype)
            m.data, m.indices, m.indptr = data, indices, indptr
            m.check_format(full_check=self.verify)  # which reads every index
            m.has_sorted_indices = m.has_canonical_format = True
            return m
        if "__text__" in value:
            return self.member(value["__text__"]).read_text(encoding="utf-8")
        if "__strings__" in value:
            return json.loads(self.member(value["__strings__"]).read_text(encoding="utf-8"))
        if "__tensors__" in value:
            return read_tensors(self.member(value["__tensors__"]))[0]
        if "__float__" in value:
            return float(value["__float__"])
        if "__object__" in value:
            return self.object(value)
        return {k: self.decode(v) for k, v in value.items()}

    def object(self, value: dict[str, Any]) -> Any:
        key = json.dumps(value)
        if key not in self.objects:
            cls: Any = _class_of(value["__object__"])
            self.objects[key] = cls.from_state(self.decode(value["state"]))
        return self.objects[key]

    def array(self, value: dict[str, Any]) -> np.ndarray:
        name = value["__array__"]
        if name not in self.arrays:
            self.arrays[name] = np.lib.format.open_memmap(self.member(name), mode="r")
        array = self.arrays[name]
        if array.dtype.str != value["dtype"] or list(array.shape) != value["shape"]:
            raise ModelError(
                f"{name!r} holds {array.dtype.str} {array.shape}, the manifest says "
                f"{value['dtype']} {tuple(value['shape'])}"
            )
        return array

    def member(self, name: str) -> Path:
        if name not in self.files or Path(name).name != name:
            raise ModelError(f"the manifest names {name!r}, which it does not list as a file")
        return self.folder / name


def _sha256(path: Path) -> str:
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _digest(manifest: dict[str, Any]) -> str:
    content = {k: v for k, v in manifest.items() if k != "digest"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
