"""The content of files, plain or compressed, of pipes and of standard input."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from metarank._util.extra import require_extra

PARQUET_MAGIC = b"PAR1"
COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
STANDARD_INPUT = "-"

PathLike = str | os.PathLike[str]


def _zstandard(file: IO[bytes]) -> Any:
    require_extra("data", "pyarrow")
    import pyarrow as pa

    return pa.CompressedInputStream(file, "zstd")


# What reads a compressed file, by the bytes that it begins with.
_OPENERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"BZh": bz2.open,
    b"\x28\xb5\x2f\xfd": _zstandard,
}


def read_bytes(path: PathLike) -> bytes:
    """Content of a file, decompressed if it starts as gzip, xz, bzip2 or (with pyarrow) Zstandard does,
    without a byte order mark; "-" is standard input. What begins with the mark of UTF-16 is given as UTF-8.

    Raises
    ------
    ValueError
        If the compressed data is damaged, or what begins as UTF-16 is none; the file is named.
    """
    return decompressed(raw_bytes(path), path)


def raw_bytes(path: PathLike) -> bytes:
    """Content of a file or a pipe as it is, read once; "-" is standard input."""
    return sys.stdin.buffer.read() if str(path) == STANDARD_INPUT else Path(path).read_bytes()


def decompressed(raw: bytes, path: object) -> bytes:
    """What `read_bytes` makes of the content of a file; `path` is for messages."""
    try:
        content: bytes = opened(io.BytesIO(raw)).read()
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            content = content.decode("utf-16").encode()
    except (OSError, EOFError, lzma.LZMAError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: damaged file: {error}") from None
    return content.removeprefix(codecs.BOM_UTF8)


def opened(file: IO[bytes]) -> Any:
    """What is in a file, compressed or not, as a stream."""
    start = file.read(6)
    file.seek(0)
    opener = next((opener for mark, opener in _OPENERS.items() if start.startswith(mark)), None)
    return file if opener is None else opener(file)


def plain_or_compressed(path: Path) -> Path | None:
    """The file of this name, or else one that is compressed and has a further ending."""
    places = (path.with_name(path.name + suffix) for suffix in ("", *COMPRESSED))
    return next((place for place in places if place.is_file()), None)


def bare(path: Path) -> Path:
    """A name without the ending of a compressed file."""
    return path.with_suffix("") if path.suffix in COMPRESSED else path


def ending_of(path: Path) -> str:
    """The ending of a name in small letters, that of the file within for a compressed one."""
    return bare(path).suffix.lower()


def decode(content: bytes, path: object, encoding: str = "utf-8") -> str:
    """The text of a file; ValueError names the line that is none."""
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}: line {line} is not {encoding.upper()} ({error.reason}): set encoding, such as "
            "'latin-1' or 'cp1252'"
        ) from None


def check_encoding(encoding: str) -> None:
    """ValueError where Python knows no encoding of this name."""
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise ValueError(f"encoding must be known to Python, such as 'latin-1', got {encoding!r}") from None
