"""How many labels a row gets at least and at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metarank._util.parameters import check_integer


@dataclass(frozen=True)
class SetSizes:
    """How many labels a row gets at least and at most, its best ones, whatever the threshold is.

    Raises
    ------
    ValueError, TypeError
        If they are not whole numbers, `at_least` is below 0, or `at_most` below `at_least` or 1.
    """

    at_least: int = 0
    at_most: int | None = None

    def __post_init__(self) -> None:
        check_integer("at_least", self.at_least, 0)
        if self.at_most is not None:
            check_integer("at_most", self.at_most, max(1, self.at_least))

    def __bool__(self) -> bool:
        return bool(self.at_least) or self.at_most is not None

    def hold(self, kept: np.ndarray, rank: np.ndarray) -> np.ndarray:
        """bool (m,): the kept pairs, by the rank of each pair in its row."""
        most = rank < (np.inf if self.at_most is None else self.at_most)
        return (kept & most) | (rank < self.at_least)


ANY_SIZE = SetSizes()
