"""`Promises`: label sets whose recall or precision is guaranteed, whatever the quality of the scores."""

from __future__ import annotations

import re
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._util.parameters import POSITIVE, check_real
from metarank.persist.fields import Array, Integer, Number
from metarank.persist.spec import Saved, Spec
from metarank.thresholds.lists import ScoredLists
from metarank.thresholds.risk_bounds import betting_bounds, conformal_bounds

CONFIDENCE = 0.9
_WISH = re.compile(r"(recall|precision)>=([0-9.]+(?:e-?[0-9]+)?)|fnr<=([0-9.]+(?:e-?[0-9]+)?)")
# Log-odds of the cuts that are tried. They are the same for all data, as the guarantee needs it.
_RECALL_CUTS = np.arange(-280, 121) / 20
_PRECISION_CUTS = np.arange(-120, 201) / 20
# Rows beyond these make the margin no smaller than anyone sees.
_MOST_ROWS = 4000


def check_confidence(confidence: float | None) -> float | None:
    """A confidence as a float, or None; an error for anything but a number between 0 and 1."""
    if confidence is None:
        return None
    rule = "None or a number between 0 and 1"
    check_real("confidence", confidence, *POSITIVE, rule)
    if not confidence < 1:
        raise ValueError(f"confidence must be {rule}, got {confidence!r}")
    return float(confidence)


class Wish(NamedTuple):
    """What is to be promised: "recall" or "precision" of at least a level in (0, 1)."""

    of: str
    level: float

    def __str__(self) -> str:
        return f"{self.of}>={self.level:.12g}"


def parse_wish(optimize: str) -> Wish | None:
    """The wish in "recall>=0.9", "precision>=0.8" or "fnr<=0.1"; None for any other text.

    Raises
    ------
    ValueError
        If the level does not lie between 0 and 1.

    Examples
    --------
    >>> str(parse_wish("FNR <= 0.1")), parse_wish("micro-f1")
    ('recall>=0.9', None)
    """
    found = _WISH.fullmatch(optimize.lower().replace(" ", ""))
    if found is None:
        return None
    of, at_least, at_most = found.groups()
    try:
        level = float(at_least or at_most)
    except ValueError:
        return None
    if not 0 < level < 1:
        raise ValueError(f"optimize must promise a share between 0 and 1, got {optimize!r:.80}")
    return Wish(of, level) if of else Wish("recall", round(1 - level, 12))


def attained(wish: Wish, found: sp.csr_matrix, relevant: sp.csr_matrix) -> float:
    """The mean recall or precision of label sets, over the rows that count; 0 where none does.

    Parameters
    ----------
    wish : Wish
    found, relevant : CSR (n, L)
        Of ones, and of values > 0.

    Examples
    --------
    >>> found, relevant = sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), sp.csr_matrix([[1, 0, 0], [1, 1, 1]])
    >>> attained(Wish("precision", 0.9), found, relevant), attained(Wish("recall", 0.9), found, relevant)
    (0.75, 0.6666666666666666)
    """
    hits = np.asarray(found.multiply(relevant > 0).sum(axis=1)).ravel()
    of = np.diff((relevant if wish.of == "recall" else found).indptr)
    return float((hits[of > 0] / of[of > 0]).mean()) if of.any() else 0.0


class Promises(Saved):
    """Which recall and which precision can be promised, and by which cut.

    The *recall* of a row is the share of its relevant labels that are kept, missed ones counted; rows without
    a relevant label do not count. The *precision* of a row is the share of its kept labels that are relevant;
    rows for which nothing is kept do not count. What is promised is the mean over the rows that count, or
    over groups, each by the mean of its rows.

    A set keeps the pairs whose calibrated probability reaches a cut. For each cut of a fixed grid,
    `betting_bounds` limits the mean loss (1 - recall, 1 - precision) with the confidence, and
    `conformal_bounds` its expectation; the larger of the two counts. From the safest cut on, cuts are tested
    one after another (fixed-sequence testing: Angelopoulos, Bates, Candès, Jordan & Lei 2021, "Learn then
    Test"), so that one confidence holds for the whole walk, and the loss need not be monotone. For recall the
    safest cut keeps all; for precision it is the one of which the probabilities promise most.

    Guarantee: if new rows are exchangeable with those of the fit, then with a probability of at least
    `confidence` over the draw of the rows of the fit, the expected recall or precision of a new row is at
    least the promise. Recall also holds on average over all draws (conformal risk control: Angelopoulos,
    Bates, Fisch, Lei & Schuster 2022, theorem 1). With `confidence` None recall is promised on average alone,
    by smaller sets, and precision, for which there is no such theorem, not at all.

    Assumptions: two things make this approximate. The probabilities of the rows of the fit come from
    calibrations (and, in `MetaRanker`, from models) without the row's fold; they are exchangeable with those
    of new rows only as far as models without a fold are like the model of all. And the forms of the
    calibration were chosen on all rows. `experiments/guarantees` shows what is left of the promise. The value
    attained on m new rows scatters about its expectation, by its standard error.

    Margin: about ``sd sqrt(2 log(1 / (1 - confidence)) / n)``, with n rows that count and the standard
    deviation sd of their loss. For 300 rows, sd .25 and confidence 0.9, a recall of .93 is aimed at where .9
    is promised. Without confidence it is about ``1 / (n + 1)``. So few rows allow no strict promise.

    Attributes
    ----------
    confidence : float or None
    n_rows : int
        Rows, or groups, that the promises are from, at most 4,000.
    unseen : float
        Mean number of relevant labels of a row that are not candidates.
    recall_cuts, precision_cuts : float64 arrays
        From the safest cut on.
    recall, precision : float64 arrays
        What each cut can promise, not increasing.
    """

    recall: np.ndarray
    precision: np.ndarray
    recall_cuts: np.ndarray
    precision_cuts: np.ndarray
    n_rows: int
    unseen: float

    saved: ClassVar[Spec] = Spec(
        Number("confidence", 0, 1, optional=True),
        Integer("n_rows"),
        Number("unseen", 0),
        Array("recall_cuts", np.float64, ("recall",), floats="extended"),
        Array("recall", np.float64, ("recall",), least=0, most=1),
        Array("precision_cuts", np.float64, ("precision",)),
        Array("precision", np.float64, ("precision",), least=0, most=1),
    )

    def __init__(self, confidence: float | None = CONFIDENCE) -> None:
        self.confidence: float | None = check_confidence(confidence)

    def fit(
        self, lists: ScoredLists, missed: np.ndarray, group: np.ndarray | None = None, seed: int = 0
    ) -> Promises:
        """Learn from lists with relevance and cross-fitted log-odds.

        Parameters
        ----------
        lists : ScoredLists
        missed : int array (n,)
            Relevant labels of each row that are not among its pairs.
        group : int array (n,), optional
            Groups that are exchangeable, instead of rows.
        seed : int
            Of the order of the rows.
        """
        n = lists.n_rows
        self.unseen = float(missed.sum()) / max(1, n)
        rows, unit = _drawn(np.arange(n) if group is None else group, seed)
        self.n_rows = int(unit.max(initial=-1)) + 1
        drawn, missed = lists.rows(rows), missed[rows]
        self._learn_recall(drawn, missed, unit)
        self._learn_precision(drawn, unit)
        return self

    def _learn_recall(self, lists: ScoredLists, missed: np.ndarray, unit: np.ndarray) -> None:
        n_relevant = lists.relevant_per_row + missed
        found = _kept_at(_RECALL_CUTS, lists.logits[lists.truth], lists.row[lists.truth], lists.n_rows)
        self.recall_cuts = _RECALL_CUTS
        if not lists.candidates.is_full:
            # Sets of all labels promise nothing worth having, those of all candidates do.
            everything = lists.relevant_per_row[:, None]
            found, self.recall_cuts = np.hstack([everything, found]), np.append(-np.inf, _RECALL_CUTS)
        counts = n_relevant > 0
        losses, counted = _by_unit(
            1 - found[counts] / n_relevant[counts, None], np.ones((counts.sum(), 1), bool), unit[counts]
        )
        losses = losses[counted[:, 0]]
        bounds = np.minimum(conformal_bounds(losses), 1.0)
        if self.confidence is not None:
            bounds = np.maximum(bounds, betting_bounds(losses, self.confidence))
        self.recall = 1 - np.maximum.accumulate(bounds)

    def _learn_precision(self, lists: ScoredLists, unit: np.ndarray) -> None:
        n, cuts, truth = lists.n_rows, _PRECISION_CUTS, lists.truth
        if self.confidence is None:
            self.precision_cuts, self.precision = np.zeros(0), np.zeros(0)
            return
        kept = _kept_at(cuts, lists.logits, lists.row, n)
        right = _kept_at(cuts, lists.logits[truth], lists.row[truth], n)
        expected = _kept_at(cuts, lists.logits, lists.row, n, lists.probabilities)
        some = kept > 0
        losses, counted = _by_unit(np.where(some, 1 - right / np.maximum(kept, 1), 0.0), some, unit)
        bounds = betting_bounds(losses, self.confidence, counted)
        first = _most_promising(np.where(some, 1 - expected / np.maximum(kept, 1), 0.0), some)
        self.precision_cuts = cuts[first::-1].copy()
        self.precision = 1 - np.maximum.accumulate(bounds[first::-1])

    def best(self, of: str) -> float:
        """The greatest recall or precision that can be promised; 0 if none can."""
        return float(getattr(self, of).max(initial=0.0))

    def check(self, wish: Wish) -> None:
        """Raise ValueError, which names the best that can be had, if a wish cannot be promised."""
        best = self.best(wish.of)
        if wish.level > best:
            if wish.of == "precision" and self.confidence is None:
                raise ValueError(f"optimize: {wish} needs a confidence, got confidence=None")
            sure = "on average" if self.confidence is None else f"with confidence {self.confidence:g}"
            raise ValueError(
                f"optimize: {wish} cannot be promised {sure} from {self.n_rows} rows; the best that can be "
                f"had is {wish.of}>={np.floor(best * 1000) / 1000:.3f}"
            )

    def keep(self, lists: ScoredLists, wish: Wish) -> np.ndarray:
        """bool (m,): the pairs of the smallest sets (recall) or largest sets (precision) that keep the
        promise."""
        self.check(wish)
        last = int(np.count_nonzero(getattr(self, wish.of) >= wish.level)) - 1
        cut = (self.recall_cuts if wish.of == "recall" else self.precision_cuts)[last]
        return lists.logits >= cut


def _drawn(group: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """At most 4,000 units in the order of a hash: their rows, and the number of the unit of each."""
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    order = np.argsort(_core.fold_of_rows(len(group), 2**31 - 1, seed)[first], kind="stable")
    place = np.empty(len(first), np.int64)
    place[order] = np.arange(len(first))
    unit = place[number]
    rows = np.argsort(unit, kind="stable")
    rows = rows[unit[rows] < _MOST_ROWS]
    return rows, unit[rows]


def _kept_at(
    cuts: np.ndarray, z: np.ndarray, row: np.ndarray, n: int, weight: np.ndarray | None = None
) -> np.ndarray:
    """For each row and each of the ascending cuts, how many pairs (or what weight) have z >= cut, (n, G)."""
    width = len(cuts) + 1
    passed = np.searchsorted(cuts, z, side="right")
    at = np.bincount(row * width + passed, weights=weight, minlength=n * width).reshape(n, width)
    return np.cumsum(at[:, ::-1], axis=1)[:, ::-1][:, 1:]


def _by_unit(losses: np.ndarray, counted: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of the losses that count in each unit (numbered in order), and whether any does."""
    n = int(unit.max(initial=-1)) + 1
    if len(losses) == n and np.array_equal(unit, np.arange(n)):
        return losses, np.broadcast_to(counted, losses.shape)
    total, count = (np.zeros((n, losses.shape[1])) for _ in range(2))
    np.add.at(total, unit, losses * counted)
    np.add.at(count, unit, np.broadcast_to(counted, losses.shape))
    return total / np.maximum(1, count), count > 0


def _most_promising(losses: np.ndarray, counted: np.ndarray) -> int:
    """The column of the least upper bound of the losses that the probabilities expect, without a label."""
    count = np.maximum(1, counted.sum(axis=0))
    mean = np.cumsum(losses * counted, axis=0)[-1] / count
    margin = np.sqrt(2 * np.maximum(mean * (1 - mean), 1e-4) / count) + 2.0 / count
    return int(np.argmin(np.where(counted.any(axis=0), mean + margin, np.inf)))
