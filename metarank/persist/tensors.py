"""`Tensors`: named arrays in one file of the safetensors format, which torch and other tools read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from metarank._util.extra import require_extra


class Tensors(dict[str, np.ndarray]):
    """Arrays by name that a saved model keeps in one safetensors file."""


def write_tensors(file: IO[bytes], tensors: Mapping[str, np.ndarray]) -> None:
    """Write the arrays, of numbers only."""
    require_extra("text", "safetensors")
    from safetensors.numpy import save

    file.write(save({name: np.asarray(values, order="C") for name, values in tensors.items()}))


def read_tensors(path: Path) -> Tensors:
    """The arrays of a file.

    Raises
    ------
    ValueError
        If the file is not of the format, or ends too early.
    """
    require_extra("text", "safetensors")
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return Tensors(load_file(path))
    except (SafetensorError, AttributeError, KeyError, TypeError) as error:  # a dtype that NumPy has not
        raise ValueError(f"{str(path)!r} is not a safetensors file that can be read: {error}") from None
