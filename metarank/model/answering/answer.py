"""`Answering`: the order in which a fitted model answers.

rows -> candidates -> meta-features -> scores
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from metarank._util.threads import resolve_n_jobs
from metarank.model.answering.plan import Listed, Plan
from metarank.model.answering.request import Request
from metarank.model.cascade import Lists, united
from metarank.model.fitted import FittedModel, Scored, blank_rows
from metarank.ranker import Ranker
from metarank.ranker.assemble import assemble, joined_columns
from metarank.ranker.relatives import known_columns, relatives_columns
from metarank.scorers.base import columns_of
from metarank.scorers.neighbors.training_rows import canonical_parts
from metarank.types.candidates import Candidates
from metarank.types.checks import finite_scores
from metarank.types.feature_table import Columns, FeatureTable
from metarank.types.given import Given
from metarank.types.label_table import LabelTable
from metarank.types.ranking import Ranking
from metarank.types.restrict import LabelLimits
from metarank.types.view import CHUNK_PAIRS, Features

# Results of `LabelScorer.search`, by the number of the source.
Searches: TypeAlias = dict[int, dict[str, Any]]

# Larger scores may overflow float32 with the boost of rare labels.
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
    """

    model: FittedModel
    shortlist_size: int
    n_jobs: int | None

    def score(
        self, request: Request, k: int = 1, ranker: Ranker | None = None, weight: float | None = None
    ) -> list[Scored]:
        """The candidates of rows with their scores, chunk by chunk; see `describe`."""
        if request.X.shape[0] == 0:
            none = Candidates(np.zeros(1, np.int64), np.zeros(0, np.int32), self.model.n_labels)
            return [self.model.with_scores(none, np.zeros(0), weight)]
        plan, out = self._plan_for(request), []
        by_plan = plan is not None and plan.ranks and (ranker is None or ranker is self.model.ranker)
        for chunk in self._chunks(request, k):
            scored = self._score_by_plan(plan, chunk, weight) if plan is not None and by_plan else None
            out.append(scored or self.score_described(self._describe_chunk(chunk, k, plan), ranker, weight))
        return out

    def score_described(
        self, rows: Described, ranker: Ranker | None = None, weight: float | None = None
    ) -> Scored:
        """The scores of described rows, the candidates included that are not described."""
        evidence = rows.lists.evidence(self.evidence_of(rows.table, ranker))
        return self.model.with_scores(rows.lists.candidates, evidence, weight, rows.blank)

    def describe(self, request: Request, k: int = 1) -> Iterator[Described]:
        """The candidates of rows and the meta-features of those worth it, chunk by chunk; `k` labels of each
        are requested."""
        plan = self._plan_for(request)
        for chunk in self._chunks(request, k):
            yield self._describe_chunk(chunk, k, plan)

    def _chunks(self, request: Request, k: int) -> Iterator[Request]:
        """Parts of the rows with about `CHUNK_PAIRS` pairs each."""
        given, n = request.given, request.X.shape[0]
        stored = 0 if given is None else sum(of.nnz for of in given.scores.values())
        n_labels, proposing = self.model.n_labels, len(self.model.shortlisters)
        # The largest number of candidates of a row whose k best labels are requested.
        per_row = min(n_labels, max(k, self.shortlist_size * proposing)) if proposing else n_labels
        step = max(1, CHUNK_PAIRS // max(1, per_row + -(-stored // max(1, n))))
        yield from [request] if step >= n else request.parts(step)

    # --- by the compiled plan ---------------------------------------------

    def _plan_for(self, request: Request) -> Plan | None:
        """The compiled plan, if it can answer: shortlisted sparse rows, all of whose labels may be ranked."""
        X, limits, candidates, given = request
        is_limited = candidates is not None or limits.allowed is not None or limits.excluded is not None
        if is_limited or isinstance(X, np.ndarray) or (given is not None and given.says_of_pairs):
            return None
        return self.model.plan

    def _score_by_plan(self, plan: Plan, chunk: Request, weight: float | None) -> Scored | None:
        """The scores of rows by the plan alone; None where a number is not finite, which the stages report.

        Of blank rows it counts which labels are the most frequent, and nothing else.
        """
        listed = self._listed(plan, chunk, table=False)
        if listed is None:
            return None
        evidence, blank = listed.evidence, blank_rows(chunk.X)
        c = Candidates.of_core(listed.indptr, listed.labels, self.model.n_labels, {})
        if blank.any():
            kept = evidence[~np.repeat(blank, np.diff(c.indptr))]
            c = self.completed(c, LabelLimits(), 1, blank)
            evidence = np.zeros(c.n_pairs)
            evidence[~np.repeat(blank, np.diff(c.indptr))] = kept
        return self.model.with_scores(c, finite_scores(evidence, _MOST_SCORE), weight, blank)

    def _listed(self, plan: Plan, chunk: Request, *, table: bool) -> Listed | None:
        words = None if chunk.given is None else chunk.given.words
        try:
            n_jobs = resolve_n_jobs(self.n_jobs)
            rows = canonical_parts(chunk.X)
            return plan.listed(rows, self.shortlist_size, table=table, n_jobs=n_jobs, words=words)
        except ValueError:
            return None

    # --- by the stages ----------------------------------------------------

    def _describe_chunk(self, chunk: Request, k: int, plan: Plan | None = None) -> Described:
        """The candidates of some rows, and the meta-features of those worth it."""
        X, limits, candidates, given = chunk
        blank = blank_rows(X)
        if plan is not None and not np.count_nonzero(blank):
            listed = self._listed(plan, chunk, table=True)
            if listed is not None:
                return self._of_listed(listed, blank)
        searches, proposals = self.proposed(X, given) if candidates is None else ({}, [])
        c = limits.cut(
            self.united(proposals, X.shape[0]) if candidates is None else candidates, slice(0, X.shape[0])
        )
        if given is not None:  # what others say of a row is evidence
            blank &= ~given.is_filled
        # Lists of the model's own sources are completed by other labels, given ones are not.
        if candidates is None and any(not scorer.proposes_given for scorer in self.model.shortlisters):
            c = self.completed(c, limits, max(k, self.shortlist_size), blank)
        lists = self.lists(c, proposals, limits)
        return Described(lists, self.table_of(X, lists.described, searches, given), blank)

    def _of_listed(self, listed: Listed, blank: np.ndarray) -> Described:
        c = Candidates.of_core(listed.indptr, listed.labels, self.model.n_labels, {})
        all_ahead = not len(listed.ahead) or bool(listed.ahead.all())
        lists = Lists(c) if all_ahead else Lists(c, listed.rough, listed.ahead.view(bool))
        return Described(
            lists, FeatureTable(listed.table, self.model.feature_columns, lists.described), blank
        )

    def lists(self, candidates: Candidates, proposals: list[Candidates], limits: LabelLimits) -> Lists:
        """What of the candidates is described: all where the row may have certain labels only."""
        cascade = self.model.cascade
        if cascade is None or not proposals or limits.allowed is not None:
            return Lists(candidates)
        if np.diff(candidates.indptr).max(initial=0) <= cascade.survivors:
            return Lists(candidates)
        rough = cascade.rough(candidates, proposals, self.model.inv_propensity, resolve_n_jobs(self.n_jobs))
        return cascade.cut(candidates, rough)

    def proposed(self, X: Features, given: Given | None = None) -> tuple[Searches, list[Candidates]]:
        """The searches that proposing and describing share, and what each source that proposes, proposes for
        encoded rows. `given` is what others say of their pairs."""
        n_jobs = resolve_n_jobs(self.n_jobs)
        searches: Searches = {}
        proposals = []
        for i, source in enumerate(self.model.sources):
            if not source.proposes:
                continue
            rows = given if source.scorer.reads_given else X
            if source.describes:
                searches[i] = source.scorer.search(rows, n_jobs=n_jobs)
            size, known = self.shortlist_size, searches.get(i, {})
            proposals.append(source.scorer.shortlist(rows, size, n_jobs=n_jobs, **known))
        return searches, proposals

    def united(self, parts: list[Candidates], n_rows: int) -> Candidates:
        """The union of proposals, or all labels; those of today."""
        return united(parts, n_rows, self.model.n_labels).without_labels(self.model.removed)

    def completed(
        self, candidates: Candidates, limits: LabelLimits, least: int, blank: np.ndarray
    ) -> Candidates:
        """Shortlisted candidates, see `LabelLimits.complete`. Blank rows get the most frequent labels
        that may be ranked instead: as many as a source proposes, or `least` of `allowed`.
        """
        n_labels, weights = self.model.n_labels, self.model.inv_propensity
        completed = limits.complete(candidates, slice(0, len(blank)), least, weights)
        if not np.count_nonzero(blank):
            return completed
        of_blank = np.repeat(blank, np.diff(completed.indptr))
        others = Candidates(completed.indptr, completed.labels, n_labels).where(~of_blank)
        if limits.allowed is None:
            every = np.setdiff1d(np.arange(n_labels, dtype=np.int32), self.model.removed)
            limits, least = replace(limits, allowed=every), self.shortlist_size
        at = np.flatnonzero(blank)
        nothing = Candidates(np.zeros(len(at) + 1, np.int64), np.zeros(0, np.int32), n_labels)
        frequent = limits.complete(nothing, at, least, weights)
        counts = np.zeros(len(blank), np.int64)
        counts[at] = np.diff(frequent.indptr)
        return others.union(Candidates(np.concatenate([[0], np.cumsum(counts)]), frequent.labels, n_labels))

    def columns(
        self,
        X: Features,
        candidates: Candidates,
        searches: Searches | None = None,
        given: Given | None = None,
    ) -> list[Columns]:
        """The columns of the sources for the candidate pairs of encoded rows, in their order."""
        n_jobs, known = resolve_n_jobs(self.n_jobs), searches or {}
        return [
            columns_of(
                source.scorer,
                given if source.scorer.reads_given else X,
                candidates,
                n_jobs=n_jobs,
                **known.get(i, {}),
            )
            for i, source in enumerate(self.model.sources)
            if source.describes
        ]

    def table_of(
        self,
        X: Features,
        candidates: Candidates,
        searches: Searches | None = None,
        given: Given | None = None,
    ) -> FeatureTable:
        """Meta-features of the candidate pairs of encoded rows, those that the model was fitted on."""
        model = self.model
        named, _ = joined_columns(self.columns(X, candidates, searches, given))
        if model.labels is not None:
            of_relatives = known_columns(model.feature_columns)
            named |= relatives_columns(of_relatives, named, candidates, model.labels)
        known: Any = slice(None) if model.unknown is None else ~model.unknown[candidates.labels]
        table = assemble(  # standardized without the pairs of which nothing is known
            {name: values[known] for name, values in named.items()},
            candidates if model.unknown is None else candidates.where(known),
            standardize=model.standardizes,
            raw=model.raw_columns,
            n_jobs=resolve_n_jobs(self.n_jobs),
        )
        if model.unknown is not None:
            values = np.zeros((candidates.n_pairs, len(table.names)), table.values.dtype)
            values[known] = table.values
            table = FeatureTable(values, table.names, candidates)
        return table if table.names == model.feature_columns else table.select(model.feature_columns)

    def evidence_of(self, table: FeatureTable, ranker: Ranker | None = None) -> np.ndarray:
        """The ranker's scores of described pairs, float64 (m,)."""
        evidence = (ranker or self.model.ranker).score(table, n_jobs=resolve_n_jobs(self.n_jobs))
        return finite_scores(evidence, _MOST_SCORE)


def ranking_of(
    scored: Sequence[Scored], k: int, label_names: list[str] | None = None, n_jobs: int | None = 1
) -> Ranking:
    """The k best labels of each row."""
    return Ranking.concatenate(
        [
            Ranking.from_scores(
                s.candidates,
                k,
                values=s.scores,
                label_names=label_names,
                without_evidence=s.blank,
                n_jobs=n_jobs,
            )
            for s in scored
        ]
    )


def names_in_order(scored: list[Scored], kept: sp.csr_matrix, table: LabelTable) -> list[list[str]]:
    """The names of the labels kept in each row, best first."""
    out: list[list[str]] = []
    for s in scored:
        most = max(1, int(np.diff(s.candidates.indptr).max(initial=1)))
        ranking = Ranking.from_scores(s.candidates, most, values=s.scores)
        for row in ranking:
            in_set = set(kept.indices[kept.indptr[len(out)] : kept.indptr[len(out) + 1]].tolist())
            out.append([table.shown(label) for label, _ in row if label in in_set])
    return out
