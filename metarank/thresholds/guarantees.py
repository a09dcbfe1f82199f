"""`Guarantees`: label sets whose recall or precision is guaranteed, even if the scores are poor."""

from __future__ import annotations

import math
import re
from typing import Annotated, NamedTuple

import numpy as np

from metarank import _core
from metarank._util.elementary import log1p
from metarank._util.parameters import check_real
from metarank.persist.fields import Array, Integer, Number
from metarank.persist.spec import Saved
from metarank.thresholds.lists import ScoredLists

CONFIDENCE = 0.9
_NUMBER = r"([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)"
_WISH = re.compile(rf"(recall|precision)>={_NUMBER}")
# Log-odds of the thresholds that are tried. The guarantee needs them to be the same for all data.
_RECALL_GRID = np.arange(-280, 121) / 20
_PRECISION_GRID = np.arange(-120, 201) / 20
# Rows beyond these hardly make the margin smaller.
_MOST_ROWS = 4000
# Halvings of [0, 1]: bounds are exact to 2^-16, and rounded up.
_HALVINGS = 16


class Wish(NamedTuple):
    """What is to be guaranteed: "recall" or "precision" of at least a level in (0, 1)."""

    of: str
    level: float

    def __str__(self) -> str:
        return f"{self.of}>={self.level:.12g}"


def parse_wish(optimize: str) -> Wish | None:
    """The wish in "recall>=0.9" or "precision>=0.8"; None for any other text.

    Raises
    ------
    ValueError
        If the level does not lie between 0 and 1.

    Examples
    --------
    >>> str(parse_wish("Recall >= 0.9")), parse_wish("micro-f1")
    ('recall>=0.9', None)
    """
    match = _WISH.fullmatch(optimize.lower().replace(" ", ""))
    if match is None:
        return None
    of, level = match[1], float(match[2])
    if not 0 < level < 1:
        raise ValueError(f"optimize must guarantee a share above 0 and below 1, got {optimize!r:.80}")
    return Wish(of, level)


class Guarantees(Saved):
    """Which recall and which precision can be guaranteed, and by which threshold.

    The *recall* of a row is the share of its relevant labels that are kept, missed ones counted; rows without
    a relevant label do not count. The *precision* of a row is the share of its kept labels that are relevant;
    rows for which nothing is kept do not count. What is guaranteed is the mean over the rows that count, or
    over groups, each by the mean of its rows.

    A set keeps the pairs whose calibrated probability reaches a threshold. For each threshold of a fixed
    grid, `betting_bounds` limits the mean loss (1 - recall, 1 - precision) with the confidence, and
    `conformal_bounds` its expectation; the larger of the two counts. Thresholds are tested one after another
    from the safest on (fixed-sequence testing: Angelopoulos, Bates, Candès, Jordan & Lei 2021, "Learn then
    Test"), so one confidence holds for the whole sequence, and the loss need not be monotone. The safest
    threshold for recall keeps all pairs; for precision it has the greatest expected precision.

    Guarantee: if new rows are exchangeable with those of the fit, then with a probability of at least
    `confidence` over the draw of the rows of the fit, the expected recall or precision of a new row is at
    least the level. Recall also holds on average over all draws (conformal risk control: Angelopoulos,
    Bates, Fisch, Lei & Schuster 2022, theorem 1).

    Assumptions: the guarantee is approximate for two reasons. The probabilities of the rows of the fit come
    from calibrations (and, in `MetaRanker`, from models) without the row's fold; they are exchangeable with
    those of new rows only as far as models without a fold are like the model of all rows. And the forms of
    the calibration were chosen on all rows. `experiments/tried.md` has measurements. The value attained on m
    new rows differs from its expectation by its standard error.

    Margin: about ``sd sqrt(2 log(1 / (1 - confidence)) / n)``, with n rows that count and the standard
    deviation sd of their loss. For 300 rows, sd .25 and confidence 0.9, a recall of .93 is aimed at to
    guarantee .9. Few rows allow no strict guarantee.

    Attributes
    ----------
    confidence : float in (0, 1)
    n_rows : int
        Rows, or groups, behind the guarantees, at most 4,000.
    unseen : float
        Mean number of relevant labels of a row that are not candidates.
    recall_thresholds, precision_thresholds : float64 arrays
        From the safest on.
    recall, precision : float64 arrays
        What each threshold can guarantee, not increasing.
    """

    confidence: Annotated[float, Number("", 0, 1)]
    n_rows: Annotated[int, Integer("")]
    unseen: Annotated[float, Number("", 0)]
    recall_thresholds: Annotated[np.ndarray, Array("", np.float64, ("recall",), floats="extended")]
    recall: Annotated[np.ndarray, Array("", np.float64, ("recall",), least=0, most=1)]
    precision_thresholds: Annotated[np.ndarray, Array("", np.float64, ("precision",))]
    precision: Annotated[np.ndarray, Array("", np.float64, ("precision",), least=0, most=1)]

    def __init__(self, confidence: float = CONFIDENCE) -> None:
        check_real("confidence", confidence, 5e-324, np.nextafter(1.0, 0.0), "a number between 0 and 1")
        self.confidence = float(confidence)

    def fit(
        self, lists: ScoredLists, missed: np.ndarray, group: np.ndarray | None = None, seed: int = 0
    ) -> Guarantees:
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
        found = _kept_at(_RECALL_GRID, lists.logits[lists.truth], lists.row[lists.truth], lists.n_rows)
        self.recall_thresholds = _RECALL_GRID
        if not lists.candidates.is_full:
            # Sets of all labels are useless; those of all candidates are not.
            everything = lists.relevant_per_row[:, None]
            found = np.hstack([everything, found])
            self.recall_thresholds = np.append(-np.inf, _RECALL_GRID)
        counts = n_relevant > 0
        losses, counted = _by_unit(
            1 - found[counts] / n_relevant[counts, None], np.ones((counts.sum(), 1), bool), unit[counts]
        )
        losses = losses[counted[:, 0]]
        bounds = np.minimum(conformal_bounds(losses), 1.0)
        bounds = np.maximum(bounds, betting_bounds(losses, self.confidence))
        self.recall = 1 - np.maximum.accumulate(bounds)

    def _learn_precision(self, lists: ScoredLists, unit: np.ndarray) -> None:
        n, grid, truth = lists.n_rows, _PRECISION_GRID, lists.truth
        kept = _kept_at(grid, lists.logits, lists.row, n)
        right = _kept_at(grid, lists.logits[truth], lists.row[truth], n)
        expected = _kept_at(grid, lists.logits, lists.row, n, lists.probabilities)
        some = kept > 0
        losses, counted = _by_unit(np.where(some, 1 - right / np.maximum(kept, 1), 0.0), some, unit)
        bounds = betting_bounds(losses, self.confidence, counted)
        first = _least_expected(np.where(some, 1 - expected / np.maximum(kept, 1), 0.0), some)
        self.precision_thresholds = grid[first::-1].copy()
        self.precision = 1 - np.maximum.accumulate(bounds[first::-1])

    def best(self, of: str) -> float:
        """The greatest recall or precision that can be guaranteed; 0 if none can."""
        return float(getattr(self, of).max(initial=0.0))

    def check(self, wish: Wish) -> None:
        """Raise a ValueError that names the best possible level, if a wish cannot be guaranteed."""
        best = self.best(wish.of)
        if wish.level > best:
            more = " or a greater shortlist_size" * (wish.of == "recall" and self.unseen > 0)
            raise ValueError(
                f"optimize: {wish} cannot be guaranteed with confidence {self.confidence:g} from "
                f"{self.n_rows} rows: more rows{more} allow more; the best possible is "
                f"{wish.of}>={np.floor(best * 1000) / 1000:.3f}"
            )

    def keep(self, lists: ScoredLists, wish: Wish) -> np.ndarray:
        """bool (m,): the pairs of the smallest sets (recall) or largest sets (precision) that keep the
        guarantee."""
        self.check(wish)
        last = int(np.count_nonzero(getattr(self, wish.of) >= wish.level)) - 1
        threshold = (self.recall_thresholds if wish.of == "recall" else self.precision_thresholds)[last]
        return lists.logits >= threshold


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
    grid: np.ndarray, z: np.ndarray, row: np.ndarray, n: int, weight: np.ndarray | None = None
) -> np.ndarray:
    """For each row and each ascending threshold t, how many pairs (or what weight) have z >= t, (n, G)."""
    width = len(grid) + 1
    passed = np.searchsorted(grid, z, side="right")
    at = np.bincount(row * width + passed, weights=weight, minlength=n * width).reshape(n, width)
    return np.cumsum(at[:, ::-1], axis=1)[:, ::-1][:, 1:]


def _by_unit(losses: np.ndarray, counted: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of the losses that count in each unit (numbered in order), and whether any does."""
    n = int(unit.max(initial=-1)) + 1
    total, count = (np.zeros((n, losses.shape[1])) for _ in range(2))
    np.add.at(total, unit, losses * counted)
    np.add.at(count, unit, np.broadcast_to(counted, losses.shape))
    return total / np.maximum(1, count), count > 0


def _least_expected(losses: np.ndarray, counted: np.ndarray) -> int:
    """The column of the least upper bound of the losses that the probabilities expect, without labels."""
    count = np.maximum(1, counted.sum(axis=0))
    mean = np.cumsum(losses * counted, axis=0)[-1] / count
    margin = np.sqrt(2 * np.maximum(mean * (1 - mean), 1e-4) / count) + 2.0 / count
    return int(np.argmin(np.where(counted.any(axis=0), mean + margin, np.inf)))


# --- bounds of a mean loss, for any distribution of the losses ---------------------


def betting_bounds(losses: np.ndarray, confidence: float, counted: np.ndarray | None = None) -> np.ndarray:
    """For each column an upper bound of the mean loss of new rows.

    Waudby-Smith & Ramdas (2024), as in Bates et al. (2021), proposition 5: bet on each row that its loss
    is below R, with stakes that depend on earlier rows only. If the mean is R or more, the capital exceeds
    1 / (1 - confidence) with a probability of at most 1 - confidence. The bound is the least R at which the
    capital reaches that.

    Parameters
    ----------
    losses : float64 array (n, G)
        Losses in [0, 1] of n independent rows, in an order that does not depend on them.
    confidence : float in (0, 1)
    counted : bool array (n, G), optional
        The rows that a column counts; the bound is for the mean over such rows.

    Returns
    -------
    float64 array (G,)
        In [0, 1], rounded up to a multiple of 2^-16; 1 where too few rows count.

    Examples
    --------
    Twenty losses of zero. The stakes are sqrt(2 log(10) / 20 / .25) = .960 at first, and 1 from then on:

    >>> betting_bounds(np.zeros((20, 1)), 0.9).round(4)
    array([0.1223])
    """
    wealth = math.log(1 / (1 - confidence))
    losses = np.ascontiguousarray(losses.T)
    counted = np.ones(losses.shape, bool) if counted is None else np.ascontiguousarray(counted.T)
    stakes = _stakes(losses, counted, wealth)
    low, high = np.zeros(len(losses)), np.ones(len(losses))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        capital = np.cumsum(log1p(-stakes * (losses - middle[:, None])), axis=1)
        enough = capital.max(axis=1, initial=0.0) >= wealth
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return high


def _stakes(losses: np.ndarray, counted: np.ndarray, wealth: float) -> np.ndarray:
    """What is staked on each row, (G, n): large where losses so far vary little; 0 on rows not counted."""
    seen = np.cumsum(counted, axis=1)
    mean = (0.5 + np.cumsum(losses * counted, axis=1)) / (1 + seen)
    spread = np.cumsum((losses - mean) ** 2 * counted, axis=1)
    variance = np.full(losses.shape, 0.25)
    variance[:, 1:] = ((0.25 + spread) / (1 + seen))[:, :-1]
    total = np.maximum(1, seen[:, -1:])
    stakes: np.ndarray = np.minimum(1.0, np.sqrt(2 * wealth / (total * variance))) * counted
    return stakes


def conformal_bounds(losses: np.ndarray) -> np.ndarray:
    """For each column the least alpha that conformal risk control guarantees, float64 (G,).

    Angelopoulos, Bates, Fisch, Lei & Schuster (2022), eq. 4 with B = 1: n / (n + 1) R + 1 / (n + 1), where R
    is the mean of the n losses.

    Examples
    --------
    >>> conformal_bounds(np.array([[0.0], [0.5], [0.0]]))
    array([0.375])
    """
    n = len(losses)
    bounds: np.ndarray = (np.cumsum(np.vstack([losses, np.ones(losses.shape[1])]), axis=0)[-1]) / (n + 1)
    return bounds
