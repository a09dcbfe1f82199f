"""`GivenScorer`: what the candidates of one source say of a pair."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank._util.elementary import log, log2
from metarank._util.parameters import with_parameters
from metarank.persist.fields import Array, Declared, Flag, Known, Number, Params
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.given.lists import are_places, moments, places, positions
from metarank.scorers.neighbors.training_rows import check_lists
from metarank.types.candidates import Candidates
from metarank.types.given import UNNAMED, Given, called
from metarank.types.ragged import extreme_of_rows, row_of_entries
from metarank.types.view import TrainingView

# The parameter of `MetaRanker.fit`.
_OWN = "candidates"
# The columns that say how a source scores each label, whether right or not.
OF_LABELS = ("score against label's usual", "label's usual score", "log frequency of label")
# Pairs of the general rate in a rate of few pairs.
_RATE_PAIRS = 5.0
_BIN_PAIRS = 2.0
_LEAST_CHANCE, _MOST_CHANCE = 1e-7, 0.99
# The logarithm of a score that has none is so far below the least that there is.
_BELOW = 1.0
# Proposals of the mean label in a label's own mean and spread, and how unusual it is not to be proposed.
_USUAL_PAIRS = 5.0
_NOT_PROPOSED = -5.0
_LEAST_SPREAD = 1e-3
# The best scores of all training lists fall into bins that grow by a factor; the first holds so many pairs.
_FIRST_BIN, _BIN_GROWTH = 30, 1.3
# Places 0, 1, 2, ... of a list fall into bins that grow by a factor too.
PLACES = np.unique(np.round(1.25 ** np.arange(35)).astype(np.int64))
# The range of the pairs that a label's own record is weighed against.
_LEAST_WEIGHT, _MOST_WEIGHT = 0.3, 50.0


def _has_habits(known: Any) -> bool:
    return not known.by_fold


def _of_labels(known: Known) -> int:
    return known["L"] + 1


@with_parameters
class GivenScorer(LabelScorer):
    """What the candidates of one source say of a pair, and how often the source is right.

    Of a pair that the source proposes, with score s at place r = 0, 1, ... of the row's list (by score, ties
    by label id):

    =========================================== =============================================================
    ``<source>: score``                         s
    ``<source>: log score``                     log s; where s <= 0, the least logarithm of the training
                                                scores less 1
    ``<source>: rank discount``                 1 / log2(r + 2)
    ``<source>: share of best score``           s over the best score of the list
    ``<source>: standardized score``            (s - mean of the list) / standard deviation of the list
    ``<source>: proposed``                      1
    ``<source>: precision at rank``             how often a pair of such a place is relevant
    ``<source>: precision for label``           how often the source is right for the label: (h + 5 q) / (c +
                                                5), for h relevant ones of c proposals and the rate q of all
                                                proposals
    ``<source>: log-probability``               log of the chance of relevance by the score, times how much
                                                oftener than its scores say the source is right for the
                                                label: (h + a) / (e + a), where e is the sum of the chances
                                                of the c proposals, and a is set by how far labels differ
                                                (moments of a gamma distribution)
    ``<source>: score against label's usual``   (v - mean) / standard deviation, for v the score's place
                                                among all training scores (0 to 1, logarithmic) and those of
                                                the label's proposals; 5 mean ones are added to a label's own
    ``<source>: label's usual score``           that mean of the label
    ``<source>: log frequency of label``        log of the share of the training rows for which the source
                                                proposes the label
    =========================================== =============================================================

    Of other pairs, the score is the least of the row's list (0 where it is empty), logarithm and z are 1 less
    than the least, rank discount, share and "proposed" are 0, the precisions and the log-probability tell how
    often a label that the source does not propose is relevant, and the score against the label's usual is -5.
    A chance by the score is monotone: the rates of bins of scores, pooled where they decrease. Training rows
    without a relevant label tell nothing of how often a source is right and are not counted there.

    The source proposes all pairs that were given, however many are asked for.

    Parameters
    ----------
    given : str
        The name under which the candidates are given.
    by_fold : bool
        Whether the training rows' candidates come from models that were trained without the row's fold. How
        often these propose a label for the rows of other folds then tells whether the row has it, and the
        last three columns are left out.

    Examples
    --------
    >>> from metarank.types.view import TrainingSet
    >>> import scipy.sparse as sp
    >>> S = sp.csr_matrix(np.float32([[0.9, 0.1], [0.8, 0.3], [0.2, 0.7]]))
    >>> Y = sp.csr_matrix(np.float32([[1, 0], [1, 0], [0, 1]]))
    >>> given = Given(3, 2, {"bm25": S})
    >>> data = TrainingSet(np.zeros((3, 0), np.float32), Y, np.zeros(3), given=given)
    >>> columns = GivenScorer(given="bm25").fit(data.view()).score(given[:1], Candidates.all_labels(1, 2))
    >>> columns["bm25: score"], columns["bm25: rank discount"].round(2)
    (array([0.9, 0.1], dtype=float32), array([1.  , 0.63], dtype=float32))
    """

    given: str = UNNAMED
    by_fold: bool = False

    reads_given = True
    proposes_given = True

    saved: ClassVar[Spec] = Spec(
        Params(),
        Declared("n_labels_", size="L"),
        Array("edges_", np.float32, ("edges",)),
        Number("least_log_"),
        Array("chance_", np.float64, ("edges+1",), above=0, below=1),
        Array("right_at_", np.float64, (len(PLACES) + 1,), above=0, below=1),
        Array("right_", np.float64, ("L",), above=0, below=1),
        Array("lift_", np.float64, ("L",), above=0),
        Array("missed_", np.float64, ("L",), above=0, below=1),
        Number("rate_", 0, 1),
        Number("miss_rate_", 0, 1),
        Number("new_missed_", 0, 1),
        Flag("by_place_", optional=True),
        Array("usual_", np.float32, (_of_labels,), least=0, most=1, when=_has_habits),
        Array("spread_", np.float32, (_of_labels,), above=0, when=_has_habits),
        Array("log_share_", np.float32, (_of_labels,), when=_has_habits),
    )

    # --- what is learned ---------------------------------------------------------

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> GivenScorer:
        """Learn from the rows of the TrainingView and their candidates. Returns self."""
        given = view.all_given.scores[self.given]
        self.n_labels_: int = view.n_labels
        self.edges_, self.least_log_ = view.shared(f"given {self.given}", lambda X: edges(given.data))
        # Unknown if there is no pair.
        self.by_place_: bool | None = (
            (_OWN, self.given) in view.all_given.unscored if len(self.edges_) else None
        )
        if not self.by_fold:
            self.usual_, self.spread_, self.log_share_ = view.shared(
                f"habits of {self.given}", lambda X: habits(given, self.edges_)
            )
        bins = view.shared(
            f"bins of {self.given}",
            lambda X: (
                np.searchsorted(self.edges_, given.data, side="right"),
                np.searchsorted(PLACES, places(given), side="right"),
            ),
        )
        # Of the pairs of rows in the view that have labels: the label, the bins, and whether it is relevant.
        has_labels = np.diff(view.Y.indptr) > 0
        per_row = np.diff(given.indptr)
        hit = view.given.candidates(self.given).values_of(view.Y) > 0
        hit = hit[np.repeat(has_labels, per_row[view.rows])].astype(np.float64)
        counted = np.zeros(len(per_row), bool)
        counted[view.rows] = has_labels
        pairs = np.repeat(counted, per_row)
        label, in_bin, in_place = given.indices[pairs], bins[0][pairs], bins[1][pairs]
        rate = float((hit.sum() + 0.5) / (len(hit) + 1.0))
        self.rate_: float = rate
        counts, hits = tally(in_bin, hit, len(self.edges_) + 1)
        self.chance_: NDArray[np.float64] = monotone(
            (hits + _BIN_PAIRS * rate) / (counts + _BIN_PAIRS), counts + _BIN_PAIRS
        )
        counts, hits = tally(in_place, hit, len(PLACES) + 1)
        # The first bin holds the first place alone.
        self.right_at_: NDArray[np.float64] = (hits + _BIN_PAIRS * rate) / (counts + _BIN_PAIRS)
        counts, hits = tally(label, hit, view.n_labels)
        self.right_: NDArray[np.float64] = (hits + _RATE_PAIRS * rate) / (counts + _RATE_PAIRS)
        expected = np.bincount(label, weights=self.chance_[in_bin], minlength=view.n_labels)
        weight = weight_of_scores(hits, expected)
        self.lift_: NDArray[np.float64] = (hits + weight) / (expected + weight)
        missed = view.label_counts - hits
        elsewhere = np.count_nonzero(np.diff(view.Y.indptr)) - counts
        self.miss_rate_: float = float((missed.sum() + 0.5) / (elsewhere.sum() + 1.0))
        # A label is missed as often as any other until rows enough have shown that it is not.
        unseen = 1.0 / self.miss_rate_
        self.new_missed_: float = 1.0 / (unseen + 1.0)
        self.missed_: NDArray[np.float64] = (missed + 1.0) / (elsewhere + unseen + 1.0)
        return self

    # --- what is said of pairs ---------------------------------------------------------

    def score(self, X: Given, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """The columns of pairs, float32 (m,). X is what is given of the rows."""
        check_lists(candidates, X.n_rows, self.n_labels_)
        given, row, label = X.scores[self.given], candidates.row_of_pair, candidates.labels
        entry_row = row_of_entries(given.indptr)
        at, is_listed = positions(given, candidates)
        value = given.data.astype(np.float64)
        logarithm = np.where(value > 0, log(np.where(value > 0, value, 1.0)), self.least_log_ - _BELOW)
        mean, deviation = moments(given, value)
        z = (value - mean[entry_row]) / deviation[entry_row]
        least, least_log, least_z = (
            extreme_of_rows(np.minimum, of, given.indptr, 0.0) for of in (value, logarithm, z)
        )
        best = extreme_of_rows(np.maximum, value, given.indptr, 0.0)
        place = places(given)
        chance = self.chance_[np.searchsorted(self.edges_, given.data, side="right")]
        right_at = self.right_at_[np.searchsorted(PLACES, place, side="right")]
        odds = np.clip(chance * self.lift_[given.indices], _LEAST_CHANCE, _MOST_CHANCE)
        filled = np.diff(given.indptr)[row] > 0
        missed = self.missed_[label]
        share = value / np.where(best != 0, np.abs(best), 1.0)[entry_row]
        columns = {
            "score": (value, least[row]),
            "log score": (
                logarithm,
                np.where(filled, least_log[row], self.least_log_) - _BELOW,
            ),
            "rank discount": (1.0 / log2(place + 2.0), 0.0),
            "share of best score": (share, 0.0),
            "standardized score": (z, np.where(filled, least_z[row] - _BELOW, 0.0)),
            "proposed": (np.ones(len(value)), 0.0),
            "precision at rank": (right_at, self.miss_rate_),
            "precision for label": (self.right_[given.indices], missed),
            "log-probability": (log(odds), log(missed)),
        }
        out = {}
        for name, (of_entry, otherwise) in columns.items():
            column = np.broadcast_to(otherwise, len(label)).astype(np.float32)
            column[is_listed] = of_entry[at[is_listed]]
            out[column_of(self.given, name)] = column
        if not self.by_fold:
            unusual = np.full(len(label), _NOT_PROPOSED, np.float32)
            of_pair, level = label[is_listed], levels(given.data[at[is_listed]], self.edges_)
            unusual[is_listed] = (level - self.usual_[of_pair]) / self.spread_[of_pair]
            for name, column in zip(OF_LABELS, (unusual, self.usual_[label], self.log_share_[label])):
                out[column_of(self.given, name)] = column
        return out

    def shortlist(self, X: Given, k: int, *, n_jobs: int = 1) -> Candidates:
        """All pairs that were given, with their scores."""
        return X.candidates(self.given)

    def given_read(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The one source."""
        return (self.given,), ()

    def check_given(self, given: Given) -> None:
        """Raise ValueError if labels alone are given after a fit with scores, or the reverse."""
        what = called(_OWN, self.given)
        if self.by_place_ is False and (_OWN, self.given) in given.unscored:
            raise ValueError(f"{what} must hold scores, as in fit, got only labels")
        if self.by_place_ and not are_places(given.scores[self.given]):
            raise ValueError(f"{what} must hold only labels, best first, as in fit, got scores")

    def updated(self, view: TrainingView, *, n_jobs: int = 1) -> GivenScorer:
        """A scorer of the labels of the view. What was learned stays: a new label is as right and as often
        missed as one of which nothing is known."""
        out, more = copy(self), view.n_labels - self.n_labels_
        out.right_ = np.append(self.right_, np.full(more, self.rate_))
        out.lift_ = np.append(self.lift_, np.ones(more))
        out.missed_ = np.append(self.missed_, np.full(more, self.new_missed_))
        if not self.by_fold:  # the last entry is that of a new label
            out.usual_, out.spread_, out.log_share_ = (
                np.append(of, np.repeat(of[-1:], more)) for of in (self.usual_, self.spread_, self.log_share_)
            )
        out.n_labels_ = view.n_labels
        return out


def column_of(source: str, name: str) -> str:
    """The full name of a column of a source; candidates without a source are called so."""
    return f"{'given candidates' if source == UNNAMED else source}: {name}"


def habits(given: sp.csr_matrix, edges: np.ndarray) -> tuple[NDArray[np.float32], ...]:
    """How a source scores each label, whether right or not: what is usual for one is a find for another.

    Returns float32 arrays (L + 1,), the last entry that of a label of which nothing is known: mean and
    standard deviation of the levels of the label's proposals (see `levels`), and the log of the share of the
    rows that have one, which is that of half a row for a label never proposed.
    """
    n, n_labels = given.shape
    level, label = levels(given.data, edges), given.indices
    usual = float(level.mean()) if len(level) else 0.5
    usual_spread = max(float(level.std()) if len(level) else 0.0, _LEAST_SPREAD)
    counts = np.bincount(label, minlength=n_labels + 1)
    pairs = counts + _USUAL_PAIRS
    mean = (np.bincount(label, weights=level, minlength=n_labels + 1) + _USUAL_PAIRS * usual) / pairs
    squares = np.bincount(label, weights=(level - mean[label]) ** 2, minlength=n_labels + 1)
    spread = np.sqrt((squares + _USUAL_PAIRS * usual_spread**2) / pairs)
    log_share = log((counts + 0.5) / (n + 1))
    return mean.astype(np.float32), spread.astype(np.float32), log_share.astype(np.float32)


def levels(scores: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Where scores stand among all training scores, float64 (m,) in (0, 1]: equal steps are equal factors of
    the number of better ones. It depends on their order alone."""
    return (np.searchsorted(edges, scores, side="right") + 1) / (len(edges) + 1)


def edges(scores: np.ndarray) -> tuple[np.ndarray, float]:
    """The lower bounds of the bins of scores, float32, and the least logarithm of a positive score."""
    positive = scores[scores > 0]
    least_log = float(log(positive.min().astype(np.float64))) if len(positive) else 0.0
    ordered = np.sort(scores)[::-1]
    growth = int(np.ceil(np.log(max(2, len(ordered))) / np.log(_BIN_GROWTH)))
    tops = np.unique((_FIRST_BIN * _BIN_GROWTH ** np.arange(growth)).astype(np.int64))
    return np.unique(ordered[tops[tops < len(ordered)]]).astype(np.float32), least_log


def tally(group: np.ndarray, hit: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs, and relevant ones, of each of n groups."""
    return np.bincount(group, minlength=n), np.bincount(group, weights=hit, minlength=n)


def weight_of_scores(hits: np.ndarray, expected: np.ndarray) -> float:
    """The pairs a = 1/v against which a label's own record is weighed.

    v is how far the true ratios of hits h to expected hits e spread over labels: in a gamma-Poisson mixture
    E (h - e)^2 = e + v e^2.
    """
    spread = float(((hits - expected) ** 2 - expected).sum())
    scale = float((expected**2).sum())
    if spread <= 0 or scale <= 0:
        return _MOST_WEIGHT
    return float(np.clip(scale / spread, _LEAST_WEIGHT, _MOST_WEIGHT))


def monotone(rates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The nearest rates that do not decrease (pool adjacent violators)."""
    pools: list[list[float]] = []  # (rate, weight, length)
    for rate, weight in zip(rates.tolist(), weights.tolist()):
        pools.append([rate, weight, 1])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            b, a = pools.pop(), pools.pop()
            both = a[1] + b[1]
            pools.append([(a[0] * a[1] + b[0] * b[1]) / both, both, a[2] + b[2]])
    return np.repeat([rate for rate, _, _ in pools], [int(n) for _, _, n in pools])
