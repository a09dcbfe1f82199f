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
from metarank.model.answering.plan import Plan
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
from metarank.types.label_table import LabelTable
from metarank.types.ranking import Ranking
from metarank.types.restrict import LabelLimits
from metarank.types.view import CHUNK_PAIRS

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
    ranker : Ranker
        That of the model, or with other weights of the objectives.
    weight : float
        What rare labels weigh.
    """

    model: FittedModel
    shortlist_size: int
    n_jobs: int | None
    ranker: Ranker
    weight: float

    def score(self, request: Request, k: int = 1) -> list[Scored]:
        """The candidates of rows with their scores, chunk by chunk; see `describe`."""
        if request.n_rows == 0:
            none = Candidates(np.zeros(1, np.int64), np.zeros(0, np.int32), self.model.n_labels)
            return [self.model.with_scores(none, np.zeros(0), self.weight)]
        plan, out = self._plan_for(request), []
        by_plan = plan if plan is not None and plan.ranks and self.ranker is self.model.ranker else None
        for chunk in self._chunks(request, k):
            scored = None if by_plan is None else self._score_by_plan(by_plan, chunk)
            out.append(scored or self.score_described(self._describe_chunk(chunk, k, plan)))
        return out

    def score_described(self, rows: Described) -> Scored:
        """The scores of described rows, the candidates included that are not described."""
        evidence = rows.lists.evidence(self.evidence_of(rows.table, self.ranker))
        return self.model.with_scores(rows.lists.candidates, evidence, self.weight, rows.blank)

    def describe(self, request: Request, k: int = 1) -> Iterator[Described]:
        """The candidates of rows and the meta-features of those worth it, chunk by chunk; `k` labels of each
        are requested."""
        plan = self._plan_for(request)
        for chunk in self._chunks(request, k):
            yield self._describe_chunk(chunk, k, plan)

    def _chunks(self, request: Request, k: int) -> Iterator[Request]:
        """Parts of the rows with about `CHUNK_PAIRS` pairs each."""
        given, n = request.given, request.n_rows
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

    def _score_by_plan(self, plan: Plan, chunk: Request) -> Scored | None:
        """The scores of rows by the plan alone; None where a number is not finite, which the stages report.

        Of blank rows it counts which labels are the most frequent, and nothing else.
        """
        listed = self._listed(plan, chunk, table=False)
        if listed is None:
            return None
        (c, *_), evidence = listed
        blank = blank_rows(chunk.X)
        if blank.any():
            kept = evidence[~np.repeat(blank, np.diff(c.indptr))]
            c = self.completed(c, LabelLimits(), 1, blank)
            evidence = np.zeros(c.n_pairs)
            evidence[~np.repeat(blank, np.diff(c.indptr))] = kept
        return self.model.with_scores(c, finite_scores(evidence, _MOST_SCORE), self.weight, blank)

    def _listed(self, plan: Plan, chunk: Request, *, table: bool) -> tuple[Lists, np.ndarray] | None:
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
        blank = blank_rows(X, given)
        if plan is not None and not np.count_nonzero(blank):
            listed = self._listed(plan, chunk, table=True)
            if listed is not None:
                lists, values = listed
                return Described(
                    lists, FeatureTable(values, self.model.feature_columns, lists.described), blank
                )
        searches, proposals = self.proposed(chunk) if candidates is None else ({}, [])
        c = limits.cut(self.united(proposals, len(blank)) if candidates is None else candidates)
        # Lists of the model's own sources are completed by other labels, given ones are not.
        if candidates is None and any(not scorer.proposes_given for scorer in self.model.shortlisters):
            c = self.completed(c, limits, max(k, self.shortlist_size), blank)
        lists = self.lists(c, proposals, limits)
        return Described(lists, self.table_of(chunk, lists.described, searches), blank)

    def lists(self, candidates: Candidates, proposals: list[Candidates], limits: LabelLimits) -> Lists:
        """What of the candidates is described: all where the row may have certain labels only."""
        cascade = self.model.cascade
        if cascade is None or not proposals or limits.allowed is not None:
            return Lists(candidates)
        if np.diff(candidates.indptr).max(initial=0) <= cascade.survivors:
            return Lists(candidates)
        rough = cascade.rough(candidates, proposals, self.model.inv_propensity, resolve_n_jobs(self.n_jobs))
        return cascade.cut(candidates, rough)

    def proposed(self, rows: Request) -> tuple[Searches, list[Candidates]]:
        """The searches that proposing and describing share, and what each source that proposes, proposes."""
        n_jobs = resolve_n_jobs(self.n_jobs)
        searches: Searches = {}
        proposals = []
        for i, source in enumerate(self.model.sources):
            if not source.proposes:
                continue
            scorer, X = source.scorer, rows.read_by(source.scorer)
            if source.describes:
                searches[i] = scorer.search(X, n_jobs=n_jobs)
            proposals.append(scorer.shortlist(X, self.shortlist_size, n_jobs=n_jobs, **searches.get(i, {})))
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
        completed = limits.complete(candidates, least, weights)
        if not np.count_nonzero(blank):
            return completed
        of_blank = np.repeat(blank, np.diff(completed.indptr))
        others = Candidates(completed.indptr, completed.labels, n_labels).where(~of_blank)
        if limits.allowed is None:
            every = np.setdiff1d(np.arange(n_labels, dtype=np.int32), self.model.removed)
            limits, least = replace(limits, allowed=every), self.shortlist_size
        at = np.flatnonzero(blank)
        nothing = Candidates(np.zeros(len(at) + 1, np.int64), np.zeros(0, np.int32), n_labels)
        frequent = limits.rows(at).complete(nothing, least, weights)
        counts = np.zeros(len(blank), np.int64)
        counts[at] = np.diff(frequent.indptr)
        return others.union(Candidates(np.concatenate([[0], np.cumsum(counts)]), frequent.labels, n_labels))

    def columns(self, rows: Request, candidates: Candidates, searches: Searches) -> list[Columns]:
        """The columns of the sources for the candidate pairs of rows, in their order."""
        n_jobs = resolve_n_jobs(self.n_jobs)
        return [
            columns_of(s.scorer, rows.read_by(s.scorer), candidates, n_jobs=n_jobs, **searches.get(i, {}))
            for i, s in enumerate(self.model.sources)
            if s.describes
        ]

    def table_of(self, rows: Request, candidates: Candidates, searches: Searches) -> FeatureTable:
        """Meta-features of the candidate pairs of rows, those that the model was fitted on."""
        model = self.model
        named, _ = joined_columns(self.columns(rows, candidates, searches))
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

    def evidence_of(self, table: FeatureTable, ranker: Ranker) -> np.ndarray:
        """A ranker's scores of described pairs, float64 (m,)."""
        return finite_scores(ranker.score(table, n_jobs=resolve_n_jobs(self.n_jobs)), _MOST_SCORE)


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
        of_rows = Candidates.from_csr(kept[len(out) : len(out) + s.candidates.n_rows])
        inside = s.candidates.among(of_rows)
        best = s.candidates.where(inside)
        most = max(1, int(np.diff(best.indptr).max(initial=1)))
        ranking = Ranking.from_scores(best, most, values=s.scores[inside])
        out += [[table.shown(label) for label, _ in row] for row in ranking]
    return out
