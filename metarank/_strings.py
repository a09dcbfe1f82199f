"""`PackedStrings`: many short texts in two arrays, which a saved model maps instead of reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from metarank._state import Fields


class PackedStrings(Sequence[str]):
    """A sequence of texts, kept as UTF-8 beside where each of them ends.

    Examples
    --------
    >>> names = PackedStrings.of(["ein", "süßer", ""])
    >>> len(names), names[1], list(names[::2])
    (3, 'süßer', ['ein', ''])
    """

    def __init__(self, utf8: np.ndarray, ends: np.ndarray) -> None:
        self.utf8 = utf8
        self.ends = ends

    @classmethod
    def of(cls, texts: Sequence[str]) -> PackedStrings:
        """The texts of a sequence."""
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        return cls(np.frombuffer(b"".join(parts), np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        start = self.ends[i - 1] if i else 0
        return self.utf8[start : self.ends[i]].tobytes().decode("utf-8", "surrogatepass")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def get_state(self) -> dict[str, Any]:
        """The arrays."""
        return {"utf8": self.utf8, "ends": self.ends}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> PackedStrings:
        """The inverse of `get_state`."""
        fields = Fields(state, cls.__name__)
        utf8 = fields.array("utf8", np.uint8, (None,))
        ends = fields.ids("ends", np.int64, (None,), len(utf8) + 1)
        if np.any(ends[1:] < ends[:-1]) or (ends[-1] if len(ends) else 0) != len(utf8):
            raise ValueError("ends must not decrease, to the number of bytes")
        # A text that begins within a character is none, nor are bytes that are no characters.
        inner = ends[ends < len(utf8)]
        utf8.tobytes().decode("utf-8", "surrogatepass")
        if np.any(utf8[inner] & 0xC0 == 0x80):
            raise ValueError("ends must not lie within a character")
        return cls(utf8, ends)
