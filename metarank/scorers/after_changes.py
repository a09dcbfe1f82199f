"""`KeptScorer`: a scorer that cannot be updated, used after the labels have changed."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from metarank.persist.fields import Declared, Ids, Known, Object
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.neighbors.training_rows import check_lists
from metarank.scorers.wrapped import as_of_scorer
from metarank.types.candidates import Candidates
from metarank.types.view import Features


def _check_kept(known: Known) -> None:
    if isinstance(known.scorer, KeptScorer) or not len(known.now):
        raise ValueError("scorer must be one of some labels, not kept itself")


class KeptScorer(LabelScorer):
    """A fitted scorer with its labels mapped to those of now.

    Removed labels are never proposed. A label into which others were merged gets the maximum of their scores.
    A label that the scorer does not know gets `score_without_rows` if that is a number, else the lowest score
    of the row's candidates; if the scorer knows none of these, the score of its label 0.

    Parameters
    ----------
    scorer : fitted LabelScorer
    now : int32 array
        The present id of each label of the scorer, or -1 if it was removed.
    n_labels : int
        Present size L of the label set.
    """

    is_classifier: bool = as_of_scorer("is_classifier")
    proposes: bool = as_of_scorer("proposes")

    saved: ClassVar[Spec] = Spec(
        Object("scorer", LabelScorer, {"d": "d", "L": "before", "rows": "rows"}),
        Declared("n_labels", size="L"),
        Ids("now", np.int32, ("before",), first=-1, below="L"),
        check=_check_kept,
    )

    def __init__(self, *, scorer: LabelScorer, now: np.ndarray, n_labels: int) -> None:
        self.scorer = scorer
        self.now = now
        self.n_labels = n_labels

    @property
    def shown_as(self) -> str:
        return self.scorer.shown_as

    @classmethod
    def of(cls, scorer: Any, now: np.ndarray, n_labels: int) -> KeptScorer:
        """The scorer after one more change. `now` maps each earlier label to its present id, or -1."""
        if isinstance(scorer, cls):
            earlier = scorer.now
            now = np.where(earlier >= 0, now[earlier], -1)
            scorer = scorer.scorer
        return cls(scorer=scorer, now=np.ascontiguousarray(now, np.int32), n_labels=n_labels)

    @cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """(indptr int64 (L + 1), labels int32): the scorer's labels that each present label stands for."""
        known = np.flatnonzero(self.now >= 0).astype(np.int32)
        indptr = np.zeros(self.n_labels + 1, np.int64)
        np.cumsum(np.bincount(self.now[known], minlength=self.n_labels), out=indptr[1:])
        return indptr, known[np.argsort(self.now[known], kind="stable")]

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """The columns of the scorer, float32 (m,)."""
        check_lists(candidates, X.shape[0], self.n_labels)
        start, members = self._members
        row_of_pair, labels = candidates.row_of_pair, candidates.labels
        counts = np.diff(start)[labels]
        first = np.cumsum(counts) - counts
        known = members[np.arange(counts.sum()) + np.repeat(start[labels] - first, counts)]
        row = np.repeat(row_of_pair, counts)
        n_known = len(known)
        unknown = np.setdiff1d(row_of_pair, row)  # rows without a candidate that the scorer knows
        row, known = np.append(row, unknown), np.append(known, np.zeros(len(unknown), np.int32))
        order = np.lexsort((known, row))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=candidates.n_rows))])
        asked = Candidates(indptr, known[order], len(self.now))
        filled = np.flatnonzero(np.diff(indptr))
        columns = {}
        for name, values in self.scorer.score(X, asked, n_jobs=n_jobs).items():
            lowest = np.zeros(candidates.n_rows, np.float32)
            if len(filled):
                lowest[filled] = np.minimum.reduceat(values, indptr[filled])
            blank = self.scorer.score_without_rows
            column = lowest[row_of_pair] if blank is None else np.full(len(labels), blank, np.float32)
            by_pair = np.empty_like(values)
            by_pair[order] = values
            if n_known:
                column[counts > 0] = np.maximum.reduceat(by_pair[:n_known], first[counts > 0])
            columns[name] = column
        return columns

    def shortlist(self, X: Features, k: int, *, n_jobs: int = 1) -> Candidates:
        """The scorer's k proposals for each row, in present ids; fewer if some labels were removed."""
        found: Candidates = self.scorer.shortlist(X, k, n_jobs=n_jobs)
        label = self.now[found.labels]
        kept = np.flatnonzero(label >= 0)
        row, label = found.row_of_pair[kept], label[kept]
        order = np.lexsort((label, row))
        row, label = row[order], label[order]
        starts = np.flatnonzero(np.diff(row * np.int64(self.n_labels) + label, prepend=-1))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row[starts], minlength=found.n_rows))])
        scores = {
            name: np.maximum.reduceat(values[kept[order]], starts) if len(starts) else values[:0]
            for name, values in found.scores.items()
        }
        return Candidates(indptr, label[starts], self.n_labels, scores)
