"""`ScoredLists`: ranked lists with calibrated logits, the input of every threshold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from metarank import _core
from metarank._util.elementary import logistic
from metarank.persist.fields import Ids
from metarank.thresholds.sweep import Sweep
from metarank.types.candidates import Candidates
from metarank.types.ragged import entries_of_rows, found_at


@dataclass(frozen=True, eq=False)
class ScoredLists:
    """The m candidate pairs of n rows with their logits and, in training, their relevance.

    Parameters
    ----------
    candidates : Candidates
    logits : float64 array (m,)
        Calibrated log-odds of relevance.
    relevant : bool array (m,), optional
    missed : float64 array (n,) or float
        Relevant pairs that are not among the candidates, of each row or of all, where only the sum is known.
    missed_of_label : int64 array (L,), optional
        The same of each label, of all rows; not kept for some rows.
    """

    candidates: Candidates
    logits: np.ndarray
    relevant: np.ndarray | None = None
    missed: np.ndarray | float = 0.0
    missed_of_label: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        return self.candidates.n_rows

    @property
    def labels(self) -> np.ndarray:
        return self.candidates.labels

    @cached_property
    def row(self) -> np.ndarray:
        """int64 (m,): the row of each pair."""
        return self.candidates.row_of_pair

    @cached_property
    def rank(self) -> np.ndarray:
        """int32 (m,): 0 for the best pair of a row; ties go to the smaller label id."""
        return _core.list_ranks(self.logits, self.candidates.indptr)

    @cached_property
    def probabilities(self) -> np.ndarray:
        """float64 (m,)"""
        return logistic(self.logits)

    @cached_property
    def truth(self) -> np.ndarray:
        """bool (m,): the relevance of training lists."""
        if self.relevant is None:
            raise ValueError("relevant must be given for lists to learn from")
        return self.relevant

    @cached_property
    def relevant_per_row(self) -> np.ndarray:
        """int64 (n,)"""
        return np.bincount(self.row[self.truth], minlength=self.n_rows)

    @property
    def n_missed(self) -> float:
        return float(np.sum(self.missed))

    @property
    def missed_per_row(self) -> np.ndarray:
        """float64 (n,): of each row, or on average."""
        if isinstance(self.missed, np.ndarray):
            return self.missed
        return np.full(self.n_rows, self.missed / max(1, self.n_rows))

    @property
    def never_empty(self) -> bool:
        """Whether every row may have a relevant label, either among its candidates or missed."""
        without = self.relevant_per_row == 0
        if isinstance(self.missed, np.ndarray):
            return not np.any(without & (self.missed == 0))
        return bool(np.count_nonzero(without) <= self.missed)

    @cached_property
    def known(self) -> tuple[np.ndarray, np.ndarray]:
        """The labels that occur, and the position of each pair's among them."""
        known = np.unique(self.labels)
        return known, positions(known, self.labels)

    def sweep(self, *, by_label: bool, keep_best: bool) -> Sweep:
        """All thresholds of the logits, by label or of all pairs; `keep_best` keeps the best of a row."""
        if (by_label, keep_best) not in self._sweeps:
            z = np.where(self.rank == 0, np.inf, self.logits) if keep_best else self.logits
            group = self.known[1] if by_label else np.zeros(len(z), np.int64)
            self._sweeps[by_label, keep_best] = Sweep(z, group, len(self.known[0]) if by_label else 1)
        return self._sweeps[by_label, keep_best]

    @cached_property
    def _sweeps(self) -> dict[tuple[bool, bool], Sweep]:
        return {}

    def rows(self, index: np.ndarray) -> ScoredLists:
        """Some of the rows (ids); missed pairs of unknown rows are spread evenly."""
        first, pairs = entries_of_rows(self.candidates.indptr, index)
        part = Candidates(first, self.labels[pairs], self.candidates.n_labels)
        relevant = None if self.relevant is None else self.relevant[pairs]
        if isinstance(self.missed, np.ndarray):
            return ScoredLists(part, self.logits[pairs], relevant, self.missed[index])
        return ScoredLists(part, self.logits[pairs], relevant, self.missed * len(index) / max(1, self.n_rows))


def positions(ids: np.ndarray, labels: np.ndarray) -> NDArray[np.int32]:
    """Where labels stand in a sorted list of known ids; any other is behind the last."""
    at, is_known = found_at(ids, labels)
    return np.where(is_known, at, len(ids)).astype(np.int32)


def saved_labels(name: str) -> Ids:
    """The field of known labels; "labels" is their number."""
    return Ids(name, np.int32, ("labels",), below=2**31, ascending=True, key="labels")
