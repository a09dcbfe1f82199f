"""Limits on what a file may declare: one rule for every reader, checked before anything is decoded.

A few bytes can stand for very many: a compressed stream of zeros, a run in a Parquet page, a hole in a file,
a header with 10^8 labels. So a file may declare at most a multiple of the bytes that it has on the disk, or a
floor that admits every ordinary small file, whichever is more:

================================================  ==============  ==============
declared                                          times           floor
================================================  ==============  ==============
bytes of a compressed file, bytes with its holes  100             64 MiB
bytes of the values in a table (Parquet, ARFF)    1000            256 MiB
labels (of a header, or the largest id)           1 a byte        2^22
features (of a header, or the largest id)         1 a byte        2^24
columns of svmlight that are known by name        1 a byte        2^20
================================================  ==============  ==============

Declaring more raises a ValueError that says what to do: decompress or rewrite the file, pass `n_labels` or
`n_features`, or pass what another library has read.
"""

from __future__ import annotations

import os
from pathlib import Path

from metarank._util.files import bytes_on_disk
from metarank.types.checks import MOST_IMPLIED_LABELS

TEXT_TIMES, TEXT_LEAST = 100, 1 << 26
TABLE_TIMES, TABLE_LEAST = 1000, 1 << 28
LEAST_LABELS, LEAST_FEATURES, LEAST_COLUMNS = MOST_IMPLIED_LABELS, 1 << 24, 1 << 20


def most_text(n_bytes: int) -> int:
    """Greatest number of bytes of text that this many bytes on the disk may hold.

    Examples
    --------
    >>> most_text(100), most_text(10**9)
    (67108864, 100000000000)
    """
    return max(TEXT_LEAST, TEXT_TIMES * n_bytes)


def check_present(path: str | os.PathLike[str]) -> None:
    """Raise ValueError if a file is mostly holes, which read as zeros and take no space on the disk."""
    found = Path(path).stat()
    there = bytes_on_disk(found)
    if found.st_size > most_text(there) and _has_hole(path, found.st_size):
        raise ValueError(
            f"{path}: of its {found.st_size} bytes {there} are on the disk, the rest are holes: copy it "
            "without, if it is a text"
        )


def check_sizes(
    n_features: int, n_labels: int, n_bytes: int, *, said: str, given: tuple[bool, bool] = (False, False)
) -> None:
    """Raise ValueError if a text of this many bytes declares too many features or labels.

    `said` opens the message; `given` tells which of the two the caller has said as well.
    """
    for size, least, own, what in (
        (n_features, LEAST_FEATURES, given[0], "features"),
        (n_labels, LEAST_LABELS, given[1], "labels"),
    ):
        if not own and size > max(least, n_bytes):
            raise ValueError(
                f"{said} {size} {what}, more than {max(least, n_bytes)} in {n_bytes} bytes: if that is so, "
                f"data.load takes n_{what}={size}"
            )


def most_of_table(n_bytes: int) -> int:
    """Greatest number of bytes of values that a table of this many bytes may hold.

    Examples
    --------
    >>> most_of_table(100), most_of_table(10**9)
    (268435456, 1000000000000)
    """
    return max(TABLE_LEAST, TABLE_TIMES * n_bytes)


def check_table(decoded: int, n_bytes: int, advice: str) -> None:
    """Raise ValueError if the values of a table of `n_bytes` take too much memory when decoded."""
    if decoded > most_of_table(n_bytes):
        raise ValueError(
            f"its {n_bytes} bytes stand for values of {decoded} bytes, more than {most_of_table(n_bytes)}: "
            f"{advice}"
        )


def _has_hole(path: str | os.PathLike[str], size: int) -> bool:
    """Whether the file system reports a hole. One that reports neither holes nor blocks is trusted."""
    if not hasattr(os, "SEEK_HOLE"):
        return False
    with open(path, "rb") as f:
        try:
            return os.lseek(f.fileno(), 0, os.SEEK_HOLE) < size
        except OSError:
            return False
