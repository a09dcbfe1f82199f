"""Reading `.npy` files of a saved model, mapped; `Writer` in `persist/folder.py` writes them.

A header of one form is checked against the file's size before use.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np

# As np.save writes it, from the first byte on. NumPy's own reader evaluates the header as a Python literal.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?s:(..))\{'descr': '([<|][biufSU]\d{1,9})', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,18},)?|\d{1,18}(?:, \d{1,18}){1,7})\), \} *\n"
)
_BEFORE_HEADER, _LONGEST_HEADER = 10, 10_000
# Files up to so many bytes are read: a mapping holds a descriptor, of which a process has few.
_READ_WHOLE = 1 << 16


def map_npy(path: Path) -> np.ndarray:
    """The array in a file of `np.save`, read-only: memory-mapped, or read where it is small.

    Raises
    ------
    ValueError
        If the file is none, is not C-contiguous, is of another dtype than booleans, integers, floats of at
        most 8 bytes and strings, or has not the size that its header says.
    """
    size = path.stat().st_size
    with open(path, "rb") as f:
        content = f.read(max(_READ_WHOLE, _LONGEST_HEADER))
    header = _HEADER.match(content, 0, _LONGEST_HEADER)
    if header is None or int.from_bytes(header[1], "little") != header.end() - _BEFORE_HEADER:
        raise ValueError("it is not a .npy file with a header that numpy.save writes")
    try:
        dtype = np.dtype(header[2].decode())
    except TypeError as error:
        raise ValueError(f"the header of the .npy file: {error}") from None
    if dtype.itemsize == 0 or (dtype.kind in "biuf" and dtype.itemsize > 8):
        raise ValueError(f"arrays of dtype {dtype} are not part of a model")
    shape = tuple(int(n) for n in header[3].split(b",") if n)
    if math.prod(shape) * dtype.itemsize != size - header.end() or max(shape, default=0) >= 2**40:
        raise ValueError(f"{dtype} {shape} does not fit the size of the .npy file")
    if size <= _READ_WHOLE:
        if len(content) != size:
            raise ValueError("the .npy file was truncated while it was read")
        array = np.frombuffer(content, dtype, offset=header.end()).reshape(shape)
    else:
        # Plain arrays over the map: a part of a memmap is made several times as slowly as one of an array.
        array = np.asarray(np.memmap(path, dtype, mode="r", offset=header.end(), shape=shape))
    array = np.require(array, requirements="A")  # a copy where a header of another length shifts the values
    if dtype.kind == "b" and array.size and int(array.view(np.uint8).max()) > 1:
        raise ValueError("booleans must be 0 or 1")
    return array
