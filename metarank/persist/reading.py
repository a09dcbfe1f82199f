"""`load`: read a model folder, which is untrusted input."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank._util.files import of_one_moment
from metarank._util.npy import map_npy
from metarank.persist.classes import ModelError, class_of
from metarank.persist.fields import check_csr
from metarank.persist.limits import LIMITS, TOGETHER, Limits, declared_sizes_up_to
from metarank.persist.manifest import checked, one_line, parsed, regular_file
from metarank.persist.tensors import Tensors, read_tensors

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

# The process, or the machine, has reached its limit of open files.
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)


def load(path: str | os.PathLike[str], verify: bool = True, *, limits: Limits = LIMITS) -> Any:
    """Read a saved model. Large arrays are memory-mapped, so that several processes share one copy.

    The folder may be untrusted: loading and using the model runs no code from the folder and reads no file
    outside it. The folder must not change while the model is in use.

    Parameters
    ----------
    path : path-like
        Folder written by ``model.save``.
    verify : bool
        Check every file against its digest first, which reads all bytes once. With False, damage that leaves
        the model well-formed goes unnoticed; types, sizes and all indices into arrays are always checked.
        Search indexes are built on first use.
    limits : persist.Limits
        Limits on what the folder may allocate.

    Returns
    -------
    MetaRanker or MultiObjectiveRanker
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
    found = load_values(path, verify, limits=limits)
    if not hasattr(found, "get_state"):
        raise ModelError(f"{str(path)!r} holds {_kind_of(found)}, and no model")
    return found


@of_one_moment
def load_values(path: str | os.PathLike[str], verify: bool = True, *, limits: Limits = LIMITS) -> Any:
    """`load` for anything that `save` writes, such as a dict of results."""
    if not isinstance(limits, Limits):
        raise TypeError(f"limits must be persist.Limits, got {limits!r:.80}")
    with _naming_the_limit(path):
        return _read(path, verify, limits)


def _read(path: str | os.PathLike[str], verify: bool, limits: Limits) -> Any:
    found = checked(path, verify, limits)
    sizes = {name: entry["bytes"] for name, entry in found.manifest["files"].items()}
    most = max(limits.declared, found.bytes_on_disk)
    try:
        with declared_sizes_up_to(most, TOGETHER * most):
            return Reader(Path(path), sizes).decode(found.manifest["model"])
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
        if isinstance(error, OSError) and error.errno in _NO_DESCRIPTOR:
            raise
        raise ModelError(f"{str(path)!r} cannot be read: {one_line(error)}") from error


@contextmanager
def _naming_the_limit(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the limit where the process has too many open files: the folder is not damaged."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_DESCRIPTOR:
            raise
        most = f" ({resource.getrlimit(resource.RLIMIT_NOFILE)[0]}, see ulimit -n)" if resource else ""
        what = f"this process has as many files open as it may{most}; each large array of a model takes one: "
        raise OSError(error.errno, what + "raise the limit, or load fewer models", os.fspath(path)) from error


def _kind_of(value: Any) -> str:
    if sp.issparse(value):
        return f"a sparse matrix {value.shape}"
    if isinstance(value, np.ndarray):
        return f"an array {value.shape} of {value.dtype}"
    if isinstance(value, (dict, list)):
        return f"a {type(value).__name__} of {len(value)} values"
    return f"{value!r:.80}"


class Reader:
    """The inverse of `Writer`.

    A file that several parts of a model share is read once, and equal objects become one object. `files`
    holds the sizes that the manifest lists, by file name.
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
            return _writable(value, at)
        kinds = [key for key in value if key.startswith("__")]
        if not kinds:
            return {_writable(k, at): self.decode(v, f"{at}.{k}") for k, v in value.items()}
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
            raise ModelError(f"{at}: {one_line(error)}") from error

    def object(self, value: dict[str, Any], at: str) -> Any:
        key = json.dumps(value)
        if key not in self.objects:
            name, state = value["__object__"], value.get("state")
            if not isinstance(name, str) or not isinstance(state, dict):
                raise ModelError(f"{at} must be a class by its name and a state")
            cls: Any = class_of(name)
            try:
                self.objects[key] = cls.from_state(self.decode(state, at))
            except (ModelError, ImportError, OSError):
                raise
            except Exception as error:
                raise ModelError(f"{at}, of class {name}: {one_line(error)}") from error
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
        strings = self.once("strings", name, lambda path: parsed(path.read_text(encoding="utf-8")))
        if not isinstance(strings, list) or not all(isinstance(s, str) for s in strings):
            raise ModelError(f"{at}: {name!r} must be a list of strings")
        for s in strings:
            _writable(s, at)
        return strings

    def tensors(self, value: dict[str, Any], at: str) -> Tensors:
        tensors: Tensors = self.once("tensors", value["__tensors__"], read_tensors)[0]
        return tensors

    def number(self, value: dict[str, Any], at: str) -> float:
        if value["__float__"] not in ("inf", "-inf", "nan"):
            raise ModelError(f"{at} must be 'inf', '-inf' or 'nan' where a number is written so")
        return float(value["__float__"])

    def once(self, kind: str, name: Any, read: Callable[[Path], Any]) -> Any:
        """The content of a file of the folder, read once."""
        if not isinstance(name, str) or name not in self.files:
            raise ModelError(f"the manifest names {name!r:.80}, which it does not list as a file")
        if (kind, name) not in self.contents:
            path = self.folder / name
            size = regular_file(path).st_size
            if size != self.files[name]:
                raise ModelError(f"{name!r} is damaged: {size} bytes, the manifest says {self.files[name]}")
            try:
                self.contents[kind, name] = read(path)
            except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
                raise ModelError(f"{name!r} is damaged: {one_line(error)}") from error
        return self.contents[kind, name]


def _writable(value: Any, at: str) -> Any:
    """The value; ModelError for a text with a lone surrogate, which UTF-8 cannot encode."""
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ModelError(f"{at} must be a text that UTF-8 can write, got {value!r:.80}") from None
    return value


_DECODERS: dict[str, Callable[[Reader, dict[str, Any], str], Any]] = {
    "__array__": Reader.array,
    "__csr__": Reader.csr,
    "__text__": Reader.text,
    "__strings__": Reader.strings,
    "__tensors__": Reader.tensors,
    "__float__": Reader.number,
}
