"""The content of files, plain or compressed, of pipes and of standard input."""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import io
import lzma
import os
import sys
import zlib
from pathlib import Path
from typing import IO, Any

_GZIP, _XZ, _BZIP2, _ZSTANDARD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", b"\x28\xb5\x2f\xfd"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
PARQUET_MAGIC = b"PAR1"
COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
STANDARD_INPUT = "-"

PathLike = str | os.PathLike[str]


def read_bytes(path: PathLike) -> bytes:
    """Content of a file, decompressed if it starts as gzip, xz, bzip2 or (with pyarrow) Zstandard does,
    without a byte order mark; "-" is standard input. What begins with the mark of UTF-16 is given as UTF-8.

    Raises
    ------
    ValueError
        If the compressed data is damaged, or what begins as UTF-16 is none; the file is named.
    """
    return decompressed(raw_bytes(path), path)


def plain_or_compressed(path: Path) -> Path | None:
    """The file of this name, or else one that is compressed and has a further ending."""
    places = (path.with_name(path.name + suffix) for suffix in ("", *COMPRESSED))
    return next((place for place in places if place.is_file()), None)


def ending_of(path: Path) -> str:
    """The ending of a name in small letters, that of the file within for a compressed one."""
    return (path.with_suffix("") if path.suffix in COMPRESSED else path).suffix.lower()


def raw_bytes(path: PathLike) -> bytes:
    """Content of a file or a pipe as it is, read once; "-" is standard input."""
    if str(path) != STANDARD_INPUT:
        return Path(path).read_bytes()
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed: name a file")
    return sys.stdin.buffer.read()


def decompressed(raw: bytes, path: object) -> bytes:
    """What `read_bytes` makes of the content of a file; `path` is for messages."""
    try:
        content = opened(io.BytesIO(raw)).read() if is_compressed(raw) else raw
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path}: damaged compressed file: {error}") from None
    except ImportError:
        raise ValueError(
            f"{path}: Zstandard files are read with pyarrow (extra data): install it, or decompress the file"
        ) from None
    if content.startswith(_UTF16):
        try:
            return content.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            message = f"begins as UTF-16 and is none ({error.reason}): save it as UTF-8"
            raise ValueError(f"{path}: {message}") from None
    return content.removeprefix(codecs.BOM_UTF8)


def is_compressed(raw: bytes) -> bool:
    """Whether a file begins as one of a kind that is decompressed here."""
    return raw.startswith((_GZIP, _XZ, _BZIP2, _ZSTANDARD))


def opened(file: IO[bytes]) -> Any:
    """What is in a file, compressed or not, as a stream."""
    start = file.read(6)
    file.seek(0)
    if start.startswith(_GZIP):
        return gzip.GzipFile(fileobj=file)
    if start.startswith(_XZ):
        return lzma.LZMAFile(file)
    if start.startswith(_BZIP2):
        return bz2.BZ2File(file)
    if start.startswith(_ZSTANDARD):
        import pyarrow as pa

        return pa.CompressedInputStream(file, "zstd")
    return file


def decode(content: bytes, path: object) -> str:
    """UTF-8 text of a file; ValueError names the line that is none."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}: line {line} is not UTF-8 ({error.reason}): convert the file, if it is Latin-1 by "
            "iconv -f latin1 -t utf-8"
        ) from None
