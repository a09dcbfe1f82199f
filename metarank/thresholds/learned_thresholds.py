"""`LearnedThresholds`: from out-of-fold scores to probabilities and label sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metarank import _core
from metarank._util.elementary import logistic
from metarank._util.progress import report
from metarank._util.threads import single_threaded_blas
from metarank.persist.fields import Each, Flag, List, Number, Object, Text
from metarank.persist.spec import Saved, Spec
from metarank.thresholds.calibration import Calibrator
from metarank.thresholds.costs import Costs
from metarank.thresholds.guarantees import CONFIDENCE, Guarantees, parse_wish
from metarank.thresholds.instance_threshold import InstanceThreshold
from metarank.thresholds.lists import ScoredLists
from metarank.thresholds.row_quality import RowQuality
from metarank.thresholds.rules import (
    ExpectedF1Threshold,
    GlobalThreshold,
    HalfF1Thresholds,
    HalfThreshold,
    LabelThresholds,
    Threshold,
)
from metarank.thresholds.set_metrics import METRICS, check_metric, quality
from metarank.thresholds.subset import SubsetThreshold
from metarank.types.candidates import Candidates
from metarank.types.checks import finite_scores

_FAMILIES: dict[str, Callable[[], Threshold]] = {
    "instance": InstanceThreshold,
    "label": LabelThresholds,
    "half-f1": HalfF1Thresholds,
    "global": GlobalThreshold,
    "expected-f1": ExpectedF1Threshold,
}
# A value, and the ends of an interval about it.
_Interval: TypeAlias = tuple[float, float, float]
THRESHOLDS = ("auto", *_FAMILIES)

# A label with this many relevant rows counts them half, and its calibrated probabilities half.
_LABEL_SHRINKAGE = 100.0
# The rule that is best for a metric where probabilities are right.
_DEFAULTS: dict[str, Callable[[], Threshold]] = {
    "micro-f1": lambda: GlobalThreshold(plug_in=True),
    "macro-f1": HalfF1Thresholds,
    "example-f1": ExpectedF1Threshold,
    "hamming": HalfThreshold,
    "subset-accuracy": SubsetThreshold,
}
_CHALLENGERS: tuple[Callable[[], Threshold], ...] = (GlobalThreshold, LabelThresholds, InstanceThreshold)
# A challenger must beat the default by this many standard errors; with fewer,
# chance chooses more often than merit.
_STANDARD_ERRORS = 2.0
_BOOTSTRAPS = 100
_SELECTION_FOLDS = 5
_SELECTION_PAIRS = 500_000
_REFUSAL = (
    "this model has no training rows, so it has no probabilities and no thresholds: use rank, which orders "
    "the labels, or partial_fit(X, Y), with rows whose labels are known, to train the rest"
)
# Keeps the folds of this module apart from those that made the scores.
_SEED_SHIFT = 1_000_003


class LearnedThresholds(Saved):
    """Calibrates scores and learns one threshold for each of five metrics.

    Parameters
    ----------
    threshold : str
        A family of thresholds for all metrics: "instance" (least squares on the row's scores; Yang & Gopal
        2012, section 2.3), "label", "half-f1", "global" or "expected-f1"; or "auto",
        which takes for each metric the rule that is optimal where probabilities are right

        - micro-F1: one threshold, of greatest expected F1;
        - macro-F1: a threshold for each label: of greatest F1 with shrunk relevance where all labels are
          compared for each row, otherwise half of the F1 that the label can reach;
        - example-F1: for each row the set of greatest expected F1;
        - Hamming loss: probability 0.5;
        - subset accuracy: the most probable label set,

        unless a threshold learned on the labels alone ("global", "label", "instance") beats it in
        cross-validation by more than two standard errors (checked up to 500,000 pairs).
    in_order : bool
        Whether no label may be more probable than one above it: neighbours whose calibrated probabilities
        rise share their mean. The scores must be comparable between labels.

    Attributes
    ----------
    calibrator_ : Calibrator
    by_metric_ : dict of metric to Threshold
    held_out_ : dict of metric to (value, low, high)
        Value of each metric on rows that its threshold was not learned on, with the middle 95 % of bootstraps
        over rows. Empty for fewer than ten rows, and for more than 500,000 pairs. Hamming loss is given as a
        loss.
    guarantees_ : Guarantees or None
        Recall and precision that can be guaranteed. None where `missed` is not given by row.
    row_quality_ : RowQuality
        The expected precision, recall and F1 of a row's label set.

    Examples
    --------
    >>> from metarank.types.candidates import Candidates
    >>> rng = np.random.default_rng(0)
    >>> pairs = Candidates.all_labels(200, 3)
    >>> scores = rng.normal(size=600)
    >>> gains = (scores + rng.normal(size=600) > 1).astype(np.float32)
    >>> learner = LearnedThresholds("global").fit(pairs, scores, gains, fold=np.arange(200) % 5)
    >>> int(learner.keep(pairs, scores, "micro-f1").sum()), int(gains.sum())
    (178, 137)
    """

    threshold: Annotated[str, Text("")]
    in_order: Annotated[bool, Flag("")]
    calibrator_: Annotated[Calibrator, Object("", Calibrator)]
    held_out_: Annotated[dict[str, _Interval], Each("", List("", Number(""), 3, into=tuple), METRICS)]
    by_metric_: Annotated[dict[str, Threshold], Each("", Object("", Threshold), METRICS, every=True)]
    guarantees_: Annotated[Guarantees | None, Object("", Guarantees, optional=True)]
    row_quality_: Annotated[RowQuality, Object("", RowQuality)]

    def __init__(self, threshold: str = "auto", in_order: bool = False) -> None:
        if threshold not in THRESHOLDS:
            raise ValueError(f"threshold must be one of {', '.join(THRESHOLDS)}, got {threshold!r}")
        self.threshold = threshold
        self.in_order = in_order

    def fit(
        self,
        candidates: Candidates,
        scores: np.ndarray,
        gains: np.ndarray,
        *,
        fold: np.ndarray,
        missed: int | np.ndarray = 0,
        missed_of_label: np.ndarray | None = None,
        seed: int = 0,
        group: np.ndarray | None = None,
        draws_whole_groups: bool = False,
        confidence: float = CONFIDENCE,
    ) -> LearnedThresholds:
        """Learn the calibration and the thresholds of all metrics.

        Parameters
        ----------
        candidates : Candidates
            Pairs of the training rows.
        scores : float array (m,)
            *Out-of-fold* ranker scores, finite.
        gains : float array (m,)
            Relevance; relevant means > 0.
        fold : int array (n,)
            The folds that made the scores. The learner's own folds cross them.
        missed : int or int array (n,)
            Relevant pairs that are not among the candidates, of all rows or of each.
        missed_of_label : int array (L,), optional
            The same by label, which macro-F1 needs.
        seed : int
        group : int array (n,), optional
            Rows of the same group, such as copies of one row, stay on the same side of every split.
        draws_whole_groups : bool
            Whether bootstraps draw groups instead of rows, and guarantees are for groups.
        confidence : float in (0, 1)
            Of the guarantees, see `Guarantees`.

        Raises
        ------
        ValueError, TypeError
            If there are no pairs.
        """
        if candidates.n_pairs == 0:
            raise ValueError("candidates must hold at least one pair, got none")
        scores, relevant = np.ascontiguousarray(scores, np.float64), gains > 0
        if isinstance(missed, int) and missed == 0:
            missed = np.zeros(candidates.n_rows, np.int64)
        drawn = group if draws_whole_groups else None
        n_folds = 10 if candidates.n_rows < 3000 else 5
        with single_threaded_blas():
            across = _folds_across(fold, n_folds, seed + _SEED_SHIFT, group)
            report("calibration", 0.0)
            self.calibrator_ = Calibrator().fit(candidates, scores, relevant, across)
            of_row = missed.astype(np.float64) if isinstance(missed, np.ndarray) else missed
            logits = self._ordered(self.calibrator_.cross_fitted_, candidates, scores)
            lists = ScoredLists(candidates, logits, relevant, of_row, missed_of_label)
            judge = _folds_across(fold, _SELECTION_FOLDS, seed + 2 * _SEED_SHIFT, group)
            parts = _parts(lists, judge) if relevant.any() else []
            self.by_metric_, self.held_out_ = {}, {}
            for number, metric in enumerate(METRICS):
                report(metric, 0.3 + 0.7 * number / len(METRICS))
                if not relevant.any():
                    nothing = self.by_metric_[metric] = GlobalThreshold()  # which keeps nothing
                    nothing.threshold, nothing.keep_best = np.inf, False
                else:
                    best, values = _choose(metric, self._rules(metric, lists), lists, parts, seed, drawn)
                    self.by_metric_[metric] = best().fit(lists, metric)
                    if len(values):
                        self.held_out_[metric] = _interval(metric, values)
            self.row_quality_ = RowQuality.learned(lists, self.by_metric_["micro-f1"].keep(lists))
            self.guarantees_ = None
            if isinstance(missed, np.ndarray):
                self.guarantees_ = Guarantees(confidence).fit(lists, missed, drawn, seed)
        return self

    def _rules(self, metric: str, lists: ScoredLists) -> list[Callable[[], Threshold]]:
        """The default of a metric, and what may replace it."""
        if self.threshold != "auto":
            return [_FAMILIES[self.threshold]]
        if metric == "macro-f1" and lists.candidates.is_full:
            # Each label has many pairs, enough for a threshold of its own.
            return [partial(LabelThresholds, _LABEL_SHRINKAGE), *_CHALLENGERS]
        return [_DEFAULTS[metric], *_CHALLENGERS]

    def check_metric(self, optimize: Any) -> str | Costs:
        """The name of the metric, None means "micro-f1", or the costs; ValueError for an unknown name, and
        for a guarantee that cannot be kept."""
        metric = check_metric(optimize)
        if isinstance(metric, Costs):
            return metric
        if wish := parse_wish(metric):
            if self.guarantees_ is None:
                raise ValueError(f"optimize: {wish} needs a fit without rejected labels")
            self.guarantees_.check(wish)
        return metric

    def probabilities(
        self, candidates: Candidates, scores: np.ndarray, known: np.ndarray | None = None
    ) -> NDArray[np.float32]:
        """Calibrated probabilities of relevance, float32 (m,). `known` float64 (m,) are log-odds that
        replace the calibrated ones, NaN where there are none."""
        return logistic(self.logits(candidates, scores, known)).astype(np.float32)

    def keep(
        self, candidates: Candidates, scores: np.ndarray, metric: str | Costs, known: np.ndarray | None = None
    ) -> NDArray[np.bool_]:
        """bool (m,): the pairs kept for a metric, by costs, or for a guarantee such as "recall>=0.9". Each
        row is decided separately; `known` as in `probabilities`."""
        metric = self.check_metric(metric)
        lists = ScoredLists(candidates, self.logits(candidates, scores, known))
        if isinstance(metric, Costs):
            return metric.keep(lists)
        if (wish := parse_wish(metric)) and self.guarantees_ is not None:
            return self.guarantees_.keep(lists, wish)
        return self.by_metric_[metric].keep(lists)

    def expected(
        self, candidates: Candidates, scores: np.ndarray, kept: np.ndarray, known: np.ndarray | None = None
    ) -> dict[str, NDArray[np.float32]]:
        """`RowQuality.of` the pairs that are kept; `known` as in `probabilities`."""
        return self.row_quality_.of(ScoredLists(candidates, self.logits(candidates, scores, known)), kept)

    def logits(
        self, candidates: Candidates, scores: np.ndarray, known: np.ndarray | None = None
    ) -> np.ndarray:
        """The log-odds of `probabilities`, float64 (m,)."""
        scores = np.ascontiguousarray(scores, np.float64)
        logits = finite_scores(self.calibrator_.logits(candidates, scores))
        if known is not None:
            logits = np.where(np.isnan(known), logits, known)
        return self._ordered(logits, candidates, scores)

    def _ordered(self, logits: np.ndarray, candidates: Candidates, scores: np.ndarray) -> np.ndarray:
        if not self.in_order:
            return logits
        return _core.falling_logits(logits, scores.astype(np.float32), candidates.indptr)

    @property
    def scores_per_logit(self) -> float:
        """Score difference of one unit of log-odds, by the first step of the calibration; 0 if the scores
        hold no information, or rank in reverse."""
        slope = self.calibrator_.platt_.slope
        return 1 / slope if slope > 1e-9 else 0.0

    def scores_of(self, logits: np.ndarray) -> np.ndarray:
        """Scores equivalent to log-odds, float64, by the first step of the calibration. They make evidence
        without a score comparable with scores. Returns the log-odds where scores carry no information."""
        per_logit = self.scores_per_logit
        if per_logit == 0:
            return np.array(logits, np.float64)
        return (logits - self.calibrator_.platt_.offset) * per_logit

    def summary(self) -> str:
        """The family of each metric's threshold, on one line."""
        return ", ".join(f"{metric}: {rule.family}" for metric, rule in self.by_metric_.items())


class NoThresholds(LearnedThresholds):
    """Takes the place of thresholds and probabilities in a model without training rows, and refuses both.

    Examples
    --------
    >>> NoThresholds().check_metric("micro-f1")
    Traceback (most recent call last):
    ValueError: this model has no training rows, so it has no probabilities and no thresholds: ...
    """

    saved: ClassVar[Spec] = Spec()

    def check_metric(self, optimize: Any) -> str | Costs:
        """Refuses."""
        raise ValueError(_REFUSAL)

    def logits(self, *pairs: Any) -> np.ndarray:
        """Refuses."""
        raise ValueError(_REFUSAL)

    @property
    def scores_per_logit(self) -> float:
        """0: no label is known to be rarer than another."""
        return 0.0

    def summary(self) -> str:
        """One line for a person."""
        return "none, since there are no training rows"


def _folds_across(fold: np.ndarray, n_folds: int, seed: int, group: np.ndarray | None) -> np.ndarray:
    """A random map to `n_folds` folds, each with its share of every fold of another map, int32 (n,)."""
    if group is not None:
        _, first, number = np.unique(group, return_index=True, return_inverse=True)
        if len(first) < len(fold):
            return _folds_across(fold[first], n_folds, seed, None)[number]
    n = len(fold)
    order = np.lexsort((_core.fold_of_rows(n, 2**31 - 1, seed), fold))
    out = np.empty(n, np.int32)
    out[order] = np.arange(n) % min(n_folds, n)
    return out


def _parts(lists: ScoredLists, fold: np.ndarray) -> list[tuple[ScoredLists, ScoredLists, np.ndarray]]:
    """For each fold the lists outside and inside, and where the pairs inside stand, bool (m,).

    Empty where pairs are too few or too many to compare thresholds.
    """
    few = np.count_nonzero(np.diff(lists.candidates.indptr)) < 2 * _SELECTION_FOLDS
    if few or len(lists.logits) > _SELECTION_PAIRS:
        return []
    within = [fold == f for f in range(int(fold.max()) + 1)]
    return [
        (lists.rows(np.flatnonzero(~rows)), lists.rows(np.flatnonzero(rows)), rows[lists.row])
        for rows in within
    ]


def _choose(
    metric: str,
    rules: list[Callable[[], Threshold]],
    lists: ScoredLists,
    parts: list[tuple[ScoredLists, ScoredLists, np.ndarray]],
    seed: int,
    group: np.ndarray | None,
) -> tuple[Callable[[], Threshold], np.ndarray]:
    """The first of some rules, or another that clearly beats it on held-out rows.

    Also its values there: the metric, and its bootstraps, which draw rows, or groups (n,) where these are
    given; empty without parts.
    """
    best = rules[0]
    if not parts:
        return best, np.zeros(0)
    n = lists.n_rows
    weight = np.random.default_rng([seed, METRICS.index(metric)]).poisson(1.0, (_BOOTSTRAPS, n))
    if group is not None:
        _, first, number = np.unique(group, return_index=True, return_inverse=True)
        weight = weight[:, first[number]]
    weight = np.concatenate([np.ones((1, n)), weight.astype(np.float64)])

    def held_out(make: Callable[[], Threshold]) -> np.ndarray:
        kept = np.zeros(len(lists.logits), bool)
        for outside, inside, pairs in parts:
            kept[pairs] = make().fit(outside, metric).keep(inside)
        return quality(metric, kept, lists, weight)

    reference = attained = held_out(best)
    most = 0.0
    for challenger in rules[1:]:
        values = held_out(challenger)
        gain = values - reference
        if gain[0] > max(most, _STANDARD_ERRORS * float(gain[1:].std())):
            best, attained, most = challenger, values, float(gain[0])
    return best, attained


def _interval(metric: str, values: np.ndarray) -> _Interval:
    """(value, low, high) of a metric, from its value and its bootstraps behind it."""
    value, drawn = float(values[0]), values[1:]
    if metric == "hamming":  # negated, so that greater is better
        value, drawn = -value, -drawn
    if metric == "macro-f1":  # draws have fewer distinct labels: see `metrics.bootstrap`
        drawn = np.clip(drawn + (value - drawn.mean()), 0.0, 1.0)
    low, high = map(float, np.quantile(drawn, [0.025, 0.975]))
    return value, low, high
