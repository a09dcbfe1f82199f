"""`Answering`: the order in which a fitted model answers.

rows -> candidates -> meta-features -> scores
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from metarank._util.threads import resolve_n_jobs
from metarank.model.cascade import Lists
from metarank.model.fitted import FittedModel, Scored, blank_rows
from metarank.model.memory import parse_budget, prediction_chunk
from metarank.model.plan import Listed, Plan
from metarank.model.request import Request
from metarank.model.stages import Columns
from metarank.ranker import Ranker
from metarank.ranker.assemble import assemble, joined_columns
from metarank.ranker.relatives import known_columns, relatives_columns
from metarank.scorers.base import columns_of
from metarank.scorers.neighbors.training_rows import canonical_parts
from metarank.types.candidates import Candidates
from metarank.types.checks import finite_scores
from metarank.types.feature_table import FeatureTable
from metarank.types.given import Given
from metarank.types.label_table import LabelTable
from metarank.types.ranking import Ranking
from metarank.types.restrict import LabelLimits
from metarank.types.view import Features
from metarank.types.word_rows import WordRows

# Results of `LabelScorer.search`, by the number of the source.
Found: TypeAlias = dict[int, dict[str, Any]]

# Larger scores may overflow float32 once they lean towards rare labels.
_MOST_SCORE = 1e38


class Described(NamedTuple):
    """The candidates of some rows, the meta-features of those described, and a flag for each row without
    evidence."""

    lists: Lists
    table: FeatureTable
    blank: np.ndarray


@dataclass(frozen=True, eq=False)
class Answering:
    """A fitted model and the settings of an answer.

    Parameters
    ----------
    model : FittedModel
    shortlist_size : int
        Candidates that each source proposes for a row.
    n_jobs : int or None
    memory_budget : as of `MetaRanker`
    """

    model: FittedModel
    shortlist_size: int
    n_jobs: int | None
    memory_budget: Any

    def scored(
        self,
        rows: Request,
        k: int = 1,
        ranker: Ranker | None = None,
        weight: float | None = None,
    ) -> list[Scored]:
        """The candidates of rows with their scores, chunk by chunk; see `described`."""
        if rows.X.shape[0] == 0:
            none = Candidates(np.zeros(1, np.int64), np.zeros(0, np.int32), self.model.n_labels)
            return [self.model.scored(none, np.zeros(0), weight)]
        out, plan = [], self.plan_for(rows)
        whole = plan is not None and plan.ranks and (ranker is None or ranker is self.model.ranker)
        for chunk, part in self._chunks(rows, k):
            words = _words_of(rows.given, chunk)
            found = self._scored_whole(plan, part, weight, words) if plan is not None and whole else None
            out.append(found or self.scored_of(self._described(chunk, part, rows, k, plan), ranker, weight))
        return out

    def plan_for(self, request: Request) -> Plan | None:
        """The compiled plan, if it can answer: shortlisted sparse rows, all of whose labels may be ranked."""
        _, limits, own, given = request
        if (
            own is not None
            or (given is not None and given.says_of_pairs)
            or limits.allowed is not None
            or limits.excluded is not None
        ):
            return None
        return None if isinstance(request.X, np.ndarray) else self.model.plan

    def _scored_whole(
        self, plan: Plan, X: sp.csr_matrix, weight: float | None, words: WordRows | None = None
    ) -> Scored | None:
        """The scores of rows by the plan alone; None where a number is not finite, which the stages report.

        Of blank rows it counts which labels are the most frequent, and nothing else.
        """
        found = self._listed(plan, X, words, table=False)
        if found is None:
            return None
        c, evidence = Candidates.of_core(found.indptr, found.labels, self.model.n_labels, {}), found.evidence
        blank = blank_rows(X)
        if self.model.answers_by_frequency(blank):
            told = ~np.repeat(blank, np.diff(c.indptr))
            kept, c = evidence[told], self.completed(c, LabelLimits(), slice(0, X.shape[0]), 1, blank)
            evidence = np.zeros(c.n_pairs)
            evidence[~np.repeat(blank, np.diff(c.indptr))] = kept
        return self.model.scored(c, finite_scores(evidence, _MOST_SCORE), weight, blank)

    def _listed(self, plan: Plan, X: sp.csr_matrix, words: WordRows | None, *, table: bool) -> Listed | None:
        try:
            n_jobs = resolve_n_jobs(self.n_jobs)
            return plan.listed(
                canonical_parts(X), self.shortlist_size, table=table, n_jobs=n_jobs, words=words
            )
        except ValueError:
            return None

    def scored_of(self, rows: Described, ranker: Ranker | None = None, weight: float | None = None) -> Scored:
        """The scores of described rows, the candidates included that are not described."""
        evidence = rows.lists.evidence(self.evidence_of(rows.table, ranker))
        return self.model.scored(rows.lists.candidates, evidence, weight, rows.blank)

    def described(self, request: Request, k: int = 1, also: int | None = None) -> Iterator[Described]:
        """The candidates of rows and the meta-features of those worth it, chunk by chunk.

        `k` labels of each are asked for. The label `also` becomes a candidate of every row, and is described.
        """
        plan = self.plan_for(request) if also is None else None
        for rows, part in self._chunks(request, k):
            yield self._described(rows, part, request, k, plan, also)

    def _chunks(self, request: Request, k: int) -> Iterator[tuple[slice, Features]]:
        """Slices of the rows that the memory is enough for, with their features."""
        X, given = request.X, request.given
        n = X.shape[0]
        chunk = prediction_chunk(parse_budget(self.memory_budget), len(self.model.feature_columns))
        step = max(1, chunk // max(1, self.pairs_of_row(k) + _pairs_given(given)))
        for start in range(0, n, step):
            rows = slice(start, min(n, start + step))
            yield rows, X if step >= n else X[rows]

    def _described(
        self,
        rows: slice,
        part: Features,
        request: Request,
        k: int,
        plan: Plan | None = None,
        also: int | None = None,
    ) -> Described:
        """The candidates of some rows of a request, and the meta-features of those worth it."""
        _, limits, own, given = request
        blank = blank_rows(part)
        if plan is not None and not np.count_nonzero(blank):
            planned = self._listed(plan, part, _words_of(given, rows), table=True)
            if planned is not None:
                return self._of_listed(planned, blank)
        told = given if given is None or part.shape[0] == given.n_rows else given[rows]
        found = self.searched(part, told) if own is None else {}
        parts = self.proposed(part, found, told) if own is None else []
        c = self.united(parts, part.shape[0]) if own is None else own.rows(rows)
        c = limits.cut(c, rows)
        if told is not None:  # what others say of a row is evidence
            blank &= ~told.is_filled
        if own is None and self._completes:
            c = self.completed(c, limits, rows, max(k, self.shortlist_size), blank)
        lists = self.lists(c, parts, limits)
        if also is not None:
            lists = with_label(lists, also)
        return Described(lists, self.table_of(part, lists.described, found, told), blank)

    def _of_listed(self, found: Listed, blank: np.ndarray) -> Described:
        c = Candidates.of_core(found.indptr, found.labels, self.model.n_labels, {})
        all_ahead = not len(found.ahead) or bool(found.ahead.all())
        lists = Lists(c) if all_ahead else Lists(c, found.rough, found.ahead.view(bool))
        return Described(lists, FeatureTable(found.table, self.model.feature_columns, lists.described), blank)

    def lists(self, candidates: Candidates, proposals: list[Candidates], limits: LabelLimits) -> Lists:
        """What of the candidates is described: all where the row may have certain labels only."""
        cascade = self.model.cascade
        if cascade is None or not proposals or limits.allowed is not None:
            return Lists(candidates)
        if np.diff(candidates.indptr).max(initial=0) <= cascade.survivors:
            return Lists(candidates)
        rough = cascade.rough(candidates, proposals, self.model.inv_propensity, resolve_n_jobs(self.n_jobs))
        return Lists(candidates, rough, cascade.ahead(candidates, rough))

    def searched(self, X: Features, given: Given | None = None) -> Found:
        """The searches that proposing and describing share, by the number of the source."""
        n_jobs = resolve_n_jobs(self.n_jobs)
        return {
            i: source.scorer.search(given if source.scorer.reads_given else X, n_jobs=n_jobs)
            for i, source in enumerate(self.model.sources)
            if source.proposes and source.describes
        }

    def proposed(
        self, X: Features, found: Found | None = None, given: Given | None = None
    ) -> list[Candidates]:
        """What each source that proposes, proposes for encoded rows.

        `found` is the result of `searched` for the rows, if there is one; `given` is what others say of them.
        """
        n_jobs, found = resolve_n_jobs(self.n_jobs), found or {}
        return [
            source.scorer.shortlist(
                given if source.scorer.reads_given else X,
                self.shortlist_size,
                n_jobs=n_jobs,
                **found.get(i, {}),
            )
            for i, source in enumerate(self.model.sources)
            if source.proposes
        ]

    def united(self, parts: list[Candidates], n_rows: int) -> Candidates:
        """The union of proposals, or all labels; those of today."""
        return united(parts, n_rows, self.model.n_labels).without_labels(self.model.removed)

    def completed(
        self, candidates: Candidates, limits: LabelLimits, rows: slice, least: int, blank: np.ndarray
    ) -> Candidates:
        """Shortlisted candidates, completed by `Limits.complete`. Blank rows get the most frequent labels
        that may be ranked instead: as many as a source proposes, or `least` of `allowed`.
        """
        n_labels, weights = self.model.n_labels, self.model.inv_propensity
        found = limits.complete(candidates, rows, least, weights)
        if not self.model.answers_by_frequency(blank):
            return found
        of_blank = np.repeat(blank, np.diff(found.indptr))
        others = Candidates(found.indptr, found.labels, found.n_labels).where(~of_blank)
        every = np.setdiff1d(np.arange(n_labels, dtype=np.int32), self.model.removed)
        open_to = limits if limits.allowed is not None else replace(limits, allowed=every)
        at = np.flatnonzero(blank)
        nothing = Candidates(np.zeros(len(at) + 1, np.int64), np.zeros(0, np.int32), n_labels)
        least = self.shortlist_size if limits.allowed is None else least
        frequent = open_to.complete(nothing, at + rows.start, least, weights)
        counts = np.zeros(len(blank), np.int64)
        counts[at] = np.diff(frequent.indptr)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return others.union(Candidates(indptr, frequent.labels, n_labels))

    def table_of(
        self, X: Features, candidates: Candidates, found: Found | None = None, given: Given | None = None
    ) -> FeatureTable:
        """Meta-features of the candidate pairs of encoded rows."""
        return self.assembled(self.columns(X, candidates, found, given), candidates)

    def columns(
        self, X: Features, candidates: Candidates, found: Found | None = None, given: Given | None = None
    ) -> list[Columns]:
        """The columns of the sources for the candidate pairs of encoded rows, in their order."""
        n_jobs, found = resolve_n_jobs(self.n_jobs), found or {}
        return [
            columns_of(
                source.scorer,
                given if source.scorer.reads_given else X,
                candidates,
                n_jobs=n_jobs,
                **found.get(i, {}),
            )
            for i, source in enumerate(self.model.sources)
            if source.describes
        ]

    def assembled(self, columns: list[Columns], candidates: Candidates) -> FeatureTable:
        """The table of the candidate pairs from the columns of the sources, in their order.

        Columns that the model was not fitted on, such as those that came with a later version, are left out.
        """
        named, _ = joined_columns(columns)
        if self.model.labels is not None:
            of_relatives = known_columns(self.model.feature_columns)
            named |= relatives_columns(of_relatives, named, candidates, self.model.labels.relations)
        known = None if self.model.unknown is None else ~self.model.unknown[candidates.labels]
        if known is not None:  # the others are standardized without the pairs of which nothing is known
            named = {name: values[known] for name, values in named.items()}
        table = assemble(
            named,
            candidates if known is None else candidates.where(known),
            standardize=self.model.standardizes,
            raw=self.model.raw_columns,
            n_jobs=resolve_n_jobs(self.n_jobs),
        )
        if known is not None:
            values = np.zeros((candidates.n_pairs, len(table.names)), table.values.dtype)
            values[known] = table.values
            table = FeatureTable(values, table.names, candidates)
        wanted = self.model.feature_columns
        more = len(table.names) > len(wanted) and set(wanted) <= set(table.names)
        return table.select(wanted) if more else table

    def evidence_of(self, table: FeatureTable, ranker: Ranker | None = None) -> np.ndarray:
        """The ranker's scores of described pairs, float64 (m,)."""
        evidence = (ranker or self.model.ranker).score(table, n_jobs=resolve_n_jobs(self.n_jobs))
        return finite_scores(evidence, _MOST_SCORE)

    def pairs_of_row(self, k: int) -> int:
        """The largest number of candidates of a row if its k best labels are requested."""
        n_labels = self.model.n_labels
        return min(n_labels, max(k, self.shortlist_size * self._proposes)) if self._proposes else n_labels

    @property
    def _proposes(self) -> int:
        """The number of sources that propose; 0 if all labels are ranked."""
        return sum(source.proposes for source in self.model.sources)

    @property
    def _completes(self) -> bool:
        """Whether lists are completed by other labels: those of its own sources are, given ones are not."""
        return any(source.proposes and not source.scorer.proposes_given for source in self.model.sources)


def with_label(lists: Lists, label: int) -> Lists:
    """The lists with one more label in each row, which is described."""
    old = lists.candidates
    one = Candidates(np.arange(old.n_rows + 1), np.full(old.n_rows, label, np.int32), old.n_labels)
    bare = Candidates(old.indptr, old.labels, old.n_labels)
    new = bare.union(one)
    if lists.ahead is None or lists.rough is None:
        return Lists(new)
    at = np.searchsorted(new.pair_keys, old.pair_keys)
    rough, ahead = np.zeros(new.n_pairs), new.labels == label
    rough[at] = lists.rough
    ahead[at] |= lists.ahead
    return Lists(new, rough, ahead)


def names_in_order(scored: list[Scored], kept: sp.csr_matrix, table: LabelTable) -> list[list[str]]:
    """The names of the labels kept in each row, best first."""
    out: list[list[str]] = []
    for s in scored:
        most = max(1, int(np.diff(s.candidates.indptr).max(initial=1)))
        ranking = Ranking.from_scores(s.candidates, most, values=s.scores)
        for row in ranking:
            own = set(kept.indices[kept.indptr[len(out)] : kept.indptr[len(out) + 1]].tolist())
            out.append([table.shown(label) for label, _ in row if label in own])
    return out


def _pairs_given(given: Given | None) -> int:
    """The mean number of candidates of a row that are given, rounded up."""
    return 0 if given is None else -(-sum(of.nnz for of in given.scores.values()) // max(1, given.n_rows))


def _words_of(given: Given | None, rows: slice) -> WordRows | None:
    """The words of some rows in their order."""
    if given is None or given.words is None:
        return None
    return given.words if rows.start == 0 and rows.stop == given.n_rows else given.words[rows]


def united(parts: list[Candidates], n_rows: int, n_labels: int) -> Candidates:
    """The union of the proposals of all sources; all labels if no source proposes."""
    if not parts:
        return Candidates.all_labels(n_rows, n_labels)
    return Candidates.united(parts)
