"""`PointLists`: lists of points, label by label, and the ranker that learns to order them.

It mirrors the ranking of labels. There a row is a query and labels are its documents; here a label is a query
over a *batch* of rows, its points. The candidates are the best points of a label by each source, columns are
standardised within the label's list, and a ranker orders it. What is the same for all labels of a row, and so
teaches nothing where labels are ranked, now tells rows apart: how much each source expects of the row at all
(`row_columns`), as the frequency of a label does in the other direction.

In a fit each fold is a batch: the view without it describes its rows, as the view of all rows describes new
ones. A label is then a query once per fold, and nothing that differs between views, such as how many rows of
a label a TrainingView shows, can tell relevant points of a query from others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from metarank._util.progress import note, taking_notes
from metarank._util.threads import resolve_n_jobs
from metarank.model.answering.answer import Answering, Request
from metarank.model.cascade import united
from metarank.model.fitted import blank_rows
from metarank.model.fitting import auto
from metarank.model.fitting.auto import FitOptions
from metarank.ranker import AutoRanker, BoostedRanker, LinearRanker, Ranker, RankingData
from metarank.ranker.assemble import assemble, joined_columns
from metarank.ranker.lists import drawn_lists
from metarank.scorers.base import PointProposer
from metarank.scorers.crossfit import chunks
from metarank.scorers.source import Source
from metarank.types.candidates import Candidates
from metarank.types.feature_table import Columns, FeatureTable
from metarank.types.given import Given
from metarank.types.ranking import PointRanking
from metarank.types.view import CHUNK_PAIRS, Features, TrainingSet

# Keeps the draw of queries apart from those of rows and folds.
_DRAW_SHIFT = 11_000_003
# With fewer lists to learn from, trees have nothing to split.
_LISTS_FOR_TREES = 50
# Standard errors within which the first ranker is kept: lists that share points are no independent witnesses.
_TOLERANCE = 2.0


class PointLists(NamedTuple):
    """The lists of points that the ranker of points learns from.

    Attributes
    ----------
    candidates : Candidates of r training rows, m pairs
        All pairs of the lists, by row.
    query : int64 array (m,)
        The list of each pair: the place of the fold of its row, times L, plus its label.
    gains : float32 array (m,)
    row_columns : dict of str to float32 array (r,)
    """

    candidates: Candidates
    query: np.ndarray
    gains: np.ndarray
    row_columns: Columns


def best_by_label(proposals: Candidates, k: int) -> Candidates:
    """Of proposals for some rows, the k rows of each label with the greatest score; ties go to the earlier
    row. Proposals without scores are all kept.

    Examples
    --------
    >>> c = Candidates(np.array([0, 2, 3]), np.array([0, 1, 0]), 2, {"score": np.array([0.1, 0.2, 0.3])})
    >>> best_by_label(c, 1).to_csr().toarray()
    array([[0. , 0.2],
           [0.3, 0. ]], dtype=float32)
    """
    return proposals.transpose().top(k).transpose() if proposals.scores else proposals


def row_columns(X: Features, sources: Sequence[Source], proposals: Sequence[Candidates]) -> Columns:
    """What tells rows apart whatever the label: the sum and the maximum of the scores of each source's
    proposals for the row, and of sparse rows the number of entries. float32 (n,) each."""
    n, columns = X.shape[0], []
    proposing = [source.name for source in sources if source.proposes]
    for name, part in zip(proposing, proposals):
        if not part.scores:
            continue
        scores, filled = part.final_score, np.diff(part.indptr) > 0
        greatest = np.zeros(n, np.float32)
        if filled.any():
            greatest[filled] = np.maximum.reduceat(scores, part.indptr[:-1][filled])
        total = np.bincount(part.row_of_pair, scores, n).astype(np.float32)
        columns.append({f"row: sum of scores ({name})": total, f"row: best score ({name})": greatest})
    if not isinstance(X, np.ndarray):
        columns.append({"row: number of features": np.diff(X.indptr).astype(np.float32)})
    return joined_columns(columns)[0]


def point_lists(
    data: TrainingSet,
    rows: np.ndarray,
    sources: Sequence[Source],
    proposals: Sequence[Candidates],
    held_out: Sequence[Candidates | None],
    excluded: Candidates | None,
    seen: np.ndarray | None,
    options: FitOptions,
) -> PointLists:
    """The lists of the training rows `rows`, ascending.

    Parameters
    ----------
    proposals : list of Candidates
        What each source that proposes, proposes for the rows, from fits without the row's fold.
    held_out : list of Candidates or None
        The same by its search for points, fold by fold, where it has one.
    excluded : Candidates of all training rows, or None
    seen : int64 array (K, L) or None
        Rows of each label outside each fold, without which nothing is known of it; None if some source also
        reads names or what others say.
    options : FitOptions

    Raises
    ------
    ValueError
        If no list has points to tell apart.
    """
    X, Y, n_labels = data.X[rows], data.Y[rows], data.Y.shape[1]
    folds, batch = np.unique(data.fold[rows], return_inverse=True)
    parts = [
        _best_of_each(part, batch, options.shortlist_size) if points is None else points
        for part, points in zip(proposals, held_out)
    ]
    candidates = united(parts, len(rows), n_labels)
    if excluded is not None:
        candidates = candidates.without(excluded.rows(rows))
    candidates = _of_known_rows(candidates, X, None if data.given is None else data.given[rows])
    query = batch[candidates.row_of_pair] * np.int64(n_labels) + candidates.labels
    gains = candidates.values_of(Y)
    # Of a query both some relevant point is to be found and another: else there is nothing to order.
    size = np.bincount(query, minlength=len(folds) * n_labels)
    positive = np.bincount(query[gains > 0], minlength=len(size))
    size[(positive == 0) | (positive == size)] = 0
    if seen is not None:
        size[(seen[folds] == 0).ravel()] = 0
    is_drawn = np.zeros(len(size), bool)
    is_drawn[drawn_lists(size, auto.POINT_PAIRS, data.seed + _DRAW_SHIFT)] = True
    kept = (is_drawn & (size > 0))[query]
    if not kept.any():
        raise ValueError(
            "labelwise=True needs labels with relevant and other rows among their candidates, got none"
        )
    of_rows = row_columns(X, sources, proposals) if options.standardizes else {}
    return PointLists(candidates.where(kept), query[kept], gains[kept], of_rows)


def _best_of_each(proposals: Candidates, batch: np.ndarray, k: int) -> Candidates:
    """`best_by_label` of the rows of each batch, without scores."""
    parts = [np.flatnonzero(batch == b) for b in np.unique(batch)]
    best = Candidates.stack([best_by_label(proposals.rows(part), k) for part in parts])
    back = best.rows(np.argsort(np.concatenate(parts), kind="stable"))
    return Candidates.united([back])


def _of_known_rows(candidates: Candidates, X: Features, given: Given | None) -> Candidates:
    """The candidates of rows of which something is known."""
    return candidates.where(~np.repeat(blank_rows(X, given), np.diff(candidates.indptr)))


def ranked_points(
    columns: Sequence[Columns], lists: PointLists, standardize: bool, seed: int, n_jobs: int
) -> Ranker:
    """The ranker of points, fitted: the one of two that cross-validation prefers.

    `columns` are those of the sources for the pairs of `lists.candidates`.
    """
    candidates, query, gains, of_rows = lists
    table, order = points_table(columns, of_rows, candidates, query, standardize, n_jobs)
    number = query[order][table.indptr[:-1]]
    fold, label = np.divmod(number, candidates.n_labels)
    weight = 1.0 / np.bincount(label)[label]  # the lists of a label weigh 1 together
    ranker: Ranker = LinearRanker(loss="listnet")
    if len(weight) >= _LISTS_FOR_TREES and len(np.unique(fold)) > 1:
        ranker = AutoRanker(candidates=[ranker, BoostedRanker(objective="lambdarank")], tolerance=_TOLERANCE)
    with taking_notes():
        ranker.fit_lists(RankingData.checked(table, gains[order], weight, fold, seed), n_jobs)
    note(f"labelwise: {ranker.summary()}, from {len(weight)} lists of points")
    return ranker


def points_table(
    columns: Sequence[Columns],
    of_rows: Columns,
    candidates: Candidates,
    query: np.ndarray,
    standardize: bool,
    n_jobs: int,
) -> tuple[FeatureTable, np.ndarray]:
    """The table of the pairs of each query, a list after another: the columns of the sources, and of the
    rows, each standardised within its list; and the positions of its pairs in `candidates`."""
    row, order = candidates.row_of_pair, np.argsort(query, kind="stable")
    sizes = np.unique(query, return_counts=True)[1]
    lists = Candidates(np.concatenate([[0], np.cumsum(sizes)]), row[order], candidates.n_rows)
    named = joined_columns([*columns, {name: values[row] for name, values in of_rows.items()}])[0]
    of_lists = {name: values[order] for name, values in named.items()}
    return assemble(of_lists, lists, standardize=standardize, n_jobs=n_jobs), order


def best_points(answering: Answering, request: Request, k: int) -> PointRanking:
    """The k best rows of each label: by the ranker of points, or by probability where the model has none."""
    model, k = answering.model, min(k, max(1, request.n_rows))
    if request.known is not None:
        raise ValueError("known must be left out for points of labels: use exclude")
    scored = _probable(answering, request) if model.point_ranker is None else _ranked(answering, request, k)
    best = PointRanking.from_scores(scored.transpose(), k, n_jobs=answering.n_jobs)
    return replace(best, index=model.label_names)  # type: ignore[return-value]


def _probable(answering: Answering, request: Request) -> Candidates:
    """All pairs with a probability above 0, which is their score."""
    parts = []
    for scored in answering.score(request):
        probability = answering.model.probabilities(scored)
        pairs = replace(scored.candidates, scores={"score": probability})
        parts.append(pairs.where(probability > 0))
    return Candidates.stack(parts)


def _ranked(answering: Answering, request: Request, k: int) -> Candidates:
    """The candidates of all labels, about `CHUNK_PAIRS` of them scored at once."""
    model, ranker = answering.model, answering.model.point_ranker
    assert ranker is not None
    searches, proposals = answering.proposed(request)
    of_rows = row_columns(request.X, model.sources, proposals)
    every = _candidates(answering, request, proposals, max(k, answering.shortlist_size))
    del proposals
    scores = np.zeros(every.n_pairs, np.float32)
    for some in chunks(np.bincount(every.labels, minlength=model.n_labels), CHUNK_PAIRS):
        inside = (every.labels >= some.start) & (every.labels < some.stop)
        pairs = every.where(inside)
        if pairs.n_pairs:
            columns = answering.columns(request, pairs, searches)
            n_jobs = resolve_n_jobs(answering.n_jobs)
            table, order = points_table(columns, of_rows, pairs, pairs.labels, model.standardizes, n_jobs)
            scores[np.flatnonzero(inside)[order]] = answering.evidence_of(table.select(ranker.names_), ranker)
    return replace(every, scores={"score": scores})


def _candidates(answering: Answering, request: Request, proposals: list[Candidates], k: int) -> Candidates:
    """The candidates of all labels, by row: the k best points of each by each source, or the user's own."""
    model, (X, limits, candidates, given, _) = answering.model, request
    n_jobs = resolve_n_jobs(answering.n_jobs)
    if candidates is None:
        parts = [
            scorer.shortlist_points(X, k, n_jobs=n_jobs).transpose()
            if isinstance(scorer, PointProposer)
            else best_by_label(part, k)
            for scorer, part in zip(model.shortlisters, proposals)
        ]
        candidates = answering.united(parts, request.n_rows)
    if model.unknown is not None:
        candidates = candidates.without_labels(np.flatnonzero(model.unknown))
    return limits.within(_of_known_rows(candidates, X, given))
