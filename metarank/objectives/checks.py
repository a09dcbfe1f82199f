"""Checks of inputs: targets, weights and groups as canonical arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from metarank.types.checks import check_numbers

# Sums and products of greater grades leave the range of numbers.
MAX_GRADE = 1e100


def check_targets(Y: Any, *, n_rows: int | None = None, name: str = "Y") -> tuple[np.ndarray, list[str]]:
    """Targets as a float64 array (n, K), and the names of the objectives.

    Parameters
    ----------
    Y : array-like (n, K) or (n,), data frame, or mapping of names to columns
        Grades, any numbers >= 0; a vector is one objective.
    n_rows : int or None
        Rows of X; must agree.
    name : str
        How messages call the input.

    Returns
    -------
    values : float64 array (n, K), C-contiguous
    names : list of str
        Columns of the frame, keys of the mapping, otherwise "objective_0", "objective_1", ...

    Raises
    ------
    ValueError
        Another number of dimensions or rows, K = 0, columns of unequal length, repeated names, text,
        complex numbers, or a value that is negative, NaN, infinite or above 1e100 (named by row and
        objective).

    Examples
    --------
    >>> values, names = check_targets({"relevance": [3, 0], "clicks": [0, 12]})
    >>> values.tolist(), names
    ([[3.0, 0.0], [0.0, 12.0]], ['relevance', 'clicks'])
    """
    if Y is None:
        raise ValueError(f"this method requires y to be passed, but the target y is None: {name} is missing")
    names = None
    if isinstance(Y, Mapping):
        names = [str(key) for key in Y]
        columns = [np.asarray(column) for column in Y.values()]
        lengths = {column.shape for column in columns}
        if len(lengths) > 1 or any(column.ndim != 1 for column in columns):
            raise ValueError(f"the columns of {name} must be vectors of one length, got shapes {lengths}")
        values = np.column_stack(columns) if columns else np.empty((0, 0))
    else:
        if hasattr(Y, "columns"):
            names = [str(column) for column in getattr(Y, "column_names", Y.columns)]
        values = np.asarray(Y.to_numpy() if hasattr(Y, "to_numpy") else Y)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2:
        raise ValueError(f"{name} must have shape (n, K), got {values.shape}")
    if values.shape[1] == 0:
        raise ValueError(f"{name} must hold at least one objective (K >= 1), got shape {values.shape}")
    if n_rows is not None and len(values) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"{name} has {len(values)}"
        )
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name}")
    try:
        values = np.ascontiguousarray(values, np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from None
    names = names or [f"objective_{k}" for k in range(values.shape[1])]
    if len(set(names)) < len(names):
        raise ValueError(f"the objectives of {name} must have distinct names, got {names}")
    bad = ~((values >= 0) & (values <= MAX_GRADE))
    if bad.any():
        row, k = np.argwhere(bad)[0]
        value = values[row, k]
        what = "NaN" if np.isnan(value) else "infinity (inf)" if np.isinf(value) else f"{value:g}"
        rule = "at most 1e100" if np.isfinite(value) and value > 0 else "finite and >= 0"
        raise ValueError(f"{name} must be {rule}, but {names[k]!r} contains {what} at row {row}")
    return values, names


def check_weights(weights: Any, n_objectives: int, *, names: Sequence[str] | None = None) -> np.ndarray:
    """Weights of the objectives, float64 (K,); None means ones.

    Parameters
    ----------
    weights : None, array-like (K,) or mapping of names to weights
        Of a mapping, objectives that it does not name weigh 0.

    Raises
    ------
    ValueError
        Another length, an unknown name, a value that is negative or not finite, or a sum of 0.

    Examples
    --------
    >>> check_weights({"clicks": 2}, 2, names=["relevance", "clicks"])
    array([0., 2.])
    """
    if weights is None:
        return np.ones(n_objectives)
    if isinstance(weights, Mapping):
        known = list(names or [])
        for key in weights:
            if key not in known:
                raise ValueError(f"weights must name objectives of {known}, got {key!r}")
        weights = [weights.get(key, 0.0) for key in known]
    values = check_numbers(weights, "weights", n_objectives)
    if (values < 0).any() or values.sum() == 0:
        raise ValueError(f"weights must be >= 0 and not sum to 0, got {values.tolist()}")
    return values


@dataclass(frozen=True, eq=False)
class Grouping:
    """Rows in groups (queries).

    Parameters
    ----------
    order : int64 array (n,)
        The rows, group after group; within a group in their original order.
    indptr : int64 array (G + 1,)
        Group g holds the rows ``order[indptr[g]:indptr[g + 1]]``.
    ids : int64 array (G,)
        What tells a group from others, whatever the order of the rows.
    has_queries : bool
        False for a whole sample, which is one group.
    """

    order: np.ndarray
    indptr: np.ndarray
    ids: np.ndarray
    has_queries: bool

    @property
    def sizes(self) -> np.ndarray:
        """int64 array (G,)."""
        return np.diff(self.indptr)

    @cached_property
    def group_of_row(self) -> np.ndarray:
        """int64 array (n,): the number of each row's group."""
        out = np.empty(len(self.order), np.int64)
        out[self.order] = np.repeat(np.arange(len(self.ids)), self.sizes)
        return out

    def sorted_by(self, target: np.ndarray) -> np.ndarray:
        """int64 array (n,): the rows, group after group, by ascending target; ties keep their order."""
        if not self.has_queries:
            return np.argsort(target, kind="stable")
        return np.lexsort((target, self.group_of_row))

    def distances(self, values: np.ndarray) -> np.ndarray:
        """float64 array (n,): sums of ``|v_i - v_j|`` over the rows of each row's group."""
        order = self.sorted_by(values)
        group = self.group_of_row[order]
        start, size = self.indptr[:-1][group], self.sizes[group]
        v = values[order] - values[order[start]]  # of a constant group exactly 0
        through = np.append(0.0, np.cumsum(v))
        before, after = through[:-1] - through[start], through[start + size] - through[1:]
        rank = np.arange(len(order)) - start
        out = np.empty(len(order))
        out[order] = rank * v - before + after - (size - 1 - rank) * v
        return out


def check_groups(n_rows: int, group: Any = None, qid: Any = None) -> Grouping:
    """Sizes of consecutive groups, or an id for each row in any order, as a `Grouping`.

    Parameters
    ----------
    n_rows : int
    group : array-like (G,) of positive integers, Grouping or None
        A Grouping is returned as it is.
    qid : array-like (n,), or None
        Integers or strings. With neither, all rows are one group without queries.

    Raises
    ------
    ValueError
        Both given; sizes that are not positive integers or do not add up; ids of another length, NaN.

    Examples
    --------
    >>> grouping = check_groups(4, qid=["b", "a", "b", "a"])
    >>> grouping.order, grouping.indptr
    (array([1, 3, 0, 2]), array([0, 2, 4]))
    >>> check_groups(4, group=[3, 1]).group_of_row
    array([0, 0, 0, 1])
    """
    if isinstance(group, Grouping):
        return group
    if group is not None and qid is not None:
        raise ValueError("group and qid are alternatives: pass one, got both")
    if group is not None:
        sizes = np.asarray(group)
        if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
            raise ValueError(f"group must be a vector of positive integers, got {group!r:.60}")
        if sizes.sum() != n_rows:
            raise ValueError(f"group must add up to the number of rows, {n_rows}, got {sizes.sum()}")
        indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        return Grouping(np.arange(n_rows), indptr, np.arange(len(sizes)), True)
    if qid is None:
        return Grouping(np.arange(n_rows), np.array([0, n_rows]), np.zeros(1, np.int64), False)
    values = np.asarray(qid)
    if values.shape != (n_rows,):
        raise ValueError(f"qid must have one entry per row, shape ({n_rows},), got {values.shape}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("qid must not be NaN or infinite")
    if values.dtype == object:
        values = values.astype(str)
    distinct, number = np.unique(values, return_inverse=True)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(distinct)))]).astype(np.int64)
    ids = distinct.astype(np.int64) if distinct.dtype.kind in "iub" else np.arange(len(distinct))
    return Grouping(np.argsort(number, kind="stable").astype(np.int64), indptr, ids, True)


def metric_of(metric: str, grouping: Grouping) -> str:
    """The name in `Metrics` of what a ranker's parameter `metric` asks for."""
    if metric == "ndcg" and not grouping.has_queries:
        raise ValueError("metric='ndcg' is defined within queries: give group (sizes) or qid (ids)")
    return "ndcg@10" if grouping.has_queries and metric != "auc" else "auc"
