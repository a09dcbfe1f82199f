"""A threshold for each label."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from metarank.persist.fields import Array, Field, Flag, Number
from metarank.persist.spec import Spec
from metarank.thresholds.base import Cut, saved_with
from metarank.thresholds.global_cut import GlobalCut
from metarank.thresholds.lists import LabelPositions, ScoredLists, saved_index


class LabelThresholds:
    """Keep a pair whose logit is at least the threshold of its label, and perhaps the best pair of each row.

    `thresholds` holds those of the labels in `index`, and behind them that of all others.
    """

    index: LabelPositions
    thresholds: np.ndarray
    keep_best: bool

    def keep(self, lists: ScoredLists) -> np.ndarray:
        kept = lists.logits >= self.thresholds[self.index.of(lists.labels)]
        return kept | (lists.rank == 0) if self.keep_best else kept


# What such a cut saves of them.
BY_LABEL: tuple[Field, ...] = (
    saved_index("index"),
    Array("thresholds", np.float64, (lambda known: known["labels"] + 1,), floats="extended"),
    Flag("keep_best"),
)


class LabelCut(LabelThresholds, Cut):
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

    saved: ClassVar[Spec] = saved_with(Number("shrinkage", 0), *BY_LABEL)

    def __init__(self, shrinkage: float = 0.0) -> None:
        self.shrinkage = shrinkage

    def fit(self, lists: ScoredLists, metric: str) -> LabelCut:
        counts_f1 = metric.endswith("f1")
        self.keep_best = counts_f1 and lists.never_empty
        self.index, group = lists.known
        k = len(self.index)
        n_relevant = np.bincount(group[lists.truth], minlength=k)
        trust = n_relevant / np.maximum(n_relevant + self.shrinkage, 1e-12)
        if self.shrinkage == 0:
            trust[:] = 1.0
        y = trust[group] * lists.truth + (1 - trust[group]) * lists.probabilities
        sweep = lists.sweep(by_label=True, keep_best=self.keep_best)
        elsewhere = GlobalCut(plug_in=True).fit(lists, "micro-f1").threshold
        self.thresholds = np.append(sweep.best_f1(y) if counts_f1 else sweep.fewest_mistakes(y), elsewhere)
        return self
