"""`Answering`: the order in which a fitted model answers.

rows -> candidates -> meta-features -> scores

`Answering.score` is the entry. There are two ways on, of the same scores; `FittedModel.plan` says which:

- sparse shortlisted rows without limits, of a single boosted ranker, by the compiled plan: `_score_by_plan`,
  `_listed`, `Plan.listed` (`plan.py`), `answer` and `part_of` in `_core/plan.cpp`;
- all others by the stages: `_describe_chunk`, `score_described`, `Ranker.score`.

A boosted ranker ends in `BoostedTrees::predict` of `_core/boosted_trees.cpp` either way. Trees that
`plan.cpp` or `Cascade` calls before it choose which candidates are described.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, TypedDict

import numpy as np
import scipy.sparse as sp

from metarank._util.threads import resolve_n_jobs
from metarank.model.answering.plan import Plan
from metarank.model.cascade import Lists, united
from metarank.model.fitted import FittedModel, Scored, blank_rows
from metarank.ranker import Ranker
from metarank.ranker.assemble import assemble, joined_columns
from metarank.ranker.relatives import known_columns, relatives_columns
from metarank.scorers.base import LabelScorer, columns_of
from metarank.scorers.neighbors.training_rows import canonical_parts
from metarank.types.candidates import Candidates
from metarank.types.checks import finite_scores
from metarank.types.feature_table import Columns, FeatureTable
from metarank.types.given import Given, check_names_given, read_given
from metarank.types.label_table import LabelTable
from metarank.types.ranking import Ranking
from metarank.types.restrict import LabelLimits, check_lists, check_shortlist, for_each_row
from metarank.types.texts import WordRows
from metarank.types.view import CHUNK_PAIRS, Features

# Results of `LabelScorer.search`, by the number of the source.
Searches: TypeAlias = dict[int, dict[str, Any]]

# Larger scores may overflow float32 with the rare-label boost.
_MOST_SCORE = 1e38


class Limits(TypedDict, total=False):
    """What each answer may be given of its pairs; see `MetaRanker.rank`."""

    exclude: Any
    allowed: Any
    candidates: Any
    pair_features: Any
    known: Any


class Answers(NamedTuple):
    """What was asked of rows, None for what was not: lists, probabilities, label sets, and what to expect of
    these."""

    ranking: Ranking
    probabilities: sp.csr_matrix | None
    kept: sp.csr_matrix | None
    quality: dict[str, np.ndarray] | None


class Request(NamedTuple):
    """Rows of an answer.

    Attributes
    ----------
    X : features (n, d), encoded
    limits : LabelLimits
        Labels that may be ranked.
    own : Candidates or None
        A shortlist to be ranked instead of the model's own.
    given : Given or None
        What the model's sources read of pairs.
    known : Candidates or None
        The labels that the rows are known to have; they are excluded too.
    """

    X: Features
    limits: LabelLimits
    own: Candidates | None = None
    given: Given | None = None
    known: Candidates | None = None

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    def read_by(self, scorer: LabelScorer) -> Any:
        """What a source reads of the rows: X, or what is given of their pairs."""
        return self.given if scorer.reads_given else self.X

    def rows(self, rows: np.ndarray | slice) -> Request:
        """The request for some of its rows."""
        return Request(
            self.X[rows],
            self.limits.rows(rows),
            None if self.own is None else self.own.rows(rows),
            None if self.given is None else self.given[rows],
            None if self.known is None else self.known.rows(rows),
        )

    def parts(self, n_rows: int) -> Iterator[Request]:
        """The request in parts of this many rows, at least one."""
        for start in range(0, max(self.n_rows, 1), n_rows):
            yield self.rows(slice(start, min(self.n_rows, start + n_rows)))


def read_request(
    model: FittedModel,
    X: Any,
    *,
    exclude: Any = None,
    allowed: Any = None,
    candidates: Any = None,
    pair_features: Any = None,
    known: Any = None,
) -> Request:
    """Check and encode the rows of an answer, what is given of their pairs, and the limits of their labels.

    Raises
    ------
    ValueError, TypeError
        A source or feature of the fit is missing, or another is given; X is None though the fit had features,
        or the reverse; see `read_given`, `check_shortlist` and `LabelLimits.checked`.
    """
    sources, features, table = model.given_sources, model.given_features, model.label_table
    has_rows = model.encoder.n_features > 0 or not sources
    if X is None and has_rows:
        raise ValueError("X is required, since the model was fitted with it, got None")
    if X is not None and not has_rows:
        raise ValueError(f"X must be None, since the model was fitted without, got {type(X).__name__}")
    rows: Features | None = None if X is None else model.encoder.encode(X)
    given = shortlist = None
    if sources or features:
        n_rows = None if rows is None else rows.shape[0]  # or as many as is told of
        given = read_given(
            candidates if sources else None, pair_features, n_rows, table, sources, features, lenient=True
        )
        check_names_given(given, sources, features)
        assert given is not None
        for scorer in model.scorers:
            scorer.check_given(given)
    elif pair_features is not None:
        raise ValueError("pair_features must be None, since the model was fitted without")
    if (words := words_in(model, X)) is not None:
        given = replace(given or Given(len(words), model.n_labels), words=words)
    if rows is None:
        assert given is not None
        rows = np.zeros((given.n_rows, 0), np.float32)
    if candidates is not None and not sources:
        shortlist = check_shortlist(candidates, rows.shape[0], table)
    limits, of_rows = LabelLimits.checked(exclude, allowed, rows.shape[0], table), None
    if known is not None:
        if model.known_labels is None or model.together is None:
            raise ValueError(
                "known needs a fit with effort='medium', one objective, a source that keeps training rows, "
                "and 50 rows with two labels: use exclude"
            )
        n_rows = rows.shape[0]
        of_rows = for_each_row(check_lists(known, n_rows, table, "known"), n_rows, table.n_labels)
        limits = limits.without(of_rows)
    return Request(rows, limits, shortlist, given, of_rows)


def words_in(model: FittedModel, X: Any) -> WordRows | None:
    """The words of texts in their order, if a source of the model looks at them."""
    if not model.reads_word_order:
        return None
    reader = model.encoder.word_reader
    assert reader is not None
    return reader.in_order(model.encoder.texts_in(X))


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
        The propensity weight.
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
            scored = scored or self.score_described(self._describe_chunk(chunk, k, plan))
            if chunk.known is not None:
                limits = chunk.limits if chunk.own is None else replace(chunk.limits, allowed=chunk.own)
                how = limits, chunk.known, self.weight, resolve_n_jobs(self.n_jobs)
                scored = self.model.by_known_labels(scored, *how)
            out.append(scored)
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
        X, limits, candidates, given, _ = request
        is_limited = candidates is not None or limits.allowed is not None or limits.excluded is not None
        if (
            is_limited
            or isinstance(X, np.ndarray)
            or (given is not None and (given.scores or given.features))
        ):
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
        X, limits, candidates, given, _ = chunk
        blank = blank_rows(X, given)
        if plan is not None and not np.count_nonzero(blank):
            listed = self._listed(plan, chunk, table=True)
            if listed is not None:
                lists, values = listed
                return Described(
                    lists, FeatureTable(values, self.model.feature_columns, lists.described), blank
                )
        searches, proposals = self.proposed(chunk) if candidates is None else ({}, [])
        c = limits.within(self.united(proposals, len(blank)) if candidates is None else candidates)
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
        return cascade.filtered(candidates, rough)

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
        if limits.allowed is None:
            every = np.setdiff1d(np.arange(n_labels, dtype=np.int32), self.model.removed)
            limits, least = replace(limits, allowed=every), self.shortlist_size
        at, others = np.flatnonzero(blank), np.flatnonzero(~blank)
        nothing = Candidates(np.zeros(len(at) + 1, np.int64), np.zeros(0, np.int32), n_labels)
        frequent = limits.rows(at).complete(nothing, least, weights)
        stacked = Candidates.stack([Candidates.united([completed]).rows(others), frequent])
        return stacked.rows(np.argsort(np.concatenate([others, at])))

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
    scored: Sequence[Scored], k: int, table: LabelTable | None = None, n_jobs: int | None = 1
) -> Ranking:
    """The k best labels of each row, with the names and ids of a table."""
    told: Any = {} if table is None else {"label_names": table.names, "label_ids": table.ids}
    return Ranking.concatenate(
        [
            Ranking.from_scores(
                s.candidates, k, values=s.scores, without_evidence=s.blank, n_jobs=n_jobs, **told
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
