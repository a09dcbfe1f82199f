"""Iterative stratification (Sechidis, Tsoumakas, Vlahavas 2011): parts with equal shares of every label."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import scipy.sparse as sp


def stratified_folds(Y: Any, n_folds: int, seed: int = 0) -> np.ndarray:
    """Assign rows to folds of equal size and with equal shares of every label.

    Parameters
    ----------
    Y : labels (n, L), 0 where not relevant
    n_folds : int
        At least 2, at most n. Fold sizes differ by at most one.
    seed : int
        Decides ties; same labels and seed, same folds.

    Returns
    -------
    int32 array (n,), ids in [0, n_folds)

    Notes
    -----
    Labels are taken from the rarest on. Each row of a label goes to the fold that lacks most of that label;
    ties go to the fold that lacks most rows, then to a random one. Unlike in the paper, full folds take no
    more rows, so that sizes are exact.
    """
    Y = sp.csr_matrix(Y)
    n = Y.shape[0]
    sizes = np.full(n_folds, n // n_folds)
    sizes[: n % n_folds] += 1
    return _assign(Y, sizes, seed)


def _assign(Y: Any, sizes: np.ndarray, seed: int) -> np.ndarray:
    """Part of each row; part k gets `sizes[k]` rows."""
    n, n_labels = Y.shape
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    chance = rng.random((n, len(sizes))).tolist()
    counts = np.bincount(Y.indices, minlength=n_labels)
    lacking = np.outer(counts, sizes / n).tolist()  # how many rows of a label each part still wants
    room = sizes.tolist()
    remaining = counts.tolist()
    indptr, indices = Y.indptr.tolist(), Y.indices.tolist()
    by_label = Y[order].tocsc()  # a label's rows in random order
    label_indptr, label_rows = by_label.indptr, order[by_label.indices]
    part = np.full(n, -1, np.int32)

    # A label's entry in the queue is out of date once a row of it was placed for another label: it was
    # queued again then, with its smaller count.
    queue = [(count, label) for label, count in enumerate(remaining) if count]
    heapq.heapify(queue)
    while queue:
        count, label = heapq.heappop(queue)
        if count != remaining[label] or count == 0:
            continue
        touched = set()
        for row in label_rows[label_indptr[label] : label_indptr[label + 1]].tolist():
            if part[row] >= 0:
                continue
            wants, luck = lacking[label], chance[row]
            best = max((k for k in range(len(room)) if room[k]), key=lambda k: (wants[k], room[k], luck[k]))
            part[row] = best
            room[best] -= 1
            for other in indices[indptr[row] : indptr[row + 1]]:
                lacking[other][best] -= 1
                remaining[other] -= 1
                touched.add(other)
        for other in touched:
            if remaining[other]:
                heapq.heappush(queue, (remaining[other], other))

    unplaced = order[part[order] < 0]
    part[unplaced] = np.repeat(np.arange(len(room)), room)
    return part
