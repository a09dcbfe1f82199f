"""The label set of greatest expected F1 of each row."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from metarank import _core
from metarank.persist.fields import Flag, Number
from metarank.persist.spec import Spec
from metarank.thresholds.base import Cut, saved_with
from metarank.thresholds.lists import ScoredLists

# Labels of a row looked at one by one; those behind count by their sum.
_MAX_SIZE = 25


class ExpectedF1Cut(Cut):
    """Keep the k best pairs of a row, k maximising ``E[2 |kept & relevant| / (|kept| + |relevant|)]``.

    Labels are assumed independent given their calibrated probabilities, so both counts are
    Poisson-binomial. The value is exact up to 25 candidates a row. Relevant labels beyond the 25th, and those
    that are no candidates, count as a Poisson variable. The empty set, whose value is the probability that
    no label is relevant, is allowed where some training row is empty.
    """

    family = "expected-f1"

    unseen: float
    keep_best: bool

    saved: ClassVar[Spec] = saved_with(Number("unseen", 0), Flag("keep_best"))

    def fit(self, lists: ScoredLists, metric: str) -> ExpectedF1Cut:
        self.keep_best = lists.never_empty
        self.unseen = lists.n_missed / max(1, lists.n_rows)
        return self

    def keep(self, lists: ScoredLists) -> np.ndarray:
        sizes = _core.expected_f1_sizes(
            lists.probabilities, lists.candidates.indptr, self.unseen, _MAX_SIZE, not self.keep_best
        )
        return lists.rank < sizes[lists.row]
