"""What the scores of one list say of its entries: place and moments. Lists are the rows of a CSR."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from metarank.types.candidates import Candidates
from metarank.types.ragged import row_of_entries


def places(lists: sp.csr_matrix) -> np.ndarray:
    """int64 (m,): the place of each entry in its row, from 0, by value; ties in order of label."""
    row = row_of_entries(lists.indptr)
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
    return candidates.found_in(Candidates.of_core(lists.indptr, lists.indices, candidates.n_labels, {}))


def moments(lists: sp.csr_matrix, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the entries of each row, float64 (n,); deviations of 0 become 1."""
    row, n = row_of_entries(lists.indptr), lists.shape[0]
    counts = np.maximum(np.diff(lists.indptr), 1)
    mean = np.bincount(row, weights=values, minlength=n) / counts  # one entry after another
    deviation = np.sqrt(np.bincount(row, weights=(values - mean[row]) ** 2, minlength=n) / counts)
    return mean, np.where(deviation > 0, deviation, 1.0)
