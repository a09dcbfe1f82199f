"""The manifest of a model folder: its files, with sizes and digests."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metarank._util.files import bytes_on_disk, of_one_moment
from metarank._util.version import __version__
from metarank.persist.classes import ModelError
from metarank.persist.limits import LIMITS, TOGETHER, Limits

FORMAT = "metarank-model"
FORMAT_VERSION = 2
MANIFEST = "manifest.json"
# The keys under which a part of a model names its file.
KINDS_OF_FILES = ("__array__", "__text__", "__strings__", "__tensors__")


@dataclass(frozen=True)
class Checked:
    """A manifest that has been checked against its folder.

    Parameters
    ----------
    manifest : dict
    bytes_on_disk : int
        Bytes that the files of the model occupy on disk.
    """

    manifest: dict[str, Any]
    bytes_on_disk: int


@of_one_moment
def read_manifest(
    path: str | os.PathLike[str], *, verify: bool = True, limits: Limits = LIMITS
) -> dict[str, Any]:
    """The manifest of a model folder, checked against the folder.

    Raises
    ------
    ModelError
        If the folder is not a model or was written by a newer version; if a file that the model reads is
        missing, a link, or of the wrong size; with `verify`, if any file is damaged, missing or not listed.
    """
    return checked(path, verify, limits).manifest


def checked(path: str | os.PathLike[str], verify: bool, limits: Limits) -> Checked:
    """`read_manifest`, with the number of bytes on disk."""
    folder = Path(path)
    if not os.path.lexists(folder / MANIFEST):
        if not os.path.lexists(folder):
            said = f"there is no folder {str(folder)!r}"
        else:
            said = f"it has no {MANIFEST}" if folder.is_dir() else "it is no folder"
        raise ModelError(f"{str(folder)!r} is not a metarank model: {said}")
    size = regular_file(folder / MANIFEST).st_size
    if size > limits.manifest_bytes:
        raise ModelError(
            f"{str(folder / MANIFEST)!r} has {size} bytes, more than {limits.manifest_bytes}: "
            "pass metarank.load larger persist.Limits if it is to be trusted"
        )
    try:
        manifest = parsed((folder / MANIFEST).read_text(encoding="utf-8"))
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
            f"{FORMAT_VERSION}"
            + (": install a newer metarank" if type(version) is int and version > 0 else "")
        )
    if _depth_beyond(manifest, limits.depth):
        raise ModelError(f"{str(folder / MANIFEST)!r} is nested deeper than {limits.depth}")
    if len(files) > limits.files:
        raise ModelError(f"{str(folder / MANIFEST)!r} lists more than {limits.files} files")
    if digest != digest_of(manifest):
        raise ModelError(f"{str(folder / MANIFEST)!r} is damaged: its digest does not match")
    for name, (n_bytes, sha256) in files.items():
        if not _is_name_of_a_file(name):
            raise ModelError(f"{str(folder / MANIFEST)!r} lists {name!r:.80}, which is no name of a file")
        if type(n_bytes) is not int or n_bytes < 0 or not isinstance(sha256, str):
            raise ModelError(f"{str(folder / MANIFEST)!r} is damaged: the entry of {name!r:.80} is wrong")
    if verify:
        _check_members(folder, set(files))
    read = set(_files_read(manifest["model"]))
    found = {name: regular_file(folder / name) for name in files if verify or name in read}
    for name, status in found.items():
        size, said = status.st_size, files[name][0]
        if size != said:
            raise ModelError(f"{str(folder / name)!r} is damaged: {size} bytes, the manifest says {said}")
    text = regular_file(folder / MANIFEST)
    there = _bytes_there(text, found.values())
    absent, most = sum(f.st_size for f in found.values()) - there, TOGETHER * max(limits.declared, there)
    if absent > most:
        raise ModelError(
            f"{str(folder)!r} has {absent} bytes that are not on the disk, more than {most}: copy it without "
            "holes, or pass metarank.load larger persist.Limits if it is to be trusted"
        )
    for name, (_, sha256) in files.items() if verify else ():
        if sha256_of(folder / name) != sha256:
            raise ModelError(f"{str(folder / name)!r} is damaged: its checksum does not match the manifest")
    return Checked(manifest, _bytes_there(text, [f for name, f in found.items() if name in read]))


def _check_members(folder: Path, files: set[str]) -> None:
    """Raise ModelError unless the folder holds exactly these files."""
    present = {p.name for p in folder.iterdir()} - {MANIFEST}
    for name in sorted(files - present):
        raise ModelError(f"{str(folder)!r} is incomplete: {name!r} is missing")
    for name in sorted(present - files):
        raise ModelError(f"{str(folder)!r} holds {name!r}, which is not part of the model")


def _bytes_there(manifest: os.stat_result, files: Iterable[os.stat_result]) -> int:
    """The bytes that the manifest and the files occupy on disk. Hard links count once."""
    distinct = {(f.st_dev, f.st_ino, i if f.st_ino == 0 else 0): f for i, f in enumerate(files)}
    # Text has no holes: if the system reports too few blocks for the manifest, it does not report blocks.
    tells = TOGETHER * bytes_on_disk(manifest) >= manifest.st_size
    return sum(bytes_on_disk(f) if tells else f.st_size for f in distinct.values())


def _is_name_of_a_file(name: str) -> bool:
    """Whether it is a plain file name on every system, and not that of the manifest."""
    return name not in ("", ".", "..", MANIFEST) and not any(c in name for c in "/\\:\0")


def _files_read(value: Any) -> Iterator[str]:
    """The names of the files that the parts of a model are read from. The depth has been checked."""
    if isinstance(value, list):
        for child in value:
            yield from _files_read(child)
    elif isinstance(value, dict):
        for key, child in value.items():
            if key in KINDS_OF_FILES and isinstance(child, str):
                yield child
            else:
                yield from _files_read(child)


def parsed(text: str) -> Any:
    """Parse JSON; ValueError for NaN and Infinity, which are not JSON."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no number of JSON")

    return json.loads(text, parse_constant=refuse)


def _depth_beyond(value: Any, limit: int) -> bool:
    """Whether lists and mappings are nested deeper than this. Does not recurse."""
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


def regular_file(path: Path) -> os.stat_result:
    """The status of a regular file; ModelError if it is missing, a link, a pipe or a folder."""
    try:
        found = path.lstat()
    except OSError as error:
        raise ModelError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise ModelError(f"{str(path)!r} is damaged: it is not a regular file")
    return found


def one_line(error: BaseException) -> str:
    """The message of an error, on one line of moderate length."""
    text = f"no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    return " ".join(text.split())[:500]


def sha256_of(path: Path) -> str:
    """SHA-256 of the content of a file, in hexadecimal."""
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def digest_of(manifest: dict[str, Any]) -> str:
    """SHA-256 of all entries except `digest`, in sorted order."""
    content = {k: v for k, v in manifest.items() if k != "digest"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
