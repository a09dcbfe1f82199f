"""`Limits`: which labels may be ranked, by what the user allows and excludes."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.types.candidates import Candidates
from metarank.types.containers import as_list
from metarank.types.given import check_candidates
from metarank.types.label_table import LabelTable


@dataclass(frozen=True)
class LabelLimits:
    """The labels that may be ranked for each of n rows.

    Parameters
    ----------
    excluded, allowed : Candidates of the n rows, ascending int32 array of ids for all rows, or None
        Labels that are not to be ranked, and the only ones that may be; None for none, and for all.
    removed : int array
        Labels that are no more.
    """

    excluded: Candidates | np.ndarray | None = None
    allowed: Candidates | np.ndarray | None = None
    removed: np.ndarray | Sequence[int] = ()

    @classmethod
    def checked(cls, exclude: Any, allowed: Any, n_rows: int, table: int | LabelTable) -> LabelLimits:
        """The limits a user asks for; removed labels are those of the table.

        Raises
        ------
        ValueError, TypeError
            If `exclude` or `allowed` is malformed; the message names it.
        """
        removed = table.removed if isinstance(table, LabelTable) else ()
        return cls(
            None if exclude is None else check_lists(exclude, n_rows, table, "exclude"),
            None if allowed is None else _without(check_lists(allowed, n_rows, table, "allowed"), removed),
            removed,
        )

    def rows(self, rows: np.ndarray | slice) -> LabelLimits:
        """The limits of some rows."""
        excluded, allowed = (
            own.rows(rows) if isinstance(own, Candidates) else own for own in (self.excluded, self.allowed)
        )
        return LabelLimits(excluded, allowed, self.removed)

    def without(self, labels: Candidates) -> LabelLimits:
        """The limits with further labels of each row excluded."""
        excluded = labels
        if self.excluded is not None:
            excluded = labels.union(for_each_row(self.excluded, labels.n_rows, labels.n_labels))
        return LabelLimits(excluded, self.allowed, self.removed)

    def within(self, candidates: Candidates) -> Candidates:
        """The candidates that may be ranked, with their scores."""
        candidates = candidates.without_labels(self.removed)
        if isinstance(self.excluded, Candidates):
            candidates = candidates.without(self.excluded)
        elif self.excluded is not None:
            candidates = candidates.without_labels(self.excluded)
        if self.allowed is None:
            return candidates
        if isinstance(self.allowed, Candidates):
            return candidates.where(candidates.among(self.allowed))
        open_to = np.zeros(candidates.n_labels, bool)
        open_to[self.allowed] = True
        return candidates.where(open_to[candidates.labels])

    def complete(self, candidates: Candidates, least: int, inv_propensity: np.ndarray) -> Candidates:
        """Candidates after `within`, rows with fewer than `least` completed by other allowed labels.

        All of them where they are no more than that, else the most frequent ones: those of least inverse
        propensity (L,), ties by id. The scores of proposers are left out.
        """
        if self.allowed is None:
            return candidates
        counts = np.diff(candidates.indptr)
        short = np.flatnonzero(counts < least)
        allowed, excluded = self.allowed, None
        if isinstance(self.excluded, Candidates):
            excluded = self.excluded.rows(short)
        elif self.excluded is not None:
            allowed = _without(allowed, self.excluded)
        if isinstance(allowed, Candidates):
            offer = allowed.rows(short)
        else:
            # No more can be wanted of a row than these: the others are candidates already, or excluded.
            taken = 0 if excluded is None else int(np.diff(excluded.indptr).max(initial=0))
            by_frequency = np.lexsort((allowed, inv_propensity[allowed]))[: least + taken]
            head = np.sort(allowed[by_frequency])
            offer = Candidates.same_for_each(head, len(short), candidates.n_labels)
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


def check_lists(
    labels: Any, n_rows: int, table: int | LabelTable, name: str = "allowed", *, lenient: bool = False
) -> Candidates | np.ndarray:
    """Labels as `Candidates` of the rows, or as ascending distinct ids (int32) for all rows.

    Parameters
    ----------
    labels : Candidates, sparse matrix (n, L), list of n lists of labels, or one list for all rows
        A label is an id or, where `table` knows names, a name. One list may be an array, a set, a range or a
        pandas or polars Series; an empty one is a list for all rows.

    Raises
    ------
    ValueError, TypeError
        An unknown label; a wrong number of rows or labels. The message begins with `name`.

    Examples
    --------
    >>> check_lists([2, 0], 5, 3)
    array([0, 2], dtype=int32)
    >>> check_lists({"sea"}, 5, LabelTable(2, ["sky", "sea"]))
    array([1], dtype=int32)
    >>> check_lists([[2], [0, 1]], 2, 3).labels
    array([2, 0, 1], dtype=int32)
    """
    table = table if isinstance(table, LabelTable) else LabelTable(table)
    if isinstance(labels, (str, bytes)):
        raise TypeError(f"{name} must be a list of labels, got {labels!r:.80}")
    if not isinstance(labels, np.ndarray):
        labels = as_list(labels)  # a Series, an array of pandas
    if not _is_flat(labels):
        return check_candidates(labels, n_rows, table, name=name, lenient=lenient)
    return np.unique(table.ids_of(labels, name)).astype(np.int32)


def check_shortlist(candidates: Any, n_rows: int, table: LabelTable) -> Candidates:
    """A user's shortlist to be ranked, as `check_lists`: which labels, and nothing of what they score.

    The scores of a `Candidates` are for those who read them by name; ranking does not. A matrix has nothing
    but its numbers, so that one of unequal numbers is refused rather than read as if they were not there.

    Raises
    ------
    ValueError, TypeError
        As `check_lists`; or if a sparse matrix stores unequal numbers.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> scores = sp.csr_matrix([[0.7, 0, 0.2]])
    >>> check_shortlist(scores.astype(bool), 1, LabelTable(3)).labels
    array([0, 2], dtype=int32)
    >>> check_shortlist(scores, 1, LabelTable(3))
    Traceback (most recent call last):
    ValueError: candidates must be a shortlist, whose scores are not used, got a matrix of unequal numbers, \
0.7 and 0.2: pass lists of labels, or matrix.astype(bool)
    """
    out = for_each_row(
        check_lists(candidates, n_rows, table, "candidates", lenient=True), n_rows, table.n_labels
    )
    if sp.issparse(candidates) and candidates.dtype.kind != "b" and out.n_pairs:
        values = next(iter(out.scores.values()))
        other = int(np.argmax(values != values[0]))
        if values[other] != values[0]:
            raise ValueError(
                "candidates must be a shortlist, whose scores are not used, got a matrix of unequal numbers, "
                f"{values[0]:g} and {values[other]:g}: pass lists of labels, or matrix.astype(bool)"
            )
    return out


def for_each_row(labels: Candidates | np.ndarray, n_rows: int, n_labels: int) -> Candidates:
    """Label lists of n rows, of one list for all of them or of theirs.

    Examples
    --------
    >>> for_each_row(np.array([0, 2], np.int32), 2, 3).labels
    array([0, 2, 0, 2], dtype=int32)
    """
    if isinstance(labels, Candidates):
        return labels
    return Candidates.same_for_each(labels, n_rows, n_labels)


def _without(
    allowed: Candidates | np.ndarray, removed: np.ndarray | Sequence[int]
) -> Candidates | np.ndarray:
    if isinstance(allowed, Candidates):
        return allowed.without_labels(removed)
    return np.setdiff1d(allowed, removed).astype(np.int32)


def _is_flat(labels: Any) -> bool:
    """Whether it is one list for all rows: a vector, a set, or a sequence of single labels."""
    if isinstance(labels, np.ndarray):
        return labels.ndim == 1 and (labels.dtype != object or not any(map(_is_list, labels)))
    return isinstance(labels, (Set, Sequence)) and not any(map(_is_list, labels))


def _is_list(item: Any) -> bool:
    return isinstance(item, (Sequence, Set, np.ndarray)) and not isinstance(item, (str, bytes))
