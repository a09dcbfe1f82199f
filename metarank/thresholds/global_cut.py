"""One threshold for all pairs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from metarank.persist.fields import Flag, Number
from metarank.persist.spec import Spec
from metarank.thresholds.base import Cut, saved_with
from metarank.thresholds.lists import ScoredLists
from metarank.thresholds.set_metrics import quality

# Logits tried where the best cut has no simple sweep: the scores are calibrated, so it lies among them.
_GRID = np.linspace(-6.0, 6.0, 97)


class GlobalCut(Cut):
    """Keep the pairs whose logit is at least t.

    Where no training row is empty, micro-F1 and the two families of F1 per label also keep the best
    label of each row, and t is learned under that rule.

    Parameters
    ----------
    plug_in : bool
        Maximise the micro-F1 expected under the calibrated probabilities, for any metric;
        otherwise the metric itself on the training labels (micro-F1 exactly, others over a grid).
    """

    family = "global"

    threshold: float
    keep_best: bool

    saved: ClassVar[Spec] = saved_with(
        Flag("plug_in"), Number("threshold", floats="extended"), Flag("keep_best")
    )

    def __init__(self, plug_in: bool = False) -> None:
        self.plug_in = plug_in

    def fit(self, lists: ScoredLists, metric: str) -> GlobalCut:
        self.keep_best = lists.never_empty
        if self.plug_in or metric == "micro-f1":
            y = lists.probabilities if self.plug_in else lists.truth.astype(np.float64)
            sweep = lists.sweep(by_label=False, keep_best=self.keep_best)
            self.threshold = float(sweep.best_f1(y, lists.n_missed)[0])
            return self
        values = []
        for t in _GRID:
            self.threshold = float(t)
            values.append(quality(metric, self.keep(lists), lists)[0])
        self.threshold = float(_GRID[int(np.argmax(values))])
        return self

    def keep(self, lists: ScoredLists) -> np.ndarray:
        kept = lists.logits >= self.threshold
        return kept | (lists.rank == 0) if self.keep_best else kept


class HalfCut(Cut):
    """Keep pairs with a probability above 0.5: optimal for Hamming loss where probabilities are right."""

    family = "half"

    keep_best: bool = False

    saved: ClassVar[Spec] = saved_with()

    def fit(self, lists: ScoredLists, metric: str) -> HalfCut:
        return self

    def keep(self, lists: ScoredLists) -> np.ndarray:
        return lists.logits >= 0


class NoneCut(HalfCut):
    """Keep nothing: the cut learned from training rows without any relevant label."""

    family = "none"

    def keep(self, lists: ScoredLists) -> np.ndarray:
        return np.zeros(len(lists.logits), bool)
