"""`Scoring`: the half of `MetaRanker` that knows the order in which its stages answer.

rows -> candidates -> meta-features -> scores
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from metarank._threads import resolve_n_jobs
from metarank._validation import ScoresNotFiniteError
from metarank.candidates import Candidates
from metarank.encoder import InputEncoder
from metarank.features.assemble import assemble
from metarank.features.table import FeatureTable
from metarank.memory import parse_budget, prediction_chunk
from metarank.ranker import Ranker
from metarank.restrict import Limits
from metarank.scorers.base import Features, LabelScorer
from metarank.stages import Columns, joined_columns

# Arguments by scorer (its id), of what was searched once for all that it is asked.
Found: TypeAlias = dict[int, dict[str, Any]]

# Scores beyond are not finite as float32, once they lean towards rare labels.
_MOST_SCORE = 1e38


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
    feature_columns_: list[str]
    raw_columns_: list[str] | None
    shortlisters_: list[LabelScorer]
    scorers_: list[LabelScorer]
    ranker_: Ranker

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
            scorer.score(X, candidates, n_jobs=n_jobs, **found.get(id(scorer), {}))
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

    def _scored_chunks(
        self, X: Features, own: Candidates | None, limits: Limits, k: int = 1, ranker: Ranker | None = None
    ) -> list[tuple[Candidates, np.ndarray]]:
        n, ranker = X.shape[0], ranker or self.ranker_
        least = max(k, self.shortlist_size)
        per_row = self.n_labels_
        if self.shortlisters_:
            per_row = max(least, self.shortlist_size * len(self.shortlisters_))
        chunk = prediction_chunk(parse_budget(self.memory_budget), len(self.feature_columns_))
        step = max(1, chunk // max(1, per_row))
        out = []
        for start in range(0, n, step):
            rows = slice(start, min(n, start + step))
            part = X if step >= n else X[rows]
            found = self.searched(part) if own is None else {}
            c = limits.cut(self.candidates_of(part, found) if own is None else own.rows(rows), rows)
            if own is None and self.shortlisters_:
                c = limits.complete(c, rows, least, self.inv_propensity_)
            table = self.table_of(part, c, found)
            scores = ranker.score(table, n_jobs=resolve_n_jobs(self.n_jobs))
            if not np.all(np.abs(scores) <= _MOST_SCORE):
                raise ScoresNotFiniteError("scores must be finite: X holds extreme values, or the model does")
            out.append((c, scores))
        return out


def united(parts: list[Candidates], n_rows: int, n_labels: int) -> Candidates:
    """The union of what shortlisters propose; all labels where there is none."""
    if not parts:
        return Candidates.all_labels(n_rows, n_labels)
    return Candidates.united(parts)
