"""`GivenScorer`: what the candidates of one source say of a pair."""

from __future__ import annotations

from copy import copy
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from metarank._util.elementary import log, log2
from metarank._util.parameters import with_parameters
from metarank.persist.fields import Array, Declared, Flag, Integer, Number, Object, Params
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import scatter_folds
from metarank.scorers.given.habits import OF_LABELS, Habits
from metarank.scorers.given.lists import are_places, extremes, moments, places, positions, rows_of
from metarank.scorers.given.rates import PLACES, ProposedPairs, edges, monotone, tally, weight_of_scores
from metarank.scorers.neighbors.training_rows import check_lists
from metarank.scorers.sizes import DESCRIBE, FIT, FitSizes, MemoryPart
from metarank.types.candidates import Candidates
from metarank.types.given import UNNAMED, Given, called
from metarank.types.view import TrainingSet, View

# The parameter of `MetaRanker.fit`.
_OWN = "candidates"
COLUMNS = ("score", "log", "place", "share", "z", "present", "right_at", "right", "odds")
# Pairs of the general rate in a rate of few pairs.
_RATE_PAIRS = 5.0
_BIN_PAIRS = 2.0
_LEAST_CHANCE, _MOST_CHANCE = 1e-7, 0.99
# The logarithm of a score that has none is so far below the least that there is.
_BELOW = 1.0


@with_parameters
class GivenScorer(LabelScorer):
    """What the candidates of one source say of a pair, and how often the source is right.

    Of a pair that the source proposes, with score s at place r = 0, 1, ... of the row's list (by score, ties
    by label id):

    ========================= ==========================================================================
    ``<source>_score``        s
    ``<source>_log``          log s; where s <= 0, the least logarithm of the training scores less 1
    ``<source>_place``        1 / log2(r + 2)
    ``<source>_share``        s over the best score of the list
    ``<source>_z``            (s - mean of the list) / standard deviation of the list
    ``<source>_present``      1
    ``<source>_right_at``     how often a pair of such a place is relevant
    ``<source>_right``        how often the source is right for the label: (h + 5 q) / (c + 5), for h relevant
                              ones of c proposals and the rate q of all proposals
    ``<source>_odds``         log of the chance of relevance by the score, times how much oftener than its
                              scores say the source is right for the label: (h + a) / (e + a), where e is
                              the sum of the chances of the c proposals, and a is set by how far labels
                              differ (moments of a gamma distribution)
    ``<source>_unusual``      (v - mean) / standard deviation, for v the score's place among all training
                              scores (0 to 1, logarithmic) and those of the label's proposals; 5 mean ones
                              are added to a label's own
    ``<source>_usual``        that mean of the label
    ``<source>_proposed``     log of the share of the training rows for which the source proposes the label
    ========================= ==========================================================================

    Of other pairs, the score is the least of the row's list (0 where it is empty), logarithm and z are 1 less
    than the least, place, share and present are 0, "right_at", "right" and "odds" tell how often a label that
    the source does not propose is relevant, and "unusual" is -5. A chance by the score is monotone: the rates
    of bins of scores, pooled where they decrease. Training rows without a relevant label tell nothing of how
    often a source is right and are not counted there.

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
    >>> columns["bm25_score"], columns["bm25_place"].round(2)
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
        Array("chance_", np.float64, (lambda known: known["edges"] + 1,), above=0, below=1),
        Array("right_at_", np.float64, (len(PLACES) + 1,), above=0, below=1),
        Array("right_", np.float64, ("L",), above=0, below=1),
        Array("lift_", np.float64, ("L",), above=0),
        Array("missed_", np.float64, ("L",), above=0, below=1),
        Number("top_right_", 0, 1),
        Integer("top_rows_"),
        Number("rate_", 0, 1),
        Number("miss_rate_", 0, 1),
        Number("new_missed_", 0, 1),
        Flag("by_place_", optional=True),
        Object("habits_", Habits, ("L",), optional=True),
    )

    # --- what is learned ---------------------------------------------------------

    def fit(self, view: View, *, n_jobs: int = 1) -> GivenScorer:
        """Learn from the rows of the View and their candidates. Returns self."""
        self._see(view)
        record = ProposedPairs.of(view.given, self.given, self.edges_, view.Y)
        return self._learn(record, np.ones(record.n_rows, bool))

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """The columns of training rows, equal to those of fits without the row's fold; each pair is looked up
        once for all folds."""
        own = clone(self)
        own._see(data.view())
        given = data.read_by(self)
        record = ProposedPairs.of(given, self.given, own.edges_, data.Y)

        def one_fold(f: int, threads: int) -> dict[str, np.ndarray]:
            inside = np.flatnonzero(data.fold[rows] == f)
            fitted = copy(own)._learn(record.showing(data, f), data.fold != f)
            return fitted.score(given[rows[inside]], candidates.rows(inside))

        return scatter_folds(one_fold, data.fold[rows], candidates, n_jobs)

    def _see(self, view: View) -> None:
        """Learn what does not depend on labels, from all rows of the training set."""
        self.edges_: np.ndarray
        self.least_log_: float
        self.edges_, self.least_log_ = view.shared(
            f"given {self.given}", lambda X: edges(view.all_given.scores[self.given].data)
        )
        self.habits_: Habits | None = None
        if not self.by_fold:
            self.habits_ = view.shared(
                f"habits of {self.given}", lambda X: Habits.of(view.all_given.scores[self.given], self.edges_)
            )
        self.n_labels_: int = view.n_labels
        # Unknown if there is no pair.
        self.by_place_: bool | None = (
            (_OWN, self.given) in view.all_given.unscored if len(self.edges_) else None
        )

    def _learn(self, record: ProposedPairs, kept: np.ndarray) -> GivenScorer:
        """Learn from the labels of some rows, bool (n,)."""
        kept = kept & (record.n_relevant > 0)
        at = kept[record.row]
        label, hit, in_bin, in_place = (
            values[at] for values in (record.label, record.hit, record.bin, record.place)
        )
        n_bins, n_labels = len(self.edges_) + 1, self.n_labels_
        self.rate_: float
        self.rate_ = rate = float((hit.sum() + 0.5) / (len(hit) + 1.0))
        counts, hits = tally(in_bin, hit, n_bins)
        self.chance_: NDArray[np.float64] = monotone(
            (hits + _BIN_PAIRS * rate) / (counts + _BIN_PAIRS), counts + _BIN_PAIRS
        )
        counts, hits = tally(in_place, hit, len(PLACES) + 1)
        # The first bin holds the first place alone.
        self.top_rows_: int = int(counts[0])
        self.top_right_: float = float(hits[0] / max(1, counts[0]))
        self.right_at_: NDArray[np.float64] = (hits + _BIN_PAIRS * rate) / (counts + _BIN_PAIRS)
        counts, hits = tally(label, hit, n_labels)
        self.right_: NDArray[np.float64] = (hits + _RATE_PAIRS * rate) / (counts + _RATE_PAIRS)
        expected = np.bincount(label, weights=self.chance_[in_bin], minlength=n_labels)
        weight = weight_of_scores(hits, expected)
        self.lift_: NDArray[np.float64] = (hits + weight) / (expected + weight)
        relevant = np.bincount(record.relevant[kept[record.relevant_row]], minlength=n_labels)
        missed, elsewhere = relevant - hits, kept.sum() - counts
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
        own, row, label = X.scores[self.given], candidates.row_of_pair, candidates.labels
        entry_row = rows_of(own)
        at, found = positions(own, candidates)
        value = own.data.astype(np.float64)
        logarithm = np.where(value > 0, log(np.where(value > 0, value, 1.0)), self.least_log_ - _BELOW)
        mean, deviation = moments(own, value)
        z = (value - mean[entry_row]) / deviation[entry_row]
        least, best = extremes(own, value)
        place = places(own)
        chance = self.chance_[np.searchsorted(self.edges_, own.data, side="right")]
        right_at = self.right_at_[np.searchsorted(PLACES, place, side="right")]
        odds = np.clip(chance * self.lift_[own.indices], _LEAST_CHANCE, _MOST_CHANCE)
        filled = np.diff(own.indptr)[row] > 0
        missed = self.missed_[label]
        share = value / np.where(best != 0, np.abs(best), 1.0)[entry_row]
        columns = {
            "score": (value, least[row]),
            "log": (logarithm, np.where(filled, extremes(own, logarithm)[0][row], self.least_log_) - _BELOW),
            "place": (1.0 / log2(place + 2.0), 0.0),
            "share": (share, 0.0),
            "z": (z, np.where(filled, extremes(own, z)[0][row] - _BELOW, 0.0)),
            "present": (np.ones(len(value)), 0.0),
            "right_at": (right_at, self.miss_rate_),
            "right": (self.right_[own.indices], missed),
            "odds": (log(odds), log(missed)),
        }
        out = {}
        for name, (of_entry, otherwise) in columns.items():
            column = np.broadcast_to(otherwise, len(label)).astype(np.float32)
            column[found] = of_entry[at[found]]
            out[f"{self.given}_{name}"] = column
        if self.habits_ is not None:
            for name, column in self.habits_.columns(own, self.edges_, label, at, found).items():
                out[f"{self.given}_{name}"] = column
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
            raise ValueError(f"{what} must hold scores, as in fit, got labels alone")
        if self.by_place_ and not are_places(given.scores[self.given]):
            raise ValueError(f"{what} must hold labels alone, best first, as in fit, got scores")

    def shortlist_held_out(
        self, data: TrainingSet, k: int, *, rows: np.ndarray, n_jobs: int = 1
    ) -> Candidates:
        """All pairs that were given of training rows; labels play no part in it."""
        return self.shortlist(data.read_by(self)[rows], k)

    # --- what a fit costs, labels that change ---------------------------------------------

    def n_columns(self) -> int:
        return len(COLUMNS) + len(OF_LABELS)

    def training_record(self) -> tuple[str, float, int] | None:
        """The share of the training rows with labels whose best pair is relevant."""
        return self.given, self.top_right_, self.top_rows_

    def updated(self, view: View, *, n_jobs: int = 1) -> GivenScorer:
        """A scorer of the labels of the View. What was learned stays: a new label is as right and as often
        missed as one of which nothing is known."""
        out, more = copy(self), view.n_labels - self.n_labels_
        out.right_ = np.append(self.right_, np.full(more, self.rate_))
        out.lift_ = np.append(self.lift_, np.ones(more))
        out.missed_ = np.append(self.missed_, np.full(more, self.new_missed_))
        out.habits_ = None if self.habits_ is None else self.habits_.grown(more)
        out.n_labels_ = view.n_labels
        return out

    def memory(self, sizes: FitSizes, *, keeps_products: bool) -> list[MemoryPart]:
        return [MemoryPart(f"candidates of {self.given!r}", 48 * sizes.n_pairs, (DESCRIBE, FIT))]
