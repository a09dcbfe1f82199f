"""Texts in arrays: `PackedStrings`, which a model maps; `WordRows` and `NameForms`, words in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from metarank.persist.fields import Array, Ids, Known
from metarank.persist.spec import Saved, Spec
from metarank.types.ragged import entries_of_rows


def _check_texts(known: Known) -> None:
    """ValueError where a text would begin within a character, or bytes are not characters."""
    utf8, ends = known.utf8, known.ends
    if np.any(ends[1:] < ends[:-1]) or (ends[-1] if len(ends) else 0) != len(utf8):
        raise ValueError("ends must not decrease, to the number of bytes")
    utf8.tobytes().decode("utf-8", "surrogatepass")
    if np.any(utf8[ends[ends < len(utf8)]] & 0xC0 == 0x80):
        raise ValueError("ends must not lie within a character")


@dataclass(eq=False, repr=False)
class PackedStrings(Saved, Sequence[str]):
    """A sequence of texts, kept as UTF-8 beside where each of them ends.

    Examples
    --------
    >>> names = PackedStrings.of(["ein", "süßer", ""])
    >>> len(names), names[1], list(names[::2])
    (3, 'süßer', ['ein', ''])
    """

    utf8: Annotated[np.ndarray, Array("", np.uint8, ("bytes",))]
    ends: Annotated[np.ndarray, Ids("", np.int64, ("texts",), below="bytes+1")]

    saved: ClassVar[Spec] = Spec(check=_check_texts)

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


@dataclass(frozen=True, eq=False)
class WordRows:
    """The words of n texts, one after another, as numbers: equal words have equal numbers.

    Parameters
    ----------
    indptr : int64 array (n + 1,)
    words : int64 array (m,)

    Examples
    --------
    >>> rows = WordRows.of([[7, 3, 7], [], [5]])
    >>> len(rows), rows[np.array([2, 0])].words
    (3, array([5, 7, 3, 7]))
    """

    indptr: NDArray[np.int64]
    words: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Iterable[list[int]]) -> WordRows:
        """Texts that are lists of numbers."""
        ends, parts = [0], []
        for row in rows:
            ends.append(ends[-1] + len(row))
            parts.append(np.array(row, np.int64))
        return cls(np.array(ends, np.int64), np.concatenate([np.zeros(0, np.int64), *parts]))

    @classmethod
    def joined(cls, parts: Sequence[WordRows]) -> WordRows:
        """The texts of several (at least one), one after another."""
        ends = np.cumsum([0, *(part.indptr[-1] for part in parts)])
        indptr = [part.indptr[1:] + before for part, before in zip(parts, ends)]
        return cls(
            np.concatenate([np.zeros(1, np.int64), *indptr]), np.concatenate([part.words for part in parts])
        )

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, rows: Any) -> WordRows:
        """Some texts: a slice, a mask or an array of positions."""
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(len(self))
            indptr = self.indptr[start : max(start, stop) + 1]
            return WordRows(indptr - indptr[0], self.words[indptr[0] : indptr[-1]])
        first, inside = entries_of_rows(self.indptr, np.arange(len(self))[rows])
        return WordRows(first, self.words[inside])


@dataclass(frozen=True, eq=False)
class NameForms:
    """The ways in which labels are written.

    Parameters
    ----------
    words : WordRows of M forms, none of them empty
    labels : int32 array (M,)
        The label of each form.
    kinds : int32 array (M,)
        `NAME`, `OTHER_NAME`, or `PART` where a name is written without what it is qualified by.
    """

    words: WordRows
    labels: NDArray[np.int32]
    kinds: NDArray[np.int32]


PART, OTHER_NAME, NAME = range(3)
