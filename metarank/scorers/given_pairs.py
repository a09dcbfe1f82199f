"""Evidence from others: `GivenScorer` for candidates of one source, `PairFeatures` for what else they say."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank._util.elementary import log, log2
from metarank._util.parameters import with_parameters
from metarank.persist.fields import Array, Declared, Flag, Integer, List, Number, Object, Params, Strings
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import held_out_columns, scatter_folds
from metarank.scorers.neighbors.prior import LabelPrior
from metarank.scorers.neighbors.training_rows import check_lists
from metarank.scorers.sizes import DESCRIBE, FIT, FitSizes, MemoryPart
from metarank.types.candidates import Candidates
from metarank.types.given import UNNAMED, Given, called
from metarank.types.view import TrainingSet, View

COLUMNS = ("score", "log", "place", "share", "z", "present", "right_at", "right", "odds")
# The best scores of all training lists fall into bins that grow by a factor; the first holds so many pairs.
_FIRST_BIN, _BIN_GROWTH = 30, 1.3
# Places 0, 1, 2, ... of a list fall into bins that grow by a factor too.
PLACES = np.unique(np.round(1.25 ** np.arange(35)).astype(np.int64))
# Pairs of the general rate in a rate of few pairs.
_RATE_PAIRS = 5.0
_BIN_PAIRS = 2.0
# The range of the pairs that a label's own record is weighed against.
_LEAST_WEIGHT, _MOST_WEIGHT = 0.3, 50.0
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
    ========================= ==========================================================================

    Of other pairs, the score is the least of the row's list (0 where it is empty), logarithm and z are 1 less
    than the least, place, share and present are 0, and the last three tell how often a label that the source
    does not propose is relevant. A chance by the score is monotone: the rates of bins of scores, pooled where
    they decrease. Training rows without a relevant label tell nothing of a source and are not counted.

    The source proposes all pairs that were given, however many are asked for.

    Parameters
    ----------
    given : str
        The name under which the candidates are given.

    Examples
    --------
    >>> from metarank.types.view import TrainingSet
    >>> S = sp.csr_matrix(np.float32([[0.9, 0.1], [0.8, 0.3], [0.2, 0.7]]))
    >>> Y = sp.csr_matrix(np.float32([[1, 0], [1, 0], [0, 1]]))
    >>> given = Given(3, 2, {"bm25": S})
    >>> data = TrainingSet(np.zeros((3, 0), np.float32), Y, np.zeros(3), given=given)
    >>> columns = GivenScorer(given="bm25").fit(data.view()).score(given[:1], Candidates.all_labels(1, 2))
    >>> columns["bm25_score"], columns["bm25_place"].round(2)
    (array([0.9, 0.1], dtype=float32), array([1.  , 0.63], dtype=float32))
    """

    given: str = UNNAMED

    reads_given = True

    saved = Spec(
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
    )

    # --- what is learned ---------------------------------------------------------

    def fit(self, view: View, *, n_jobs: int = 1) -> GivenScorer:
        """Learn from the rows of the View and their candidates. Returns self."""
        self._see(view)
        record = _Record.of(view.given, self.given, self.edges_, view.Y)
        return self._learn(record, np.ones(record.n_rows, bool))

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """The columns of training rows, equal to those of fits without the row's fold; each pair is looked up
        once for all folds."""
        own = clone(self)
        own._see(data.view())
        given = data.read_by(self)
        record = _Record.of(given, self.given, own.edges_, data.Y)

        def one_fold(f: int, threads: int) -> dict[str, np.ndarray]:
            inside = np.flatnonzero(data.fold[rows] == f)
            fitted = copy(own)._learn(record.showing(data, f), data.fold != f)
            return fitted.score(given[rows[inside]], candidates.rows(inside))

        return scatter_folds(one_fold, data.fold[rows], candidates, n_jobs)

    def _see(self, view: View) -> None:
        """Learn what does not depend on labels, from all rows of the training set."""
        self.edges_, self.least_log_ = view.shared(
            f"given {self.given}", lambda X: _edges(view.all_given.scores[self.given].data)
        )
        self.n_labels_ = view.n_labels
        # Unknown if there is no pair.
        self.by_place_ = self.given in view.all_given.unscored if len(self.edges_) else None

    def _learn(self, record: _Record, kept: np.ndarray) -> GivenScorer:
        """Learn from the labels of some rows, bool (n,)."""
        kept = kept & (record.n_relevant > 0)
        at = kept[record.row]
        label, hit, in_bin, in_place = (
            values[at] for values in (record.label, record.hit, record.bin, record.place)
        )
        n_bins, n_labels = len(self.edges_) + 1, self.n_labels_
        self.rate_ = rate = float((hit.sum() + 0.5) / (len(hit) + 1.0))
        counts, hits = _tally(in_bin, hit, n_bins)
        self.chance_ = _monotone((hits + _BIN_PAIRS * rate) / (counts + _BIN_PAIRS), counts + _BIN_PAIRS)
        counts, hits = _tally(in_place, hit, len(PLACES) + 1)
        # The first bin holds the first place alone.
        self.top_rows_, self.top_right_ = int(counts[0]), float(hits[0] / max(1, counts[0]))
        self.right_at_ = (hits + _BIN_PAIRS * rate) / (counts + _BIN_PAIRS)
        counts, hits = _tally(label, hit, n_labels)
        self.right_ = (hits + _RATE_PAIRS * rate) / (counts + _RATE_PAIRS)
        expected = np.bincount(label, weights=self.chance_[in_bin], minlength=n_labels)
        weight = _weight_of_scores(hits, expected)
        self.lift_ = (hits + weight) / (expected + weight)
        relevant = np.bincount(record.relevant[kept[record.relevant_row]], minlength=n_labels)
        missed, elsewhere = relevant - hits, kept.sum() - counts
        self.miss_rate_ = float((missed.sum() + 0.5) / (elsewhere.sum() + 1.0))
        # A label is missed as often as any other until rows enough have shown that it is not.
        unseen = 1.0 / self.miss_rate_
        self.new_missed_ = 1.0 / (unseen + 1.0)
        self.missed_ = (missed + 1.0) / (elsewhere + unseen + 1.0)
        return self

    # --- what is said of pairs ---------------------------------------------------------

    def score(self, X: Given, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """The columns of pairs, float32 (m,). X is what is given of the rows."""
        check_lists(candidates, X.n_rows, self.n_labels_)
        own, row, label = X.scores[self.given], candidates.row_of_pair, candidates.labels
        at, found = _positions(own, candidates)
        value = own.data.astype(np.float64)
        logarithm = np.where(value > 0, log(np.where(value > 0, value, 1.0)), self.least_log_ - _BELOW)
        mean, deviation = _moments(own, value)
        z = (value - mean[_rows_of(own)]) / deviation[_rows_of(own)]
        least, best = _extremes(own, value)
        place = _places(own)
        chance = self.chance_[np.searchsorted(self.edges_, own.data, side="right")]
        right_at = self.right_at_[np.searchsorted(PLACES, place, side="right")]
        odds = np.clip(chance * self.lift_[own.indices], _LEAST_CHANCE, _MOST_CHANCE)
        filled = np.diff(own.indptr)[row] > 0

        def below(values: np.ndarray) -> np.ndarray:
            return np.where(filled, _extremes(own, values)[0][row] - _BELOW, 0.0)

        missed = self.missed_[label]
        share = value / np.where(best != 0, np.abs(best), 1.0)[_rows_of(own)]
        columns = {
            "score": (value, np.where(filled, least[row], 0.0)),
            "log": (logarithm, np.where(filled, _extremes(own, logarithm)[0][row], self.least_log_) - _BELOW),
            "place": (1.0 / log2(place + 2.0), 0.0),
            "share": (share, 0.0),
            "z": (z, below(z)),
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
        return out

    def shortlist(self, X: Given, k: int, *, n_jobs: int = 1) -> Candidates:
        """All pairs that were given, with their scores."""
        return X.candidates(self.given)

    def given_read(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The one source."""
        return (self.given,), ()

    def check_given(self, given: Given) -> None:
        """Raise ValueError if labels alone are given after a fit with scores, or the reverse."""
        what = called("candidates", self.given)
        if self.by_place_ is False and self.given in given.unscored:
            raise ValueError(f"{what} must hold scores, as in fit, got labels alone")
        if self.by_place_ and not _are_places(given.scores[self.given]):
            raise ValueError(f"{what} must hold labels alone, best first, as in fit, got scores")

    def shortlist_held_out(
        self, data: TrainingSet, k: int, *, rows: np.ndarray, n_jobs: int = 1
    ) -> Candidates:
        """All pairs that were given of training rows; labels play no part in it."""
        return self.shortlist(data.read_by(self)[rows], k)

    # --- what a fit costs, labels that change ---------------------------------------------

    def n_columns(self) -> int:
        return len(COLUMNS)

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
        out.n_labels_ = view.n_labels
        return out

    def memory(self, sizes: FitSizes, *, keeps_products: bool) -> list[MemoryPart]:
        return [MemoryPart(f"candidates of {self.given!r}", 48 * sizes.n_pairs, (DESCRIBE, FIT))]


@dataclass(frozen=True, eq=False)
class _Record:
    """The pairs that a source proposed for labelled rows, and what became of them.

    Parameters
    ----------
    n_rows : int
    row, label, bin, place : int arrays (m,)
    hit : float64 array (m,), 1 where the pair is relevant
    relevant_row, relevant : int arrays, the relevant pairs of the rows
    n_relevant : int array (n,)
    """

    n_rows: int
    row: np.ndarray
    label: np.ndarray
    bin: np.ndarray
    place: np.ndarray
    hit: np.ndarray
    relevant_row: np.ndarray
    relevant: np.ndarray
    n_relevant: np.ndarray

    @classmethod
    def of(cls, given: Given, source: str, edges: np.ndarray, Y: sp.csr_matrix) -> _Record:
        own = given.scores[source]
        return cls(
            n_rows=given.n_rows,
            row=_rows_of(own),
            label=own.indices,
            bin=np.searchsorted(edges, own.data, side="right"),
            place=np.searchsorted(PLACES, _places(own), side="right"),
            hit=(given.candidates(source).values_of(Y) > 0).astype(np.float64),
            relevant_row=_rows_of(Y),
            relevant=Y.indices,
            n_relevant=np.diff(Y.indptr),
        )

    def showing(self, data: TrainingSet, fold: int) -> _Record:
        """What the View without a fold shows of it; see `TrainingSet.hidden_in`."""
        if data.hidden_in is None:
            return self
        shown = data.hidden_in != fold
        of_relevant = shown[self.relevant]
        row = self.relevant_row[of_relevant]
        return replace(
            self,
            hit=self.hit * shown[self.label],
            relevant_row=row,
            relevant=self.relevant[of_relevant],
            n_relevant=np.bincount(row, minlength=self.n_rows),
        )


@with_parameters
class PairFeatures(LabelScorer):
    """Features of pairs as they were given: ``<name>``, 0 where a pair has none, and ``<name>_present``.

    Parameters
    ----------
    names : sequence of str

    Examples
    --------
    >>> clicks = Given(1, 3, features={"clicks": sp.csr_matrix(np.float32([[0, 7, 0]]))})
    >>> PairFeatures(names=("clicks",)).score(clicks, Candidates.all_labels(1, 3))["clicks"]
    array([0., 7., 0.], dtype=float32)
    """

    names: Sequence[str] = ()

    reads_given = True
    is_label_free = True
    reads_names = False
    has_held_out_columns = True

    saved = Spec(Params(of=lambda scorer: {"names": list(scorer.names)}), Strings("valued_", older=list))

    def fit(self, view: View, *, n_jobs: int = 1) -> PairFeatures:
        """Nothing is learned but which features have values. Returns self."""
        self.valued_ = [name for name in self.names if name not in view.all_given.unscored]
        return self

    def check_given(self, given: Given) -> None:
        """Raise ValueError if labels alone are given of a feature that had values in the fit."""
        for name in self.valued_:
            if name in given.unscored:
                raise ValueError(
                    f"{called('pair_features', name)} must hold values, as in fit, got labels alone"
                )

    def score(self, X: Given, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """Two columns for each feature, float32 (m,)."""
        out: dict[str, np.ndarray] = {}
        for name in self.names:
            own = X.features[name]
            at, found = _positions(own, candidates)
            column = np.zeros(candidates.n_pairs, np.float32)
            column[found] = own.data[at[found]]
            out |= {name: column, f"{name}_present": found.astype(np.float32)}
        return out

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """The columns of training rows; labels play no part in them."""
        return self.score(data.read_by(self)[rows], candidates)

    def given_read(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The features."""
        return (), tuple(self.names)

    def n_columns(self) -> int:
        return 2 * len(self.names)

    def updated(self, view: View, *, n_jobs: int = 1) -> PairFeatures:
        """Itself, since it learns nothing of labels."""
        return self


@with_parameters
class GivenTogether(LabelScorer):
    """What several given sources say of a pair together.

    ``given_odds``
        The sum of what each source adds to the label's prior: sum of log chances, as in ``<source>_odds``,
        less (k - 1) times the log of the label's share of the rows, for k sources. That is the log of the
        chance if the sources erred independently.
    ``given_sources``
        The number of sources that propose the pair.

    Parameters
    ----------
    given : sequence of str
        The names of the sources.
    """

    given: Sequence[str] = ()

    reads_given = True

    saved = Spec(
        Params(of=lambda scorer: {"given": list(scorer.given)}),
        List("scorers_", Object("", GivenScorer, ("L",))),
        Array("log_prior_", np.float32, ("L",)),
    )

    def fit(self, view: View, *, n_jobs: int = 1) -> GivenTogether:
        """Learn from the rows of the View and their candidates. Returns self."""
        self.scorers_ = [GivenScorer(given=name).fit(view) for name in self.given]
        self.log_prior_ = LabelPrior().fit(view).log_prior_
        return self

    def score(self, X: Given, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """The two columns, float32 (m,)."""
        columns = [scorer.score(X, candidates) for scorer in self.scorers_]
        return self._joined(columns, self.log_prior_[candidates.labels])

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """The columns of training rows, equal to those of fits without the row's fold."""
        columns = [GivenScorer(given=name).score_held_out(data, candidates, rows=rows) for name in self.given]
        prior = held_out_columns(LabelPrior(), data, candidates, rows=rows)["prior"]
        return self._joined(columns, prior)

    def _joined(self, columns: list[dict[str, np.ndarray]], prior: np.ndarray) -> dict[str, np.ndarray]:
        odds = np.zeros(len(prior), np.float64)
        present = np.zeros(len(prior), np.float32)
        for name, own in zip(self.given, columns):
            odds += own[f"{name}_odds"]
            present += own[f"{name}_present"]
        odds -= (len(columns) - 1) * prior.astype(np.float64)
        return {"given_odds": odds.astype(np.float32), "given_sources": present}

    def n_columns(self) -> int:
        return 2

    def updated(self, view: View, *, n_jobs: int = 1) -> GivenTogether:
        """A scorer of the labels of the View; see `GivenScorer.updated`."""
        out = copy(self)
        out.scorers_ = [scorer.updated(view) for scorer in self.scorers_]
        more = view.n_labels - len(self.log_prior_)
        out.log_prior_ = np.append(self.log_prior_, np.full(more, self.log_prior_.min(), np.float32))
        return out


# --- lists of scores -------------------------------------------------------------


def _rows_of(own: sp.csr_matrix) -> np.ndarray:
    """int64 (m,): the row of each stored entry."""
    return np.repeat(np.arange(own.shape[0], dtype=np.int64), np.diff(own.indptr))


def _places(own: sp.csr_matrix) -> np.ndarray:
    """int64 (m,): the place of each entry in its row, from 0, by value; ties in order of label."""
    row = _rows_of(own)
    order = np.lexsort((-own.data, row))  # stable, and labels ascend
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - own.indptr[row]
    return place


def _are_places(own: sp.csr_matrix) -> bool:
    """Whether each entry is 1 / (place + 1), as labels without scores have it; some places may be missing."""
    place = np.round(1 / np.maximum(own.data.astype(np.float64), 1e-9))
    return bool((own.data == (1 / np.maximum(place, 1)).astype(np.float32)).all())


def _positions(own: sp.csr_matrix, candidates: Candidates) -> tuple[np.ndarray, np.ndarray]:
    """Of each pair the position of its entry, int64 (m,), and whether there is one, bool (m,)."""
    stored = Candidates.of_core(own.indptr, own.indices, candidates.n_labels, {}).pair_keys
    wanted = candidates.pair_keys
    if not len(stored):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(stored, wanted), len(stored) - 1)
    return at, stored[at] == wanted


def _moments(own: sp.csr_matrix, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the entries of each row, float64 (n,); deviations of 0 become 1."""
    row, n = _rows_of(own), own.shape[0]
    counts = np.maximum(np.diff(own.indptr), 1)
    mean = np.bincount(row, weights=values, minlength=n) / counts  # one entry after another
    deviation = np.sqrt(np.bincount(row, weights=(values - mean[row]) ** 2, minlength=n) / counts)
    return mean, np.where(deviation > 0, deviation, 1.0)


def _extremes(own: sp.csr_matrix, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest of some values (m,) of each row, float64 (n,); 0 of an empty row."""
    least, greatest = np.zeros(own.shape[0]), np.zeros(own.shape[0])
    filled = np.flatnonzero(np.diff(own.indptr))
    if len(filled):
        least[filled] = np.minimum.reduceat(values, own.indptr[filled])
        greatest[filled] = np.maximum.reduceat(values, own.indptr[filled])
    return least, greatest


# --- rates ---------------------------------------------------------------------------


def _edges(scores: np.ndarray) -> tuple[np.ndarray, float]:
    """The lower bounds of the bins of scores, float32, and the least logarithm of a positive score."""
    positive = scores[scores > 0]
    least_log = float(log(positive.min().astype(np.float64))) if len(positive) else 0.0
    ordered = np.sort(scores)[::-1]
    growth = int(np.ceil(np.log(max(2, len(ordered))) / np.log(_BIN_GROWTH)))
    tops = np.unique((_FIRST_BIN * _BIN_GROWTH ** np.arange(growth)).astype(np.int64))
    return np.unique(ordered[tops[tops < len(ordered)]]).astype(np.float32), least_log


def _tally(group: np.ndarray, hit: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs, and relevant ones, of each of n groups."""
    return np.bincount(group, minlength=n), np.bincount(group, weights=hit, minlength=n)


def _weight_of_scores(hits: np.ndarray, expected: np.ndarray) -> float:
    """The pairs a = 1/v against which a label's own record is weighed.

    v is how far the true ratios of hits h to expected hits e spread over labels: in a gamma-Poisson mixture
    E (h - e)^2 = e + v e^2.
    """
    spread = float(((hits - expected) ** 2 - expected).sum())
    scale = float((expected**2).sum())
    if spread <= 0 or scale <= 0:
        return _MOST_WEIGHT
    return float(np.clip(scale / spread, _LEAST_WEIGHT, _MOST_WEIGHT))


def _monotone(rates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The nearest rates that do not decrease (pool adjacent violators)."""
    pools: list[list[float]] = []  # (rate, weight, length)
    for rate, weight in zip(rates.tolist(), weights.tolist()):
        pools.append([rate, weight, 1])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            b, a = pools.pop(), pools.pop()
            both = a[1] + b[1]
            pools.append([(a[0] * a[1] + b[0] * b[1]) / both, both, a[2] + b[2]])
    return np.repeat([rate for rate, _, _ in pools], [int(n) for _, _, n in pools])
