"""A threshold for each label of many: half of the F1 it can reach."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from metarank._util.elementary import log_odds, logistic
from metarank.persist.spec import Spec
from metarank.thresholds.base import Cut, saved_with
from metarank.thresholds.label_cut import BY_LABEL, LabelThresholds
from metarank.thresholds.lists import ScoredLists

# So many pairs of a label weigh as much as what all labels reach together: held-out rows of five sets of
# 1,900 to 46,000 labels like 3 to 10.
_PRIOR = 5.0


class HalfF1Cut(LabelThresholds, Cut):
    """Keep a pair whose probability is at least half of its label's F1.

    Where probabilities are right, the cut of greatest expected F1 keeps what is above half of that F1
    (Lipton, Elkan & Narayanaswamy 2014, theorem 1). F1 of a label is the greatest, over all cuts, of

        (2 sum_kept p + 5 F) / (count_kept + sum p + 5)

    with p the calibrated probabilities of its training pairs and F twice the probability at which one cut
    for all labels has the greatest mean of expected F1. So a label with a handful of pairs, of which the
    best cut would be chance, follows the others, and a label without any has F. Where no training row is
    empty, the best label of each row is kept as well.
    """

    family = "half-f1"

    saved: ClassVar[Spec] = saved_with(*BY_LABEL)

    def fit(self, lists: ScoredLists, metric: str) -> HalfF1Cut:
        self.keep_best = lists.never_empty
        self.index, _ = lists.known
        sweep, p = lists.sweep(by_label=True, keep_best=self.keep_best), lists.probabilities
        everywhere = min(1.0, 2 * float(logistic(np.array([sweep.best_mean_f1(p)]))[0]))
        reached = np.append(sweep.greatest_f1(p, everywhere, _PRIOR), everywhere) / 2
        self.thresholds = log_odds(np.maximum(reached, np.finfo(np.float64).tiny))
        return self
