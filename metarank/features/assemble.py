"""Scorers' columns become the `FeatureTable` the ranker sees."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from metarank.candidates import Candidates
from metarank.features.standardize import standardize_within_lists
from metarank.features.table import FeatureTable


def assemble(
    columns: Mapping[str, np.ndarray], candidates: Candidates, *, standardize: bool = True, n_jobs: int = 1
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
    n_jobs : int
        Threads.

    Returns
    -------
    FeatureTable
        Columns in the order given, then their twins.

    Raises
    ------
    ValueError
        If there is no column, or one holds NaN or infinity (named).
    """
    if not columns:
        raise ValueError("features must give at least one column, got none")
    names = list(columns)
    values = np.empty((candidates.n_pairs, len(names) * (2 if standardize else 1)), np.float32)
    for j, name in enumerate(names):
        column = np.asarray(columns[name], np.float32)
        if column.shape != (candidates.n_pairs,):
            raise ValueError(
                f"feature column {name!r} must have shape {(candidates.n_pairs,)}, got {column.shape}"
            )
        if not np.isfinite(column).all():
            raise ValueError(f"feature column {name!r} must be finite, got NaN or infinity")
        values[:, j] = column
    if standardize:
        raw = np.ascontiguousarray(values[:, : len(names)])
        values[:, len(names) :] = standardize_within_lists(raw, candidates.indptr, n_jobs=n_jobs)
        names = names + [f"z({n})" for n in names]
    return FeatureTable(values, names, candidates)
