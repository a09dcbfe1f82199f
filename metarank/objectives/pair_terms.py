"""All pairs of unequal grades, counted row by row in O(n log n)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class PairTerms(NamedTuple):
    """What each row has to do with its pairs.

    The row of the greater grade and the row of the smaller one are both given every pair of theirs, so
    that sums over all rows count each pair twice.
    """

    won: np.ndarray
    cost: np.ndarray


def pair_terms(
    scores: np.ndarray, grades: np.ndarray, cost: str = "difference", group: np.ndarray | None = None
) -> PairTerms:
    """Cost of each row's pairs of unequal grades, and how much of it the scores put in the right order.

    The distinct grades are split in two halves, all pairs between the halves are counted at once from
    sums over the rows sorted by score, then each half is split: O(n log n + n log G) for G grades.

    Parameters
    ----------
    scores : float array (n,)
        Without NaN.
    grades : float array (n,)
    cost : "difference" or "uniform"
    group : integer array (n,), optional
        Only rows of the same group make pairs.

    Returns
    -------
    PairTerms
        `won` and `cost`, float64 (n,). Counts are exact, differences rounded in an order that does not
        depend on that of the rows.
    """
    distinct, grade = np.unique(grades, return_inverse=True)
    # Rows tied in their score stand in the order of their grades, so that sums do not depend on the rows'.
    keys = (grade, scores) if group is None else (grade, scores, group)
    order = np.lexsort(keys)
    grade, score = grade[order], scores[order]
    value = distinct[grade] - distinct[0] if cost == "difference" else None
    # Blocks are groups and, within them, the parts of the grades that are not yet split.
    starts = _changes(np.zeros(len(grades)) if group is None else group[order])
    won, total = np.zeros(len(grades)), np.zeros(len(grades))
    for bit in reversed(range(int(len(distinct) - 1).bit_length())):
        upper = (grade >> bit) & 1 == 1
        in_order, whole = _half_against_half(starts, starts | _changes(score), upper, value)
        won[order] += in_order
        total[order] += whole
        if bit > 0:
            place, starts = _split(starts, upper)
            order, grade, score = order[place], grade[place], score[place]
            value = None if value is None else value[place]
    return PairTerms(won, total)


def _changes(values: np.ndarray) -> np.ndarray:
    """Where a value differs from the one before it; the first does."""
    return np.concatenate([[True], values[1:] != values[:-1]])


def _half_against_half(
    starts: np.ndarray, ties: np.ndarray, upper: np.ndarray, value: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """What each row wins and has at stake against the other half of its block, rows sorted by block, score.

    `starts` and `ties` mark the first rows of blocks and of equal scores; `value` is None for uniform costs.
    """
    of_block, of_tie = np.cumsum(starts) - 1, np.cumsum(ties) - 1
    block_ends, tie_ends = (np.append(np.flatnonzero(first), len(upper)) for first in (starts, ties))

    def sums(kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums over what is below each row in its block, ties by half, and over the block."""
        running = np.concatenate([[0], np.cumsum(kept)])
        at_ends, at_ties = running[block_ends], running[tie_ends]
        below = ((at_ties[:-1] + at_ties[1:]) / 2)[of_tie] - at_ends[of_block]
        return below, np.diff(at_ends)[of_block]

    lower_below, n_lower = sums(~upper)
    upper_below, n_upper = sums(upper)
    upper_above = n_upper - upper_below
    if value is None:
        return np.where(upper, lower_below, upper_above), np.where(upper, n_lower, n_upper)
    value_below, lower_value = sums(np.where(upper, 0.0, value))
    upper_value_below, upper_value = sums(np.where(upper, value, 0.0))
    won = np.where(
        upper,
        value * lower_below - value_below,
        upper_value - upper_value_below - value * upper_above,
    )
    return won, np.where(upper, value * n_lower - lower_value, upper_value - value * n_upper)


def _split(starts: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each block's lower rows before its upper ones, in their order: old places, first rows of blocks."""
    block, first = np.cumsum(starts) - 1, np.flatnonzero(starts)
    lower_before = np.concatenate([[0], np.cumsum(~upper)])
    start = first[block]
    n_lower = np.diff(np.append(lower_before[first], lower_before[-1]))[block]
    lower_ahead = lower_before[:-1] - lower_before[start]
    row = np.arange(len(upper))
    target = start + np.where(upper, n_lower + row - start - lower_ahead, lower_ahead)
    place = np.empty_like(row)
    place[target] = row
    return place, starts | _changes(upper[place])
