"""Text of the extreme classification repository, and svmlight with several labels a row.

A file may open with a header line `N D L` (rows, features, labels): then it is
repository text, otherwise svmlight. The content decides, not the file's name.
Then one line a row:

    3,17,20 5:0.25 90:1        labels, then feature:value pairs
     5:1                       no label: the line starts with a blank
    3:2.5,17:4 5:0.25          graded labels (only below a header)

Ids count from 0. Pairs may come in any order. Values of a repeated feature are added up;
a repeated label counts once (its largest grade). Zeros are dropped. Text after `#` and
svmlight's `qid:` tokens are skipped. An empty line is a row without labels and features
below a header; in svmlight it is skipped.

The compiled core parses: of 17 MB with 20,000 rows in 0.03 s, where scikit-learn's `load_svmlight_file` takes
0.57 s, knows no header, and names no line.
"""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._util.files import whole_file
from metarank._util.threads import resolve_n_jobs
from metarank.data.dataset import Dataset
from metarank.data.guard import TEXT_TIMES, check_present, check_sizes, most_text
from metarank.types.checks import MOST_IMPLIED_LABELS

GZIP_MAGIC, XZ_MAGIC, BYTE_ORDER_MARK = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\xef\xbb\xbf"
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BZIP2_MAGIC, ZSTANDARD_MAGIC = b"BZh", b"\x28\xb5\x2f\xfd"
COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
STANDARD_INPUT = "-"
_ZEROS = re.compile(rb"\0*")
HEADER = re.compile(rb"[ \t]*(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t\r]*(?:\n|$)")

# Beyond what `xz -9` asks for.
_XZ_MEMORY = 1 << 28
# Bytes of a compressed file that are decoded at once: few where a stream begins, since there may be many.
_LEAST_PIECE, _MOST_PIECE = 1 << 9, 1 << 20
# As many as bzip2 needs before the first of what it holds.
START_BYTES = 1 << 21

PathLike = str | os.PathLike[str]


def read_bytes(path: PathLike) -> bytes:
    """Content of a file, decompressed if it starts as gzip, xz, bzip2 or (with pyarrow) Zstandard does,
    without a byte order mark; "-" is standard input. What begins with the mark of UTF-16 is given as UTF-8.

    Raises
    ------
    ValueError
        If the compressed data is damaged, or expands more than a hundredfold, or what begins as UTF-16 is
        none; the file is named.
    """
    return decompressed(raw_bytes(path), path)


def plain_or_compressed(path: Path) -> Path | None:
    """The file of this name, or else one that is compressed and has a further ending."""
    places = (path.with_name(path.name + suffix) for suffix in ("", *COMPRESSED))
    return next((place for place in places if place.is_file()), None)


def raw_bytes(path: PathLike) -> bytes:
    """Content of a file or a pipe as it is, read once; "-" is standard input."""
    if str(path) != STANDARD_INPUT:
        check_present(path)
        return Path(path).read_bytes()
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed: name a file")
    return sys.stdin.buffer.read()


def decompressed(raw: bytes, path: object) -> bytes:
    """What `read_bytes` makes of the content of a file; `path` is for messages."""
    try:
        if is_compressed(raw):
            raw = b"".join(_expanded(raw, most_text(len(raw))))
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path}: damaged compressed file: {error}") from None
    except _ExpandsTooMuch:
        raise ValueError(
            f"{path}: it holds more than {TEXT_TIMES} times its {len(raw)} bytes: decompress it first"
        ) from None
    except ImportError:
        raise ValueError(
            f"{path}: Zstandard files are read with pyarrow (extra data): install it, or decompress the file"
        ) from None
    if raw.startswith(UTF16_MARKS):
        try:
            return raw.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            said = f"begins as UTF-16 and is none ({error.reason}): save it as UTF-8"
            raise ValueError(f"{path}: {said}") from None
    return raw.removeprefix(BYTE_ORDER_MARK)


def is_compressed(raw: bytes) -> bool:
    """Whether a file begins as one of a kind that is decompressed here."""
    return raw.startswith((*_STREAMS, ZSTANDARD_MAGIC))


class _ExpandsTooMuch(Exception):
    """A compressed file of much less than its content."""


_STREAMS: dict[bytes, Callable[[], Any]] = {
    GZIP_MAGIC: lambda: zlib.decompressobj(wbits=16 + zlib.MAX_WBITS),
    XZ_MAGIC: lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY),
    BZIP2_MAGIC: bz2.BZ2Decompressor,
}


def _expanded(raw: bytes, most: int) -> Iterator[bytes]:
    """The content of a compressed file, piece by piece: of streams that follow one another, or zeros."""
    if raw.startswith(ZSTANDARD_MAGIC):
        import pyarrow as pa

        with pa.CompressedInputStream(pa.BufferReader(raw), "zstd") as stream:
            while piece := bytes(stream.read(_MOST_PIECE)):
                most -= len(piece)
                if most < 0:
                    raise _ExpandsTooMuch
                yield piece
        return
    new = next(new for magic, new in _STREAMS.items() if raw.startswith(magic))
    view, at = memoryview(raw), 0
    while at < len(raw):
        stream, size = new(), _LEAST_PIECE
        while not stream.eof:
            if at >= len(raw):
                raise EOFError("the stream has no end")
            piece = stream.decompress(view[at : at + size], most + 1)
            at, size = at + size, min(2 * size, _MOST_PIECE)
            most -= len(piece)
            if most < 0:
                raise _ExpandsTooMuch
            yield piece
        at = min(at, len(raw)) - len(stream.unused_data)
        at = _ZEROS.match(raw, at).end()  # type: ignore[union-attr]


def start_of(raw: bytes, n: int = 200) -> bytes:
    """At least the first `n` bytes of a file, from its first `START_BYTES`; fewer where it is damaged."""
    found = b""
    if not is_compressed(raw):
        return raw.removeprefix(BYTE_ORDER_MARK)
    try:
        for piece in _expanded(raw, most_text(len(raw))):
            found += piece
            if len(found) >= n:
                break
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ImportError, _ExpandsTooMuch):
        pass  # whoever reads the whole file says what is wrong with it
    return found.removeprefix(BYTE_ORDER_MARK)


def has_header(path: PathLike) -> bool:
    """Whether a file, compressed or not, opens with the line `N D L` of repository text."""
    with open(path, "rb") as f:
        return HEADER.match(start_of(f.read(START_BYTES))) is not None


def parse_xc(
    text: bytes,
    *,
    zero_based: bool | Literal["auto"] = True,
    n_features: int | None = None,
    n_labels: int | None = None,
    n_jobs: int | None = None,
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """X (n, d) and Y (n, L), both float32 CSR, of repository or svmlight text.

    Parameters
    ----------
    text : bytes
        See the module's description of the format.
    zero_based : bool or "auto"
        Whether feature ids count from 0; "auto", as in scikit-learn: they count from 1 if no 0 occurs.
        Label ids always count from 0.
    n_features, n_labels : int or None
        Sizes D and L of text without a header; None takes the largest id + 1, for labels at most 2^22. For
        text with a header they must agree with it; the header may then declare more than 2^24 features,
        2^22 labels or the bytes of the text, see `metarank.data.guard`.
    n_jobs : int or None
        Threads; the result does not depend on it.

    Raises
    ------
    ValueError
        The message has the line's number and the offending token: text that is not a number, NaN or infinite
        values, negative ids, ids not below D or L of the header. Also if the header's N is not the number of
        rows, or its D or L are too large for the text and not passed by the caller.

    Examples
    --------
    >>> X, Y = parse_xc(b"2 3 2\\n1 0:0.5 2:1\\n 1:2\\n")
    >>> X.toarray().tolist(), Y.toarray().tolist()
    ([[0.5, 0.0, 1.0], [0.0, 2.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]])
    """
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")
    n_threads = resolve_n_jobs(n_jobs)
    header = HEADER.match(text)
    given = n_features is not None, n_labels is not None
    if header:
        n_rows, D, L = sizes_of(header)
        for size, asked, what in ((D, n_features, "features"), (L, n_labels, "labels")):
            if asked is not None and size != asked:
                raise ValueError(f"expected {asked} {what}, the header says {size}")
    else:
        D, L = (-1 if size is None else size for size in (n_features, n_labels))
    if max(D, L) > np.iinfo(np.int32).max:
        raise ValueError(f"sizes must be below 2^31, got {D} features and {L} labels")
    if header:
        check_sizes(D, L, len(text), said="the header tells of", given=given)
    body = np.frombuffer(text, np.uint8, offset=header.end() if header else 0)
    first_line = 2 if header else 1

    def parse(D: int, from_zero: bool) -> tuple[np.ndarray, ...]:
        return _core.parse_rows(
            body, D, L, zero_based=from_zero, label_field=True, label_first=header is not None,
            blank_rows=header is not None, first_line=first_line, n_threads=n_threads,
        )  # fmt: skip

    if zero_based == "auto":
        ids = parse(-1, True)[1]
        zero_based = len(ids) == 0 or bool(ids.min() == 0)
    indptr, ids, values, label_indptr, label_ids, grades = parse(D, zero_based)
    if header:
        indptr, label_indptr = _without_blank_tail(indptr, label_indptr, n_rows)
        if len(indptr) - 1 != n_rows:
            raise ValueError(f"the header says {n_rows} rows, found {len(indptr) - 1}")
    D = D if D >= 0 else int(ids.max(initial=-1)) + 1
    check_sizes(D, 0, len(text), said="the largest id tells of", given=(given[0] or bool(header), True))
    if L < 0 and label_ids.max(initial=-1) >= MOST_IMPLIED_LABELS:
        raise ValueError(
            f"label ids must be below {MOST_IMPLIED_LABELS} where neither a header nor n_labels tells their "
            f"number, got {label_ids.max()}"
        )
    L = L if L >= 0 else int(label_ids.max(initial=-1)) + 1
    return _csr(indptr, ids, values, D), _csr(label_indptr, label_ids, grades, L)


def sizes_of(header: re.Match[bytes]) -> tuple[int, int, int]:
    """N, D and L of a header line.

    Raises
    ------
    ValueError
        If one has more than 18 digits.
    """
    if any(len(digits) > 18 for digits in header.groups()):
        raise ValueError(f"sizes must be below 2^31, the header is {header[0][:80]!r}")
    n_rows, n_features, n_labels = (int(digits) for digits in header.groups())
    return n_rows, n_features, n_labels


def parse_pairs(text: bytes, n_columns: int, *, n_jobs: int | None = None) -> sp.csr_matrix:
    """CSR (n, n_columns) of lines of `id:value` pairs, without labels or header: grades beside a data file.

    Examples
    --------
    >>> parse_pairs(b"2:4 0:1\\n\\n", 3).toarray()
    array([[1., 0., 4.],
           [0., 0., 0.]], dtype=float32)
    """
    indptr, ids, values, *_ = _core.parse_rows(
        np.frombuffer(text, np.uint8), n_columns, 0, zero_based=True, label_field=False, label_first=False,
        blank_rows=True, first_line=1, n_threads=resolve_n_jobs(n_jobs),
    )  # fmt: skip
    return _csr(indptr, ids, values, n_columns)


def _without_blank_tail(
    indptr: np.ndarray, label_indptr: np.ndarray, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Blank lines after the last row are no rows."""
    filled = np.flatnonzero(np.diff(indptr) + np.diff(label_indptr))
    n = max(min(n_rows, len(indptr) - 1), filled[-1] + 1 if len(filled) else 0)
    return indptr[: n + 1], label_indptr[: n + 1]


def _csr(indptr: np.ndarray, ids: np.ndarray, values: np.ndarray, n_columns: int) -> sp.csr_matrix:
    if len(ids) <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    out = sp.csr_matrix((values, ids, indptr), shape=(len(indptr) - 1, n_columns))
    out.has_sorted_indices = out.has_canonical_format = True
    return out


def write_xc(path: PathLike, dataset: Dataset) -> None:
    """Write X and Y as repository text; `.gz` and `.xz` names are compressed.

    Values are the shortest decimals that read back as the same float32; grades are written where a
    relevance is not 1. The file is written whole or not at all. Names and texts are not written.

    Raises
    ------
    ValueError
        If the data set has no X.
    """
    header = f"{dataset.n_rows} {dataset.n_features} {dataset.n_labels}\n".encode()
    _write_atomically(Path(path), [header, _format(dataset, dataset.is_graded)])


def write_svmlight(path: PathLike, dataset: Dataset) -> None:
    """Write X and Y as svmlight with comma-separated labels, ids from 0; otherwise as `write_xc`.

    Raises
    ------
    ValueError
        If the data set has no X, is graded (svmlight has no grades), or has a row without labels and
        features (an empty line, which readers skip).
    """
    if dataset.is_graded:
        raise ValueError("svmlight has no graded labels; use write_xc")
    n_entries = np.diff(dataset.Y.indptr) + np.diff(sp.csr_matrix(_features(dataset)).indptr)
    if np.any(n_entries == 0):
        row = int(np.flatnonzero(n_entries == 0)[0])
        raise ValueError(f"svmlight cannot hold row {row}, without labels and features; use write_xc")
    _write_atomically(Path(path), [_format(dataset, False)])


def _features(dataset: Dataset) -> np.ndarray | sp.csr_matrix:
    if dataset.X is None:
        raise ValueError("the data set has no features (X is None) to write")
    return dataset.X


def _format(dataset: Dataset, graded: bool) -> bytes:
    parts: list[Any] = []
    for matrix in (sp.csr_matrix(_features(dataset)), dataset.Y):
        parts += [matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data]
    parts.append(graded)
    return _core.format_rows(*parts).tobytes()


def _write_atomically(path: Path, chunks: list[bytes]) -> None:
    with whole_file(path, "wb") as raw:
        if path.suffix == ".gz":
            # No name and no time in the header: the same data gives the same bytes.
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
                stream.writelines(chunks)
        elif path.suffix == ".xz":
            with lzma.LZMAFile(raw, "wb") as xz:
                xz.writelines(chunks)
        else:
            raw.writelines(chunks)
