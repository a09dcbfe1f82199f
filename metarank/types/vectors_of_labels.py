"""`LabelVectors`: a user's vectors of labels, and the columns of X in whose space they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class LabelVectors:
    """Vectors of L labels in the space of some columns of X.

    Parameters
    ----------
    vectors : float32 array (L, dv)
        A row of zeros is no vector.
    start : int
        The first of the dv columns of X.
    scale : float32 array (dv,) or None
        Factors that were applied to these columns; X divided by them is as the user gave it.

    Examples
    --------
    >>> own = LabelVectors(np.float32([[3, 4]]), 1, np.float32([2, 1]))
    >>> own.rows(np.float32([[9, 6, 4]]))
    array([[3., 4.]], dtype=float32)
    """

    vectors: np.ndarray
    start: int = 0
    scale: np.ndarray | None = None

    def rows(self, X: np.ndarray) -> np.ndarray:
        """float32 (n, dv): the rows of X in the space of the vectors."""
        part = X[:, self.start : self.start + self.vectors.shape[1]]
        return np.ascontiguousarray(part if self.scale is None else part / self.scale, np.float32)
