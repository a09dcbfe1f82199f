"""Sizes of a fit, and the parts of memory that each scorer computes from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

# The stages of a fit. Parts of one stage are in memory together; those of different stages are not.
DESCRIBE, RANK, CUT, FIT = STAGES = ("describing", "ranking", "thresholds", "fitting on all rows")


@dataclass(frozen=True)
class MemoryPart:
    """Something that a fit holds in memory: in which stages, and how a user can make it smaller."""

    name: str
    bytes: int
    stages: tuple[str, ...] = STAGES
    remedy: str = "fit on fewer rows"


@dataclass(frozen=True)
class FitSizes:
    """The sizes of a fit that do not depend on its sources.

    Attributes
    ----------
    X, Y : features (n, d) and labels (n, L)
    ranked_rows : int
        Rows that the ranker learns from.
    pairs_per_row : int
    n_folds : int
        Folds of the fold map.
    used_folds : int
        Folds with ranked rows. Each costs a fit of every scorer without a closed form.
    n_jobs : int
    n_tables : int
        Further feature tables, on which the ranker is judged; see `crossfit.nested_columns`.
    point_pairs : int
        Pairs of the lists of points, at most.
    """

    X: np.ndarray | sp.csr_matrix
    Y: sp.csr_matrix
    ranked_rows: int
    pairs_per_row: int
    n_folds: int
    used_folds: int
    n_jobs: int
    n_tables: int = 0
    point_pairs: int = 0

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_labels(self) -> int:
        return int(self.Y.shape[1])

    @property
    def n_terms(self) -> int:
        return self.X.size if isinstance(self.X, np.ndarray) else int(self.X.nnz)

    @property
    def labels_per_row(self) -> float:
        return max(1.0, self.Y.nnz / self.n_rows)

    @property
    def n_pairs(self) -> int:
        return self.ranked_rows * self.pairs_per_row
