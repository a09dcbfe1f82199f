"""What the scores of one list say of its entries: place, moments, extremes. Lists are the rows of a CSR."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from metarank.types.candidates import Candidates


def rows_of(lists: sp.csr_matrix) -> np.ndarray:
    """int64 (m,): the row of each stored entry."""
    return np.repeat(np.arange(lists.shape[0], dtype=np.int64), np.diff(lists.indptr))


def places(lists: sp.csr_matrix) -> np.ndarray:
    """int64 (m,): the place of each entry in its row, from 0, by value; ties in order of label."""
    row = rows_of(lists)
    order = np.lexsort((-lists.data, row))  # stable, and labels ascend
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - lists.indptr[row]
    return place


def are_places(lists: sp.csr_matrix) -> bool:
    """Whether each entry is 1 / (place + 1), as labels without scores have it; some places may be missing."""
    place = np.round(1 / np.maximum(lists.data.astype(np.float64), 1e-9))
    return bool((lists.data == (1 / np.maximum(place, 1)).astype(np.float32)).all())


def positions(lists: sp.csr_matrix, candidates: Candidates) -> tuple[np.ndarray, np.ndarray]:
    """Of each pair the position of its entry, int64 (m,), and whether there is one, bool (m,)."""
    return positions_of(Candidates.of_core(lists.indptr, lists.indices, candidates.n_labels, {}), candidates)


def positions_of(listed: Candidates, candidates: Candidates) -> tuple[np.ndarray, np.ndarray]:
    """As `positions`, of each pair in other lists of the same rows."""
    stored, wanted = listed.pair_keys, candidates.pair_keys
    if not len(stored):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(stored, wanted), len(stored) - 1)
    return at, stored[at] == wanted


def moments(lists: sp.csr_matrix, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the entries of each row, float64 (n,); deviations of 0 become 1."""
    row, n = rows_of(lists), lists.shape[0]
    counts = np.maximum(np.diff(lists.indptr), 1)
    mean = np.bincount(row, weights=values, minlength=n) / counts  # one entry after another
    deviation = np.sqrt(np.bincount(row, weights=(values - mean[row]) ** 2, minlength=n) / counts)
    return mean, np.where(deviation > 0, deviation, 1.0)


def extremes(lists: sp.csr_matrix, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest of some values (m,) of each row, float64 (n,); 0 of an empty row."""
    least, greatest = np.zeros(lists.shape[0]), np.zeros(lists.shape[0])
    filled = np.flatnonzero(np.diff(lists.indptr))
    if len(filled):
        least[filled] = np.minimum.reduceat(values, lists.indptr[filled])
        greatest[filled] = np.maximum.reduceat(values, lists.indptr[filled])
    return least, greatest
