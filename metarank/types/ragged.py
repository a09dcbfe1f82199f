"""Lists of several lengths, one after another: row i owns the entries ``indptr[i]:indptr[i + 1]``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def row_of_entries(indptr: np.ndarray) -> NDArray[np.int64]:
    """int64 (m,): the row of each entry.

    Examples
    --------
    >>> row_of_entries(np.array([0, 2, 2, 3]))
    array([0, 0, 2])
    """
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))


def entries_of_rows(indptr: np.ndarray, rows: np.ndarray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where some rows, in any order, begin once one stands after another, and the entries that they hold.

    Examples
    --------
    >>> entries_of_rows(np.array([0, 2, 2, 3]), np.array([2, 0]))
    (array([0, 1, 3]), array([2, 0, 1]))
    """
    counts = np.diff(indptr)[rows]
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return first, np.repeat(indptr[:-1][rows] - first[:-1], counts) + np.arange(first[-1])


def extreme_of_rows(ufunc: np.ufunc, values: np.ndarray, indptr: np.ndarray, empty: Any) -> np.ndarray:
    """(n,) of the type of `empty`: `np.minimum` or `np.maximum` of the entries of each row; `empty` of none.

    Examples
    --------
    >>> extreme_of_rows(np.maximum, np.array([3.0, 5.0, 1.0]), np.array([0, 2, 2, 3]), -1.0)
    array([ 5., -1.,  1.])
    """
    out, filled = np.full(len(indptr) - 1, empty), np.flatnonzero(np.diff(indptr))
    if len(filled):
        out[filled] = ufunc.reduceat(values, indptr[filled])
    return out


def found_at(stored: np.ndarray, wanted: np.ndarray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where numbers stand among ascending ones, int64 (m,), and whether they do, bool (m,).

    Examples
    --------
    >>> found_at(np.array([2, 5]), np.array([5, 4]))
    (array([1, 1]), array([ True, False]))
    """
    if not len(stored):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(stored, wanted), len(stored) - 1)
    return at, stored[at] == wanted
