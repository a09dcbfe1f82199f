"""`Limits`: which labels may be ranked, by what the user allows and excludes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from metarank._validation import check_candidates
from metarank.candidates import Candidates


@dataclass(frozen=True)
class Limits:
    """The labels that may be ranked for each of n rows.

    Parameters
    ----------
    excluded : Candidates of the n rows, or None
        Labels that are not to be ranked.
    allowed : Candidates of the n rows, ascending int32 array of ids for all rows, or None
        The only labels that may be ranked; None for all.
    removed : int array
        Labels that are no more.
    """

    excluded: Candidates | None = None
    allowed: Candidates | np.ndarray | None = None
    removed: np.ndarray | Sequence[int] = ()

    @classmethod
    def checked(
        cls, exclude: Any, allowed: Any, n_rows: int, n_labels: int, removed: np.ndarray | Sequence[int] = ()
    ) -> Limits:
        """The limits a user asks for.

        Raises
        ------
        ValueError, TypeError
            If `exclude` or `allowed` is malformed; the message names it.
        """
        return cls(
            None if exclude is None else check_candidates(exclude, n_rows, n_labels, name="exclude"),
            None if allowed is None else _without(check_allowed(allowed, n_rows, n_labels), removed),
            removed,
        )

    def cut(self, candidates: Candidates, rows: slice) -> Candidates:
        """The candidates of some rows that may be ranked, with their scores."""
        candidates = candidates.without_labels(self.removed)
        if self.excluded is not None:
            candidates = candidates.without(self.excluded.rows(rows))
        if self.allowed is None:
            return candidates
        if isinstance(self.allowed, Candidates):
            return candidates.where(candidates.among(self.allowed.rows(rows)))
        open_to = np.zeros(candidates.n_labels, bool)
        open_to[self.allowed] = True
        return candidates.where(open_to[candidates.labels])

    def complete(
        self, candidates: Candidates, rows: slice, least: int, inv_propensity: np.ndarray
    ) -> Candidates:
        """Candidates after `cut`, rows with fewer than `least` completed to so many by other allowed labels.

        All of them where they are no more than that, else the most frequent ones: those of least inverse
        propensity (L,), ties by id. The scores of proposers are left out.
        """
        if self.allowed is None:
            return candidates
        counts = np.diff(candidates.indptr)
        short = np.flatnonzero(counts < least)
        excluded = None if self.excluded is None else self.excluded.rows(rows).rows(short)
        if isinstance(self.allowed, Candidates):
            offer = self.allowed.rows(rows).rows(short)
        else:
            # No more can be wanted of a row than these: the others are candidates already, or excluded.
            taken = 0 if excluded is None else int(np.diff(excluded.indptr).max(initial=0))
            by_frequency = np.lexsort((self.allowed, inv_propensity[self.allowed]))[: least + taken]
            head = np.sort(self.allowed[by_frequency])
            indptr = np.arange(len(short) + 1, dtype=np.int64) * len(head)
            offer = Candidates.of_core(indptr, np.tile(head, len(short)), candidates.n_labels, {})
        offer = offer.without(candidates.rows(short))
        if excluded is not None:
            offer = offer.without(excluded)
        if offer.n_pairs == 0:
            return candidates
        row = offer.row_of_pair
        order = np.lexsort((offer.labels, inv_propensity[offer.labels], row))
        place = np.arange(offer.n_pairs) - np.repeat(offer.indptr[:-1], np.diff(offer.indptr))
        wanted = np.zeros(offer.n_pairs, bool)
        wanted[order[place < (least - counts[short])[row]]] = True
        added = offer.where(wanted)
        lengths = np.zeros(candidates.n_rows, np.int64)
        lengths[short] = np.diff(added.indptr)
        more = Candidates(np.concatenate([[0], np.cumsum(lengths)]), added.labels, candidates.n_labels)
        return Candidates(candidates.indptr, candidates.labels, candidates.n_labels).union(more)


def check_allowed(allowed: Any, n_rows: int, n_labels: int) -> Candidates | np.ndarray:
    """`allowed` as `Candidates` of the rows, or as ascending distinct ids (int32) for all rows.

    Raises
    ------
    ValueError, TypeError
        An id out of range or not an integer; a wrong number of rows or labels.

    Examples
    --------
    >>> check_allowed([2, 0], 5, 3)
    array([0, 2], dtype=int32)
    >>> check_allowed([[2], [0, 1]], 2, 3).labels
    array([2, 0, 1], dtype=int32)
    """
    if not _is_flat(allowed):
        return check_candidates(allowed, n_rows, n_labels, name="allowed")
    if isinstance(allowed, np.ndarray) and allowed.dtype.kind in "iu":
        if len(allowed) and not 0 <= allowed.min() <= allowed.max() < n_labels:
            wrong = allowed[(allowed < 0) | (allowed >= n_labels)][0]
            raise ValueError(f"allowed must hold label ids in [0, {n_labels}), got {wrong}")
        return np.unique(allowed).astype(np.int32)
    for label in allowed:
        if isinstance(label, (bool, np.bool_)) or not isinstance(label, Integral):
            raise TypeError(f"allowed must hold label ids, got {label!r}")
        if not 0 <= int(label) < n_labels:
            raise ValueError(f"allowed must hold label ids in [0, {n_labels}), got {label!r}")
    return np.unique(np.asarray(allowed, np.int32))


def _without(
    allowed: Candidates | np.ndarray, removed: np.ndarray | Sequence[int]
) -> Candidates | np.ndarray:
    if isinstance(allowed, Candidates):
        return allowed.without_labels(removed)
    return np.setdiff1d(allowed, removed).astype(np.int32)


def _is_flat(allowed: Any) -> bool:
    """Whether it is one list for all rows: a vector, or a sequence of single ids; empty, it allows none."""
    if isinstance(allowed, np.ndarray):
        return allowed.ndim == 1 and allowed.dtype != object
    if isinstance(allowed, (str, bytes)) or not isinstance(allowed, Sequence):
        return False
    return not any(isinstance(item, (Sequence, np.ndarray)) and not isinstance(item, str) for item in allowed)
