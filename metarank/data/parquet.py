"""Parquet into Arrow tables; the memory that a file takes is known before it is decoded.

A page is encoded as runs and as positions in a dictionary, and then compressed: few bytes can stand for any
number of values, and the sizes in the file's metadata are those before decoding. So the headers of all pages,
which hold the numbers of values, are read first. Where repeated texts may take too much memory, they are
first decoded as positions in a dictionary, or a few at a time, to find their size.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from metarank._util.files import bytes_on_disk
from metarank.data.guard import TABLE_LEAST, check_table, most_of_table

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"PAR1"
ADVICE = "write it without compression and dictionaries, or read it by other means and use data.from_frame"
# Bytes of a value when it is decoded, by the name of its type; texts and values within a list become objects.
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_OBJECT = 64
# Of the heads of pages: numbers of fields, and the encoding of texts by what they share.
_EXPANDED, _COMPRESSED, _DATA, _DICTIONARY, _DATA_2 = 2, 3, 5, 7, 8
_DELTA_BYTE_ARRAY = 7
_LEAST_HEAD, _MOST_HEAD = 1 << 9, 1 << 24
_MOST_DEPTH = 16
# Of a file: its row groups, their columns, what is told of one; of that: values, bytes, and places of pages.
_GROUPS, _CHUNKS, _ABOUT = 4, 1, 3
_SIZES = _VALUES, _STORED, _DATA_AT, _DICTIONARY_AT = 5, 7, 9, 11

Read = Callable[[int, int], bytes]


def read_table(
    source: str | os.PathLike[str] | IO[bytes], row_groups: Sequence[int] | None = None
) -> pa.Table:
    """The table of a Parquet file, or some of its row groups.

    Raises
    ------
    ValueError
        If its values would take more memory than `metarank.data.guard` allows for its size.
    pyarrow.ArrowException, OSError
        If it is damaged.
    """
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as f:
            return _read(f, bytes_on_disk(os.fstat(f.fileno())), row_groups)
    return _read(source, source.seek(0, io.SEEK_END), row_groups)


@dataclass(frozen=True)
class _Column:
    """What a column of a row group takes up when decoded.

    Parameters
    ----------
    certain : int
        Bytes, but for the texts below.
    texts : int
        Bytes of texts that are written once, at most.
    longest : int
        Bytes of one of them, at most; 0 where they all are entries of a dictionary.
    """

    certain: int
    texts: int
    longest: int


def _read(file: IO[bytes], n_bytes: int, row_groups: Sequence[int] | None) -> pa.Table:
    import pyarrow.parquet as pq

    about = pq.ParquetFile(file)
    groups = list(range(about.num_row_groups) if row_groups is None else row_groups)

    def read(at: int, n: int) -> bytes:
        file.seek(at)
        return file.read(n)

    chunks = _chunks(file, about.metadata)
    columns = [about.metadata.schema.column(i) for i in range(about.metadata.num_columns)]
    _check_chunks([chunks[g] for g in groups], columns, n_bytes)
    found = {
        (g, column.path): _column(chunks[g][i], column, read)
        for g in groups
        for i, column in enumerate(columns)
    }
    decoded = sum(column.certain for column in found.values())
    check_table(decoded, n_bytes, ADVICE)
    if decoded + sum(column.texts for column in found.values()) > most_of_table(n_bytes):
        compact = pq.ParquetFile(file, read_dictionary=[path for (_, path), c in found.items() if c.texts])
        for (g, path), column in found.items():
            if column.longest:
                rows = max(1, TABLE_LEAST // column.longest)
                for batch in about.iter_batches(rows, row_groups=[g], columns=[path]):
                    decoded += batch.nbytes
                    check_table(decoded, n_bytes, ADVICE)
            elif column.texts:
                table = compact.read_row_group(g, columns=[path])
                decoded += sum(map(_spelled_out, table.columns))
                check_table(decoded, n_bytes, ADVICE)
    return about.read_row_groups(groups)


def check_metadata(file: IO[bytes], metadata: Any) -> None:
    """Raise ValueError if the values declared in the metadata of a file take too much memory."""
    columns = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    _check_chunks(_chunks(file, metadata), columns, file.seek(0, io.SEEK_END))


def _check_chunks(groups: list[list[dict[int, Any]]], columns: list[Any], n_bytes: int) -> None:
    each = [_bytes_of_value(column) for column in columns]
    values = sum(chunk[_VALUES] * n for chunks in groups for chunk, n in zip(chunks, each))
    check_table(values, n_bytes, ADVICE)


def _chunks(file: IO[bytes], metadata: Any) -> list[list[dict[int, Any]]]:
    """Of each row group and column what the file says of its values and its place.

    Arrow's own view of a column ends the process where the file's statistics of it do not fit.
    """
    end = file.seek(-8, io.SEEK_END)
    length = int.from_bytes(file.read(4), "little")
    file.seek(end - length)
    try:
        fields, _ = _struct(file.read(length), 0, 0)
        groups = [[chunk[_ABOUT] for chunk in group[_CHUNKS]] for group in fields.get(_GROUPS, [])]
        sizes = [chunk.get(k, 0) for chunks in groups for chunk in chunks for k in _SIZES]
        if not all(isinstance(size, int) and size >= 0 for size in sizes):
            raise ValueError
    except (IndexError, KeyError, TypeError, AttributeError, ValueError):
        raise ValueError("the metadata of the file is damaged") from None
    whole = all(len(chunks) == metadata.num_columns for chunks in groups)
    if len(groups) != metadata.num_row_groups or not whole:
        raise ValueError("the metadata of the file is damaged: a row group has not all columns")
    return [[{k: chunk.get(k, 0) for k in _SIZES} for chunk in chunks] for chunks in groups]


def _bytes_of_value(column: Any) -> int:
    """What a value of a column takes up when decoded, but for a text's letters."""
    width = column.length if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0
    is_object = column.physical_type == "BYTE_ARRAY" or column.max_repetition_level > 0
    return max(width, _WIDTHS.get(column.physical_type, 0)) + (_OBJECT if is_object else 0)


def _column(about: dict[int, int], column: Any, read: Read) -> _Column:
    at = about[_DATA_AT]
    if 0 < about[_DICTIONARY_AT] < at:
        at = about[_DICTIONARY_AT]
    end = at + about[_STORED]
    is_text = column.physical_type == "BYTE_ARRAY"
    values = pages = shared = dictionary = longest = 0
    while at < end and values < about[_VALUES]:
        head, at = _head(read, at, end)
        expanded, compressed, n, encoding = _sizes(head)
        if min(expanded, compressed, n) < 0:
            raise ValueError(f"a page of the column {column.path!r} is damaged")
        at += compressed
        pages += expanded
        if _DICTIONARY in head:
            dictionary = max(dictionary, expanded)
            continue
        values += n
        if is_text and encoding == _DELTA_BYTE_ARRAY:
            shared, longest = shared + n * expanded, max(longest, expanded)
    certain = pages + values * _bytes_of_value(column)
    if longest and column.max_repetition_level:  # rows of any number of texts
        return _Column(certain + shared + values * dictionary, 0, 0)
    texts = shared + values * dictionary if is_text else 0
    return _Column(certain, texts, max(longest, dictionary) if longest else 0)


def _sizes(head: dict[int, Any]) -> tuple[int, int, int, int]:
    """Of a page: bytes when decompressed, bytes, values, and their encoding; -1 for what is no number."""
    part, place = head.get(_DATA_2), 4
    if not isinstance(part, dict):
        part, place = head.get(_DATA) or head.get(_DICTIONARY), 2
    part = part if isinstance(part, dict) else {1: 0}
    found = head.get(_EXPANDED), head.get(_COMPRESSED), part.get(1), part.get(place, 0)
    expanded, compressed, n, encoding = (v if isinstance(v, int) else -1 for v in found)
    return expanded, compressed, n, encoding


# --- the heads of pages ------------------------------------------------------------


def _head(read: Read, at: int, end: int) -> tuple[dict[int, Any], int]:
    """The head of the page at a place, and where it ends."""
    size = _LEAST_HEAD
    while True:
        content = read(at, min(size, end - at))
        try:
            head, n = _struct(content, 0, 0)
            return head, at + n
        except IndexError:
            if size >= min(end - at, _MOST_HEAD):
                raise ValueError("the head of a page is damaged") from None
            size *= 8


def _struct(content: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """A structure in Thrift's compact protocol: its fields by number, and where it ends."""
    if depth > _MOST_DEPTH:
        raise ValueError("the head of a page is damaged")
    fields: dict[int, Any] = {}
    number = 0
    while True:
        byte = content[at]
        at += 1
        if byte == 0:
            return fields, at
        if byte >> 4:
            number += byte >> 4
        else:
            number, at = _integer(content, at)
        fields[number], at = _value(content, at, byte & 15, depth)


def _value(content: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):  # true and false
        return kind == 1, at
    if kind == 3:
        return content[at], at + 1
    if kind in (4, 5, 6):
        return _integer(content, at)
    if kind == 7:
        return None, at + 8
    if kind == 8:
        n, at = _varint(content, at)
        return None, at + n
    if kind in (9, 10):
        n, of = content[at] >> 4, content[at] & 15
        at += 1
        if n == 15:
            n, at = _varint(content, at)
        if n > len(content):
            raise ValueError("the head of a page is damaged")
        items = []
        for _ in range(n):
            item, at = (None, at + 1) if of in (1, 2) else _value(content, at, of, depth + 1)
            items.append(item)
        return items, at
    if kind == 12:
        return _struct(content, at, depth + 1)
    raise ValueError("the head of a page is damaged")


def _integer(content: bytes, at: int) -> tuple[int, int]:
    n, at = _varint(content, at)
    return (n >> 1) ^ -(n & 1), at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("the head of a page is damaged")


# --- texts ---------------------------------------------------------------------------


def _spelled_out(array: Any) -> int:
    """The bytes of the texts of an array that are now in dictionaries."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    if isinstance(array, pa.ChunkedArray):
        return sum(map(_spelled_out, array.chunks))
    if types.is_dictionary(array.type):
        lengths = pc.binary_length(array.dictionary)
        return int(pc.sum(pc.take(lengths, array.indices)).as_py() or 0)
    if types.is_map(array.type):
        return _spelled_out(array.keys) + _spelled_out(array.items)
    if types.is_list(array.type) or types.is_large_list(array.type) or types.is_fixed_size_list(array.type):
        return _spelled_out(array.flatten())
    if types.is_struct(array.type):
        return sum(map(_spelled_out, array.flatten()))
    return 0
