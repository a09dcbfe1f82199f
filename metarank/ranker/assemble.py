"""Scorers' columns become the `FeatureTable` the ranker sees."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from metarank import _core
from metarank._util.threads import resolve_n_jobs
from metarank.types.candidates import Candidates
from metarank.types.feature_table import RELATIVE, FeatureTable


def joined_columns(
    columns: Sequence[Mapping[str, np.ndarray]], is_classifier: Sequence[bool] = ()
) -> tuple[dict[str, np.ndarray], list[str]]:
    """The columns of several scorers under distinct names, and the names of those of classifiers.

    Two scorers may both give a `name`; the later becomes `name #2`.

    Examples
    --------
    >>> a, b = {"score": np.zeros(1)}, {"score": np.ones(1)}
    >>> joined_columns([a, b], [False, True])
    ({'score': array([0.]), 'score #2': array([1.])}, ['score #2'])
    """
    joined: dict[str, np.ndarray] = {}
    of_classifiers = []
    for i, own in enumerate(columns):
        for name, values in own.items():
            unique, n = name, 2
            while unique in joined:
                unique, n = f"{name} #{n}", n + 1
            joined[unique] = values
            if i < len(is_classifier) and is_classifier[i]:
                of_classifiers.append(unique)
    return joined, of_classifiers


def assemble(
    columns: Mapping[str, np.ndarray],
    candidates: Candidates,
    *,
    standardize: bool = True,
    raw: Collection[str] | None = None,
    n_jobs: int = 1,
) -> FeatureTable:
    """Stack named columns (m,) and, beside each, its value standardised within the row's candidate list.

    Distances are not comparable across instances; their place within an
    instance's own list is. The standardised twin of ``name`` is
    ``name (relative)``.

    Parameters
    ----------
    columns : mapping of name to float32 array (m,)
    candidates : Candidates with m pairs
    standardize : bool
        Whether to add the standardised twins.
    raw : collection of str, optional
        Columns whose own values enter beside their twins; all by default.
    n_jobs : int
        Threads.

    Returns
    -------
    FeatureTable
        Own values in the order given, then the twins.

    Raises
    ------
    ValueError
        If there is no column, or one holds NaN or infinity (named).
    """
    if not columns:
        raise ValueError("features must give at least one column, got none")
    names = list(columns)
    arrays = [np.ascontiguousarray(column, np.float32) for column in columns.values()]
    for name, column in zip(names, arrays):
        if column.shape != (candidates.n_pairs,):
            raise ValueError(
                f"feature column {name!r} must have shape {(candidates.n_pairs,)}, got {column.shape}"
            )
    own = [j for j, name in enumerate(names) if raw is None or not standardize or name in raw]
    try:
        values = _core.feature_table(arrays, candidates.indptr, own, standardize, resolve_n_jobs(n_jobs))
    except ValueError:
        for name, column in zip(names, arrays):
            if not np.isfinite(column).all():
                raise ValueError(f"feature column {name!r} must be finite, got NaN or infinity") from None
        raise
    twins = [name + RELATIVE for name in names] if standardize else []
    return FeatureTable(values, [names[j] for j in own] + twins, candidates)
