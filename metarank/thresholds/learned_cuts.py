"""`LearnedCuts`: from out-of-fold scores to probabilities and label sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from metarank import _core
from metarank._util.elementary import logistic
from metarank._util.parameters import check_integer
from metarank._util.progress import report
from metarank._util.threads import single_threaded_blas
from metarank.persist import register
from metarank.persist.fields import Each, List, Number, Object, Text
from metarank.persist.spec import Saved, Spec
from metarank.thresholds.base import Cut
from metarank.thresholds.budget import BudgetCut
from metarank.thresholds.calibration import Calibrator
from metarank.thresholds.expected_f1 import ExpectedF1Cut
from metarank.thresholds.global_cut import GlobalCut, HalfCut, NoneCut
from metarank.thresholds.half_f1_cut import HalfF1Cut
from metarank.thresholds.instance_cut import InstanceCut
from metarank.thresholds.label_cut import LabelCut
from metarank.thresholds.lists import ScoredLists
from metarank.thresholds.promises import CONFIDENCE, Promises, Wish, parse_wish
from metarank.thresholds.set_metrics import METRICS, check_metric, quality
from metarank.thresholds.subset import SubsetCut
from metarank.thresholds.top_k import TopKCut
from metarank.types.candidates import Candidates
from metarank.types.checks import finite_scores

_FAMILIES: dict[str, Callable[[], Cut]] = {
    "instance": InstanceCut,
    "label": LabelCut,
    "half-f1": HalfF1Cut,
    "global": GlobalCut,
    "top-k": TopKCut,
    "budget": BudgetCut,
    "expected-f1": ExpectedF1Cut,
}
THRESHOLDS = ("auto", *_FAMILIES)

# Labels with this many relevant rows are trusted half as far as their calibrated probabilities.
_LABEL_SHRINKAGE = 100.0
_DEFAULTS: dict[str, Callable[[], Cut]] = {
    "micro-f1": lambda: GlobalCut(plug_in=True),
    "example-f1": ExpectedF1Cut,
    "hamming": HalfCut,
    "subset-accuracy": SubsetCut,
}


def _default(metric: str, lists: ScoredLists) -> Callable[[], Cut]:
    """The cut that is best for a metric where probabilities are right.

    Where all labels are compared for each row there are many pairs of each, and a cut may follow the label.
    """
    if metric != "macro-f1":
        return _DEFAULTS[metric]
    return (lambda: LabelCut(_LABEL_SHRINKAGE)) if lists.candidates.is_full else HalfF1Cut


_CHALLENGERS: tuple[Callable[[], Cut], ...] = (GlobalCut, LabelCut, InstanceCut)
# A challenger must beat the default by so many standard errors; with fewer,
# chance chooses more often than merit.
_STANDARD_ERRORS = 2.0
_BOOTSTRAPS = 100
_SELECTION_FOLDS = 5
_SELECTION_PAIRS = 200_000
# Keeps the folds of this module apart from those that made the scores.
_SEED_SHIFT = 1_000_003


@register
class LearnedCuts(Saved):
    """Calibrates scores and learns one cut for each of five metrics.

    Parameters
    ----------
    threshold : str
        A family of cuts for all metrics: "instance" (least squares on the row's scores; Yang & Gopal
        2012, section 2.3), "label", "half-f1", "global", "top-k", "budget" or "expected-f1"; or "auto",
        which takes for each metric the answer that is optimal where probabilities are right

        - micro-F1: one cut, of greatest expected F1;
        - macro-F1: a cut for each label, of greatest F1 with shrunk relevance where all labels are compared
          for each row, otherwise at half of the F1 that the label can reach;
        - example-F1: for each row the set of greatest expected F1;
        - Hamming loss: probability 0.5;
        - subset accuracy: the most probable label set,

        unless a cut learned on the labels alone ("global", "label", "instance") beats it in
        cross-validation by more than two standard errors (checked up to 200,000 pairs).

    Attributes
    ----------
    calibrator_ : Calibrator
    cuts_ : dict of metric to Cut
    held_out_ : dict of metric to (value, low, high)
        Value of each metric on rows that the cuts were not learned on, with the middle 95 % of bootstraps
        over rows. Present where `threshold="auto"` judged the cuts. Hamming loss is given as a loss.
    promises_ : Promises or None
        Recall and precision that can be promised. None where `missed` is not given by row, and in what
        earlier versions saved.

    Examples
    --------
    >>> from metarank.types.candidates import Candidates
    >>> rng = np.random.default_rng(0)
    >>> pairs = Candidates.all_labels(200, 3)
    >>> scores = rng.normal(size=600)
    >>> gains = (scores + rng.normal(size=600) > 1).astype(np.float32)
    >>> learner = LearnedCuts("budget").fit(pairs, scores, gains, fold=np.arange(200) % 5)
    >>> int(learner.cut(pairs, scores, "micro-f1").sum()), int(gains.sum())
    (135, 137)
    """

    calibrator_: Calibrator
    cuts_: dict[str, Cut]
    held_out_: dict[str, tuple[float, float, float]]
    promises_: Promises | None

    saved: ClassVar[Spec] = Spec(
        Text("threshold"),
        Object("calibrator_", Calibrator, inline=True),
        # Not kept in older files.
        Each("held_out_", List("", Number(""), 3, into=tuple), METRICS, older=dict),
        Each("cuts_", Object("", Cut, inline=True), METRICS, every=True),
        # Not kept in older files.
        Object("promises_", Promises, inline=True, optional=True),
    )

    def __init__(self, threshold: str = "auto") -> None:
        if threshold not in THRESHOLDS:
            raise ValueError(f"threshold must be one of {', '.join(THRESHOLDS)}, got {threshold!r}")
        self.threshold = threshold

    def fit(
        self,
        candidates: Candidates,
        scores: np.ndarray,
        gains: np.ndarray,
        *,
        fold: np.ndarray,
        missed: int | np.ndarray = 0,
        seed: int = 0,
        group: np.ndarray | None = None,
        draws_whole_groups: bool = False,
        confidence: float | None = CONFIDENCE,
    ) -> LearnedCuts:
        """Learn the calibration and the cuts of all metrics.

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
        seed : int
        group : int array (n,), optional
            Rows of the same group, such as copies of one row, stay on the same side of every split.
        draws_whole_groups : bool
            Whether bootstraps draw groups instead of rows, and promises are for groups.
        confidence : float in (0, 1) or None
            Of the promises, see `Promises`.

        Raises
        ------
        ValueError, TypeError
            If shapes disagree, scores are not finite, or `missed` is negative.
        """
        scores = _checked_scores(candidates, scores)
        gains = np.asarray(gains)
        if gains.shape != scores.shape:
            raise ValueError(f"gains must have shape {scores.shape}, one a pair, got {gains.shape}")
        if np.isnan(gains).any():
            raise ValueError("gains must not be NaN")
        fold = np.asarray(fold)
        if fold.shape != (candidates.n_rows,):
            raise ValueError(f"fold must have shape {(candidates.n_rows,)}, one a row, got {fold.shape}")
        if group is not None and np.shape(group) != fold.shape:
            raise ValueError(f"group must have shape {fold.shape}, one a row, got {np.shape(group)}")
        of_row = _missed_of_rows(missed, candidates.n_rows)
        if of_row is None:
            check_integer("missed", missed, 0)
        if len(scores) == 0:
            raise ValueError("candidates must hold at least one pair, got none")
        relevant = gains > 0
        n_folds = 10 if candidates.n_rows < 3000 else 5
        with single_threaded_blas():
            across = _folds_across(fold, n_folds, seed + _SEED_SHIFT, group)
            report("calibration", 0.0)
            self.calibrator_ = Calibrator().fit(candidates, scores, relevant, across)
            by_row = missed if of_row is None else of_row.astype(np.float64)
            lists = ScoredLists(candidates, self.calibrator_.cross_fitted_, relevant, by_row)
            self.held_out_ = {}
            if not relevant.any():
                self.cuts_ = {metric: NoneCut() for metric in METRICS}
            elif self.threshold == "auto":
                judge = _folds_across(fold, _SELECTION_FOLDS, seed + 2 * _SEED_SHIFT, group)
                drawn = group if draws_whole_groups else None
                parts = _parts(lists, judge)
                self.cuts_ = {}
                for metric in _told(METRICS):
                    self.cuts_[metric], values = _choose(metric, lists, parts, seed, drawn)
                    if len(values):
                        found = _interval(metric, values)
                        self.held_out_[metric] = found
            else:
                family = _FAMILIES[self.threshold]
                self.cuts_ = {metric: family().fit(lists, metric) for metric in _told(METRICS)}
            self.promises_ = None
            if of_row is not None:
                together = group if draws_whole_groups else None
                self.promises_ = Promises(confidence).fit(lists, of_row, together, seed)
        return self

    def check_metric(self, optimize: str | None) -> str:
        """The name of the metric to cut for: None means "micro-f1"; ValueError for an unknown one, and for
        a promise that cannot be kept."""
        metric = check_metric(optimize)
        wish = parse_wish(metric)
        if wish is not None:
            self._kept_promises(wish)
        return metric

    def _kept_promises(self, wish: Wish) -> Promises:
        """What keeps a wish; ValueError if it cannot be promised."""
        if self.promises_ is None:
            raise ValueError(f"optimize: {wish} needs a model that was fitted by this version: fit again")
        self.promises_.check(wish)
        return self.promises_

    def probabilities(self, candidates: Candidates, scores: np.ndarray) -> NDArray[np.float32]:
        """Calibrated probabilities of relevance, float32 (m,)."""
        return logistic(self._logits(candidates, scores)).astype(np.float32)

    def cut(self, candidates: Candidates, scores: np.ndarray, metric: str) -> NDArray[np.bool_]:
        """bool (m,): the pairs kept by the cut learned for a metric, or that keep a promise such as
        "recall>=0.9". Each row is judged by itself."""
        metric = check_metric(metric)
        wish = parse_wish(metric)
        promises = None if wish is None else self._kept_promises(wish)
        lists = ScoredLists(candidates, self._logits(candidates, scores))
        if wish is None or promises is None:
            return self.cuts_[metric].keep(lists)
        return promises.keep(lists, wish)

    def _logits(self, candidates: Candidates, scores: np.ndarray) -> np.ndarray:
        return finite_scores(self.calibrator_.logits(candidates, _checked_scores(candidates, scores)))

    @property
    def scores_per_logit(self) -> float:
        """Score difference of one unit of log-odds, by the first step of the calibration; 0 if the scores
        carry no information, or rank in reverse."""
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
        """The family of each metric's cut, on one line."""
        return ", ".join(f"{metric}: {cut.family}" for metric, cut in self.cuts_.items())


def _missed_of_rows(missed: int | np.ndarray, n_rows: int) -> np.ndarray | None:
    """Missed pairs of each row; None where only their number is known, and there are some."""
    if isinstance(missed, np.ndarray):
        if missed.shape != (n_rows,) or missed.dtype.kind not in "iu" or missed.min(initial=0) < 0:
            raise ValueError(f"missed must be {n_rows} integers >= 0, one a row, got {missed!r:.80}")
        return missed
    return np.zeros(n_rows, np.int64) if missed == 0 else None


def _checked_scores(candidates: Candidates, scores: np.ndarray) -> np.ndarray:
    scores = np.ascontiguousarray(scores, np.float64)
    if scores.shape != (candidates.n_pairs,):
        raise ValueError(f"scores must have shape {(candidates.n_pairs,)}, one a pair, got {scores.shape}")
    if not np.isfinite(scores).all():
        raise ValueError(f"scores must be finite, got {scores[~np.isfinite(scores)][0]}")
    return scores


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


@dataclass(frozen=True, eq=False)
class _Part:
    """The lists outside and inside a fold, and where the pairs inside stand, bool (m,)."""

    outside: ScoredLists
    inside: ScoredLists
    pairs: np.ndarray


def _parts(lists: ScoredLists, fold: np.ndarray) -> list[_Part]:
    """The folds that judge cuts, so that what metrics and families ask of their lists is found once.

    None of them where pairs are too few or many to judge.
    """
    few = np.count_nonzero(np.diff(lists.candidates.indptr)) < 2 * _SELECTION_FOLDS
    if few or len(lists.logits) > _SELECTION_PAIRS:
        return []
    within = [fold == f for f in range(int(fold.max()) + 1)]
    return [
        _Part(lists.rows(np.flatnonzero(~rows)), lists.rows(np.flatnonzero(rows)), rows[lists.row])
        for rows in within
    ]


def _choose(
    metric: str, lists: ScoredLists, parts: list[_Part], seed: int, group: np.ndarray | None
) -> tuple[Cut, np.ndarray]:
    """The default of a metric, or a challenger that clearly beats it on held-out rows; fitted on all.

    Bootstraps draw rows, or groups (n,) where these are given.

    With what it attains there, and its bootstraps, or nothing where there are no parts to judge by.
    """
    default = _default(metric, lists)
    if not parts:
        return default().fit(lists, metric), np.zeros(0)
    n = lists.n_rows
    weight = np.random.default_rng([seed, METRICS.index(metric)]).poisson(1.0, (_BOOTSTRAPS, n))
    if group is not None:
        _, first, number = np.unique(group, return_index=True, return_inverse=True)
        weight = weight[:, first[number]]
    weight = np.concatenate([np.ones((1, n)), weight.astype(np.float64)])

    def held_out(make: Callable[[], Cut]) -> np.ndarray:
        kept = np.zeros(len(lists.logits), bool)
        for part in parts:
            kept[part.pairs] = make().fit(part.outside, metric).keep(part.inside)
        return quality(metric, kept, lists, weight)

    reference = held_out(default)
    best, attained, most = default, reference, 0.0
    for challenger in _CHALLENGERS:
        own = held_out(challenger)
        gain = own - reference
        if gain[0] > max(most, _STANDARD_ERRORS * float(gain[1:].std())):
            best, attained, most = challenger, own, float(gain[0])
    return best().fit(lists, metric), attained


def _interval(metric: str, values: np.ndarray) -> tuple[float, float, float]:
    """(value, low, high) of a metric, from its value and its bootstraps behind it."""
    value, drawn = float(values[0]), values[1:]
    if metric == "hamming":  # negated, so that greater is better
        value, drawn = -value, -drawn
    if metric == "macro-f1":  # draws have fewer distinct labels: see `metrics.bootstrap`
        drawn = np.clip(drawn + (value - drawn.mean()), 0.0, 1.0)
    low, high = map(float, np.quantile(drawn, [0.025, 0.975]))
    return value, low, high


def _told(metrics: Sequence[str]) -> Iterator[str]:
    """The metrics one after another, each reported."""
    for number, metric in enumerate(metrics):
        report(metric, 0.3 + 0.7 * number / len(metrics))
        yield metric
