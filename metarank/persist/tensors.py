"""`Tensors`: named arrays in one file of the safetensors format, which torch and other tools read.

Eight bytes with the length of a JSON header, the header (dtype, shape and place of each tensor), the values.

The format's own library is not used: of a file of 200 MB, its `safe_open` and `load_file` copied 191 MB into
memory in 0.3 s, where this maps the file in 4 ms and several processes share one copy. It also writes to
paths only, and is part of the extra ``text``, which a saved model does not need to be read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

_DTYPES: dict[str, np.dtype] = {
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_METADATA = "__metadata__"
# Limits on a file that is read.
_LONGEST_HEADER = 1 << 24
_MOST_DIMENSIONS = 8
# Tensors start at a multiple of this, so that mapped arrays are aligned.
_ALIGNMENT = 64


class Tensors(dict[str, np.ndarray]):
    """Arrays by name that a saved model keeps in one safetensors file."""


def write_tensors(
    file: IO[bytes], tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None
) -> None:
    """Write the arrays, in the order of the mapping.

    Raises
    ------
    TypeError
        If an array is of another dtype than float32, float64, int32 and int64.
    """
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    arrays = []
    place = 0
    for name, values in tensors.items():
        array = np.ascontiguousarray(values)
        code = _CODES.get(array.dtype.newbyteorder("<"))
        if code is None:
            raise TypeError(f"{name}: a tensor of dtype {array.dtype} cannot be saved")
        header[name] = {
            "dtype": code,
            "shape": list(values.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        arrays.append(array.astype(_DTYPES[code], copy=False))
        place += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for array in arrays:
        file.write(array.tobytes())


def read_tensors(path: Path) -> tuple[Tensors, dict[str, str]]:
    """The arrays, memory-mapped and read-only, and the metadata.

    Raises
    ------
    ValueError
        If the file is not of the format, or ends too early.
    """
    size = path.stat().st_size
    with open(path, "rb") as f:
        length = int.from_bytes(f.read(8), "little")
        if not 2 <= length <= min(size - 8, _LONGEST_HEADER):
            raise ValueError(f"{str(path)!r} is not a safetensors file: its header has no end")
        try:
            header = json.loads(f.read(length).decode())
        except RecursionError:
            raise ValueError(f"{str(path)!r} is not a safetensors file: its header is nested") from None
    metadata = header.pop(_METADATA, {}) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError(f"{str(path)!r} is not a safetensors file: its header is no mapping of tensors")
    content = np.asarray(np.memmap(path, np.uint8, mode="r"))
    tensors = Tensors()
    for name, entry in header.items():
        dtype, shape, begin, end = _place(entry, f"{name!r:.80} of {str(path)!r}")
        if end > size - 8 - length or math.prod(shape) * dtype.itemsize != end - begin:
            raise ValueError(
                f"{str(path)!r} is damaged: {name!r:.80} lies outside the file or has another size"
            )
        values = content[8 + length + begin : 8 + length + end].view(dtype).reshape(shape)
        tensors[name] = np.require(values, requirements="A")
    return tensors, metadata


def _place(entry: Any, name: str) -> tuple[np.dtype, tuple[int, ...], int, int]:
    """Dtype, shape, begin and end of a tensor, as an entry of the header says."""
    entry = entry if isinstance(entry, dict) else {}
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise ValueError(f"dtype of tensor {name} must be one of {sorted(_DTYPES)}, got {dtype!r:.80}")
    for what, value in (("shape", shape), ("data_offsets", offsets)):
        if not isinstance(value, list) or not all(type(n) is int and 0 <= n < 2**48 for n in value):
            raise ValueError(f"{what} of tensor {name} must be a list of sizes, got {value!r:.80}")
    if len(offsets) != 2 or offsets[0] > offsets[1] or len(shape) > _MOST_DIMENSIONS:
        raise ValueError(
            f"tensor {name} must have a begin, an end, and at most {_MOST_DIMENSIONS} dimensions"
        )
    return _DTYPES[dtype], tuple(shape), offsets[0], offsets[1]
