"""`PackedStrings`: many short texts in two arrays, which a saved model maps instead of reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, overload

import numpy as np

from metarank.persist.fields import Array, Ids, Known
from metarank.persist.spec import Saved, Spec


def _check_texts(known: Known) -> None:
    """ValueError where a text would begin within a character, or bytes are no characters."""
    utf8, ends = known.utf8, known.ends
    if np.any(ends[1:] < ends[:-1]) or (ends[-1] if len(ends) else 0) != len(utf8):
        raise ValueError("ends must not decrease, to the number of bytes")
    utf8.tobytes().decode("utf-8", "surrogatepass")
    if np.any(utf8[ends[ends < len(utf8)]] & 0xC0 == 0x80):
        raise ValueError("ends must not lie within a character")


class PackedStrings(Saved, Sequence[str]):
    """A sequence of texts, kept as UTF-8 beside where each of them ends.

    Examples
    --------
    >>> names = PackedStrings.of(["ein", "süßer", ""])
    >>> len(names), names[1], list(names[::2])
    (3, 'süßer', ['ein', ''])
    """

    saved: ClassVar[Spec] = Spec(
        Array("utf8", np.uint8, ("bytes",)),
        Ids("ends", np.int64, below=lambda known: known["bytes"] + 1),
        check=_check_texts,
    )

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

    __hash__: ClassVar[None] = None  # type: ignore[assignment]
