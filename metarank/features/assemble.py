"""Scorers' columns become the `FeatureTable` the ranker sees."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from metarank.candidates import Candidates
from metarank.features.standardize import standardize_within_lists
from metarank.features.table import FeatureTable


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
    instance's own list is. The standardised twin of ``name`` is ``z(name)``.

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
    values = np.empty((candidates.n_pairs, len(names)), np.float32)
    for j, name in enumerate(names):
        column = np.asarray(columns[name], np.float32)
        if column.shape != (candidates.n_pairs,):
            raise ValueError(
                f"feature column {name!r} must have shape {(candidates.n_pairs,)}, got {column.shape}"
            )
        if not np.isfinite(column).all():
            raise ValueError(f"feature column {name!r} must be finite, got NaN or infinity")
        values[:, j] = column
    if not standardize:
        return FeatureTable(values, names, candidates)
    own = [j for j, name in enumerate(names) if raw is None or name in raw]
    twins = standardize_within_lists(values, candidates.indptr, n_jobs=n_jobs)
    values = np.ascontiguousarray(np.concatenate([values[:, own], twins], axis=1))
    names = [names[j] for j in own] + [f"z({name})" for name in names]
    return FeatureTable(values, names, candidates)
