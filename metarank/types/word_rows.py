"""`WordRows` and `NameForms`: words of texts and of names in the order in which they are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
        at = np.arange(len(self))[rows]
        counts = np.diff(self.indptr)[at]
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        inside = np.arange(first[-1]) + np.repeat(self.indptr[at] - first[:-1], counts)
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
