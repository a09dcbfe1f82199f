"""`Threshold`: a rule that keeps some pairs of each ranked list; and its simple families."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar

import numpy as np

from metarank import _core
from metarank._util.elementary import log_odds, logistic
from metarank.persist.fields import Array, Field, Flag, Number
from metarank.persist.spec import Saved, Spec
from metarank.thresholds.lists import ScoredLists, positions, saved_labels
from metarank.thresholds.set_metrics import quality


class Threshold(Saved, ABC):
    """A rule that is learned on training lists for one metric, and applied to each new list separately."""

    family: ClassVar[str]

    @abstractmethod
    def fit(self, lists: ScoredLists, metric: str) -> Threshold:
        """Learn from lists with relevance, for a metric of `objectives.METRICS`."""

    @abstractmethod
    def keep(self, lists: ScoredLists) -> np.ndarray:
        """bool (m,): the pairs that are kept."""


# Logits tried where the best threshold has no simple sweep: scores are calibrated, so it lies among them.
_GRID = np.linspace(-6.0, 6.0, 97)


class GlobalThreshold(Threshold):
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

    plug_in: Annotated[bool, Flag("")]
    threshold: Annotated[float, Number("", floats="extended")]
    keep_best: Annotated[bool, Flag("")]

    def __init__(self, plug_in: bool = False) -> None:
        self.plug_in = plug_in

    def fit(self, lists: ScoredLists, metric: str) -> GlobalThreshold:
        self.keep_best: bool = lists.never_empty
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


class HalfThreshold(Threshold):
    """Keep pairs with a probability above 0.5: optimal for Hamming loss where probabilities are right."""

    family = "half"

    saved: ClassVar[Spec] = Spec()

    def fit(self, lists: ScoredLists, metric: str) -> HalfThreshold:
        return self

    def keep(self, lists: ScoredLists) -> np.ndarray:
        return lists.logits >= 0


class ByLabel:
    """Keep a pair whose logit is at least the threshold of its label, and perhaps the best pair of each row.

    `thresholds` holds those of the labels in `index`, and behind them that of all others.
    """

    index: np.ndarray
    thresholds: np.ndarray
    keep_best: bool

    def keep(self, lists: ScoredLists) -> np.ndarray:
        kept = lists.logits >= self.thresholds[positions(self.index, lists.labels)]
        return kept | (lists.rank == 0) if self.keep_best else kept


# What such a rule saves.
BY_LABEL: tuple[Field, ...] = (
    saved_labels("index"),
    Array("thresholds", np.float64, ("labels+1",), floats="extended"),
    Flag("keep_best"),
)


class LabelThresholds(ByLabel, Threshold):
    """Keep a pair whose logit is at least t_l, the threshold of its label (SCut; Yang 2001).

    For F1 metrics t_l maximises the label's F1 with relevance ``a y + (1 - a) p``, p the calibrated
    probability and ``a = N_l / (N_l + shrinkage)``: labels with few relevant rows trust p. For
    Hamming loss and subset accuracy t_l makes the fewest mistakes with the same relevance. Labels
    that are never a training candidate get the threshold of greatest expected micro-F1.
    Where no training row is empty, thresholds for F1 also keep the best label of each row.

    Parameters
    ----------
    shrinkage : float
        0 trusts the training labels alone.
    """

    family = "label"

    saved: ClassVar[Spec] = Spec(Number("shrinkage", 0), *BY_LABEL)

    def __init__(self, shrinkage: float = 0.0) -> None:
        self.shrinkage = shrinkage

    def fit(self, lists: ScoredLists, metric: str) -> LabelThresholds:
        counts_f1 = metric.endswith("f1")
        self.keep_best: bool = counts_f1 and lists.never_empty
        self.index, group = lists.known
        k = len(self.index)
        n_relevant = np.bincount(group[lists.truth], minlength=k)
        trust = n_relevant / np.maximum(n_relevant + self.shrinkage, 1e-12)
        if self.shrinkage == 0:
            trust[:] = 1.0
        y = trust[group] * lists.truth + (1 - trust[group]) * lists.probabilities
        sweep = lists.sweep(by_label=True, keep_best=self.keep_best)
        elsewhere = GlobalThreshold(plug_in=True).fit(lists, "micro-f1").threshold
        self.thresholds: np.ndarray = np.append(
            sweep.best_f1(y) if counts_f1 else sweep.fewest_mistakes(y), elsewhere
        )
        return self


# The F1 of all labels together weighs as much as this many pairs of a label. On held-out rows of five sets
# of 1,900 to 46,000 labels, 3 to 10 were best.
_PRIOR = 5.0


class HalfF1Thresholds(ByLabel, Threshold):
    """Keep a pair whose probability is at least half of its label's F1.

    Where probabilities are right, the threshold of greatest expected F1 is half of that F1 (Lipton, Elkan &
    Narayanaswamy 2014, theorem 1). F1 of a label is the greatest, over all thresholds, of

        (2 sum_kept p + 5 F) / (count_kept + sum p + 5)

    with p the calibrated probabilities of its training pairs and F twice the probability at which one
    threshold for all labels has the greatest mean of expected F1. The threshold of a label with few pairs
    would be chance, so it follows the others; a label without pairs has F. Where no training row is empty,
    the best label of each row is kept as well.
    """

    family = "half-f1"

    saved: ClassVar[Spec] = Spec(*BY_LABEL)

    def fit(self, lists: ScoredLists, metric: str) -> HalfF1Thresholds:
        self.keep_best: bool = lists.never_empty
        self.index, _ = lists.known
        sweep, p = lists.sweep(by_label=True, keep_best=self.keep_best), lists.probabilities
        everywhere = min(1.0, 2 * float(logistic(np.array([sweep.best_mean_f1(p)]))[0]))
        reached = np.append(sweep.greatest_f1(p, everywhere, _PRIOR), everywhere) / 2
        self.thresholds: np.ndarray = log_odds(np.maximum(reached, np.finfo(np.float64).tiny))
        return self


# Labels of a row that count one by one; those behind count by their sum.
_MAX_SIZE = 25


class ExpectedF1Threshold(Threshold):
    """Keep the k best pairs of a row, k maximising ``E[2 |kept & relevant| / (|kept| + |relevant|)]``.

    Labels are assumed independent given their calibrated probabilities, so both counts are
    Poisson-binomial. The value is exact up to 25 candidates a row. Relevant labels beyond the 25th, and those
    that are not candidates, count as a Poisson variable. The empty set, whose value is the probability that
    no label is relevant, is allowed where some training row is empty.
    """

    family = "expected-f1"

    unseen: Annotated[float, Number("", 0)]
    keep_best: Annotated[bool, Flag("")]

    def fit(self, lists: ScoredLists, metric: str) -> ExpectedF1Threshold:
        self.keep_best: bool = lists.never_empty
        self.unseen = lists.n_missed / max(1, lists.n_rows)
        return self

    def keep(self, lists: ScoredLists) -> np.ndarray:
        sizes = _core.expected_f1_sizes(
            lists.probabilities, lists.candidates.indptr, self.unseen, _MAX_SIZE, not self.keep_best
        )
        return lists.rank < sizes[lists.row]
