"""The manifest of a model folder: what is in the folder, with sizes and digests."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metarank._files import of_one_moment
from metarank._version import __version__
from metarank.persist.classes import ModelError

FORMAT = "metarank-model"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"


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


LIMITS = Limits()


@of_one_moment
def read_manifest(
    path: str | os.PathLike[str], *, verify: bool = True, limits: Limits = LIMITS
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
            f"{FORMAT_VERSION}: install a newer metarank"
        )
    if _depth_beyond(manifest, limits.depth):
        raise ModelError(f"{str(folder / MANIFEST)!r} is nested deeper than {limits.depth}")
    if len(files) > limits.files:
        raise ModelError(f"{str(folder / MANIFEST)!r} lists more than {limits.files} files")
    if digest != digest_of(manifest):
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
        if regular_size(folder / name) != n_bytes or sha256_of(folder / name) != sha256:
            raise ModelError(f"{str(folder / name)!r} is damaged: its checksum does not match the manifest")
    return manifest  # type: ignore[no-any-return]


def parsed(text: str) -> Any:
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


def regular_size(path: Path) -> int:
    """The size of a regular file; ModelError if there is none, or a link, a pipe or a folder."""
    try:
        found = path.lstat()
    except OSError as error:
        raise ModelError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise ModelError(f"{str(path)!r} is damaged: it is not a regular file")
    return found.st_size


def one_line(error: BaseException) -> str:
    """What an error says, on one line of moderate length."""
    text = f"no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    return " ".join(text.split())[:500]


def sha256_of(path: Path) -> str:
    """Of the content of a file, in hexadecimal."""
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def digest_of(manifest: dict[str, Any]) -> str:
    """SHA-256 of all entries but `digest`, in an order that does not depend on that of the file."""
    content = {k: v for k, v in manifest.items() if k != "digest"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
