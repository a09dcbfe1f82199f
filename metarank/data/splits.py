"""Iterative stratification (Sechidis, Tsoumakas, Vlahavas 2011): parts with equal shares of every label."""

from __future__ import annotations

import heapq
from numbers import Integral
from typing import Any

import numpy as np

from metarank.types.checks import check_labels


def stratified_folds(Y: Any, n_folds: int, seed: int = 0) -> np.ndarray:
    """Assign rows to folds of equal size and with equal shares of every label.

    Parameters
    ----------
    Y : labels (n, L)
        Anything `check_labels` takes; relevant means > 0.
    n_folds : int
        At least 2, at most n. Fold sizes differ by at most one.
    seed : int
        Decides ties; same labels and seed, same folds.

    Returns
    -------
    int32 array (n,), ids in [0, n_folds)

    Raises
    ------
    ValueError
        If `n_folds` is not in [2, n].

    Notes
    -----
    Labels are taken from the rarest on. Each row of a label goes to the fold that lacks most of that label;
    ties go to the fold that lacks most rows, then to a random one. Unlike in the paper, full folds take no
    more rows, so that sizes are exact.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.repeat([[1, 0], [0, 1], [0, 0]], 4, axis=0)
    >>> fold = stratified_folds(Y, 2)
    >>> [Y[fold == f].sum(axis=0).tolist() for f in (0, 1)]
    [[2, 2], [2, 2]]
    """
    Y = check_labels(Y, allow_no_labels=True)[0]
    n = Y.shape[0]
    if not isinstance(n_folds, Integral) or not 2 <= n_folds <= n:
        raise ValueError(f"n_folds must be an integer in [2, {n}], got {n_folds!r}")
    sizes = np.full(n_folds, n // n_folds)
    sizes[: n % n_folds] += 1
    return _assign(Y, sizes, seed)


def stratified_split(Y: Any, test_size: float = 0.2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Split rows into a training and a test part with equal shares of every label.

    Parameters
    ----------
    Y : labels (n, L)
        Anything `check_labels` takes.
    test_size : float in (0, 1) or int in [1, n)
        Share (rounded to whole rows) or number of test rows; kept exactly.
    seed : int

    Returns
    -------
    (train_rows, test_rows) : ascending int64 arrays

    Examples
    --------
    >>> train, test = stratified_split([[0]] * 8 + [[1]] * 2, test_size=0.5)
    >>> len(train), len(test), int((test >= 8).sum())
    (5, 5, 1)
    """
    Y = check_labels(Y, allow_no_labels=True)[0]
    n = Y.shape[0]
    whole = isinstance(test_size, Integral) and not isinstance(test_size, bool)
    n_test = int(test_size) if whole else round(float(test_size) * n)
    if not 0 < n_test < n or (not whole and not 0 < test_size < 1):
        raise ValueError(f"test_size must leave rows on both sides of {n}, got {test_size!r}")
    part = _assign(Y, np.array([n - n_test, n_test]), seed)
    return np.flatnonzero(part == 0), np.flatnonzero(part == 1)


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
