"""A threshold for each label."""

from __future__ import annotations

from typing import Any

import numpy as np

from metarank._state import Fields
from metarank.thresholds.base import Cut
from metarank.thresholds.global_cut import GlobalCut
from metarank.thresholds.lists import LabelIndex, ScoredLists
from metarank.thresholds.sweep import best_f1_cuts, fewest_mistakes_cuts


class LabelCut(Cut):
    """Keep a pair whose logit is at least t_l, the threshold of its label (SCut; Yang 2001).

    For F1 metrics t_l maximises the label's F1 with relevance ``a y + (1 - a) p``, p the calibrated
    probability and ``a = N_l / (N_l + shrinkage)``: labels with few relevant rows trust p. For
    Hamming loss and subset accuracy t_l makes the fewest mistakes with the same relevance. Labels
    that are never a training candidate get the threshold of greatest expected micro-F1.
    Where no training row is empty, F1 cuts also keep the best label of each row.

    Parameters
    ----------
    shrinkage : float
        0 trusts the training labels alone.
    """

    family = "label"

    index: LabelIndex
    thresholds: np.ndarray
    keep_best: bool

    def __init__(self, shrinkage: float = 0.0) -> None:
        self.shrinkage = shrinkage

    def fit(self, lists: ScoredLists, metric: str) -> LabelCut:
        counts_f1 = metric.endswith("f1")
        self.keep_best = counts_f1 and lists.never_empty
        self.index = LabelIndex(np.unique(lists.labels))
        group, k = self.index.of(lists.labels), len(self.index)
        n_relevant = np.bincount(group[lists.truth], minlength=k)
        trust = n_relevant / np.maximum(n_relevant + self.shrinkage, 1e-12)
        if self.shrinkage == 0:
            trust[:] = 1.0
        y = trust[group] * lists.truth + (1 - trust[group]) * lists.probabilities
        z = np.where(lists.rank == 0, np.inf, lists.logits) if self.keep_best else lists.logits
        best_cuts = best_f1_cuts if counts_f1 else fewest_mistakes_cuts
        elsewhere = GlobalCut(plug_in=True).fit(lists, "micro-f1").threshold
        self.thresholds = np.append(best_cuts(z, y, group, k), elsewhere)
        return self

    def keep(self, lists: ScoredLists) -> np.ndarray:
        kept = lists.logits >= self.thresholds[self.index.of(lists.labels)]
        return kept | (lists.rank == 0) if self.keep_best else kept

    def get_state(self) -> dict[str, Any]:
        return {
            "shrinkage": self.shrinkage,
            "labels": self.index.ids,
            "thresholds": self.thresholds,
            "keep_best": self.keep_best,
        }

    def set_state(self, state: dict[str, Any]) -> LabelCut:
        fields = Fields(state, type(self).__name__)
        self.shrinkage, self.keep_best = fields.number("shrinkage", 0), fields.flag("keep_best")
        self.index = LabelIndex(fields.ascending_ids("labels", np.int32, 2**31))
        self.thresholds = fields.array("thresholds", np.float64, (len(self.index) + 1,), finite=False)
        if np.isnan(self.thresholds).any():
            raise ValueError("thresholds must not be NaN")
        return self
