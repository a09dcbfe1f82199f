"""`Scoring`: the half of `MetaRanker` that knows the order in which its stages answer.

rows -> candidates -> meta-features -> scores
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from metarank._elementary import log, log_odds
from metarank._parameters import check_real
from metarank._threads import resolve_n_jobs
from metarank._validation import finite_scores
from metarank.candidates import Candidates
from metarank.encoder import InputEncoder
from metarank.features.assemble import assemble
from metarank.features.table import FeatureTable
from metarank.memory import parse_budget, prediction_chunk
from metarank.ranker import Ranker
from metarank.ranker.objectives import ObjectivesRanker
from metarank.restrict import Limits
from metarank.scorers.base import Features, LabelScorer, columns_of
from metarank.stages import Columns, joined_columns
from metarank.thresholds import ThresholdLearner

# Arguments by scorer (its id), of what was searched once for all that it is asked.
Found: TypeAlias = dict[int, dict[str, Any]]

# Scores beyond are not finite as float32, once they lean towards rare labels.
_MOST_SCORE = 1e38


class Scored(NamedTuple):
    """The candidate pairs of some rows and what is said of them.

    Attributes
    ----------
    candidates : Candidates
    evidence : float64 array (m,)
        The ranker's scores; probabilities and cuts are learned from them, and read nothing else.
    scores : float32 array (m,)
        The ranking scores, by which everything is ordered: evidence, and the lean towards rare labels. As
        they are shown, so that no order hangs on digits that nobody sees.
    blank : bool array (n,)
        Rows without evidence: their pairs stand on the frequency of the labels alone.
    """

    candidates: Candidates
    evidence: np.ndarray
    scores: np.ndarray
    blank: np.ndarray

    @property
    def of_blank(self) -> np.ndarray:
        """bool (m,): the pairs of rows without evidence."""
        return np.repeat(self.blank, np.diff(self.candidates.indptr))


class Described(NamedTuple):
    """Pairs of some rows with their meta-features, and which of the rows are without evidence."""

    candidates: Candidates
    table: FeatureTable
    blank: np.ndarray


class Scoring:
    """Asks the fitted stages of a model about rows that are encoded already."""

    features: Any
    effort: str
    shortlist_size: int
    n_jobs: int | None
    memory_budget: Any
    encoder_: InputEncoder
    n_labels_: int
    removed_: np.ndarray
    inv_propensity_: np.ndarray
    prior_: np.ndarray | None
    propensity_weight_: float
    feature_columns_: list[str]
    raw_columns_: list[str] | None
    shortlisters_: list[LabelScorer]
    scorers_: list[LabelScorer]
    ranker_: Ranker
    thresholds_: ThresholdLearner

    def candidates_of(self, X: Features, found: Found | None = None) -> Candidates:
        """Candidates of encoded rows: all labels, or the union of what the shortlisters propose.

        `found` is what `searched` found for the rows, where it was asked before.
        """
        n_jobs, found = resolve_n_jobs(self.n_jobs), found or {}
        parts = [
            s.shortlist(X, self.shortlist_size, n_jobs=n_jobs, **found.get(id(s), {}))
            for s in self.shortlisters_
        ]
        return united(parts, X.shape[0], self.n_labels_).without_labels(self.removed_)

    def table_of(self, X: Features, candidates: Candidates, found: Found | None = None) -> FeatureTable:
        """Meta-features of the candidate pairs of encoded rows."""
        n_jobs, found = resolve_n_jobs(self.n_jobs), found or {}
        columns = [
            columns_of(scorer, X, candidates, n_jobs=n_jobs, **found.get(id(scorer), {}))
            for scorer in self.scorers_
        ]
        return self.assembled(columns, candidates)

    def searched(self, X: Features) -> Found:
        """What encoded rows find in the scorers that both propose and describe by the same search."""
        n_jobs = resolve_n_jobs(self.n_jobs)
        both = [s for s in self.shortlisters_ if hasattr(s, "search") and any(s is t for t in self.scorers_)]
        return {id(s): s.search(X, n_jobs=n_jobs) for s in both}

    def assembled(self, columns: list[Columns], candidates: Candidates) -> FeatureTable:
        """The table of the candidate pairs from the columns of `scorers_`, in their order."""
        named, _ = joined_columns(columns)
        return assemble(
            named,
            candidates,
            standardize=self._standardizes,
            raw=self.raw_columns_,
            n_jobs=resolve_n_jobs(self.n_jobs),
        )

    @property
    def _standardizes(self) -> bool:
        return self.features != "yang2012" if isinstance(self.features, str) else True

    def lean_of(self, labels: np.ndarray, weight: float) -> np.ndarray:
        """What a weight adds to the score of each label, float64: weight x log(1/p), in its units."""
        lean: np.ndarray = weight * self.thresholds_.scores_per_logit * log(self.inv_propensity_[labels])
        return lean

    def blank_rows(self, X: Features) -> np.ndarray:
        """bool (n,): encoded rows of a sparse model that hold nothing, such as texts without a known word.

        Nothing speaks for one label or another there but how frequent it is. A dense row of zeros is a
        measurement like any other.
        """
        return np.zeros(len(X), bool) if isinstance(X, np.ndarray) else np.diff(X.indptr) == 0

    def answers_by_frequency(self, blank: np.ndarray) -> bool:
        """Whether some rows are blank and frequencies are known; saved models of earlier versions, which have
        none, answer such rows as they did then."""
        return self.prior_ is not None and bool(blank.any())

    def scored(
        self,
        candidates: Candidates,
        evidence: np.ndarray,
        weight: float | None = None,
        blank: np.ndarray | None = None,
    ) -> Scored:
        """Pairs with their one ranking score; None leans as far as was learned in fit.

        Pairs of `blank` rows (n,) have the evidence of their labels' frequency, whatever is given.
        """
        out = Scored(
            candidates, evidence, evidence, np.zeros(candidates.n_rows, bool) if blank is None else blank
        )
        if self.prior_ is not None and self.answers_by_frequency(out.blank):
            by_frequency = log_odds(self.prior_[candidates.labels].astype(np.float64))
            evidence = np.where(out.of_blank, self.thresholds_.scores_of(by_frequency), evidence)
        weight = self.propensity_weight_ if weight is None else weight
        scores = evidence if weight == 0 else evidence + self.lean_of(candidates.labels, weight)
        with np.errstate(over="ignore"):  # it is looked for
            scores = finite_scores(scores.astype(np.float32))
        return out._replace(evidence=evidence, scores=scores)

    def probabilities(self, scored: Scored) -> np.ndarray:
        """Calibrated probabilities of relevance of the pairs, float32 (m,); in rows without evidence the
        share of the training rows that have the label."""
        found = self.thresholds_.probabilities(scored.candidates, scored.evidence)
        if self.prior_ is not None and self.answers_by_frequency(scored.blank):
            found[scored.of_blank] = self.prior_[scored.candidates.labels[scored.of_blank]]
        return found

    def kept(self, scored: Scored, metric: str) -> np.ndarray:
        """bool (m,): the pairs above the cut learned for a metric; none of rows without evidence."""
        above = self.thresholds_.cut(scored.candidates, scored.evidence, metric)
        return above & ~scored.of_blank if self.answers_by_frequency(scored.blank) else above

    def checked_weight(self, propensity_weight: float | None) -> float:
        """The weight of rare labels that is asked for, or that of the fit."""
        if propensity_weight is None:
            return self.propensity_weight_
        check_real("propensity_weight", propensity_weight, 0, 10, "a number in [0, 10]")
        return float(propensity_weight)

    def weighted_ranker(self, objective_weights: Any) -> Ranker:
        """The ranker, with other weights of the objectives where they are given."""
        if objective_weights is None:
            return self.ranker_
        if not isinstance(self.ranker_, ObjectivesRanker):
            raise ValueError("objective_weights needs a model that was fitted on several objectives")
        return self.ranker_.reweighted(objective_weights)

    def pairs_of_row(self, k: int) -> int:
        """The candidates that a row has at most where its k best labels are asked for."""
        if not self.shortlisters_:
            return self.n_labels_
        return min(self.n_labels_, max(k, self.shortlist_size * len(self.shortlisters_)))

    def described(
        self, X: Features, own: Candidates | None, limits: Limits, k: int = 1, also: int | None = None
    ) -> Iterator[Described]:
        """The candidates of encoded rows and their meta-features, chunk by chunk.

        `own` are candidates to be taken instead of the model's; the label `also` becomes one of every row.
        """
        n, least = X.shape[0], max(k, self.shortlist_size)
        chunk = prediction_chunk(parse_budget(self.memory_budget), len(self.feature_columns_))
        step = max(1, chunk // max(1, self.pairs_of_row(k)))
        for start in range(0, n, step):
            rows = slice(start, min(n, start + step))
            part = X if step >= n else X[rows]
            found = self.searched(part) if own is None else {}
            c = limits.cut(self.candidates_of(part, found) if own is None else own.rows(rows), rows)
            blank = self.blank_rows(part)
            if own is None and self.shortlisters_:
                c = self.completed(c, limits, rows, least, blank)
            if also is not None:
                one = np.full(c.n_rows, also, np.int32)
                c = Candidates(c.indptr, c.labels, c.n_labels).union(
                    Candidates(np.arange(c.n_rows + 1), one, c.n_labels)
                )
            yield Described(c, self.table_of(part, c, found), blank)

    def completed(
        self, candidates: Candidates, limits: Limits, rows: slice, least: int, blank: np.ndarray
    ) -> Candidates:
        """Shortlisted candidates after `Limits.cut` and `complete`; of blank rows the most frequent labels
        that may be ranked, whatever was proposed: as many as a shortlister proposes, or `least` of `allowed`.
        """
        found = limits.complete(candidates, rows, least, self.inv_propensity_)
        if not self.answers_by_frequency(blank):
            return found
        of_blank = np.repeat(blank, np.diff(found.indptr))
        others = Candidates(found.indptr, found.labels, found.n_labels).where(~of_blank)
        every = np.setdiff1d(np.arange(self.n_labels_, dtype=np.int32), self.removed_)
        open_to = limits if limits.allowed is not None else replace(limits, allowed=every)
        at = np.flatnonzero(blank)
        nothing = Candidates(np.zeros(len(at) + 1, np.int64), np.zeros(0, np.int32), self.n_labels_)
        least = self.shortlist_size if limits.allowed is None else least
        frequent = open_to.complete(nothing, at + rows.start, least, self.inv_propensity_)
        counts = np.zeros(len(blank), np.int64)
        counts[at] = np.diff(frequent.indptr)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return others.union(Candidates(indptr, frequent.labels, self.n_labels_))

    def evidence_of(self, table: FeatureTable, ranker: Ranker | None = None) -> np.ndarray:
        """The ranker's scores of described pairs, float64 (m,)."""
        evidence = (ranker or self.ranker_).score(table, n_jobs=resolve_n_jobs(self.n_jobs))
        return finite_scores(evidence, _MOST_SCORE)

    def _scored_chunks(
        self,
        X: Features,
        own: Candidates | None,
        limits: Limits,
        k: int = 1,
        ranker: Ranker | None = None,
        weight: float | None = None,
    ) -> list[Scored]:
        if X.shape[0] == 0:
            none = Candidates(np.zeros(1, np.int64), np.zeros(0, np.int32), self.n_labels_)
            return [self.scored(none, np.zeros(0), weight)]
        return [
            self.scored(d.candidates, self.evidence_of(d.table, ranker), weight, d.blank)
            for d in self.described(X, own, limits, k)
        ]


def united(parts: list[Candidates], n_rows: int, n_labels: int) -> Candidates:
    """The union of what shortlisters propose; all labels where there is none."""
    if not parts:
        return Candidates.all_labels(n_rows, n_labels)
    return Candidates.united(parts)
