"""Which rows stay together, and fold maps of one's own: the checks of `groups` and `folds`."""

from __future__ import annotations

from typing import Any

import numpy as np

from metarank.types.containers import as_list, is_missing


def check_groups(groups: Any, n_rows: int, name: str = "groups") -> np.ndarray | None:
    """The number of each row's group in order of first appearance, int64 (n,); None stays None.

    Parameters
    ----------
    groups : array-like (n,) of integers, texts or other values that can be compared, or None
        Rows of equal values are one group.
    n_rows : int
    name : str
        Name of the parameter in messages.

    Raises
    ------
    ValueError
        If the length is not n, a value is missing (None, NaN, NaT), or all rows are one group.
    TypeError
        If it is not a list of values, or a value cannot be a group (a list, for example).

    Examples
    --------
    >>> check_groups(["b", "a", "b"], 3)
    array([0, 1, 0])
    """
    if groups is None:
        return None
    values = _listed(groups, n_rows, name)
    number: dict[Any, int] = {}
    out = np.empty(n_rows, np.int64)
    for row, value in enumerate(values):
        if is_missing(value):
            raise ValueError(f"{name} must give the group of each row, got {value!r} at row {row}")
        try:
            out[row] = number.setdefault(value, len(number))
        except TypeError:
            raise TypeError(f"{name} must hold integers or texts, got {value!r:.40} at row {row}") from None
    if len(number) < 2:
        raise ValueError(f"{name} must hold at least 2 groups, to hold one out, got {values[0]!r:.40} only")
    return out


def check_fold_map(fold: Any, n_rows: int, name: str = "folds") -> np.ndarray | None:
    """The fold of each row, int32 (n,) of 0 .. K-1 in the order of the given values; None stays None.

    Raises
    ------
    ValueError, TypeError
        If it is not a list of n integers >= 0 of which at least two differ.

    Examples
    --------
    >>> check_fold_map([7, 3, 3], 3)
    array([1, 0, 0], dtype=int32)
    """
    if fold is None:
        return None
    values = np.asarray(_listed(fold, n_rows, name))
    if values.dtype.kind not in "iu":
        shown = next((v for v in values.tolist() if isinstance(v, bool) or not isinstance(v, int)), fold)
        raise TypeError(f"{name} must hold integers >= 0, got {shown!r:.40}")
    if values.min() < 0:
        row = int(np.argmax(values < 0))
        raise ValueError(f"{name} must hold integers >= 0, got {values[row]} at row {row}")
    distinct, number = np.unique(values, return_inverse=True)
    if len(distinct) < 2:
        raise ValueError(f"{name} must hold at least 2 folds, got {distinct[0]} only")
    return number.astype(np.int32)


def check_whole_groups(groups: np.ndarray | None, fold: np.ndarray | None) -> None:
    """Raise ValueError if a group lies in several folds of a given map."""
    if groups is None or fold is None:
        return
    first = np.unique(groups, return_index=True)[1]
    apart = np.flatnonzero(fold != fold[first][groups])
    if len(apart):
        raise ValueError(
            f"folds must keep groups together, got rows {first[groups[apart[0]]]} and {apart[0]} of one "
            "group in two folds"
        )


def _listed(values: Any, n_rows: int, name: str) -> list[Any]:
    """The values of a list, an array of one dimension or a Series."""
    if getattr(values, "ndim", 1) != 1:
        raise ValueError(f"{name} must have shape {(n_rows,)}, got {values.shape}")
    values = as_list(values)
    if not isinstance(values, (list, tuple, range)):
        raise TypeError(f"{name} must be a list with a value per row, got {values!r:.60}")
    if len(values) != n_rows:
        raise ValueError(f"{name} must have shape {(n_rows,)}, got {len(values)} values")
    return list(values)
